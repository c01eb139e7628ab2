//! Live events: what is journaled, as it is journaled, also by other processes.
//!
//! A reader looks when the store tells that something happened, and once in a while by itself; nothing is kept for a reader
//! who is slow, since a journal is read where the reader is. Who hears of all sessions looks at those that the news name, and
//! at all of them at first, where news may be missing, and once in a while. An event of a session has the id `thread@seq`,
//! followed by where the session's other threads are, so that a reader who comes back with `Last-Event-ID` misses nothing
//! and hears nothing twice.

use super::call::{At, Call, Desk};
use super::problem::{Answer, Problem};
use super::take::{Named, Params};
use crate::server::House;
use crate::server::news::Listener;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream;
use komado_core::{Seq, SessionId, ThreadId};
use komado_ops::session::SessionRow;
use komado_store::{Mode, Query};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utoipa::{IntoParams, ToSchema};

/// How often a session is looked at where other processes change it unheard: files tell only what this one does.
const LOOK: Duration = Duration::from_millis(250);
/// How often all sessions are, and how often at the most.
const LOOK_ALL: Duration = Duration::from_secs(1);
/// How often anything is where everything is heard of, in case something was not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Entries read at a time.
const BATCH: usize = 200;
/// A sign of life for whatever stands between.
const ALIVE: Duration = Duration::from_secs(15);

/// Where to begin.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Begin {
    /// With what comes now (the default), or with the first entry
    #[param(inline)]
    from: Option<Whence>,
}

/// Where to begin.
#[derive(Deserialize, ToSchema, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum Whence {
    #[default]
    Now,
    Start,
}

/// Where each thread is.
type Places = BTreeMap<String, Seq>;

/// What is known of a reader.
struct Reader<P> {
    call: Call,
    listener: Listener,
    watch: P,
    /// The sessions to look at; `None` for all.
    heard: Heard,
    /// When all were looked at last.
    whole: Instant,
    waiting: VecDeque<Event>,
    is_over: bool,
}

/// Sessions in which something happened; `None` where it may have been any.
type Heard = Option<HashSet<SessionId>>;

/// Looks once; `None` when there is nothing more to wait for.
type Looked<P> = Answer<Option<(P, Vec<Event>)>>;

fn events<P: Clone + Send + 'static>(
    call: Call,
    (listener, watch): (Listener, P),
    about: Option<SessionId>,
    look: fn(&mut Desk, P, Heard) -> Looked<P>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (heard, whole, waiting) = (None, Instant::now(), VecDeque::new());
    let reader = Reader { call, listener, watch, heard, whole, waiting, is_over: false };
    let stream = stream::unfold((reader, about), move |(mut reader, about)| async move {
        loop {
            if let Some(event) = reader.waiting.pop_front() {
                return Some((Ok(event), (reader, about)));
            }
            if reader.is_over {
                return None;
            }
            let (watch, heard) = (reader.watch.clone(), reader.heard());
            match reader.call.clone().run(move |desk| look(desk, watch, heard)).await {
                Ok(Some((watch, events))) => (reader.watch, reader.waiting) = (watch, events.into()),
                Ok(None) => reader.is_over = true,
                Err(problem) => {
                    let event = Event::default()
                        .event("problem")
                        .data(json!({ "detail": problem.detail }).to_string());
                    (reader.waiting, reader.is_over) = (VecDeque::from([event]), true);
                }
            }
            let is_done = !reader.waiting.is_empty() || reader.is_over;
            if !is_done {
                reader.heard = wait(&reader.call.house, &mut reader.listener, about.as_ref()).await?;
            }
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE))
}

impl<P> Reader<P> {
    /// Where to look now; everywhere when that was long ago, however much is heard.
    fn heard(&mut self) -> Heard {
        let heard = self.heard.replace(HashSet::new()).filter(|_| self.whole.elapsed() < LOOK_AGAIN);
        if heard.is_none() {
            self.whole = Instant::now();
        }
        heard
    }
}

/// Waits for news, of one session or of all, and gives where to look; `None` when the server is to stop.
async fn wait(house: &Arc<House>, listener: &mut Listener, about: Option<&SessionId>) -> Option<Heard> {
    let (least, most) = match (about, &house.context.files) {
        (Some(_), Some(_)) => (Duration::ZERO, LOOK),
        (Some(_), None) => (Duration::ZERO, LOOK_AGAIN),
        (None, Some(_)) => (LOOK_ALL, LOOK_ALL),
        (None, None) => (LOOK_ALL, LOOK_AGAIN),
    };
    let news = async {
        tokio::time::sleep(least).await;
        listener.wake(about).await
    };
    let heard = tokio::select! {
        () = house.stop.cancelled() => return None,
        heard = news => heard,
        () = tokio::time::sleep(most) => None,
    };
    Some(heard.filter(|_| house.context.files.is_none()))
}

/// Begins to hear what happens.
fn listen(call: &Call) -> Listener {
    let house = &call.house;
    house.news.listen(&house.context.engine, &house.stop)
}

/// Hear of each entry of a session, as it is journaled (server-sent events)
///
/// Each event `entry` has the data `{"thread": …, "entry": …}`; `Last-Event-ID` goes on where a reader left off.
#[utoipa::path(get, path = "/api/v1/sessions/{session}/events", tag = "events", params(At, Begin),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn of_session(
    call: Call,
    Named(at): Named<At>,
    Params(begin): Params<Begin>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let last = call.headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
    let listener = listen(&call);
    let begun = call.clone().run(move |desk| {
        let (id, _) = desk.session(&at.session)?;
        let places = match last {
            Some(last) => read(&last)?,
            None if begin.from == Some(Whence::Start) => Places::new(),
            None => now(desk, &id)?,
        };
        Ok((id, places))
    });
    let begun = begun.await?;
    let about = begun.0.clone();
    Ok(events(call, (listener, begun), Some(about), look))
}

