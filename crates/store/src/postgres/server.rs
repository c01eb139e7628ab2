//! The server as callers see it who wait: one statement, or several that stand or fall together.

use super::address::PostgresAddress;
use super::lease::{LeaseClaims, PostgresLease as LeaseRow};
use super::news::PostgresNotifier;
use super::schema;
use crate::lease::Leases;
use crate::server_calls::CallRuntime;
use crate::{ConnectOptions, Error, Result};
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A server, with what this process holds of it.
pub(super) struct PostgresServer {
    pub(super) link: PostgresLink,
    pub(super) wire: CallRuntime,
    pub(super) schema: String,
    pub(super) how: ConnectOptions,
    pub(super) leases: Arc<Leases<LeaseRow>>,
    pub(super) claims: LeaseClaims,
    pub(super) teller: Arc<PostgresNotifier>,
}

impl PostgresServer {
    /// Connects, and brings the tables up to date.
    pub(super) fn open(url: &str, how: &ConnectOptions) -> Result<Self> {
        let address = PostgresAddress::parse(url, how.patience)?;
        let wire = CallRuntime::new(address.place.clone(), how.patience)?;
        let link = PostgresLink::new(&address, how, how.connections.max(2))?;
        let (by, schema) = (link.clone(), address.schema.clone());
        let name = schema.clone();
        wire.call(async move { schema::prepare(&by, &name).await })?;
        let leases = Leases::new(how.holder.clone());
        wire.spawn(super::lease::renew(
            Arc::downgrade(&leases),
            PostgresLink::new(&address, how, 1)?,
            how.lease,
        ));
        let teller = Arc::new(PostgresNotifier::new(&schema));
        wire.spawn(super::news::tell(Arc::downgrade(&teller), link.clone()));
        Ok(Self { link, wire, schema, how: how.clone(), leases, claims: LeaseClaims::new(), teller })
    }

    /// Asks what may be asked twice.
    pub(super) fn ask(&self, sql: impl Into<String>, values: StatementValues) -> Result<Vec<Row>> {
        self.ask_for(self.how.patience, sql, values)
    }

    /// The same with another patience.
    pub(super) fn ask_for(
        &self,
        patience: Duration,
        sql: impl Into<String>,
        values: StatementValues,
    ) -> Result<Vec<Row>> {
        let (link, sql) = (self.link.clone(), sql.into());
        self.wire.call_for(patience, async move { link.ask_again(&sql, &values).await })
    }

    /// Does what must not be done twice.
    pub(super) fn once(&self, sql: impl Into<String>, values: StatementValues) -> Result<Vec<Row>> {
        self.once_for(self.how.patience, sql, values)
    }

    /// The same with another patience.
    pub(super) fn once_for(
        &self,
        patience: Duration,
        sql: impl Into<String>,
        values: StatementValues,
    ) -> Result<Vec<Row>> {
        let (link, sql) = (self.link.clone(), sql.into());
        self.wire.call_for(patience, async move { link.ask(&sql, &values).await })
    }

    /// Begins what stands or falls together.
    pub(super) fn begin(&self) -> Result<PostgresTransaction<'_>> {
        let link = self.link.clone();
        let db = self.wire.call(async move {
            let begun = async {
                let mut db = link.db().await?;
                // A connection that was lost while it lay idle shows here, where nothing was done yet.
                if db.begin().await.is_err() {
                    db = link.db().await?;
                    db.begin().await?;
                }
                Ok(db)
            };
            begun.await.map_err(|fault| link.told(fault))
        })?;
        Ok(PostgresTransaction { server: self, db: Some(db) })
    }
}

/// Statements that stand or fall together; they fall when this is dropped.
pub(super) struct PostgresTransaction<'a> {
    server: &'a PostgresServer,
    db: Option<PooledConnection>,
}

