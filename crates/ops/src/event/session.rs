//! Events of a session: each entry.
//!
//! An event has the id `thread@seq`, followed by where the session's other threads are, so that a reader who comes back with
//! it misses nothing and hears nothing twice.

use super::over_http;
use crate::address::AtSession;
use crate::arguments::malformed;
use crate::watch::{Event, News, Watch, Watched};
use crate::{Context, Interfaces, Outcome, Route};
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
    pub from: Option<Start>,
    /// The id of the last event you heard.
    #[serde(rename = "last-event-id")]
    pub last_event_id: Option<String>,
}

/// Where events begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Start {
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
pub struct SessionWatch {
    session: SessionId,
    places: Places,
}

impl Watched for SessionEvents {
    const NAME: &'static str = "session_events";
    const TITLE: &'static str = "Events of a session";
    const INTERFACES: Interfaces =
        over_http(Route::get("events", "/sessions/{session}/events").with_header("last-event-id"));
    type Event = EntryEvent;
    type Watch = SessionWatch;

    fn begin(self, context: &Context) -> Outcome<SessionWatch> {
        let session = context.find(&self.at)?.session;
        let places = match (self.last_event_id, self.from) {
            (Some(last), _) => read(&last)?,
            (None, Some(Start::Start)) => Places::new(),
            (None, _) => now(context, &session)?,
        };
        Ok(SessionWatch { session, places })
    }
}

impl Watch<EntryEvent> for SessionWatch {
    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn look(&mut self, context: &Context, _: News) -> Outcome<Option<Vec<Event<EntryEvent>>>> {
        if context.session(&self.session).is_err() {
            return Ok(None);
        }
        let store = context.engine.store();
        let mut events = Vec::new();
        for header in store.threads(&self.session)? {
            let thread = header.thread.to_string();
            let journal = store.open(&self.session, &header.thread, Mode::Read)?;
            // A fork's own entries begin after those it shares.
            let mut seq = self.places.get(&thread).copied().unwrap_or(0).max(header.base_seq());
            while seq < journal.last() && events.len() < BATCH {
                seq += 1;
                let entry = serde_json::from_slice(&journal.line(seq)?)?;
                self.places.insert(thread.clone(), seq);
                let id = Some(id(&thread, &self.places));
                events.push(Event { name: "entry", id, data: EntryEvent { thread: thread.clone(), entry } });
            }
        }
        Ok(Some(events))
    }
}

/// Where every thread is now.
fn now(context: &Context, id: &SessionId) -> Outcome<Places> {
    let store = context.engine.store();
    let last = |thread: ThreadId| Ok((thread.to_string(), store.open(id, &thread, Mode::Read)?.last()));
    store.threads(id)?.into_iter().map(|header| last(header.thread)).collect()
}

/// An id: where this event is, then where the others are.
fn id(thread: &str, places: &Places) -> String {
    let one = |(thread, seq): (&String, &Seq)| format!("{thread}@{seq}");
    let own = places.get_key_value(thread).map(one);
    let others = places.iter().filter(|(other, _)| *other != thread).map(one);
    own.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn read(id: &str) -> Outcome<Places> {
    let wrong =
        || malformed(format!("Last-Event-ID {id:?} is none of these events; leave it out to begin anew"));
    let one = |text: &str| {
        let (thread, seq) = text.split_once('@').ok_or_else(wrong)?;
        let thread = ThreadId::new(thread).map_err(|_| wrong())?;
        Ok((thread.to_string(), seq.parse().map_err(|_| wrong())?))
    };
    id.split_whitespace().map(one).collect()
}
