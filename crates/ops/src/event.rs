//! Live events: what is journaled, as it is journaled, also by other processes.
//!
//! An event of a session has the id `thread@seq`, followed by where the session's other threads are, so that a reader who comes
//! back with it misses nothing and hears nothing twice. A reader of all sessions looks at those that news name; and at all of
//! them at first, where news may be missing, and once in a while.

use crate::address::AtSession;
use crate::session::SessionRow;
use crate::watch::{ChangedSessions, EventWatch, StreamedEvent, Watched};
use crate::{Interfaces, OpFault, OpResult, OperationContext, OperationLabel, Route};
use komado_core::session::Session;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{OpenMode, SessionQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Events are heard over HTTP.
const fn over_http(route: Route) -> Interfaces {
    Interfaces::only_http(
        route,
        "a program hears events over HTTP; `log --json` prints what has been journaled",
    )
    .not_mcp("a call of a tool ends, and events do not")
}

/// Entries read at a time.
const BATCH: usize = 200;

/// Hear of each entry of a session, as it is journaled (server-sent events).
///
/// Each event `entry` has the data `{"thread": …, "entry": …}`; `Last-Event-ID` goes on where a reader left off.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct SessionEvents {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
    /// With what comes now (the default), or with the first entry.
    pub from: Option<EventStart>,
    /// The id of the last event you heard.
    #[serde(rename = "last-event-id")]
    pub last_event_id: Option<String>,
}

/// Where events begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EventStart {
    /// With what comes now.
    Now,
    /// With the first entry.
    Start,
}

/// An entry that was journaled.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EntryEvent {
    /// Its thread.
    pub thread: String,
    /// The entry as it stands in the journal.
    #[schemars(with = "Map<String, Value>")]
    pub entry: Box<RawValue>,
}

/// Where each thread is.
type Places = BTreeMap<String, Seq>;

/// How far a reader of a session's events has come.
struct SessionWatch {
    session: SessionId,
    places: Places,
}

impl Watched for SessionEvents {
    const ABOUT: OperationLabel = OperationLabel::read("session_events", "Events of a session");
    const INTERFACES: Interfaces = over_http(Route {
        header: Some("last-event-id"),
        ..Route::get("events", "/sessions/{session}/events")
    });
    type Event = EntryEvent;

    fn begin(self, context: &OperationContext) -> OpResult<Box<dyn EventWatch>> {
        let session = context.find(&self.at)?.session;
        let places = match (self.last_event_id, self.from) {
            (Some(last), _) => read(&last)?,
            (None, Some(EventStart::Start)) => Places::new(),
            (None, _) => now(context, &session)?,
        };
        Ok(Box::new(SessionWatch { session, places }))
    }
}

impl EventWatch for SessionWatch {
    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn look(
        &mut self,
        context: &OperationContext,
        _: ChangedSessions,
    ) -> OpResult<Option<Vec<StreamedEvent>>> {
        if context.session(&self.session).is_err() {
            return Ok(None);
        }
        let store = context.engine.store();
        let mut events = Vec::new();
        for header in store.threads(&self.session)? {
            let thread = header.thread.to_string();
            let journal = store.open(&self.session, &header.thread, OpenMode::Read)?;
            // A fork's own entries begin after those it shares.
            let mut seq = self.places.get(&thread).copied().unwrap_or(0).max(header.base_seq());
            while seq < journal.last() && events.len() < BATCH {
                seq += 1;
                let entry = serde_json::from_slice(&journal.line(seq)?)?;
                self.places.insert(thread.clone(), seq);
                let id = Some(id(&thread, &self.places));
                events.push(StreamedEvent::new("entry", id, &EntryEvent { thread: thread.clone(), entry })?);
            }
        }
        Ok(Some(events))
    }
}

/// Where every thread is now.
fn now(context: &OperationContext, id: &SessionId) -> OpResult<Places> {
    let store = context.engine.store();
    let last = |thread: ThreadId| Ok((thread.to_string(), store.open(id, &thread, OpenMode::Read)?.last()));
    store.threads(id)?.into_iter().map(|header| last(header.thread)).collect()
}

