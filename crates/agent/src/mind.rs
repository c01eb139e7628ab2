//! Who thinks: the model that is asked, its window, and who writes chronicles. The binary fills it in from the settings.

use crate::error::Result;
use komado_core::session::MetaConfig;
use komado_core::{SessionId, ThreadId};
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::turn::{News, Turned};
use komado_engine::{Engine, Thread};
use komado_provider::Cancel;

/// Asks a model, on any thread of a session.
pub trait Mind<'e> {
    /// The engine that threads belong to.
    fn engine(&self) -> &'e Engine;

    /// Opens a thread for writing, and has long outputs shown as the settings say.
    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>>;

    /// Provider, model and window, as a session keeps them.
    fn config(&self) -> MetaConfig;

    /// One turn: the view is made to fit, the model is asked, and what it says is journaled.
    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        cancel: &Cancel,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned>;

    /// What a child thread of this session is spawned with, as the settings say; refused when there may be none.
    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn>;

    /// Hands `tell` whoever tells what was done in a thread: the summariser of the settings, else the digest.
    fn telling(
        &mut self,
        thread: &Thread<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()>;
}
