//! Connections to the server: taken from a pool, given back when nothing of ours is under way on them.

use super::address::Address;
use super::fault::{Fault, Sql, refused_by, told};
use crate::{Connecting, Error, Result};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a statement is given.
pub(super) type Values = Vec<Box<dyn ToSql + Send + Sync>>;

/// The values of a statement, each of its own type.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Send + Sync>),*]
    };
}
pub(super) use values;

/// How connections are made and kept; clones share them.
#[derive(Clone)]
pub(super) struct Link {
    pool: Pool,
    pub(super) config: Config,
    pub(super) tls: Option<MakeRustlsConnect>,
    pub(super) place: Arc<str>,
}

impl Link {
    /// A pool of `size` connections at the most; none is made before it is needed.
    pub(super) fn new(address: &Address, how: &Connecting, size: usize) -> Result<Self> {
        let tls = if address.is_sealed { Some(sealed(&address.place)?) } else { None };
        let quick = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let config = address.config.clone();
        let manager = match &tls {
            Some(tls) => Manager::from_config(config.clone(), tls.clone(), quick),
            None => Manager::from_config(config.clone(), NoTls, quick),
        };
        let wait = Some(how.patience);
        let pool = Pool::builder(manager)
            .max_size(size)
            .timeouts(Timeouts { wait, create: wait, recycle: wait })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| refused_by(&address.place, error.to_string()))?;
        Ok(Self { pool, config, tls, place: address.place.as_str().into() })
    }

    /// A connection; broken ones are passed over.
    pub(super) async fn db(&self) -> Sql<Db> {
        let object = self.pool.get().await?;
        Ok(Db { object: Some(object), is_busy: false, is_open: false })
    }

    /// One statement by itself.
    pub(super) async fn ask(&self, sql: &str, values: &Values) -> Result<Vec<Row>> {
        let done = async { self.db().await?.ask(sql, values).await };
        done.await.map_err(|fault| self.told(fault))
    }

    /// The same, again on another connection when the one it had was lost.
    pub(super) async fn ask_again(&self, sql: &str, values: &Values) -> Result<Vec<Row>> {
        for _ in 0..2 {
            let done = async { self.db().await?.ask(sql, values).await };
            match done.await {
                Err(fault) if fault.passes() => {}
                done => return done.map_err(|fault| self.told(fault)),
            }
        }
        self.ask(sql, values).await
    }

    pub(super) fn told(&self, fault: Fault) -> Error {
        told(&self.place, fault)
    }

    /// Connections that this process has.
    pub(super) fn connections(&self) -> usize {
        self.pool.status().size
    }
}

/// Speaks to nobody but who a certificate, known to this system, names.
fn sealed(place: &str) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| refused_by(place, format!("no TLS on this system: {error}")))?;
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// A connection in use. It goes back to the pool when dropped, unless an answer is still awaited on it or a transaction is
/// open: then it is closed, and the server takes back what was not committed.
pub(super) struct Db {
    object: Option<Object>,
    is_busy: bool,
    is_open: bool,
}

impl Db {
    /// Runs a statement, prepared once for each connection.
    pub(super) async fn ask(&mut self, sql: &str, values: &Values) -> Sql<Vec<Row>> {
        let Some(object) = &self.object else { return Err(Fault::gone()) };
        self.is_busy = true;
        let given: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as _).collect();
        let statement = object.prepare_cached(sql).await;
        let done = match &statement {
            Ok(statement) => object.query(statement, &given).await,
            Err(_) => Ok(Vec::new()),
        };
        self.is_busy = false;
        statement?;
        Ok(done?)
    }

    /// Runs statements that are given nothing and give nothing.
    pub(super) async fn run(&mut self, sql: &str) -> Sql<()> {
        let Some(object) = &self.object else { return Err(Fault::gone()) };
        self.is_busy = true;
        let done = object.batch_execute(sql).await;
        self.is_busy = false;
        Ok(done?)
    }

    pub(super) async fn begin(&mut self) -> Sql<()> {
        self.is_open = true;
        self.run("BEGIN").await
    }

    pub(super) async fn end(&mut self, word: &str) -> Sql<()> {
        self.run(word).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if (self.is_busy || self.is_open)
            && let Some(object) = self.object.take()
        {
            drop(Object::take(object));
        }
    }
}

/// How long to wait before the server is tried again, the n-th time.
pub(super) fn pause(tries: u32) -> Duration {
    Duration::from_millis(10 << tries.min(5))
}
