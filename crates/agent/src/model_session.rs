//! The model that works on a task: asking it, its window, and what writes chronicles.
//!
//! [`ResolvedModelSession`] is a resolved model as such. What the engine says went wrong is handed on as it is, so that a model that is
//! away can be told from a request that can never be sent. What the settings have wrong is told in their own words.

use crate::{Error, Result};
use komado_core::session::MetaConfig;
use komado_core::{SessionId, ThreadId};
use komado_engine::exchange::{ExchangeEvent, ModelTarget, TurnResult};
use komado_engine::stelis::{ChronicleBy, Spawn};
use komado_engine::{Engine, ModelChoice, ModelResolver, ResolvedModel, Thread};
use komado_provider::Cancel;
use komado_store::OpenMode;
use std::fmt::Display;

/// Asks a model, on any thread of a session.
pub trait ModelSession<'e> {
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
        news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<TurnResult>;

    /// What a child thread of this session is spawned with, as the settings say; refused when there may be none.
    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn>;

    /// Hands `tell` what writes the chronicle of a thread: the summariser of the settings, else the digest.
    fn telling(
        &mut self,
        thread: &Thread<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// What a child thread of a session made with the first is spawned with, in a window of so many tokens.
pub type SpawnSettings<'a> = Box<dyn Fn(&MetaConfig, u64) -> Result<Spawn> + 'a>;

/// A resolved model as a mind.
pub struct ResolvedModelSession<'a> {
    models: ModelResolver<'a>,
    model: &'a ResolvedModel,
    choice: ModelChoice,
    spawn: SpawnSettings<'a>,
}

impl<'a> ResolvedModelSession<'a> {
    /// `model` as `models` resolved it for `choice`.
    pub fn new(
        models: ModelResolver<'a>,
        model: &'a ResolvedModel,
        choice: ModelChoice,
        spawn: SpawnSettings<'a>,
    ) -> Self {
        Self { models, model, choice, spawn }
    }
}

impl<'a> ModelSession<'a> for ResolvedModelSession<'a> {
    fn engine(&self) -> &'a Engine {
        self.models.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'a>> {
        let thread = self.models.engine.open(session, thread, OpenMode::Write)?;
        let limits = self.models.output_limits(&thread);
        Ok(thread.clipping(limits))
    }

    fn config(&self) -> MetaConfig {
        self.model.config()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        cancel: &Cancel,
        news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<TurnResult> {
        let budget = self.models.budget(thread, self.model).map_err(of("the budget of the window"))?;
        let asking = ModelTarget { cancel: cancel.clone(), ..self.model.asking.clone() };
        let (session, meter) = (thread.session().clone(), thread.meter());
        let writer = self.models.summariser(&session, meter, &self.choice, Some(self.model), cancel);
        let mut writer = writer.map_err(of("who writes summaries"))?;
        let mut ladder = self.models.settings.summaries.ladder(budget, writer.by());
        Ok(thread.turn(&asking, &mut ladder, news)?)
    }

    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn> {
        (self.spawn)(
            thread.config(),
            self.models.of(thread.session()).our_window(self.model).map_err(of("the window"))?,
        )
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        let summaries = &self.models.settings.summaries;
        if !summaries.has_writer() {
            return tell(ChronicleBy::Digest);
        }
        let (session, with) = (thread.session(), Some(self.model));
        let writer = self.models.summariser(session, thread.meter(), &self.choice, with, cancel);
        let mut writer = writer.map_err(of("who writes chronicles"))?;
        tell(ChronicleBy::By { by: writer.by(), settings: summaries.settings.clone() })
    }
}

/// What the settings or the surroundings have wrong.
pub fn of<E: Display>(what: &'static str) -> impl Fn(E) -> Error {
    move |why| Error::Surroundings { what: what.to_owned(), why: why.to_string() }
}
