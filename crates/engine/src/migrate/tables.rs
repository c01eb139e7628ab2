//! What stands beside the journals: the table of spawned threads, mail, lessons, the queue.

use super::{Migration, Result};
use crate::jobs::Jobs;
use komado_core::SessionId;
use komado_store::{Job, Queued, Stage, Store, Which};
use std::collections::HashMap;

/// What becomes of a job at the source once the target has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It stays there, too.
    Keep,
    /// It is taken out of the queue.
    Withdraw,
}

/// A job that stays where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Left {
    /// Its session.
    pub session: SessionId,
    /// Why, and what to do.
    pub why: String,
}

impl Migration<'_> {
    /// The session's spawned threads and the words that wait for them, in place of what an earlier round brought.
    pub(super) fn tables(&self, id: &SessionId) -> Result<()> {
        let here = self.from.branches(id, Which::All)?;
        for gone in self.to.branches(id, Which::All)? {
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
        then: Then,
        mut wanted: impl FnMut(&Job) -> Result<bool>,
        mut left: impl FnMut(Left),
    ) -> Result<u64> {
        let (mut new, mut there) = (0, There::default());
        for queued in Jobs::of(self.from) {
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
    fn bring(&self, queued: &Queued, then: Then, there: &mut There) -> Result<(bool, Option<Left>)> {
        let job = &queued.job;
        if let Some(why) = stays(queued) {
            return Ok((false, Some(Left { session: job.session.clone(), why })));
        }
        let is_new = self.to.adopt(queued)?;
        if then == Then::Keep {
            return Ok((is_new, None));
        }
        if !is_new && !there.has(self.to, job)? {
            return Ok((false, Some(taken(job))));
        }
        self.from.withdraw(&job.session)?;
        Ok((is_new, None))
    }
}

/// The jobs that the target had when this was first asked: session and key of each.
#[derive(Default)]
struct There(Option<HashMap<SessionId, String>>);

impl There {
    /// True when the target has this very job.
    fn has(&mut self, target: &dyn Store, job: &Job) -> Result<bool> {
        let known = match &mut self.0 {
            Some(known) => known,
            none => {
                let all =
                    Jobs::of(target).map(|queued| queued.map(|queued| (queued.job.session, queued.job.key)));
                none.insert(all.collect::<komado_store::Result<_>>()?)
            }
        };
        Ok(known.get(&job.session) == Some(&job.key))
    }
}

/// One whose place at the target is taken.
fn taken(job: &Job) -> Left {
    let why = format!(
        "job {} stays at the source: the target has another one with this key or of this session; withdraw one of them",
        job.key
    );
    Left { session: job.session.clone(), why }
}

/// Why a job stays: somebody has it.
fn stays(queued: &Queued) -> Option<String> {
    let Stage::Held(holder) = &queued.stage else { return None };
    let key = &queued.job.key;
    Some(format!(
        "job {key} is being worked on by {holder}; run this again when they are done, or nothing is lost by waiting"
    ))
}
