//! Operations whose result goes on without an end: events, as they happen.
//!
//! An interface asks again and again: when the store has news, and once in a while without. In between nothing is held but
//! how far the reader has come, so a slow reader misses nothing, and one that has gone is simply not asked for any more.

use crate::{Interfaces, NamedArguments, OpResult, OperationContext, OperationLabel};
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;

/// An operation whose result goes on. The doc comments are the description, as with [`crate::Operation`].
pub trait Watched: DeserializeOwned + JsonSchema + 'static {
    /// What it is called.
    const ABOUT: OperationLabel;
    /// Where it is offered.
    const INTERFACES: Interfaces;
    /// What an event tells.
    type Event: Serialize + JsonSchema;

    /// Begins.
    fn begin(self, context: &OperationContext) -> OpResult<Box<dyn EventWatch>>;
}

/// How far a reader of events has come.
pub trait EventWatch: Send {
    /// The session that the events are about; `None` for all.
    fn session(&self) -> Option<&SessionId>;

    /// What has happened since the last look; `None` when no more will. What the caller may see is asked anew each time.
    fn look(
        &mut self,
        context: &OperationContext,
        news: ChangedSessions,
    ) -> OpResult<Option<Vec<StreamedEvent>>>;
}

/// Sessions in which something happened; `None` where it may have been any.
pub type ChangedSessions = Option<HashSet<SessionId>>;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamedEvent {
    /// What kind of event it is.
    pub name: &'static str,
    /// Where a reader goes on after it, for events that can be read again.
    pub id: Option<String>,
    /// What it tells, as JSON.
    pub data: String,
}

impl StreamedEvent {
    /// An event that tells `data`.
    pub(crate) fn new(name: &'static str, id: Option<String>, data: &impl Serialize) -> OpResult<Self> {
        Ok(Self { name, id, data: serde_json::to_string(data)? })
    }
}

/// How a row of such an operation begins.
pub(crate) type Begin = fn(&NamedArguments, &OperationContext) -> OpResult<Box<dyn EventWatch>>;

pub(crate) fn begin<W: Watched>(
    given: &NamedArguments,
    context: &OperationContext,
) -> OpResult<Box<dyn EventWatch>> {
    given.read::<W>()?.begin(context)
}
