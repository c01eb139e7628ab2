//! The small tables: spawned threads and their mail, sessions' rows, what was learned about models, and where a client's
//! transcript may go on.

use super::scripts::{RedisCall, TREE, read};
use super::{Inner, RedisStore, scripts};
use crate::tables::{
    BranchFilter, BranchTable, Lessons, MOST_SPOTS, ThreadMail, TranscriptPlace, TranscriptPlaces,
};
use crate::{Error, Result};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

impl BranchTable for RedisStore {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        let (id, name, store) = (&branch.session, &branch.thread, &self.0);
        let row = serde_json::to_string(branch).unwrap_or_default();
        let parent = branch.parent.as_ref().map(ThreadId::as_str).unwrap_or_default();
        let fields = (format!("branch:{name}"), row, format!("parent:{name}"), parent);
        let told = (format!("told:{name}"), u8::from(branch.told));
        store.write(id, &scripts::PUT, (TREE, store.ttl(), fields, told)).map(drop)
    }

    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>> {
        let texts = self.0.run(id, &scripts::NAMES, (TREE, "all"))?.rest;
        let texts = texts.into_iter().map(read).collect::<Result<Vec<String>>>()?;
        let (pairs, _) = texts.as_chunks::<2>();
        let fields: HashMap<&str, &str> =
            pairs.iter().map(|[field, value]| (field.as_str(), value.as_str())).collect();
        let mut found = Vec::new();
        for (field, text) in &fields {
            if let Some(name) = field.strip_prefix("branch:") {
                let told = fields.get(format!("told:{name}").as_str()) == Some(&"1");
                found.push(read_branch(id, text, told).map_err(|e| Error::damaged(id.as_str(), e))?);
            }
        }
        found.retain(|branch| match (&which, &branch.parent) {
            (_, None) => false,
            (BranchFilter::All, _) => true,
            (BranchFilter::Unsettled, _) => {
                !branch.told || (branch.held_by.is_some() && branch.status.is_open())
            }
            (BranchFilter::Under(thread), Some(parent)) => thread == parent,
        });
        found.sort_by(|a, b| (a.depth, &a.created_at, &a.thread).cmp(&(b.depth, &b.created_at, &b.thread)));
        Ok(found)
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.0.write(id, &scripts::UNSETTLE, parent.as_str()).map(drop)
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        let fields = ["branch", "parent", "told"].map(|field| format!("{field}:{thread}"));
        self.0.run(id, &scripts::DROP, (TREE, &fields[..])).map(drop)
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        let args = ("post", to.as_str(), mail.from.as_str(), mail.seq, self.0.ttl());
        self.0.write(id, &scripts::MAIL, args).map(drop)
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        let lines = self.0.run(id, &scripts::LOOK, (TREE, "", format!("mail:{to}")))?.text(0);
        let mail = |line: &str| {
            let (from, seq) = line.split_once(' ')?;
            Some(ThreadMail { from: ThreadId::new(from).ok()?, seq: seq.parse().ok()? })
        };
        let read = |line: &str| {
            mail(line).ok_or_else(|| Error::damaged(id.as_str(), format!("{line:?} is no mail")))
        };
        lines.lines().map(read).collect()
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        let args = ("take", to.as_str(), from.as_str(), upto, self.0.ttl());
        self.0.run(id, &scripts::MAIL, args).map(drop)
    }
}

/// A branch as it was written down. Its session is known, and whether its parent was told stands beside it.
fn read_branch(id: &SessionId, text: &str, told: bool) -> serde_json::Result<Branch> {
    let mut row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)?;
    row.insert("session".into(), id.as_str().into());
    row.insert("told".into(), told.into());
    serde_json::from_value(row.into())
}

/// A session's row as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Session")]
struct SessionRow {
    meta: Meta,
    status: State,
    started_at: Option<String>,
    completed_at: Option<String>,
    updated_at: String,
    error_message: Option<String>,
    counters: Counters,
}

pub(super) fn session_text(session: &Session) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing our own types to memory cannot fail.
    let _ = SessionRow::serialize(session, &mut serde_json::Serializer::new(&mut text));
    text
}

pub(super) fn read_session(id: &SessionId, text: &str) -> Result<Session> {
    let row = SessionRow::deserialize(&mut serde_json::Deserializer::from_str(text));
    row.map_err(|e| Error::damaged(id.as_str(), e))
}

impl Lessons for RedisStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        read(self.0.link.ask(RedisCall::cmd("HGET").arg((self.0.keys.lessons(), about)))?.value)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        let ask = RedisCall::cmd("HGETALL").arg(self.0.keys.lessons());
        let all: BTreeMap<String, String> = read(self.0.link.ask(ask)?.value)?;
        Ok(all.into_iter().collect())
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        let ask = RedisCall::script(&scripts::LEARN, &[self.0.keys.lessons()], (about, new, old));
        read(self.0.link.ask(ask.spread())?.value)
    }

    fn forget(&self, about: &str) -> Result<bool> {
        read(self.0.link.ask(RedisCall::cmd("HDEL").arg((self.0.keys.lessons(), about)))?.value)
    }
}

// Where a client's transcript may go on.
//
// Each name has its moments, in the order they were noted; each session a set of its moments with their names, which is
// there to clean up after it. A moment says which session of its id it means, so that a later one does not inherit it.