/// Where every thread is now.
fn now(desk: &Desk, id: &SessionId) -> Answer<Places> {
    let store = desk.context.engine.store();
    let threads = store.threads(id)?.into_iter();
    let last = |thread: ThreadId| Ok((thread.to_string(), store.open(id, &thread, Mode::Read)?.last()));
    threads.map(|header| last(header.thread)).collect()
}

/// An id: where this event is, then where the others are.
fn id(thread: &str, places: &Places) -> String {
    let one = |(thread, seq): (&String, &Seq)| format!("{thread}@{seq}");
    let own = places.get_key_value(thread).map(one);
    let others = places.iter().filter(|(other, _)| *other != thread).map(one);
    own.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn read(id: &str) -> Answer<Places> {
    let wrong =
        || Problem::bad(format!("Last-Event-ID {id:?} is none of these events; leave it out to begin anew"));
    let one = |text: &str| {
        let (thread, seq) = text.split_once('@').ok_or_else(wrong)?;
        let thread = ThreadId::new(thread).map_err(|_| wrong())?;
        Ok((thread.to_string(), seq.parse().map_err(|_| wrong())?))
    };
    id.split_whitespace().map(one).collect()
}

/// What was journaled since. Who may see the session is asked each time anew.
fn look(
    desk: &mut Desk,
    (id_of, mut places): (SessionId, Places),
    _heard: Heard,
) -> Looked<(SessionId, Places)> {
    if desk.session(id_of.as_str()).is_err() {
        return Ok(None);
    }
    let store = desk.context.engine.store();
    let mut events = Vec::new();
    for header in store.threads(&id_of)? {
        let thread = header.thread.to_string();
        let journal = store.open(&id_of, &header.thread, Mode::Read)?;
        // A fork's own entries begin after those it shares.
        let mut seq = places.get(&thread).copied().unwrap_or(0).max(header.base_seq());
        while seq < journal.last() && events.len() < BATCH {
            seq += 1;
            let line = journal.line(seq)?;
            places.insert(thread.clone(), seq);
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            let event = format!("{{\"thread\":{},\"entry\":{line}}}", json!(thread));
            events.push(Event::default().event("entry").id(id(&thread, &places)).data(event));
        }
    }
    Ok(Some(((id_of, places), events)))
}

/// When each session last changed, and in which state it was; empty before the first look.
type Known = Option<HashMap<String, (String, &'static str)>>;

/// Hear of every session you may see: made, changed, ended, removed (server-sent events)
#[utoipa::path(get, path = "/api/v1/events", tag = "events",
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn of_all(call: Call) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let listener = listen(&call);
    events(call, (listener, None), None, look_at_all)
}

fn look_at_all(desk: &mut Desk, known: Known, heard: Heard) -> Looked<Known> {
    let known = match (known, heard) {
        (Some(known), Some(heard)) => return look_at_some(desk, known, heard),
        (known, _) => known,
    };
    let own =
        (!desk.guest.sees_all && desk.guest.sessions.is_empty()).then(|| desk.guest.user.clone()).flatten();
    let query = Query { user: own, ..Query::default() };
    let (mut now, mut events) = (HashMap::new(), Vec::new());
    let guest = desk.guest.clone();
    desk.context.engine.each_session(query, |session| {
        if guest.may_see(session) {
            let id = session.meta.uuid.clone();
            let state = (session.updated_at.clone(), session.status.name());
            let kind = known.as_ref().and_then(|known| changed(known.get(&id), &state));
            if let Some(kind) = kind {
                events.push(told(kind, &json!(SessionRow::from(session.clone()))));
            }
            now.insert(id, state);
        }
        Ok(())
    })?;
    let gone = known.iter().flat_map(|known| known.keys()).filter(|id| !now.contains_key(*id));
    events.extend(gone.map(|id| removed(id)));
    Ok(Some((Some(now), events)))
}

/// The same for those that were named: what there is to ask does not grow with the store.
fn look_at_some(
    desk: &mut Desk,
    mut known: HashMap<String, (String, &'static str)>,
    heard: HashSet<SessionId>,
) -> Looked<Known> {
    let mut events = Vec::new();
    for id in heard {
        let query = Query { id: Some(id.clone()), ..Query::default() };
        let found = desk.context.engine.store().sessions(&query)?.pop();
        let Some(session) = found.filter(|session| desk.guest.may_see(session)) else {
            events.extend(known.remove(id.as_str()).map(|_| removed(id.as_str())));
            continue;
        };
        let state = (session.updated_at.clone(), session.status.name());
        if let Some(kind) = changed(known.get(id.as_str()), &state) {
            events.push(told(kind, &json!(SessionRow::from(session))));
        }
        known.insert(id.to_string(), state);
    }
    Ok(Some((Some(known), events)))
}

fn removed(id: &str) -> Event {
    told("removed", &json!({ "session": id }))
}

fn changed(before: Option<&(String, &'static str)>, now: &(String, &'static str)) -> Option<&'static str> {
    match before {
        None => Some("created"),
        Some(before) if before.1 != now.1 => Some("state"),
        Some(before) if before.0 != now.0 => Some("appended"),
        Some(_) => None,
    }
}

fn told(kind: &str, row: &Value) -> Event {
    Event::default().event(kind).data(row.to_string())
}
