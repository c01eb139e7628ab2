//! Sessions from one store into another, byte for byte.
//!
//! Whatever is interrupted is run again and goes on: what the target holds already is compared, never written over, and a
//! session that differs is named and left alone. The source is only looked at. A session counts as moved when its digest,
//! read back from the target, is that of the source; its row is written last, so one that never got so far is seen to be
//! unfinished. What is derived (views for people, the index of words) is made again and not copied.

use crate::engine::QueuedJobs;
use komado_core::session::{Session, State};
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{
    BranchFilter, Holder, Job, JobStage, Journal, OpenMode, QueuedJob, SessionChange, SessionQuery, Store,
};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

mod copy;

pub use copy::SessionDigest;

/// What to do about a session that a process writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiveSessions {
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
pub struct CopyProgress {
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
pub struct MovedSession {
    /// What both stores hold.
    #[serde(flatten)]
    pub seal: SessionDigest,
    /// What had to be added for that.
    pub added: CopyProgress,
    /// How often it was gone over.
    pub rounds: u32,
}

/// What would be done with a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MigrationPlan {
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
    live: LiveSessions,
}

impl<'s> Migration<'s> {
    /// From one store to another.
    pub fn new(from: &'s dyn Store, to: &'s dyn Store, live: LiveSessions) -> Self {
        Self { from, to, live }
    }

    /// Copies a session and everything in it, and checks it. `each` is told what was added so far.
    pub fn session(&self, id: &SessionId, each: &mut dyn FnMut(&CopyProgress)) -> Result<MovedSession> {
        let writer = self.from.writer(id)?;
        let most = match (self.live, writer) {
            (LiveSessions::Refuse, Some(holder)) => return Err(Error::Live { session: id.clone(), holder }),
            (LiveSessions::Refuse, None) => 1,
            (LiveSessions::CatchUp { rounds }, _) => rounds.max(1),
        };
        let mut added = CopyProgress::default();
        for round in 1..=most {
            self.copy(id, &mut added, each)?;
            let (source, target) = (SessionDigest::of(self.from, id)?, SessionDigest::of(self.to, id)?);
            if source == target {
                return Ok(MovedSession { seal: source, added, rounds: round });
            }
        }
        Err(Error::Growing { session: id.clone(), rounds: most })
    }

    /// Compares a session in both stores and changes nothing.
    pub fn verify(&self, id: &SessionId) -> Result<SessionDigest> {
        let source = SessionDigest::of(self.from, id)?;
        match SessionDigest::of(self.to, id) {
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
    pub fn look(&self, id: &SessionId) -> Result<MigrationPlan> {
        if self.live == LiveSessions::Refuse
            && let Some(holder) = self.from.writer(id)?
        {
            return Err(Error::Live { session: id.clone(), holder });
        }
        let there = row(self.to, id)?.is_some();
        let mut standing = MigrationPlan::default();
        for header in self.from.threads(id)? {
            let own = |store: &dyn Store| -> komado_store::Result<u64> {
                let journal = store.open(id, &header.thread, OpenMode::Read)?;
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
    pub fn remove(&self, id: &SessionId, moved: &SessionDigest) -> Result<bool> {
        let held = self.from.open(id, &ThreadId::root(), OpenMode::Amend)?;
        let same = SessionDigest::of(self.from, id)? == *moved;
        drop(held);
        if same {
            self.from.remove(id)?;
        }
        Ok(same)
    }

    /// One round: everything that the source has and the target has not.
    fn copy(
        &self,
        id: &SessionId,
        added: &mut CopyProgress,
        each: &mut dyn FnMut(&CopyProgress),
    ) -> Result<()> {
        let source = row(self.from, id)?.ok_or_else(|| komado_store::Error::NoSession(id.clone()))?;
        self.enter(id, &source)?;
        let root = self.hold(id)?;
        let Self { from, to, .. } = *self;
        let mut copier = copy::Copier { from, to, id, added, each, blobs: HashSet::new() };
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

    /// Keeps everyone else from writing the session at the target. When the process that writes it at the source now, and did not
    /// before, is whom the target names, it is us: one store under two names. Anybody else has only just come.
    fn hold(&self, id: &SessionId) -> Result<Box<dyn Journal>> {
        let before = self.from.writer(id)?;
        let root = self.to.open(id, &ThreadId::root(), OpenMode::Amend)?;
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
            self.to.change(id, &SessionChange::State { to, at, why: source.error_message.clone() })?;
        }
        self.to.change(id, &SessionChange::Row(Box::new(source.clone())))?;
        Ok(())
    }
}

/// A session's row, when the store has the session.
fn row(store: &dyn Store, id: &SessionId) -> Result<Option<Session>> {
    Ok(store.sessions(&SessionQuery { id: Some(id.clone()), ..SessionQuery::default() })?.pop())
}

// Why a session was not moved.

/// What migration gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with one session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One of the stores could not.
    #[error(transparent)]
    Store(#[from] komado_store::Error),
    /// A process writes it at the source.
    #[error(
        "session {session} is being written by {holder}; it was left alone: run this again when they are done, or with \
         --live catch-up"
    )]
    Live {
        /// The session.
        session: SessionId,
        /// Who writes.
        holder: Holder,
    },
    /// It never held still.
    #[error(
        "session {session} was changed while it was copied (gone over {rounds} times); what was copied is kept: run this \
         again when no process writes it"
    )]
    Growing {
        /// The session.
        session: SessionId,
        /// How often it was gone over.
        rounds: u32,
    },
    /// Another session of this name.
    #[error(
        "the target has another session {0}, made at another time or with other settings; nothing was overwritten: remove \
         it there, or leave this one out"
    )]
    Taken(SessionId),
    /// The target says something else.
    #[error(
        "the target has something else at {session}/{thread}@{seq}; nothing was overwritten: remove the session there, or \
         leave it out"
    )]
    Differs {
        /// The session.
        session: SessionId,
        /// The thread.
        thread: ThreadId,
        /// The first entry that is not the same; for a header that is not the same, the one before its own first.
        seq: Seq,
    },
    /// The target does not have it.
    #[error("the target has no session {0}; run this without --verify-only")]
    Absent(SessionId),
    /// The digests differ.
    #[error(
        "session {session} is not the same in both stores: {source_digest} at the source, {target_digest} at the target; \
         run this without --verify-only"
    )]
    Unequal {
        /// The session.
        session: SessionId,
        /// Its digest at the source.
        source_digest: String,
        /// Its digest at the target.
        target_digest: String,
    },
    /// A blob that is not what its name says.
    #[error(
        "output {blob} of session {session} reads as {found}: {place} gave back other bytes than were put"
    )]
    Blob {
        /// The session.
        session: SessionId,
        /// The blob's name.
        blob: String,
        /// What its bytes are called.
        found: String,
        /// Which store.
        place: &'static str,
    },
    /// Two names for one place.
    #[error("source and target are the same store; give two different ones")]
    SameStore,
    /// A blob could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