impl PostgresTransaction<'_> {
    pub(super) fn ask(&mut self, sql: impl Into<String>, values: StatementValues) -> Result<Vec<Row>> {
        let mut db = self.take()?;
        let (link, sql) = (self.server.link.clone(), sql.into());
        let (db, rows) = self.server.wire.call(async move {
            let rows = db.ask(&sql, &values).await.map_err(|fault| link.told(fault))?;
            Ok((db, rows))
        })?;
        self.db = Some(db);
        Ok(rows)
    }

    pub(super) fn commit(self) -> Result<()> {
        self.end("COMMIT")
    }

    /// Takes everything back.
    pub(super) fn leave(self) -> Result<()> {
        self.end("ROLLBACK")
    }

    fn end(mut self, word: &'static str) -> Result<()> {
        let mut db = self.take()?;
        let link = self.server.link.clone();
        self.server.wire.call(async move { db.end(word).await.map_err(|fault| link.told(fault)) })
    }

    fn take(&mut self) -> Result<PooledConnection> {
        let gone = || Error::away(self.server.wire.place(), "an earlier step failed".to_owned());
        self.db.take().ok_or_else(gone)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // The process may end right after its last change; watchers want to hear of it.
        let (teller, link) = (Arc::clone(&self.teller), self.link.clone());
        if teller.has_news() {
            let short = self.how.patience.min(Duration::from_secs(1));
            let _ = self.wire.call_for(short, async move {
                teller.flush(&link).await;
                Ok(())
            });
        }
    }
}

// Connections to the server: taken from a pool, given back when nothing of ours is under way on them.

/// What a statement is given.
pub(super) type StatementValues = Vec<Box<dyn ToSql + Send + Sync>>;

/// The values of a statement, each of its own type.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Send + Sync>),*]
    };
}
pub(super) use values;

/// How connections are made and kept; clones share them.
#[derive(Clone)]
pub(super) struct PostgresLink {
    pool: Pool,
    pub(super) config: Config,
    pub(super) tls: Option<MakeRustlsConnect>,
    pub(super) place: Arc<str>,
}

impl PostgresLink {
    /// A pool of `size` connections at the most; none is made before it is needed.
    pub(super) fn new(address: &PostgresAddress, how: &ConnectOptions, size: usize) -> Result<Self> {
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
    pub(super) async fn db(&self) -> PostgresResult<PooledConnection> {
        let object = self.pool.get().await?;
        Ok(PooledConnection { object: Some(object), is_busy: false, is_open: false })
    }

    /// One statement by itself.
    pub(super) async fn ask(&self, sql: &str, values: &StatementValues) -> Result<Vec<Row>> {
        let done = async { self.db().await?.ask(sql, values).await };
        done.await.map_err(|fault| self.told(fault))
    }

    /// The same, again on another connection when the one it had was lost.
    pub(super) async fn ask_again(&self, sql: &str, values: &StatementValues) -> Result<Vec<Row>> {
        for _ in 0..2 {
            let done = async { self.db().await?.ask(sql, values).await };
            match done.await {
                Err(fault) if fault.passes() => {}
                done => return done.map_err(|fault| self.told(fault)),
            }
        }
        self.ask(sql, values).await
    }

    pub(super) fn told(&self, fault: PostgresFault) -> Error {
        told(&self.place, fault)
    }

    /// Connections that this process has.
    pub(super) fn connections(&self) -> usize {
        self.pool.status().size
    }
}

/// Speaks only to a server whose certificate this system trusts.
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
pub(super) struct PooledConnection {
    object: Option<Object>,
    is_busy: bool,
    is_open: bool,
}

impl PooledConnection {
    /// Runs a statement, prepared once for each connection.
    pub(super) async fn ask(&mut self, sql: &str, values: &StatementValues) -> PostgresResult<Vec<Row>> {
        let Some(object) = &self.object else { return Err(PostgresFault::gone()) };
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
    pub(super) async fn run(&mut self, sql: &str) -> PostgresResult<()> {
        let Some(object) = &self.object else { return Err(PostgresFault::gone()) };
        self.is_busy = true;
        let done = object.batch_execute(sql).await;
        self.is_busy = false;
        Ok(done?)
    }

    pub(super) async fn begin(&mut self) -> PostgresResult<()> {
        self.is_open = true;
        self.run("BEGIN").await
    }

    pub(super) async fn end(&mut self, word: &str) -> PostgresResult<()> {
        self.run(word).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for PooledConnection {
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

// What the driver says went wrong, in the store's own words: away, and worth another try, or refused, and what to do.

/// What a conversation with the server comes to.
pub(super) type PostgresResult<T> = std::result::Result<T, PostgresFault>;

/// What went wrong.
#[derive(Debug)]
pub(super) enum PostgresFault {
    /// The driver or the server said so.
    Driver(tokio_postgres::Error),
    /// There was no connection to speak on.
    Pool(String),
}

impl From<tokio_postgres::Error> for PostgresFault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<PoolError> for PostgresFault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Driver(error),
            PoolError::Timeout(_) => Self::Pool("no connection became free in time".to_owned()),
            other => Self::Pool(other.to_string()),
        }
    }
}

impl PostgresFault {
    /// That a connection was given away.
    pub(super) fn gone() -> Self {
        Self::Pool("the connection is closed".to_owned())
    }

