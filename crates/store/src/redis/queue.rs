//! What waits to be worked on: jobs by their place in line, the ready ones and the hidden ones in sets of their own.

use super::scripts::{LuaScript, RedisCall, ScriptReply, read};
use super::{RedisStore, scripts};
use crate::queue::{Job, JobOutcome, JobStage, Queue, QueuedJob, TakenJob};
use crate::{Error, Holder, Result};
use komado_core::SessionId;
use redis::{ToRedisArgs, Value};
use std::time::Duration;

/// How many jobs are read in one go.
const PAGE: usize = 256;

fn read_job(text: &str) -> Result<Job> {
    serde_json::from_str(text).map_err(|e| Error::damaged("the queue", e))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 16).min(u64::MAX >> 16)
}

impl RedisStore {
    fn line(&self, script: &'static LuaScript, args: impl ToRedisArgs) -> RedisCall {
        RedisCall::script(script, &self.0.keys.queue(), args).spread()
    }

    fn did(&self, script: &'static LuaScript, args: impl ToRedisArgs) -> Result<bool> {
        Ok(read::<u64>(self.0.link.ask(self.line(script, args))?.value)? == 1)
    }
}

impl Queue for RedisStore {
    fn adopt(&self, queued: &QueuedJob) -> Result<bool> {
        let QueuedJob { job, stage, tries, why } = queued;
        let word = if *stage == JobStage::Dead { "dead" } else { "waiting" };
        let row = serde_json::to_string(job).unwrap_or_default();
        let args = (job.session.as_str(), &job.key, row, self.0.nonce(), word, u64::from(*tries), why);
        self.did(&scripts::ENQUEUE, args)
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>> {
        let holder = serde_json::to_string(holder).unwrap_or_default();
        let said = self.0.said(self.line(&scripts::TAKE, (holder, millis(hidden), self.0.nonce())))?;
        if said.word != "ok" {
            return Ok(None);
        }
        let job = read_job(&said.text(0))?;
        let why = said.rest.get(3).cloned().map(read).transpose()?.flatten();
        Ok(Some(TakenJob { job, token: said.number(1), tries: said.number(2) as u32, why }))
    }

    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()> {
        let id = &taken.job.session;
        let is_ours = self.did(&scripts::HIDE, (id.as_str(), taken.token, millis(hidden)))?;
        if is_ours { Ok(()) } else { Err(Error::NotYours(id.clone())) }
    }

    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()> {
        let id = &taken.job.session;
        let (word, pause, why) = match outcome {
            JobOutcome::Done => ("done", Duration::ZERO, ""),
            JobOutcome::Again { pause, why } => ("again", *pause, why.as_str()),
            JobOutcome::Back => ("back", Duration::ZERO, ""),
            JobOutcome::Dead { why } => ("dead", Duration::ZERO, why.as_str()),
        };
        let args = (id.as_str(), taken.token, word, millis(pause), why);
        let answer = self.0.link.ask(self.line(&scripts::END, args))?;
        let is_ours = match read::<u64>(answer.value)? {
            1 => true,
            // The first call was heard, its answer was not.
            2 => answer.was_repeated,
            3 => answer.was_repeated && *outcome == JobOutcome::Done,
            _ => false,
        };
        if is_ours { Ok(()) } else { Err(Error::NotYours(id.clone())) }
    }

    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let after = after.map_or("", SessionId::as_str);
        // By place: the last job of a page may have left before the next is read.
        let (mut jobs, mut place): (Vec<QueuedJob>, String) = Default::default();
        while jobs.len() < limit {
            let count = PAGE.min(limit - jobs.len());
            let ask = RedisCall::script(&scripts::JOBS, &self.0.keys.queue(), (after, &place, count));
            let said = self.0.said(ask)?;
            place = said.text(0);
            let is_last = said.rest.len() <= count;
            for value in said.rest.into_iter().skip(1) {
                jobs.push(queued(value)?);
            }
            if is_last {
                break;
            }
        }
        Ok(jobs)
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        self.did(&scripts::REQUEUE, id.as_str())
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        let answer = self.0.link.ask(self.line(&scripts::WITHDRAW, id.as_str()))?;
        Ok(answer.was_repeated || read::<u64>(answer.value)? == 1)
    }
}

fn queued(value: Value) -> Result<QueuedJob> {
    let said = ScriptReply::of(value)?;
    let stage = match said.text(0).as_str() {
        "held" => JobStage::Held(Holder::read(said.text(1).as_bytes())),
        "dead" => JobStage::Dead,
        _ => JobStage::Waiting,
    };
    let why = said.rest.get(3).cloned().map(read).transpose()?.flatten();
    Ok(QueuedJob { job: read_job(&said.word)?, stage, tries: said.number(2) as u32, why })
}
