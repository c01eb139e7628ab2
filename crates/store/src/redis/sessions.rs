//! Sessions: made, listed, changed, removed; and their threads.

use super::journal::RedisJournal;
use super::scripts::{RedisCall, read};
use super::search_index::RedisFields;
use super::tables::{read_session, session_text};
use super::{Inner, RedisStore, made, place, scripts, user};
use crate::memory::{changed, matches};
use crate::search_index::keyed::KeyedSearchIndex;
use crate::{
    Error, Holder, Journal, OpenMode, Result, SearchIndex, SessionChange, SessionQuery, Store, by_age, id_of,
    locked,
};
use komado_core::session::{Meta, Session};
use komado_core::thread::Header;
use komado_core::{SessionId, ThreadId};
use redis::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many sessions or threads are looked at in one go.
const PAGE: usize = 256;
/// Of how many sessions that are no more the names are taken out in one go.
const STRIKES: usize = 32;

impl Store for RedisStore {
    fn create(&self, meta: &Meta) -> Result<()> {
        let id = id_of(meta)?;
        let store = &self.0;
        let session = Session::new(meta);
        // A name without a session is taken out by the process that finds it: before and after, so that none is ever missing.
        store.link.ask_all(store.listing(&id, meta))?;
        let root = Header::root(id.clone(), &meta.created_at);
        let row = (session_text(&session), session.status.name(), root.thread.as_str(), root.encode());
        let args = (row, store.nonce(), store.ttl(), store.keys.news(), id.as_str());
        let said = store.said(store.about(&id, &scripts::CREATE, args).spread())?;
        if said.word == "exists" {
            return Err(Error::SessionExists(id));
        }
        store.link.ask_all(store.listing(&id, meta)).map(drop)
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        if let Some(id) = &query.id {
            let found = self.0.row(id)?.filter(|session| matches(query, id, session));
            return Ok(found.into_iter().collect());
        }
        let mut found = Vec::new();
        let mut after = query.after.as_ref().map(|(at, id)| made(at, id));
        loop {
            let page = self.0.page(query, after.as_deref())?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(place(last).to_owned());
            let (rows, gone) = self.0.rows(&page)?;
            gone.chunks(STRIKES).try_for_each(|some| self.0.strike(some))?;
            for (id, session) in rows {
                if matches(query, &id, &session) {
                    found.push(session);
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
            }
        }
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        let store = &self.0;
        let nonce = store.nonce();
        loop {
            let old = store.run(id, &scripts::LOOK, (scripts::HEART, "", "session"))?.text(0);
            let before = read_session(id, &old)?;
            let after = changed(&before, change);
            let crosses = before.status.is_ended() != after.status.is_ended();
            let is_refused = crosses && !matches!(change, SessionChange::Count { .. });
            let rows = (&old, session_text(&after), after.status.name());
            let call = (&nonce, store.ttl(), store.keys.news(), id.as_str(), u8::from(is_refused));
            let ask = store.about(id, &scripts::CHANGE, (rows, call));
            let said = match is_refused {
                true => store.while_idle(id, |claim| store.said(ask.arg(claim).spread()))?,
                false => store.said(ask.arg("").spread())?,
            };
            if said.word != "again" {
                return said.fine(id).map(|_| after);
            }
        }
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        let store = &self.0;
        let row = store.row(id)?;
        let answer = store.while_idle(id, |claim| {
            let args = (claim, store.keys.news(), id.as_str());
            store.link.ask(store.about(id, &scripts::REMOVE, args).spread())
        })?;
        let was_repeated = answer.was_repeated;
        let said = super::scripts::ScriptReply::of(answer.value)?;
        if !(was_repeated && said.word == "gone") {
            said.fine(id)?;
        }
        if let Some(session) = row {
            store.link.ask_all(store.in_indexes("ZREM", id, &session.meta))?;
        }
        store.forget_spots(id)
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        let mut headers = Vec::new();
        loop {
            let said = self.0.run(id, &scripts::THREADS, (headers.len() + 1, PAGE))?;
            let count = said.rest.len();
            for i in 0..count {
                headers.push(read_header(id, &said.text(i))?);
            }
            if count < PAGE {
                return Ok(by_age(headers));
            }
        }
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        let (id, store) = (&header.session, &self.0);
        let name = |moment: &Option<komado_core::thread::Moment>| {
            moment.as_ref().map(|moment| moment.thread.to_string()).unwrap_or_default()
        };
        let thread = (header.thread.as_str(), header.encode(), store.nonce(), store.ttl());
        let above = (header.base_seq(), name(&header.base), name(&header.parent));
        let args = (thread, above, store.keys.news(), id.as_str());
        let said = store.said(store.about(id, &scripts::SPAWN, args).spread())?;
        match said.word.as_str() {
            "exists" => Err(Error::ThreadExists(id.clone(), header.thread.clone())),
            "early" => Err(header.base.as_ref().map_or_else(
                || Error::damaged(id.as_str(), "a thread has no base"),
                |base| Error::no_entry(id, &base.thread, base.seq),
            )),
            _ => said.fine(id).map(drop),
        }
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        Ok(Box::new(RedisJournal::open(&self.0, id, thread, mode)?))
    }

    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        let said = self.0.while_idle(id, |claim| self.0.run(id, &scripts::WRITER, claim))?;
        Ok(Some(said.text(0)).filter(|text| !text.is_empty()).map(|text| Holder::read(text.as_bytes())))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        let fields = RedisFields { store: Arc::clone(&self.0), id: id.clone() };
        Ok(Box::new(KeyedSearchIndex::open(fields)?))
    }
}

