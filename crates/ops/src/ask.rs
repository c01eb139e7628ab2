//! Asking a model: a conversation in a thread, one question after the other.
//!
//! What is said while a question is answered goes to an [`AskListener`]: words as they come, edits that were made to fit, and what
//! went wrong on the way. The answer itself is the result. A question that brings no answer is kept like any other.

use crate::address::Target;
use crate::choice::ModelArgs;
use crate::session::{create, meta, meter, of_caller};
use crate::window::MadeEdit;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, change};
use komado_core::amount::count;
use komado_core::journal::{Setup, Usage};
use komado_core::message::{Call, Message};
use komado_core::session::{MetaConfig, Session, State};
use komado_core::{Role, Seq, SessionId, ThreadId};
use komado_engine::engine::ResolvedAddress;
use komado_engine::exchange::ExchangeEvent;
use komado_engine::exchange::{ConversationResult, RecallTools};
use komado_engine::fit::Resliced;
use komado_engine::lesson::ModelWindow;
use komado_engine::model::{ModelChoice, ResolvedModel, SCRIPTED};
use komado_engine::{Error as Engine, Thread};
use komado_provider::Cancel;
use komado_store::{OpenMode, SessionQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ask a model one question in a session, or in a new one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AskModel {
    /// The session or its address; a new one when left out.
    pub session: Option<String>,
    /// The thread; the root when left out.
    pub thread: Option<String>,
    /// The question; left out: ask once more without saying anything new.
    pub question: Option<String>,
    /// What stands before a new conversation.
    #[serde(flatten)]
    pub beginning: Beginning,
    /// The model that is asked.
    #[serde(skip)]
    pub model: ModelArgs,
}

impl AskModel {
    /// Asks, while `listener` hears what happens.
    pub fn hear(self, context: &OperationContext, listener: &mut dyn AskListener) -> OpResult<AskResult> {
        let Self { session, thread, question, beginning, model } = self;
        let at = session.map(|session| Target { session: Some(session), thread, seq: None });
        let mut conversation = Conversation::open(context, at, model.into(), beginning)?;
        conversation.ask(context, question, listener)
    }
}

impl Operation for AskModel {
    const ABOUT: OperationLabel = OperationLabel::add("ask", "Ask a model");
    const INTERFACES: Interfaces =
        Interfaces::only_cli("ask", "the gateway serves models over HTTP, streamed, and counts them by key")
            .not_mcp("a client of MCP is asked by a model of its own");
    type Output = AskResult;

    fn run(self, context: &OperationContext) -> OpResult<AskResult> {
        let answered = self.hear(context, &mut Silent)?;
        answered.check().map(|()| answered)
    }
}

/// What stands before a new conversation.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Beginning {
    /// The system prompt of a new session
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Give the model of a new session tools that read what is hidden from its view
    #[arg(long)]
    #[serde(default)]
    pub tools: bool,
}

/// A conversation.
pub struct Conversation {
    /// Where it is.
    pub found: ResolvedAddress,
    /// What was chosen of the model.
    pub choice: ModelChoice,
    /// The model that is asked.
    pub model: ResolvedModel,
    /// What stands before a new session, until that is made.
    pub(crate) unmade: Option<Beginning>,
}

impl Conversation {
    /// Goes on with a thread, or with a session that is made when something is said in it: one without a word is nothing to find
    /// again. Which model is asked is known before.
    pub fn open(
        context: &OperationContext,
        at: Option<Target>,
        choice: ModelChoice,
        beginning: Beginning,
    ) -> OpResult<Self> {
        let Some(at) = at else {
            let model = context.models().resolve(&MetaConfig::default(), &choice)?;
            let session = SessionId::new(uuid::Uuid::new_v4().to_string())?;
            let found = ResolvedAddress { session, thread: ThreadId::root(), seq: None };
            return Ok(Self { found, choice, model, unmade: Some(beginning) });
        };
        let (found, session) = context.find_row(at)?;
        if beginning.system.is_some() || beginning.tools {
            return Err(OpFault::usage(format!(
                "--system and --tools are for a new session; `komado edit setup {}` changes what stands before this one",
                change::name(&found)
            )));
        }
        let model = context.models().of(&found.session).resolve(&session.meta.config, &choice)?;
        Ok(Self { found, choice, model, unmade: None })
    }

