//! Events of all sessions: made, changed, ended, removed.
//!
//! A reader looks at the sessions that news name; and at all of them at first, where news may be missing, and once in a while.

use super::over_http;
use crate::session::SessionRow;
use crate::watch::{Event, News, Watch, Watched};
use crate::{Context, Interfaces, Outcome, Route};
use komado_core::SessionId;
use komado_core::session::Session;
use komado_store::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

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
pub struct AllWatch(Option<HashMap<String, State>>);

impl Watched for AllEvents {
    const NAME: &'static str = "events";
    const TITLE: &'static str = "Events of all sessions";
    const INTERFACES: Interfaces = over_http(Route::get("events", "/events"));
    type Event = SessionEvent;
    type Watch = AllWatch;

    fn begin(self, _: &Context) -> Outcome<AllWatch> {
        Ok(AllWatch::default())
    }
}

impl Watch<SessionEvent> for AllWatch {
    fn session(&self) -> Option<&SessionId> {
        None
    }

    fn look(&mut self, context: &Context, news: News) -> Outcome<Option<Vec<Event<SessionEvent>>>> {
        match (&mut self.0, news) {
            (Some(known), Some(news)) => look_at_some(context, known, news),
            (known, _) => look_at_all(context, known),
        }
        .map(Some)
    }
}

fn look_at_all(
    context: &Context,
    known: &mut Option<HashMap<String, State>>,
) -> Outcome<Vec<Event<SessionEvent>>> {
    let caller = &context.caller;
    let user = (!caller.sees_all && caller.sessions.is_empty()).then(|| caller.user.clone()).flatten();
    let (mut now, mut events) = (HashMap::new(), Vec::new());
    context.engine.each_session(Query { user, ..Query::default() }, |session| {
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
    context: &Context,
    known: &mut HashMap<String, State>,
    named: HashSet<SessionId>,
) -> Outcome<Vec<Event<SessionEvent>>> {
    let mut events = Vec::new();
    for id in named {
        let query = Query { id: Some(id.clone()), ..Query::default() };
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

fn told(name: &'static str, session: &Session) -> Event<SessionEvent> {
    Event { name, id: None, data: SessionEvent::Changed(Box::new(SessionRow::from(session.clone()))) }
}

fn removed(id: &str) -> Event<SessionEvent> {
    Event { name: "removed", id: None, data: SessionEvent::Removed { session: id.to_owned() } }
}
