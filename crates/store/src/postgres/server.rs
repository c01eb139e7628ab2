//! The server as callers see it who wait: one statement, or several that stand or fall together.

use super::address::Address;
use super::link::{Db, Link, Values};
use super::news::Teller;
use super::{lease::Leases, schema};
use crate::wire::Wire;
use crate::{Connecting, Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// A server, with what this process holds of it.
pub(super) struct Server {
    pub(super) link: Link,
    pub(super) wire: Wire,
    pub(super) schema: String,
    pub(super) how: Connecting,
    pub(super) leases: Arc<Leases>,
    pub(super) teller: Arc<Teller>,
}

impl Server {
    /// Connects, and brings the tables up to date.
    pub(super) fn open(url: &str, how: &Connecting) -> Result<Self> {
        let address = Address::parse(url, how.patience)?;
        let wire = Wire::new(address.place.clone(), how.patience)?;
        let link = Link::new(&address, how, how.connections.max(2))?;
        let (by, schema) = (link.clone(), address.schema.clone());
        let name = schema.clone();
        wire.call(async move { schema::prepare(&by, &name).await })?;
        let leases = Arc::new(Leases::new(how.lease));
        wire.spawn(super::lease::renew(Arc::downgrade(&leases), Link::new(&address, how, 1)?, how.lease));
        let teller = Arc::new(Teller::new(&schema));
        wire.spawn(super::news::tell(Arc::downgrade(&teller), link.clone()));
        Ok(Self { link, wire, schema, how: how.clone(), leases, teller })
    }

    /// Asks what may be asked twice.
    pub(super) fn ask(&self, sql: &'static str, values: Values) -> Result<Vec<Row>> {
        self.ask_text(sql.to_owned(), values)
    }

    /// The same with a statement made for the occasion.
    pub(super) fn ask_text(&self, sql: String, values: Values) -> Result<Vec<Row>> {
        let link = self.link.clone();
        self.wire.call(async move { link.ask_again(&sql, &values).await })
    }

    /// The same with another patience.
    pub(super) fn ask_for(&self, patience: Duration, sql: &'static str, values: Values) -> Result<Vec<Row>> {
        let link = self.link.clone();
        self.wire.call_for(patience, async move { link.ask_again(sql, &values).await })
    }

    /// Does what must not be done twice.
    pub(super) fn once(&self, sql: &'static str, values: Values) -> Result<Vec<Row>> {
        self.once_for(self.how.patience, sql, values)
    }

    /// The same with another patience.
    pub(super) fn once_for(&self, patience: Duration, sql: &'static str, values: Values) -> Result<Vec<Row>> {
        let link = self.link.clone();
        self.wire.call_for(patience, async move { link.ask(sql, &values).await })
    }

    /// Begins what stands or falls together.
    pub(super) fn begin(&self) -> Result<Work<'_>> {
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
        Ok(Work { server: self, db: Some(db) })
    }
}

/// Statements that stand or fall together; they fall when this is dropped.
pub(super) struct Work<'a> {
    server: &'a Server,
    db: Option<Db>,
}

impl Work<'_> {
    pub(super) fn ask(&mut self, sql: &'static str, values: Values) -> Result<Vec<Row>> {
        let mut db = self.take()?;
        let link = self.server.link.clone();
        let (db, rows) = self.server.wire.call(async move {
            let rows = db.ask(sql, &values).await.map_err(|fault| link.told(fault))?;
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

    fn take(&mut self) -> Result<Db> {
        let gone = || Error::away(self.server.wire.place(), "an earlier step failed".to_owned());
        self.db.take().ok_or_else(gone)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever made the last change may end at once; others want to hear of it.
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