    /// True while its session is not made.
    pub fn is_unmade(&self) -> bool {
        self.unmade.is_some()
    }

    /// Makes its session, where that is still to be done.
    pub fn make(&mut self, context: &OperationContext) -> OpResult {
        let Some(beginning) = self.unmade.clone() else { return Ok(()) };
        make(context, &self.found.session, &self.model, beginning)?;
        self.unmade = None;
        Ok(())
    }

    /// The thread's name on a command line.
    pub fn name(&self) -> String {
        change::name(&self.found)
    }

    /// Says `question`, if there is one, asks the model, and journals what it answers.
    pub fn ask(
        &mut self,
        context: &OperationContext,
        question: Option<String>,
        listener: &mut dyn AskListener,
    ) -> OpResult<AskResult> {
        if question.is_none() && self.is_unmade() {
            return Err(OpFault::refused("nothing was said yet: ask something"));
        }
        listener.begun(&self.found);
        self.make(context)?;
        let mut thread = context.open(&self.found, OpenMode::Write)?;
        self.ask_in(context, &mut thread, question, listener).map_err(|fault| context.explained(fault))
    }

    /// The same in a thread that is open.
    pub fn ask_in(
        &self,
        context: &OperationContext,
        thread: &mut Thread<'_>,
        question: Option<String>,
        listener: &mut dyn AskListener,
    ) -> OpResult<AskResult> {
        let before = thread.last();
        match question {
            Some(question) => {
                // What other threads told this one was said before the question.
                thread.hear()?;
                thread.say(Message::text(Role::User, question))?;
                listener.kept();
            }
            None => {
                thread.check_question()?;
                listener.kept();
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
        let (mut edits, mut slices) = (Vec::new(), Vec::new());
        let mut hear = |news: ExchangeEvent<'_>| {
            if let ExchangeEvent::Fitted(fitted) = &news {
                slices.extend(fitted.share);
                edits.extend(fitted.done.iter().map(|edit| MadeEdit::of(&self.found, edit)));
            }
            listener.news(news);
        };
        let conversed = thread.converse(&asking, &mut ladder, &mut RecallTools, &mut hear);
        context.settle(thread);
        let conversed = conversed.map_err(|error| self.fault(error, before))?;
        let ConversationResult { turned, turns, attempts, open, gave_up } = conversed;
        let ModelWindow { tokens: window, told } = self.model.window;
        let answered = AskResult {
            session: self.found.session.to_string(),
            thread: self.found.thread.to_string(),
            seq: turned.seq,
            text: turned.message.words(),
            calls: open.into_iter().map(Into::into).collect(),
            model: turned.reply.model,
            usage: turned.reply.usage,
            finish: turned.reply.finish,
            refusal: refusal(&turned.message),
            tokens: thread.view().tokens(),
            window,
            window_from: told.name(),
            turns,
            attempts,
            edits,
            slices,
            ours: turned.is_ours,
            gave_up,
        };
        listener.answered(&answered);
        Ok(answered)
    }

    /// What went wrong; what was said before it is kept, and that is told where it would be in the way.
    fn fault(&self, error: Engine, before: u32) -> OpFault {
        let is_large = matches!(error, Engine::Floor(_));
        let fault = match error {
            Engine::Unanswered { .. } => OpFault::failed(error.to_string()),
            other => other.into(),
        };
        let back = format!("`{}` takes the question back", change::rewind_to(&self.found, before));
        if is_large { fault.and(back) } else { fault }
    }
}

/// Makes the session of a conversation.
fn make(
    context: &OperationContext,
    session: &SessionId,
    model: &ResolvedModel,
    beginning: Beginning,
) -> OpResult {
    let mut config = model.config();
    let named = config.model.as_deref().filter(|name| *name != SCRIPTED);
    config.meter = meter(context, None, named)?.name().to_owned();
    config.compression_threshold = Some(context.config.compression_threshold);
    let setup = Setup { system: beginning.system, ..Setup::default() };
    let setup = if beginning.tools { RecallTools::offered(setup) } else { setup };
    create(context, &meta(context, session, of_caller(context, config)), setup)
}

/// Sessions that can be talked in, the last one that changed first: not ended, waiting in no queue, no task's.
pub fn latest_conversations(
    context: &OperationContext,
    most: usize,
    wanted: impl Fn(&Session) -> bool,
) -> OpResult<Vec<Session>> {
    let mut latest = BTreeMap::new();
    context.engine.each_session(SessionQuery::default(), |session| {
        let can_go_on = matches!(session.status, State::Running) && !session.meta.task_key.is_task();
        if can_go_on && context.caller.may_see(session) && wanted(session) {
            latest.insert((session.updated_at.clone(), session.meta.uuid.clone()), session.clone());
        }
        if latest.len() > most {
            latest.pop_first();
        }
        Ok(())
    })?;
    Ok(latest.into_values().rev().collect())
}

/// What a model answered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AskResult {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The answer's entry.
    pub seq: Seq,
    /// Its words.
    pub text: String,
    /// Calls that wait for a result.
    pub calls: Vec<AskedCall>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
    /// What it took, as the provider says.
    pub usage: Option<Usage>,
    /// Why it stopped.
    pub finish: String,
    /// The words with which it declines, beside the answer.
    pub refusal: Option<String>,
    /// Tokens of the view now.
    pub tokens: u64,
    /// The model's window in its own tokens.
    pub window: u64,
    /// Where that is known from: given, learned, probed or listed.
    pub window_from: &'static str,
    /// Turns that it took.
    pub turns: u32,
    /// Requests that were sent.
    pub attempts: u32,
    /// Edits that were made to fit.
    pub edits: Vec<MadeEdit>,
    /// What is seen of the threads above, where it was cut anew.
    pub slices: Vec<Resliced>,
    /// True when no model said it: the request stayed too large to the end.
    pub ours: bool,
    /// True when the model did not stop calling tools, and was not asked again.
    #[serde(skip)]
    pub gave_up: bool,
}