/// An id: where this event is, then where the others are.
fn id(thread: &str, places: &Places) -> String {
    let one = |(thread, seq): (&String, &Seq)| format!("{thread}@{seq}");
    let own = places.get_key_value(thread).map(one);
    let others = places.iter().filter(|(other, _)| *other != thread).map(one);
    own.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn read(id: &str) -> OpResult<Places> {
    let wrong = || {
        OpFault::malformed(format!(
            "Last-Event-ID {id:?} is none of these events; leave it out to begin anew"
        ))
    };
    let one = |text: &str| {
        let (thread, seq) = text.split_once('@').ok_or_else(wrong)?;
        let thread = ThreadId::new(thread).map_err(|_| wrong())?;
        Ok((thread.to_string(), seq.parse().map_err(|_| wrong())?))
    };
    id.split_whitespace().map(one).collect()
}

/// Hear of every session you may see: `created`, `appended`, `state` and `removed` (server-sent events).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AllEvents {}

/// What happened to a session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SessionEvent {
    /// It was made, went on, or is in another state.
    Changed(Box<SessionRow>),
    /// It is no longer there.
    Removed {
        /// Its id.
        session: String,
    },
}

/// When a session last changed, and in which state it was.
type State = (String, &'static str);

/// What a reader knows of each session; nothing before the first look.
#[derive(Default)]
struct AllWatch(Option<HashMap<String, State>>);

impl Watched for AllEvents {
    const ABOUT: OperationLabel = OperationLabel::read("events", "Events of all sessions");
    const INTERFACES: Interfaces = over_http(Route::get("events", "/events"));
    type Event = SessionEvent;

    fn begin(self, _: &OperationContext) -> OpResult<Box<dyn EventWatch>> {
        Ok(Box::new(AllWatch::default()))
    }
}

impl EventWatch for AllWatch {
    fn session(&self) -> Option<&SessionId> {
        None
    }

    fn look(
        &mut self,
        context: &OperationContext,
        news: ChangedSessions,
    ) -> OpResult<Option<Vec<StreamedEvent>>> {
        let changes = match (&mut self.0, news) {
            (Some(known), Some(news)) => look_at_some(context, known, news)?,
            (known, _) => look_at_all(context, known)?,
        };
        let event = |(name, data): (&'static str, SessionEvent)| StreamedEvent::new(name, None, &data);
        changes.into_iter().map(event).collect::<OpResult<_>>().map(Some)
    }
}

/// What happened to sessions, by the kinds of events.
type Changes = Vec<(&'static str, SessionEvent)>;

fn look_at_all(context: &OperationContext, known: &mut Option<HashMap<String, State>>) -> OpResult<Changes> {
    let caller = &context.caller;
    let user = caller.only_user();
    let (mut now, mut events) = (HashMap::new(), Vec::new());
    context.engine.each_session(SessionQuery { user, ..SessionQuery::default() }, |session| {
        if caller.may_see(session) {
            let (id, state) = (session.meta.uuid.clone(), state(session));
            let kind = known.as_ref().and_then(|known| changed(known.get(&id), &state));
            events.extend(kind.map(|name| told(name, session)));
            now.insert(id, state);
        }
        Ok(())
    })?;
    let gone = known.iter().flat_map(HashMap::keys).filter(|id| !now.contains_key(*id));
    events.extend(gone.map(|id| removed(id)));
    *known = Some(now);
    Ok(events)
}

/// The same for those that were named: what there is to ask does not grow with the store.
fn look_at_some(
    context: &OperationContext,
    known: &mut HashMap<String, State>,
    named: HashSet<SessionId>,
) -> OpResult<Changes> {
    let mut events = Vec::new();
    for id in named {
        let query = SessionQuery { id: Some(id.clone()), ..SessionQuery::default() };
        let found = context.engine.store().sessions(&query)?.pop();
        let Some(session) = found.filter(|session| context.caller.may_see(session)) else {
            events.extend(known.remove(id.as_str()).map(|_| removed(id.as_str())));
            continue;
        };
        let state = state(&session);
        events.extend(changed(known.get(id.as_str()), &state).map(|name| told(name, &session)));
        known.insert(id.to_string(), state);
    }
    Ok(events)
}

fn state(session: &Session) -> State {
    (session.updated_at.clone(), session.status.name())
}

fn changed(before: Option<&State>, now: &State) -> Option<&'static str> {
    match before {
        None => Some("created"),
        Some(before) if before.1 != now.1 => Some("state"),
        Some(before) if before.0 != now.0 => Some("appended"),
        Some(_) => None,
    }
}

fn told(name: &'static str, session: &Session) -> (&'static str, SessionEvent) {
    (name, SessionEvent::Changed(Box::new(SessionRow::from(session.clone()))))
}

fn removed(id: &str) -> (&'static str, SessionEvent) {
    ("removed", SessionEvent::Removed { session: id.to_owned() })
}
