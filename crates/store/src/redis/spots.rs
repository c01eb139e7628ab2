//! Where a client's transcript may go on.
//!
//! Each name has its moments, in the order they were noted; each session a set of its moments with their names, which is
//! there to clean up after it. A moment says which session of its id it means, so that a later one does not inherit it.

use super::ask::Ask;
use super::told::read;
use super::{Inner, RedisStore, scripts};
use crate::Result;
use crate::places::{MOST_SPOTS, Places, Spot};
use komado_core::{SessionId, ThreadId};
use std::collections::{BTreeMap, HashMap};

/// How many moments of a session are taken out in one go.
const SOME: usize = 256;

impl Places for RedisStore {
    fn note(&self, spots: &[Spot]) -> Result<()> {
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
        let named =
            by_session.iter().map(|(id, names)| Ask::cmd("SADD").arg(store.keys.names(id)).arg(names));
        store.link.ask_all(named.collect())?;
        let noted = by_name
            .iter()
            .map(|(name, moments)| Ask::script(&scripts::NOTE, &[store.keys.spots(name)]).arg(moments));
        store.link.ask_all(noted.collect()).map(drop)
    }

    fn spots(&self, name: &str) -> Result<Vec<Spot>> {
        let (store, key) = (&self.0, self.0.keys.spots(name));
        let (mut found, mut seen) = (Vec::new(), 0);
        loop {
            let ask = Ask::cmd("ZREVRANGE").arg(&key).arg(seen).arg(seen + MOST_SPOTS - 1);
            let moments: Vec<String> = read(store.link.ask(ask)?.value)?;
            let spots: Vec<(Spot, &str)> = moments.iter().filter_map(|text| spot(name, text)).collect();
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

fn moment(spot: &Spot, born: &str) -> String {
    format!("{}\0{}\0{}\0{born}", spot.session, spot.thread, spot.seq)
}

/// What a session's set has: a name, and a moment of four parts.
fn named(member: &str) -> Option<(&str, &str)> {
    let name = member.rsplitn(5, '\0').nth(4)?;
    Some((name, &member[name.len() + 1..]))
}

fn spot<'a>(name: &str, text: &'a str) -> Option<(Spot, &'a str)> {
    let mut parts = text.split('\0');
    let session = SessionId::new(parts.next()?).ok()?;
    let thread = ThreadId::new(parts.next()?).ok()?;
    let seq = parts.next()?.parse().ok()?;
    Some((Spot { name: name.to_owned(), session, thread, seq }, parts.next()?))
}

impl Inner {
    /// Which of some sessions are there, each with the name of its making.
    fn births<'a>(&self, ids: impl Iterator<Item = &'a SessionId>) -> Result<HashMap<SessionId, String>> {
        let ids: std::collections::BTreeSet<&SessionId> = ids.collect();
        let asks = ids.iter().map(|id| Ask::cmd("HGET").arg(self.keys.heart(id)).arg("born")).collect();
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
        let some = |id: &&SessionId| Ask::cmd("SRANDMEMBER").arg(self.keys.names(id)).arg(SOME);
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
                moments.push(Ask::cmd("ZREM").arg(self.keys.spots(name)).arg(moment));
            }
            members.push(Ask::cmd("SREM").arg(self.keys.names(id)).arg(gone));
        }
        self.link.ask_all(moments)?;
        self.link.ask_all(members)?;
        Ok(bare)
    }
}
