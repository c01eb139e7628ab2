//! Start a thread: a fork, a child that outlives the call, or one that is given a task and ends with it.
//!
//! The child of a run is held by this process: what ends it early, an error, a request to stop or the end of the process, ends the
//! child as aborted with as much of a chronicle as there is, now or when the session is opened next. The parent goes on.

use super::{HowEnded, WindowShare};
use crate::address::{AtMoment, AtThread};
use crate::ask::{AskListener, AskResult, Conversation, Silent};
use crate::choice::ModelArgs;
use crate::tools::ToolDefinitions;
use crate::window::window;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_config::ConfigError;
use komado_core::amount::count;
use komado_core::journal::{Ending, Ratio, Setup};
use komado_core::raw::RawJson;
use komado_core::session::MetaConfig;
use komado_core::thread::{Moment, ThreadStatus};
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_engine::exchange::RecallTools;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::{Child, ChronicleBy, Finish, Finished, Spawn};
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Go on from a moment in another thread that shares everything up to there. The thread it left stays as it is.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Fork {
    /// The moment to go on from, SESSION@SEQ; now when SEQ is left out
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtMoment,
    /// The new thread's name; one is made up when left out
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// What it is about, for people
    #[arg(long)]
    pub label: Option<String>,
}

/// A thread that goes on from a moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Forked {
    /// The session.
    pub session: String,
    /// The new thread.
    pub thread: String,
    /// `session/thread`.
    pub address: String,
    /// Its own anchor in the parent, for the fork of a child thread.
    pub parent: Option<Moment>,
    /// The moment it goes on from.
    pub base: Option<Moment>,
}

impl Operation for Fork {
    const ABOUT: OperationLabel = OperationLabel::add("fork", "Continue from a moment in another thread");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("fork", Route::make("threads", "/sessions/{session}/threads/{thread}/fork"));
    type Output = Forked;

    fn run(self, context: &OperationContext) -> OpResult<Forked> {
        let found = context.find(&self.at)?;
        let thread = context.open(&found, OpenMode::Read)?;
        let at = found.seq.unwrap_or(thread.last());
        let name = match self.name {
            Some(name) => ThreadId::new(name)?,
            None => free_name(context, &found.session, at)?,
        };
        let header = thread.fork(at, name, self.label)?;
        Ok(Forked {
            session: header.session.to_string(),
            thread: header.thread.to_string(),
            address: format!("{}/{}", header.session, header.thread),
            parent: header.parent,
            base: header.base,
        })
    }
}

/// `fork-SEQ`, or the first of `fork-SEQ-2`, `fork-SEQ-3`, … that is free.
fn free_name(context: &OperationContext, session: &SessionId, at: Seq) -> OpResult<ThreadId> {
    let taken = context.engine.store().threads(session)?;
    let free = |name: &String| !taken.iter().any(|header| header.thread.as_str() == name);
    let names = std::iter::once(format!("fork-{at}")).chain((2u32..).map(|n| format!("fork-{at}-{n}")));
    Ok(ThreadId::new(names.into_iter().find(free).unwrap_or_default())?)
}

/// Start a child thread: a share of the window to work in. Its parent keeps one short entry of it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct StartThread {
    /// The session, or SESSION/THREAD: the thread it is started from
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// What it is about, for people and for the model
    pub label: Option<String>,
    /// What it is to be like.
    #[command(flatten)]
    #[serde(flatten)]
    pub child: ChildOptions,
    /// Tool definitions of its own, in place of those above
    #[arg(skip)]
    pub tools: Option<ToolDefinitions>,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// A child thread that was started.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Started {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// `session/thread`.
    pub address: String,
    /// The thread it was started from.
    pub parent: String,
    /// What it is about.
    pub label: Option<String>,
    /// How far below the root it is.
    pub depth: usize,
    /// What it has of its parent's window.
    pub ratio: f64,
    /// The window that is shared out.
    pub window: u64,
    /// How it is shared out.
    pub share: Option<WindowShare>,
    /// `active`.
    pub status: &'static str,
    /// The command that undoes it.
    pub undo: String,
}

