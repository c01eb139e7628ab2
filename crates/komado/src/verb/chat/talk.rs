//! A conversation with a model: a session, who is asked in it, and one question after the other.

use super::answer::Answer;
use super::interrupt::Interrupt;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::verb::change;
use clap::Args as ClapArgs;
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::session::MetaConfig;
use komado_core::{Address, Role, SessionId, ThreadId};
use komado_engine::converse::{Conversed, Library};
use komado_engine::engine::Found;
use komado_engine::model::{ModelChoice, ResolvedModel, SCRIPTED};
use komado_engine::{Error as Engine, Thread};
use komado_ops::session;
use komado_store::Mode;

/// What stands before a new conversation.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Beginning {
    /// The system prompt of a new session
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Offer the model of a new session the tools that lead back to what left its view
    #[arg(long)]
    tools: bool,
}

/// A conversation.
pub(crate) struct Talk {
    found: Found,
    pub(crate) choice: ModelChoice,
    pub(crate) model: ResolvedModel,
}

impl Talk {
    /// Goes on with a session, or makes one. Who is asked is known before anything is made.
    pub(crate) fn open(
        app: &App,
        address: Option<&Address>,
        choice: ModelChoice,
        beginning: Beginning,
    ) -> Outcome<Self> {
        let Some(address) = address else {
            let model = app.models().resolve(&MetaConfig::default(), &choice)?;
            return Ok(Self { found: make(app, &model, beginning)?, choice, model });
        };
        let found = app.find_now(address)?;
        if beginning.system.is_some() || beginning.tools {
            return Err(Fault::usage(format!(
                "--system and --tools are for a new session; `komado setup {address}` changes what stands before this one"
            )));
        }
        let own = app.context.session(&found.session)?.meta.config;
        Ok(Self { found, model: app.models().resolve(&own, &choice)?, choice })
    }

    /// A conversation in a thread that is there, with someone who is known.
    pub(crate) fn with(found: Found, choice: ModelChoice, model: ResolvedModel) -> Self {
        Self { found, choice, model }
    }

    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// The session's name on the command line.
    pub(crate) fn name(&self) -> String {
        change::name(&self.found)
    }

    /// Says `question`, if there is one, asks the model, and journals what it answers.
    pub(crate) fn ask(
        &self,
        app: &App,
        question: Option<String>,
        interrupt: &Interrupt,
        answer: &mut Answer,
    ) -> Outcome<Conversed> {
        let mut thread = app.context.open(&self.found, Mode::Write)?;
        self.ask_in(app, &mut thread, question, interrupt, answer)
    }

    /// The same in a thread that is open.
    pub(crate) fn ask_in(
        &self,
        app: &App,
        thread: &mut Thread<'_>,
        question: Option<String>,
        interrupt: &Interrupt,
        answer: &mut Answer,
    ) -> Outcome<Conversed> {
        let before = thread.last();
        if let Some(question) = question {
            // What other threads told this one was said before the question.
            thread.hear()?;
            thread.say(Message::text(Role::User, question))?;
            answer.is_kept = true;
        } else {
            answer.is_kept = true;
            thread.check_question()?;
        }
        let budget = app.models().budget(thread, &self.model)?;
        let watch = interrupt.watch();
        let mut asking = self.model.asking.clone();
        asking.cancel = watch.cancel();
        let talk = Some(&self.model);
        let mut writer = app.models().summariser(
            &self.found.session,
            thread.meter(),
            &self.choice,
            talk,
            &asking.cancel,
        )?;
        let mut ladder = app.context.config.models.summaries.ladder(budget, writer.by());
        let conversed = thread.converse(&asking, &mut ladder, &mut Library, &mut |news| answer.take(news));
        drop(watch);
        app.settle(thread);
        answer.tokens = thread.view().tokens();
        conversed.map_err(|error| self.fault(error, before))
    }

    /// What went wrong; what was said before it is kept, and that is told where it would be in the way.
    fn fault(&self, error: Engine, before: u32) -> Fault {
        let is_large = matches!(error, Engine::Floor(_));
        let fault = match error {
            Engine::Unanswered { .. } => Fault::new(Exit::Failed, error.to_string()),
            other => other.into(),
        };
        let back = format!("`{}` takes the question back", change::rewind_to(&self.found, before));
        if is_large { fault.and(back) } else { fault }
    }
}

/// Makes the session of a conversation.
fn make(app: &App, model: &ResolvedModel, beginning: Beginning) -> Outcome<Found> {
    let id = SessionId::new(uuid::Uuid::new_v4().to_string())?;
    let mut config = model.config();
    let named = config.model.as_deref().filter(|name| *name != SCRIPTED);
    config.meter = session::meter(app, None, named)?.name().to_owned();
    config.compression_threshold = Some(app.context.config.compression_threshold);
    let made = session::Attributes { config, user: None, task: None, queued: false };
    app.context.engine.create(&made.meta(app, &id)?)?;
    let setup = Setup { system: beginning.system, ..Setup::default() };
    let setup = if beginning.tools { Library::offered(setup) } else { setup };
    if setup != Setup::default() {
        let mut root = app.context.engine.open(&id, &ThreadId::root(), Mode::Write)?;
        root.set_up(setup)?;
        root.settle()?;
    }
    Ok(Found { session: id, thread: ThreadId::root(), seq: None })
}