/// A call that waits for a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct AskedCall {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

impl From<Call> for AskedCall {
    fn from(Call { id, name, arguments, .. }: Call) -> Self {
        Self { id, name, arguments }
    }
}

impl AskResult {
    /// True when the model neither said nor called anything.
    pub fn is_silent(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty() && !self.gave_up
    }

    /// Refuses an answer that says nothing because the model did not stop calling tools.
    pub fn check(&self) -> OpResult {
        match self.gave_up {
            false => Ok(()),
            true => Err(OpFault::failed(format!(
                "the model called tools for {} and said nothing",
                count(u64::from(self.turns), "turn")
            ))),
        }
    }
}

/// The words with which a model of OpenAI declines; they stand beside the answer.
fn refusal(message: &Message) -> Option<String> {
    let extra: serde_json::Value = serde_json::from_str(message.extra.as_ref()?.json.get()).ok()?;
    extra.get("refusal")?.as_str().map(str::to_owned)
}

/// Hears what happens while a question is answered, and may stop it.
pub trait AskListener {
    /// The thread is known, and nothing was said in it yet.
    fn begun(&mut self, _found: &ResolvedAddress) {}

    /// The question is in the journal.
    fn kept(&mut self) {}

    /// Something happens.
    fn news(&mut self, _news: ExchangeEvent<'_>) {}

    /// The answer is in the journal.
    fn answered(&mut self, _answered: &AskResult) {}

    /// What stops the requests that follow.
    fn cancel(&mut self) -> Cancel {
        Cancel::default()
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl AskListener for Silent {}