impl Operation for StartThread {
    const ABOUT: OperationLabel = OperationLabel::add("thread_start", "Start a child thread");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread start",
        Route::make("threads", "/sessions/{session}/threads/{thread}/start"),
    );
    type Output = Started;

    fn run(self, context: &OperationContext) -> OpResult<Started> {
        let (found, session) = context.find_row(&self.at)?;
        let own = &session.meta.config;
        // Whether it may be started at all is said before a missing window is.
        context.config.threads(own).check()?;
        let window = u64::from(window(context, &session, self.window)?);
        let setup = self.child.setup(self.tools);
        let spawn = Spawn { label: self.label, setup, ..self.child.spawn(context, own, window)? };
        let mut parent = context.open(&found, OpenMode::Write)?;
        let refused = |error| self.child.refused(context, own, error);
        let mut child = parent.spawn_free(&spawn).map_err(refused)?;
        context.settle(&mut parent);
        context.settle(&mut child);
        let thread = child.header().thread.to_string();
        let address = format!("{}/{thread}", found.session);
        Ok(Started {
            session: found.session.to_string(),
            thread,
            parent: found.thread.to_string(),
            label: spawn.label,
            depth: child.share()?.map_or(0, |share| share.depth()),
            ratio: spawn.ratio.get(),
            window,
            share: child.portion(Some(window))?.as_ref().map(WindowShare::from),
            status: "active",
            undo: format!("komado thread abort {address}"),
            address,
        })
    }
}

/// What a request says of a child thread.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ChildOptions {
    /// Its name; stelis_1, stelis_2, … when left out
    #[arg(long)]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Its share of the parent's window, from 0.01 to 0.99
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
    /// How deep threads may nest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    #[schemars(range(max = 100))]
    pub max_depth: Option<u32>,
    /// Its own system prompt, added after those of the threads above
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Instructions for writing its chronicle
    #[arg(long, value_name = "TEXT")]
    pub chronicle_prompt: Option<String>,
    /// Do not lend it the unused shares of the threads above
    #[arg(long)]
    #[serde(default)]
    pub no_lending: bool,
}

impl ChildOptions {
    /// System prompt and tools of its own; `None` when it has none.
    pub fn setup(&self, tools: Option<ToolDefinitions>) -> Option<Setup> {
        let tools = tools.map(Into::into);
        let dialect = tools.as_ref().map(|_: &RawJson| komado_core::openai::DIALECT.to_owned());
        let setup = Setup { system: self.system.clone(), tools, dialect, ..Setup::default() };
        (setup != Setup::default()).then_some(setup)
    }

    /// The rest of it, for a session made with `own` and a window of `window` tokens as we count them.
    pub fn spawn(&self, context: &OperationContext, own: &MetaConfig, window: u64) -> OpResult<Spawn> {
        let usual = spawn_settings(context, own, window)?;
        Ok(Spawn {
            name: self.name.clone().map(ThreadId::new).transpose()?,
            ratio: self.ratio.unwrap_or(usual.ratio),
            max_depth: self.max_depth.unwrap_or(usual.max_depth),
            lends: usual.lends && !self.no_lending,
            chronicle_prompt: self.chronicle_prompt.clone(),
            ..usual
        })
    }

    /// Why a child of a session made with `own` was not started.
    pub fn refused(
        &self,
        context: &OperationContext,
        own: &MetaConfig,
        error: komado_engine::Error,
    ) -> OpFault {
        context.config.too_deep(own, &error, self.max_depth).map_or_else(|| error.into(), OpFault::from)
    }
}

/// What a child thread of a session made with `own` is spawned with, as persona and settings say; refused when there may be
/// none.
pub fn spawn_settings(
    context: &OperationContext,
    own: &MetaConfig,
    window: u64,
) -> Result<Spawn, ConfigError> {
    let threads = context.config.threads(own);
    threads.check()?;
    Ok(Spawn {
        ratio: threads.ratio()?,
        max_depth: threads.max_depth,
        buffer: context.config.models.policy.buffer,
        lends: threads.lends,
        anchor_cap: threads.anchor_tokens,
        ..Spawn::new(window)
    })
}

/// A part of a window, as it is written.
pub fn ratio(text: &str) -> Result<Ratio, String> {
    let wrong = || format!("it must be a number from 0.01 to 0.99, not: {text}");
    Ratio::new(text.trim().parse().map_err(|_| wrong())?).map_err(|_| wrong())
}

/// Most characters of a task that serve as a label.
const LABEL: usize = 40;

/// Give a task to a child thread and wait for the answer: start, ask, end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RunThread {
    /// The thread it is started from.
    #[serde(flatten)]
    pub at: AtThread,
    /// What is to be done.
    #[schemars(length(min = 1))]
    pub task: String,
    /// What it is about, for people and for the model; the beginning of the task when left out.
    pub label: Option<String>,
    /// What it is to be like.
    #[serde(flatten)]
    pub child: ChildOptions,
    /// Tool definitions of its own, in place of those above.
    pub tools: Option<ToolDefinitions>,
    /// The model that is asked.
    #[serde(skip)]
    pub model: ModelArgs,
}

/// What was answered in a child thread, and how it ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ran {
    /// The answer.
    #[serde(flatten)]
    pub answered: AskResult,
    /// How the thread ended.
    #[serde(flatten)]
    pub how: HowEnded,
}

