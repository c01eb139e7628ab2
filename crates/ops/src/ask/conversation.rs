//! A conversation with a model: a thread, the model that is asked in it, and one question after the other.

use super::answered::Edits;
use super::{Answered, Listener};
use crate::address::Target;
use crate::change;
use crate::session::{Attributes, create, meter};
use crate::window::{MadeEdit, Recut};
use crate::{Context, Exit, Fault, Outcome};
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::session::MetaConfig;
use komado_core::{Role, SessionId, ThreadId};
use komado_engine::engine::Found;
use komado_engine::exchange::Library;
use komado_engine::exchange::News;
use komado_engine::model::{ModelChoice, ResolvedModel, SCRIPTED};
use komado_engine::{Error as Engine, Thread};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Deserialize;

/// What stands before a new conversation.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Beginning {
    /// The system prompt of a new session
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Offer the model of a new session the tools that lead back to what left its view
    #[arg(long)]
    #[serde(default)]
    pub tools: bool,
}

/// A conversation.
pub struct Conversation {
    /// Where it is.
    pub found: Found,
    /// What was chosen of the model.
    pub choice: ModelChoice,
    /// The model that is asked.
    pub model: ResolvedModel,
}

impl Conversation {
    /// Goes on with a thread, or makes a session. Which model is asked is known before anything is made.
    pub fn open(
        context: &Context,
        at: Option<Target>,
        choice: ModelChoice,
        beginning: Beginning,
    ) -> Outcome<Self> {
        let Some(at) = at else {
            let model = context.models().resolve(&MetaConfig::default(), &choice)?;
            return Ok(Self { found: make(context, &model, beginning)?, choice, model });
        };
        let found = context.find_now(at)?;
        if beginning.system.is_some() || beginning.tools {
            return Err(Fault::usage(format!(
                "--system and --tools are for a new session; `komado setup {}` changes what stands before this one",
                change::name(&found)
            )));
        }
        let own = context.session(&found.session)?.meta.config;
        Ok(Self { found, model: context.models().resolve(&own, &choice)?, choice })
    }

    /// The thread's name on a command line.
    pub fn name(&self) -> String {
        change::name(&self.found)
    }

    /// Says `question`, if there is one, asks the model, and journals what it answers.
    pub fn ask(
        &self,
        context: &Context,
        question: Option<String>,
        listener: &mut dyn Listener,
    ) -> Outcome<Answered> {
        listener.begun(&self.found);
        let mut thread = context.open(&self.found, Mode::Write)?;
        self.ask_in(context, &mut thread, question, listener)
    }

    /// The same in a thread that is open.
    pub fn ask_in(
        &self,
        context: &Context,
        thread: &mut Thread<'_>,
        question: Option<String>,
        listener: &mut dyn Listener,
    ) -> Outcome<Answered> {
        let before = thread.last();
        match question {
            Some(question) => {
                // What other threads told this one was said before the question.
                thread.hear()?;
                thread.say(Message::text(Role::User, question))?;
                listener.kept();
            }
            None => {
                listener.kept();
                thread.check_question()?;
            }
        }
        let budget = context.models().budget(thread, &self.model)?;
        let mut asking = self.model.asking.clone();
        asking.cancel = listener.cancel();
        let (session, meter) = (&self.found.session, thread.meter());
        let models = context.models();
        let mut writer =
            models.summariser(session, meter, &self.choice, Some(&self.model), &asking.cancel)?;
        let mut ladder = context.config.models.summaries.ladder(budget, writer.by());
        let mut done = Edits::default();
        let mut hear = |news: News<'_>| {
            if let News::Fitted(fitted) = &news {
                done.slices.extend(fitted.share.iter().map(Recut::from));
                done.edits.extend(fitted.done.iter().map(|edit| MadeEdit::of(&self.found, edit)));
            }
            listener.news(news);
        };
        let conversed = thread.converse(&asking, &mut ladder, &mut Library, &mut hear);
        context.settle(thread);
        done.tokens = thread.view().tokens();
        let conversed = conversed.map_err(|error| self.fault(error, before))?;
        let answered = Answered::of(&self.found, self.model.window, conversed, done);
        listener.answered(&answered);
        Ok(answered)
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
fn make(context: &Context, model: &ResolvedModel, beginning: Beginning) -> Outcome<Found> {
    let session = SessionId::new(uuid::Uuid::new_v4().to_string())?;
    let mut config = model.config();
    let named = config.model.as_deref().filter(|name| *name != SCRIPTED);
    config.meter = meter(context, None, named)?.name().to_owned();
    config.compression_threshold = Some(context.config.compression_threshold);
    let attributes = Attributes { config, user: None, task: None, queued: false };
    let setup = Setup { system: beginning.system, ..Setup::default() };
    let setup = if beginning.tools { Library::offered(setup) } else { setup };
    create(context, &attributes.meta(context, &session)?, setup)?;
    Ok(Found { session, thread: ThreadId::root(), seq: None })
}
