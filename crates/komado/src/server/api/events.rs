//! Live events: what is journaled, as it is journaled, also by other processes.
//!
//! The store is looked at a few times a second for each reader; nothing is kept for a reader who is slow, since a journal is
//! read where the reader is. An event of a session has the id `thread@seq`, followed by where the session's other threads are,
//! so that a reader who comes back with `Last-Event-ID` misses nothing and hears nothing twice.

use super::call::{At, Call, Desk};
use super::problem::{Answer, Problem};
use super::session;
use super::take::{Named, Params};
use crate::server::House;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{Mode, Query};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// How often a session is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often all sessions are.
const LOOK_ALL: Duration = Duration::from_secs(1);
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
    watch: P,
    waiting: VecDeque<Event>,
    is_over: bool,
}

/// Looks once; `None` when there is nothing more to wait for.
type Looked<P> = Answer<Option<(P, Vec<Event>)>>;

fn events<P: Clone + Send + 'static>(
    call: Call,
    watch: P,
    pause: Duration,
    look: fn(&mut Desk, P) -> Looked<P>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let reader = Reader { call, watch, waiting: VecDeque::new(), is_over: false };
    let stream = stream::unfold(reader, move |mut reader| async move {
        loop {
            if let Some(event) = reader.waiting.pop_front() {
                return Some((Ok(event), reader));
            }
            if reader.is_over {
                return None;
            }
            let watch = reader.watch.clone();
            match reader.call.clone().run(move |desk| look(desk, watch)).await {
                Ok(Some((watch, events))) => (reader.watch, reader.waiting) = (watch, events.into()),
                Ok(None) => reader.is_over = true,
                Err(problem) => {
                    let event = Event::default()
                        .event("problem")
                        .data(json!({ "detail": problem.detail }).to_string());
                    (reader.waiting, reader.is_over) = (VecDeque::from([event]), true);
                }
            }
            if reader.waiting.is_empty() && !reader.is_over && wait(&reader.call.house, pause).await.is_none()
            {
                return None;
            }
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE))
}

/// Waits; `None` when the server is to stop.
async fn wait(house: &Arc<House>, pause: Duration) -> Option<()> {
    tokio::select! {
        () = house.stop.cancelled() => None,
        () = tokio::time::sleep(pause) => Some(()),
    }
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
    let begun = call.clone().run(move |desk| {
        let (id, _) = desk.session(&at.session)?;
        let places = match last {
            Some(last) => read(&last)?,
            None if begin.from == Some(Whence::Start) => Places::new(),
            None => now(desk, &id)?,
        };
        Ok((id, places))
    });
    Ok(events(call, begun.await?, LOOK, look))
}

/// Where every thread is now.
fn now(desk: &Desk, id: &SessionId) -> Answer<Places> {
    let store = desk.app.engine.store();
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
fn look(desk: &mut Desk, (id_of, mut places): (SessionId, Places)) -> Looked<(SessionId, Places)> {
    if desk.session(id_of.as_str()).is_err() {
        return Ok(None);
    }
    let store = desk.app.engine.store();
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
    events(call, None, LOOK_ALL, look_at_all)
}

fn look_at_all(desk: &mut Desk, known: Known) -> Looked<Known> {
    let own =
        (!desk.guest.sees_all && desk.guest.sessions.is_empty()).then(|| desk.guest.user.clone()).flatten();
    let query = Query { user: own, ..Query::default() };
    let (mut now, mut events) = (HashMap::new(), Vec::new());
    let guest = desk.guest.clone();
    desk.app.engine.each_session(query, |session| {
        if guest.may_see(session) {
            let id = session.meta.uuid.clone();
            let state = (session.updated_at.clone(), session.status.name());
            let kind = known.as_ref().and_then(|known| changed(known.get(&id), &state));
            if let Some(kind) = kind {
                events.push(told(kind, &session::row(session)));
            }
            now.insert(id, state);
        }
        Ok(())
    })?;
    let gone = known.iter().flat_map(|known| known.keys()).filter(|id| !now.contains_key(*id));
    events.extend(gone.map(|id| told("removed", &json!({ "session": id }))));
    Ok(Some((Some(now), events)))
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