impl Operation for RunThread {
    const ABOUT: OperationLabel = OperationLabel::add("thread_run", "Give a task to a child thread");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "thread run",
        "it waits for a model to finish: start, the gateway and end do the same in steps",
    )
    .not_mcp("a client of MCP is asked by a model of its own");
    type Output = Ran;

    fn run(self, context: &OperationContext) -> OpResult<Ran> {
        self.hear(context, &mut Silent)
    }
}

impl RunThread {
    /// Does it, while `listener` hears what happens.
    pub fn hear(self, context: &OperationContext, listener: &mut dyn AskListener) -> OpResult<Ran> {
        let (found, session) = context.find_row(&self.at)?;
        let own = session.meta.config;
        context.config.threads(&own).check()?;
        let choice = ModelChoice::from(self.model);
        let models = context.models();
        let models = models.of(&found.session);
        let model = models.resolve(&own, &choice)?;
        let setup = RecallTools::offered(self.child.setup(self.tools).unwrap_or_default());
        let label = self.label.unwrap_or_else(|| label(&self.task));
        let usual = self.child.spawn(context, &own, models.our_window(&model)?)?;
        let spawn = Spawn { label: Some(label), setup: Some(setup), ..usual };
        let mut parent = context.open(&found, OpenMode::Write)?;
        let refused = |error| self.child.refused(context, &own, error);
        let mut child = parent.spawn(&spawn).map_err(refused)?;
        context.settle(&mut parent);
        let here = ResolvedAddress { thread: child.header().thread.clone(), ..found };
        let conversation = Conversation { found: here, choice, model, unmade: None };
        listener.begun(&conversation.found);
        let answered = conversation.ask_in(context, &mut child, Some(self.task), listener);
        let answered = match answered.and_then(whole) {
            Ok(answered) => answered,
            Err(fault) => return Err(broken_off(context, &conversation, child, &mut parent, fault)),
        };
        let finished = finish(context, &conversation, child, &mut parent, listener)?;
        context.settle(&mut parent);
        Ok(Ran { answered, how: HowEnded::of(&conversation.found, ThreadStatus::Completed, finished) })
    }
}

/// The beginning of a task.
fn label(task: &str) -> String {
    let line = task.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut label: String = line.chars().take(LABEL).collect();
    if label.len() < line.len() {
        label.push('…');
    }
    label
}

/// A conversation that came to an answer; an error says why it did not.
fn whole(answered: AskResult) -> OpResult<AskResult> {
    let failed = |why: String| Err(OpFault::failed(why));
    if let Some(call) = answered.calls.first() {
        return failed(format!(
            "the model waits for {}, and nothing answers that here; `komado thread start` and `komado ask` let you",
            call.name
        ));
    }
    if answered.gave_up {
        let (name, turns) = (&answered.thread, count(u64::from(answered.turns), "turn"));
        return failed(format!("the model called tools for {turns} in {name} and said nothing"));
    }
    Ok(answered)
}

/// Ends the child well, and tells its parent. What stops this stops only the writer of the chronicle; the digest stands in.
fn finish(
    context: &OperationContext,
    conversation: &Conversation,
    child: Child<'_>,
    parent: &mut Thread<'_>,
    listener: &mut dyn AskListener,
) -> OpResult<Finished> {
    let finish = |telling| Finish { ending: Ending::Completed, result: None, telling };
    let summaries = &context.config.models.summaries;
    if !summaries.has_writer() {
        return Ok(child.end(parent, finish(ChronicleBy::Digest))?);
    }
    let Conversation { found, choice, model, .. } = conversation;
    let (models, cancel) = (context.models(), listener.cancel());
    let mut writer = models.summariser(&found.session, child.meter(), choice, Some(model), &cancel)?;
    let telling = ChronicleBy::By { by: writer.by(), settings: summaries.settings.clone() };
    Ok(child.end(parent, finish(telling))?)
}

/// Ends the child as aborted; what went wrong, and what became of it.
fn broken_off(
    context: &OperationContext,
    conversation: &Conversation,
    child: Child<'_>,
    parent: &mut Thread<'_>,
    fault: OpFault,
) -> OpFault {
    let aborted = child.abort(parent, Some(fault.message().to_owned()));
    context.settle(parent);
    let name = conversation.name();
    let what = match aborted {
        Ok(_) => format!("{name} is aborted, with a partial chronicle"),
        Err(error) => format!("{name} is aborted when the session is opened next ({error})"),
    };
    fault.and(format!("{what}; `komado thread resume {name}` continues it"))
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_the_beginning_of_the_task_cut_between_characters() {
        assert_eq!(label("\n 直して \nmore"), "直して");
        assert_eq!(label(&"窓".repeat(41)), format!("{}…", "窓".repeat(40)));
    }
}
