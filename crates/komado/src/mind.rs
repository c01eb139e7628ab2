//! The model of the settings as a mind: who is asked, in which window, and who tells what a thread did.
//!
//! What the engine says went wrong is handed on as it is, so that whoever works on a task can tell a model that is away
//! from a request that can never be sent. What the settings have wrong is told in their own words.

use crate::app::App;
use crate::connect::{Connection, Wishes};
use crate::fault::Fault;
use komado_agent::mind::Mind;
use komado_agent::{Error, Result};
use komado_core::session::MetaConfig;
use komado_core::{SessionId, ThreadId};
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::turn::{Asking, News, Turned};
use komado_engine::{Engine, Thread};
use komado_provider::Cancel;
use komado_store::Mode;

/// The mind of an application over one connection.
pub(crate) struct AppMind<'a> {
    app: &'a App,
    connection: &'a Connection,
    wishes: Wishes,
}

impl<'a> AppMind<'a> {
    /// Over a connection that is open.
    pub(crate) fn new(app: &'a App, connection: &'a Connection, wishes: Wishes) -> Self {
        Self { app, connection, wishes }
    }
}

impl<'a> Mind<'a> for AppMind<'a> {
    fn engine(&self) -> &'a Engine {
        &self.app.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'a>> {
        let thread = self.app.engine.open(session, thread, Mode::Write)?;
        let limits = self.app.limits(&thread).map_err(of("the limits of outputs"))?;
        Ok(thread.clipping(limits))
    }

    fn config(&self) -> MetaConfig {
        self.connection.config()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        cancel: &Cancel,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned> {
        let budget = self.app.budget(thread, self.connection).map_err(of("the budget of the window"))?;
        let asking = Asking { cancel: cancel.clone(), ..self.connection.asking.clone() };
        let (session, meter) = (thread.session().clone(), thread.meter());
        let writer = self.app.summariser(&session, meter, &self.wishes, Some(self.connection), cancel);
        let mut writer = writer.map_err(of("who writes summaries"))?;
        let mut ladder = self.app.config.ladder(budget, writer.by());
        Ok(thread.turn(&asking, &mut ladder, news)?)
    }

    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn> {
        let own = self.app.engine.session(thread.session())?.meta.config;
        let threads = self.app.config.threads(&own);
        let settings = "the settings of child threads";
        threads.check().map_err(of(settings))?;
        Ok(Spawn {
            ratio: threads.ratio().map_err(of(settings))?,
            max_depth: threads.max_depth,
            buffer: self.app.config.policy(None).buffer,
            lends: threads.lends,
            anchor_cap: threads.anchor_tokens,
            ..Spawn::new(self.app.our_window(self.connection).map_err(of("the window"))?)
        })
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.app.config.has_writer() {
            return tell(Telling::Digest);
        }
        let (session, with) = (thread.session(), Some(self.connection));
        let writer = self.app.summariser(session, thread.meter(), &self.wishes, with, cancel);
        let mut writer = writer.map_err(of("who writes chronicles"))?;
        tell(Telling::By { by: writer.by(), settings: self.app.config.settings() })
    }
}

/// What the settings or the surroundings have wrong.
fn of<F: Into<Fault>>(what: &'static str) -> impl Fn(F) -> Error {
    move |fault| Error::Surroundings { what: what.to_owned(), why: fault.into().message().to_owned() }
}