    /// The server's own code.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            Self::Pool(_) => None,
        }
    }

    /// True when a connection that was there is there no more, or two were in each other's way: the same may succeed at
    /// once.
    pub(super) fn passes(&self) -> bool {
        match (self, self.code()) {
            (_, Some(code)) => {
                is_ending(code)
                    || *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
            }
            (Self::Driver(error), None) => {
                error.is_closed() || words(error).starts_with("error communicating")
            }
            (Self::Pool(_), None) => false,
        }
    }
}

/// True when the server itself ends or begins.
fn is_ending(code: &SqlState) -> bool {
    matches!(code.code(), "57P01" | "57P02" | "57P03")
}

/// That a server refused.
pub(super) fn refused_by(place: &str, why: String) -> Error {
    Error::Refused { place: place.to_owned(), why }
}

/// The error in the store's words.
pub(super) fn told(place: &str, fault: PostgresFault) -> Error {
    match fault {
        PostgresFault::Pool(why) => Error::away(place, why),
        PostgresFault::Driver(error) => match error.as_db_error() {
            Some(said) => told_by_server(place, said),
            None => told_by_driver(place, &error),
        },
    }
}

fn told_by_server(place: &str, said: &DbError) -> Error {
    let (code, message) = (said.code(), said.message());
    let advice = match code.code() {
        "28P01" | "28000" => "check the user and the password in the URL",
        "3D000" => "make the database first, with createdb, or name another in the URL",
        "42501" => "let the user make and use the schema: GRANT CREATE ON DATABASE … TO …",
        "25006" => return Error::away(place, format!("it only lets itself be read ({message})")),
        "25P03" => {
            return Error::away(place, format!("we were silent for too long between two steps ({message})"));
        }
        other if is_away(other) => return Error::away(place, format!("{message} ({other})")),
        _ => "this is not a fault of the server; please report it",
    };
    refused_by(place, format!("{message} ({}); {advice}", code.code()))
}

/// True for codes that tell of the server's state, not of what was asked: connections, room, ends, time-outs, others in
/// the way.
fn is_away(code: &str) -> bool {
    ["08", "53", "57", "58", "40", "55"].iter().any(|class| code.starts_with(class))
}

fn told_by_driver(place: &str, error: &tokio_postgres::Error) -> Error {
    let why = words(error);
    if why.starts_with("error performing TLS handshake") {
        let advice = "check the server's certificate, or say sslmode=disable where the way to it is safe";
        return refused_by(place, format!("{why}; {advice}"));
    }
    if why.starts_with("invalid configuration") || why.starts_with("authentication error") {
        return refused_by(place, format!("{why}; check the user and the password in the URL"));
    }
    Error::away(place, why)
}

/// The error with all its causes.
fn words(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = deeper.source();
    }
    text
}