/// How many moments of a session are taken out in one go.
const SOME: usize = 256;

impl TranscriptPlaces for RedisStore {
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()> {
        let store = &self.0;
        let born = store.births(spots.iter().map(|spot| &spot.session))?;
        let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut by_session: BTreeMap<&SessionId, Vec<String>> = BTreeMap::new();
        for spot in spots {
            if let Some(born) = born.get(&spot.session) {
                let moment = moment(spot, born);
                by_session.entry(&spot.session).or_default().push(format!("{}\0{moment}", spot.name));
                by_name.entry(&spot.name).or_default().push(moment);
            }
        }
        let named = |(id, names): (&SessionId, Vec<String>)| {
            RedisCall::cmd("SADD").arg((store.keys.names(id), names))
        };
        store.link.ask_all(by_session.into_iter().map(named).collect())?;
        let noted = |(name, moments): (&str, Vec<String>)| {
            RedisCall::script(&scripts::NOTE, &[store.keys.spots(name)], moments)
        };
        store.link.ask_all(by_name.into_iter().map(noted).collect()).map(drop)
    }

    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        let (store, key) = (&self.0, self.0.keys.spots(name));
        let (mut found, mut seen) = (Vec::new(), 0);
        loop {
            let ask = RedisCall::cmd("ZREVRANGE").arg(&key).arg(seen).arg(seen + MOST_SPOTS - 1);
            let moments: Vec<String> = read(store.link.ask(ask)?.value)?;
            let spots: Vec<(TranscriptPlace, &str)> =
                moments.iter().filter_map(|text| spot(name, text)).collect();
            let born = store.births(spots.iter().map(|(spot, _)| &spot.session))?;
            let alive =
                spots.iter().filter(|(spot, when)| born.get(&spot.session).is_some_and(|born| born == when));
            found.extend(alive.map(|(spot, _)| spot.clone()));
            if moments.len() < MOST_SPOTS || found.len() >= MOST_SPOTS {
                found.truncate(MOST_SPOTS);
                return Ok(found);
            }
            seen += moments.len();
        }
    }
}

fn moment(spot: &TranscriptPlace, born: &str) -> String {
    format!("{}\0{}\0{}\0{born}", spot.session, spot.thread, spot.seq)
}

/// What a session's set has: a name, and a moment of four parts.
fn named(member: &str) -> Option<(&str, &str)> {
    let name = member.rsplitn(5, '\0').nth(4)?;
    Some((name, &member[name.len() + 1..]))
}

fn spot<'a>(name: &str, text: &'a str) -> Option<(TranscriptPlace, &'a str)> {
    let mut parts = text.split('\0');
    let session = SessionId::new(parts.next()?).ok()?;
    let thread = ThreadId::new(parts.next()?).ok()?;
    let seq = parts.next()?.parse().ok()?;
    Some((TranscriptPlace { name: name.to_owned(), session, thread, seq }, parts.next()?))
}

impl Inner {
    /// Which of some sessions are there, each with the name of its making.
    fn births<'a>(&self, ids: impl Iterator<Item = &'a SessionId>) -> Result<HashMap<SessionId, String>> {
        let ids: std::collections::BTreeSet<&SessionId> = ids.collect();
        let asks = ids.iter().map(|id| RedisCall::cmd("HGET").arg(self.keys.heart(id)).arg("born")).collect();
        let mut born = HashMap::new();
        for (id, value) in ids.into_iter().zip(self.link.ask_all(asks)?) {
            if let Some(when) = read::<Option<String>>(value)? {
                born.insert(id.clone(), when);
            }
        }
        Ok(born)
    }

    /// Takes out the moments of a session that is no more.
    pub(super) fn forget_spots(&self, id: &SessionId) -> Result<()> {
        while !self.forget_some_spots(&[id])?.into_iter().all(|is_bare| is_bare) {}
        Ok(())
    }

    /// Takes out a few moments of each of some sessions that are no more; says of which none is left.
    pub(super) fn forget_some_spots(&self, ids: &[&SessionId]) -> Result<Vec<bool>> {
        let born = self.births(ids.iter().copied())?;
        let some = |id: &&SessionId| RedisCall::cmd("SRANDMEMBER").arg(self.keys.names(id)).arg(SOME);
        let found = self.link.ask_all(ids.iter().map(some).collect())?;
        let (mut moments, mut members, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for (id, value) in ids.iter().zip(found) {
            let all: Vec<String> = read(value)?;
            let lives = |member: &str| born.get(*id).is_some_and(|born| member.ends_with(born.as_str()));
            let gone: Vec<&String> = all.iter().filter(|member| !lives(member)).collect();
            bare.push(all.len() < SOME || gone.is_empty());
            if gone.is_empty() {
                continue;
            }
            for (name, moment) in gone.iter().filter_map(|member| named(member)) {
                moments.push(RedisCall::cmd("ZREM").arg(self.keys.spots(name)).arg(moment));
            }
            members.push(RedisCall::cmd("SREM").arg(self.keys.names(id)).arg(gone));
        }
        self.link.ask_all(moments)?;
        self.link.ask_all(members)?;
        Ok(bare)
    }
}
