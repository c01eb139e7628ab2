//! Sessions from one store into another, byte for byte.
//!
//! Whatever is interrupted is run again and goes on: what the target holds already is compared, never written over, and a
//! session that differs is named and left alone. The source is only looked at. A session counts as moved when its digest,
//! read back from the target, is that of the source; its row is written last, so one that never got so far is seen to be
//! unfinished. What is derived (views for people, the index of words) is made again and not copied.

mod copy;
mod error;
mod seal;
mod tables;

pub use error::{Error, Result};
pub use seal::Seal;
pub use tables::{Left, Then};

use komado_core::session::{Session, State};
use komado_core::{SessionId, ThreadId};
use komado_store::{Change, Journal, Mode, Query, Store};
use serde::Serialize;

/// What to do about a session that somebody writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Live {
    /// Leave it, and say so.
    Refuse,
    /// Copy it, then what came since, at most so often in all.
    CatchUp {
        /// How often.
        rounds: u32,
    },
}

/// How far a session's copying has come: what was added at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CopyProgress"))]
pub struct Progress {
    /// Entries.
    pub entries: u64,
    /// Outputs.
    #[serde(rename = "outputs")]
    pub blobs: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// A session that is at the target, whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// What both stores hold.
    #[serde(flatten)]
    pub seal: Seal,
    /// What had to be added for that.
    pub added: Progress,
    /// How often it was gone over.
    pub rounds: u32,
}

/// What would be done with a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standing {
    /// Its threads.
    pub threads: u64,
    /// Its entries.
    pub entries: u64,
    /// Those that the target has, or seems to have.
    pub there: u64,
}

/// Two stores, and what is to be done between them.
pub struct Migration<'s> {
    from: &'s dyn Store,
    to: &'s dyn Store,
    live: Live,
}

impl<'s> Migration<'s> {
    /// From one store to another.
    pub fn new(from: &'s dyn Store, to: &'s dyn Store, live: Live) -> Self {
        Self { from, to, live }
    }

    /// Copies a session and everything in it, and checks it. `each` is told what was added so far.
    pub fn session(&self, id: &SessionId, each: &mut dyn FnMut(&Progress)) -> Result<Moved> {
        let writer = self.from.writer(id)?;
        let most = match (self.live, writer) {
            (Live::Refuse, Some(holder)) => return Err(Error::Live { session: id.clone(), holder }),
            (Live::Refuse, None) => 1,
            (Live::CatchUp { rounds }, _) => rounds.max(1),
        };
        let mut added = Progress::default();
        for round in 1..=most {
            self.copy(id, &mut added, each)?;
            let (source, target) = (Seal::of(self.from, id)?, Seal::of(self.to, id)?);
            if source == target {
                return Ok(Moved { seal: source, added, rounds: round });
            }
        }
        Err(Error::Growing { session: id.clone(), rounds: most })
    }

    /// Compares a session in both stores and changes nothing.
    pub fn verify(&self, id: &SessionId) -> Result<Seal> {
        let source = Seal::of(self.from, id)?;
        match Seal::of(self.to, id) {
            Ok(target) if target == source => Ok(source),
            Ok(target) => {
                let (source, target) = (source.digest, target.digest);
                Err(Error::Unequal { session: id.clone(), source_digest: source, target_digest: target })
            }
            Err(Error::Store(komado_store::Error::NoSession(_))) => Err(Error::Absent(id.clone())),
            Err(other) => Err(other),
        }
    }

    /// What copying a session would come to.
    pub fn look(&self, id: &SessionId) -> Result<Standing> {
        if self.live == Live::Refuse
            && let Some(holder) = self.from.writer(id)?
        {
            return Err(Error::Live { session: id.clone(), holder });
        }
        let there = row(self.to, id)?.is_some();
        let mut standing = Standing::default();
        for header in self.from.threads(id)? {
            let own = |store: &dyn Store| -> komado_store::Result<u64> {
                let journal = store.open(id, &header.thread, Mode::Read)?;
                Ok(u64::from(journal.last().saturating_sub(header.base_seq())))
            };
            standing.threads += 1;
            standing.entries += own(self.from)?;
            standing.there += match there.then(|| own(self.to)) {
                None | Some(Err(komado_store::Error::NoThread(..))) => 0,
                Some(found) => found?,
            };
        }
        Ok(standing)
    }

    /// Removes a session from the source when it still is what was moved; false when it is not. It is held while it is
    /// compared, so that nothing is said in it meanwhile that would be lost.
    pub fn remove(&self, id: &SessionId, moved: &Seal) -> Result<bool> {
        let held = self.from.open(id, &ThreadId::root(), Mode::Amend)?;
        let same = Seal::of(self.from, id)? == *moved;
        drop(held);
        if same {
            self.from.remove(id)?;
        }
        Ok(same)
    }

    /// One round: everything that the source has and the target has not.
    fn copy(&self, id: &SessionId, added: &mut Progress, each: &mut dyn FnMut(&Progress)) -> Result<()> {
        let source = row(self.from, id)?.ok_or_else(|| komado_store::Error::NoSession(id.clone()))?;
        self.enter(id, &source)?;
        let root = self.hold(id)?;
        let mut copier = copy::Copier::new(self.from, self.to, id, added, each);
        copier.threads(root)?;
        self.tables(id)?;
        copier.note_alias(&source)?;
        self.write_row(id, &source)
    }

    /// Makes the session where it is not there. One of the same name that was made with something else is another one.
    fn enter(&self, id: &SessionId, source: &Session) -> Result<()> {
        let mut meta = source.meta.clone();
        meta.queued = source.status == State::Queued;
        match row(self.to, id)? {
            None => Ok(self.to.create(&meta)?),
            Some(mut there) => {
                there.meta.queued = meta.queued;
                if there.meta == meta { Ok(()) } else { Err(Error::Taken(id.clone())) }
            }
        }
    }

    /// Keeps everyone else from writing the session at the target. When whoever writes it at the source now, and did not
    /// before, is whom the target names, it is us: one store under two names. Anybody else has only just come.
    fn hold(&self, id: &SessionId) -> Result<Box<dyn Journal>> {
        let before = self.from.writer(id)?;
        let root = self.to.open(id, &ThreadId::root(), Mode::Amend)?;
        if before.is_none()
            && let Some(holder) = self.from.writer(id)?
            && self.to.writer(id)? == Some(holder)
        {
            return Err(Error::SameStore);
        }
        Ok(root)
    }

    /// Gives the session the state, times and counters that it has at the source.
    fn write_row(&self, id: &SessionId, source: &Session) -> Result<()> {
        let there = row(self.to, id)?.ok_or_else(|| komado_store::Error::NoSession(id.clone()))?;
        if there == *source {
            return Ok(());
        }
        if there.status != source.status {
            let (to, at) = (source.status, source.updated_at.clone());
            self.to.change(id, &Change::State { to, at, why: source.error_message.clone() })?;
        }
        self.to.change(id, &Change::Row(Box::new(source.clone())))?;
        Ok(())
    }
}

/// A session's row, when the store has the session.
fn row(store: &dyn Store, id: &SessionId) -> Result<Option<Session>> {
    Ok(store.sessions(&Query { id: Some(id.clone()), ..Query::default() })?.pop())
}