pub(super) fn read_header(id: &SessionId, text: &str) -> Result<Header> {
    Header::decode(text).map_err(|e| Error::damaged(id.as_str(), e))
}

/// A session that is there.
type Found = (SessionId, Session);

/// A session that is no more, and the name under which an index still has it.
type Gone = (SessionId, String);

impl Inner {
    /// Puts a session into the indexes, or takes it out.
    fn in_indexes(&self, command: &str, id: &SessionId, meta: &Meta) -> Vec<RedisCall> {
        let place = made(&meta.created_at, id);
        let ask = |key: String| {
            let ask = RedisCall::cmd(command).arg(key);
            if command == "ZADD" { ask.arg(0) } else { ask }
        };
        let of_user = meta.user.as_ref().map(|name| ask(self.keys.users()).arg(user(name) + &place));
        [ask(self.keys.made()).arg(&place)].into_iter().chain(of_user).collect()
    }

    fn listing(&self, id: &SessionId, meta: &Meta) -> Vec<RedisCall> {
        self.in_indexes("ZADD", id, meta)
    }

    /// The same without waiting.
    pub(super) fn list_again(self: &Arc<Self>, id: &SessionId, meta: &Meta) {
        let (asks, link) = (self.listing(id, meta), Arc::clone(&self.link));
        self.link.wire.spawn(async move {
            for ask in asks {
                // Opening it again does this again.
                let _ = link.answer(&ask, link.patience).await;
            }
        });
    }

    /// A session's row, when it is there.
    fn row(&self, id: &SessionId) -> Result<Option<Session>> {
        Ok(self.rows_of(std::slice::from_ref(id))?.pop().flatten())
    }

    /// The next names after `after` in the index that knows most about what is asked.
    fn page(&self, query: &SessionQuery, after: Option<&str>) -> Result<Vec<String>> {
        let (key, begins) = match &query.user {
            Some(name) => (self.keys.users(), user(name)),
            None => (self.keys.made(), String::new()),
        };
        let from = match after {
            Some(after) => format!("({begins}{after}"),
            None => format!("[{begins}"),
        };
        let to = match &query.made_before {
            Some(time) => format!("({begins}{time}").into_bytes(),
            None if begins.is_empty() => b"+".to_vec(),
            None => [b"(", begins.as_bytes(), b"\xff"].concat(),
        };
        self.members(key, &from, &to)
    }

