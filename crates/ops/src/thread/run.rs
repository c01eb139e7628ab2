//! Run: a task for a child thread, from its start to its chronicle.
//!
//! The child is held by this process: what ends it early, an error, a request to stop or the end of the process, ends the child
//! as aborted with as much of a chronicle as there is, now or when the session is opened next. The parent goes on.

use super::{ChildOptions, HowEnded};
use crate::address::AtThread;
use crate::ask::{Answered, Conversation, Listener, Silent};
use crate::choice::ModelArgs;
use crate::tools::ToolDefinitions;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome};
use komado_core::journal::Ending;
use komado_core::thread::Status;
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::exchange::Library;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::{Child, Finish, Finished, Spawn, Telling};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub answered: Answered,
    /// How the thread ended.
    #[serde(flatten)]
    pub how: HowEnded,
}

impl Operation for RunThread {
    const NAME: &'static str = "thread_run";
    const TITLE: &'static str = "Give a task to a child thread";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "thread run",
        "it waits for a model to finish: start, the gateway and end do the same in steps",
    )
    .not_mcp("a client of MCP is asked by a model of its own");
    type Output = Ran;

    fn run(self, context: &Context) -> Outcome<Ran> {
        self.hear(context, &mut Silent)
    }
}

impl RunThread {
    /// Does it, while `listener` hears what happens.
    pub fn hear(self, context: &Context, listener: &mut dyn Listener) -> Outcome<Ran> {
        let found = context.find_now(&self.at)?;
        let own = context.session(&found.session)?.meta.config;
        context.config.threads(&own).check()?;
        let choice = ModelChoice::from(self.model);
        let model = context.models().resolve(&own, &choice)?;
        let setup = Library::offered(self.child.setup(self.tools).unwrap_or_default());
        let label = self.label.unwrap_or_else(|| label(&self.task));
        let usual = self.child.spawn(context, &own, context.models().our_window(&model)?)?;
        let spawn = Spawn { label: Some(label), setup: Some(setup), ..usual };
        let mut parent = context.open(&found, Mode::Write)?;
        let refused = |error| self.child.refused(context, &own, error);
        let mut child = parent.spawn(&spawn).map_err(refused)?;
        context.settle(&mut parent);
        let here = Found { thread: child.header().thread.clone(), ..found };
        let conversation = Conversation { found: here, choice, model };
        listener.begun(&conversation.found);
        let answered = conversation.ask_in(context, &mut child, Some(self.task), listener);
        let answered = match answered.and_then(whole) {
            Ok(answered) => answered,
            Err(fault) => return Err(broken_off(context, &conversation, child, &mut parent, fault)),
        };
        let finished = finish(context, &conversation, child, &mut parent, listener)?;
        context.settle(&mut parent);
        Ok(Ran { answered, how: HowEnded::of(&conversation.found, Status::Completed, finished) })
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
fn whole(answered: Answered) -> Outcome<Answered> {
    let failed = |why: String| Err(Fault::new(Exit::Failed, why));
    if let Some(call) = answered.calls.first() {
        return failed(format!(
            "the model waits for {}, and nothing answers that here; `komado thread start` and `komado ask` let you",
            call.name
        ));
    }
    if answered.gave_up {
        let (name, turns) = (&answered.thread, answered.turns);
        return failed(format!("the model called tools for {turns} turns in {name} and said nothing"));
    }
    Ok(answered)
}

/// Ends the child well, and tells its parent. What stops this stops only the writer of the chronicle; the digest stands in.
fn finish(
    context: &Context,
    conversation: &Conversation,
    child: Child<'_>,
    parent: &mut Thread<'_>,
    listener: &mut dyn Listener,
) -> Outcome<Finished> {
    let finish = |telling| Finish { ending: Ending::Completed, result: None, telling };
    let summaries = &context.config.models.summaries;
    if !summaries.has_writer() {
        return Ok(child.end(parent, finish(Telling::Digest))?);
    }
    let Conversation { found, choice, model } = conversation;
    let (models, cancel) = (context.models(), listener.cancel());
    let mut writer = models.summariser(&found.session, child.meter(), choice, Some(model), &cancel)?;
    let telling = Telling::By { by: writer.by(), settings: summaries.settings.clone() };
    Ok(child.end(parent, finish(telling))?)
}

/// Ends the child as aborted; what went wrong, and what became of it.
fn broken_off(
    context: &Context,
    conversation: &Conversation,
    child: Child<'_>,
    parent: &mut Thread<'_>,
    fault: Fault,
) -> Fault {
    let aborted = child.abort(parent, Some(fault.message().to_owned()));
    context.settle(parent);
    let name = conversation.name();
    let what = match aborted {
        Ok(_) => format!("{name} is aborted, with a partial chronicle"),
        Err(error) => format!("{name} is aborted when the session is opened next ({error})"),
    };
    fault.and(format!("{what}; `komado thread resume {name}` goes on with it"))
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
