//! Operations whose result goes on without an end: events, as they happen.
//!
//! An interface asks again and again: when the store has news, and once in a while without. In between nothing is held but
//! how far the reader has come, so a slow reader misses nothing, and one that has gone is simply not asked for any more.

use crate::{About, Arguments, Context, Interfaces, Outcome};
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;

/// An operation whose result goes on. The doc comments are the description, as with [`crate::Operation`].
pub trait Watched: DeserializeOwned + JsonSchema + 'static {
    /// What it is called.
    const ABOUT: About;
    /// Where it is offered.
    const INTERFACES: Interfaces;
    /// What an event tells.
    type Event: Serialize + JsonSchema;
    /// How far a reader has come.
    type Watch: Watch<Self::Event>;

    /// Begins.
    fn begin(self, context: &Context) -> Outcome<Self::Watch>;
}

/// How far a reader of events has come.
pub trait Watch<E>: Send + 'static {
    /// The session that the events are about; `None` for all.
    fn session(&self) -> Option<&SessionId>;

    /// What has happened since the last look; `None` when no more will. What the caller may see is asked anew each time.
    fn look(&mut self, context: &Context, news: News) -> Outcome<Option<Vec<Event<E>>>>;
}

/// Sessions in which something happened; `None` where it may have been any.
pub type News = Option<HashSet<SessionId>>;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<T> {
    /// What kind of event it is.
    pub name: &'static str,
    /// Where a reader goes on after it, for events that can be read again.
    pub id: Option<String>,
    /// What it tells.
    pub data: T,
}

/// A [`Watch`] whose events are told as JSON.
pub trait Watching: Send {
    /// [`Watch::session`].
    fn session(&self) -> Option<&SessionId>;

    /// [`Watch::look`].
    fn look(&mut self, context: &Context, news: News) -> Outcome<Option<Vec<Event<String>>>>;
}

struct Encoded<W: Watched>(W::Watch);

impl<W: Watched> Watching for Encoded<W> {
    fn session(&self) -> Option<&SessionId> {
        self.0.session()
    }

    fn look(&mut self, context: &Context, news: News) -> Outcome<Option<Vec<Event<String>>>> {
        let Some(events) = self.0.look(context, news)? else { return Ok(None) };
        let encode = |Event { name, id, data }: Event<W::Event>| {
            Ok(Event { name, id, data: serde_json::to_string(&data)? })
        };
        events.into_iter().map(encode).collect::<Outcome<_>>().map(Some)
    }
}

/// How a row of such an operation begins.
pub(crate) type Begin = fn(&Arguments, &Context) -> Outcome<Box<dyn Watching>>;

pub(crate) fn begin<W: Watched>(given: &Arguments, context: &Context) -> Outcome<Box<dyn Watching>> {
    let request: W = given.read()?;
    Ok(Box::new(Encoded::<W>(request.begin(context)?)))
}