    /// The next few names in an index.
    fn members(&self, key: String, from: &str, to: &[u8]) -> Result<Vec<String>> {
        let ask = RedisCall::cmd("ZRANGEBYLEX").arg(key).arg(from).arg(to).arg("LIMIT").arg(0).arg(PAGE);
        read(self.link.ask(ask)?.value)
    }

    /// The sessions of some names, and the names whose session is no more.
    fn rows(&self, names: &[String]) -> Result<(Vec<Found>, Vec<Gone>)> {
        let mut known = Vec::new();
        for name in names {
            let id = place(name).split_once('\0').and_then(|(_, id)| SessionId::new(id).ok());
            let none = || Error::damaged(self.keys.made(), format!("{name:?} is not a session"));
            known.push(id.ok_or_else(none)?);
        }
        let (mut found, mut gone) = (Vec::new(), Vec::new());
        for ((id, name), row) in known.iter().zip(names).zip(self.rows_of(&known)?) {
            match row.filter(|row| made(&row.meta.created_at, id) == place(name)) {
                Some(session) => found.push((id.clone(), session)),
                None => gone.push((id.clone(), name.clone())),
            }
        }
        Ok((found, gone))
    }

    fn rows_of(&self, ids: &[SessionId]) -> Result<Vec<Option<Session>>> {
        let asks =
            ids.iter().map(|id| RedisCall::cmd("HGET").arg(self.keys.heart(id)).arg("session")).collect();
        let values = self.link.ask_all(asks)?;
        let row = |(id, value): (&SessionId, Value)| {
            read::<Option<String>>(value)?.map(|row| read_session(id, &row)).transpose()
        };
        ids.iter().zip(values).map(row).collect()
    }

    /// Takes out names whose sessions ended by themselves. One with very many moments keeps its name until a later look:
    /// it leads to what is left of it.
    fn strike(&self, gone: &[Gone]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let ids: Vec<&SessionId> = gone.iter().map(|(id, _)| id).collect();
        let bare = self.forget_some_spots(&ids)?;
        let gone: Vec<&Gone> =
            gone.iter().zip(bare).filter_map(|(one, is_bare)| is_bare.then_some(one)).collect();
        let strike = |(_, name): &&Gone| RedisCall::cmd("ZREM").arg(self.keys.made()).arg(place(name));
        let struck = self.link.ask_all(gone.iter().map(strike).collect())?;
        let owned = gone.iter().filter(|(_, name)| place(name) != name);
        let disown = |(_, name): &&Gone| RedisCall::cmd("ZREM").arg(self.keys.users()).arg(name);
        self.link.ask_all(owned.map(disown).collect())?;
        let ids: Vec<SessionId> = gone.iter().map(|(id, _)| id.clone()).collect();
        for (((id, name), struck), row) in gone.into_iter().zip(struck).zip(self.rows_of(&ids)?) {
            match row.filter(|row| made(&row.meta.created_at, id) == place(name)) {
                // It was made after we looked, and perhaps listed before its name was taken out.
                Some(session) => drop(self.link.ask_all(self.listing(id, &session.meta))?),
                None => {
                    self.expired.fetch_add(read(struck)?, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Looks over the next few sessions, so that what ended by itself is noticed without being asked for.
    pub(super) fn look_over(&self) -> Result<()> {
        let mut looked = locked(&self.looked).clone();
        for (key, upto) in [self.keys.made(), self.keys.users()].into_iter().zip(&mut looked) {
            let from = if upto.is_empty() { "-".to_owned() } else { format!("({upto}") };
            let names = self.members(key, &from, b"+")?;
            let (_, gone) = self.rows(&names)?;
            self.strike(&gone[..gone.len().min(STRIKES)])?;
            *upto = names.last().cloned().unwrap_or_default();
        }
        *locked(&self.looked) = looked;
        Ok(())
    }
}