// What stands beside the journals: the table of spawned threads, mail, lessons, the queue.

/// What becomes of a job at the source once the target has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceJob {
    /// It stays there, too.
    Keep,
    /// It is taken out of the queue.
    Withdraw,
}

/// A job that stays where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobLeft {
    /// Its session.
    pub session: SessionId,
    /// Why, and what to do.
    pub why: String,
}

impl Migration<'_> {
    /// The session's spawned threads and the words that wait for them, in place of what an earlier round brought.
    fn tables(&self, id: &SessionId) -> Result<()> {
        let here = self.from.branches(id, BranchFilter::All)?;
        for gone in self.to.branches(id, BranchFilter::All)? {
            if !here.iter().any(|branch| branch.thread == gone.thread) {
                self.to.drop_branch(id, &gone.thread)?;
            }
        }
        for branch in &here {
            self.to.put_branch(branch)?;
        }
        for header in self.from.threads(id)? {
            let waiting = self.from.mail(id, &header.thread)?;
            for known in self.to.mail(id, &header.thread)? {
                if !waiting.contains(&known) {
                    self.to.taken(id, &header.thread, &known.from, known.seq)?;
                }
            }
            for mail in &waiting {
                self.to.post(id, &header.thread, mail)?;
            }
        }
        Ok(())
    }

    /// What was learned about models; what the target knows about one is kept. Gives how many lessons were new to it.
    pub fn lessons(&self) -> Result<u64> {
        let mut new = 0;
        for (about, lesson) in self.from.lessons()? {
            self.to.learn(&about, &mut |known| {
                let is_new = known.is_none();
                new += u64::from(is_new);
                is_new.then(|| lesson.clone())
            })?;
        }
        Ok(new)
    }

    /// The jobs of sessions that are `wanted`, in their order, copied or moved; one that was laid aside is so at the target,
    /// too, for a task that rests goes on from there. Gives how many were new to the target;
    /// `left` is told of each that cannot go.
    pub fn jobs(
        &self,
        then: SourceJob,
        mut wanted: impl FnMut(&Job) -> Result<bool>,
        mut left: impl FnMut(JobLeft),
    ) -> Result<u64> {
        let (mut new, mut there) = (0, There::default());
        for queued in QueuedJobs::of(self.from) {
            let queued = queued?;
            if wanted(&queued.job)? {
                let (is_new, stays) = self.bring(&queued, then, &mut there)?;
                new += u64::from(is_new);
                stays.into_iter().for_each(&mut left);
            }
        }
        Ok(new)
    }

    /// One job; gives whether it was new to the target, and why it stays at the source where it cannot go.
    fn bring(
        &self,
        queued: &QueuedJob,
        then: SourceJob,
        there: &mut There,
    ) -> Result<(bool, Option<JobLeft>)> {
        let job = &queued.job;
        if let Some(why) = stays(queued) {
            return Ok((false, Some(JobLeft { session: job.session.clone(), why })));
        }
        let is_new = self.to.adopt(queued)?;
        if then == SourceJob::Keep {
            return Ok((is_new, None));
        }
        if !is_new && !has_job(there, self.to, job)? {
            return Ok((false, Some(taken(job))));
        }
        self.from.withdraw(&job.session)?;
        Ok((is_new, None))
    }
}

/// The jobs that the target had when this was first asked: session and key of each.
type There = Option<HashMap<SessionId, String>>;

/// True when the target has this very job.
fn has_job(there: &mut There, target: &dyn Store, job: &Job) -> Result<bool> {
    if there.is_none() {
        let all =
            QueuedJobs::of(target).map(|queued| queued.map(|queued| (queued.job.session, queued.job.key)));
        *there = Some(all.collect::<komado_store::Result<_>>()?);
    }
    Ok(there.as_ref().and_then(|known| known.get(&job.session)) == Some(&job.key))
}

/// One whose place at the target is taken.
fn taken(job: &Job) -> JobLeft {
    let why = format!(
        "job {} stays at the source: the target has another one with this key or of this session; withdraw one of them",
        job.key
    );
    JobLeft { session: job.session.clone(), why }
}

/// Why a job stays: a worker has it.
fn stays(queued: &QueuedJob) -> Option<String> {
    let JobStage::Held(holder) = &queued.stage else { return None };
    let key = &queued.job.key;
    Some(format!(
        "job {key} is being worked on by {holder}; run this again when they are done, or nothing is lost by waiting"
    ))
}
