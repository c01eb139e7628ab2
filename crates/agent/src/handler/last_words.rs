//! When a bound is reached the model is asked once more: what was done, and what is open. Nothing is carried out any more.

use super::TaskContext;
use super::mark::{ABOUT, AnsweredCount, TaskMark};
use crate::limits::LimitReached;
use crate::model_session::ModelSession;
use crate::playbook;
use crate::progress::TaskProgress;
use crate::{Error, Result};
use komado_core::journal::Entry;
use komado_core::message::{Call, Message};
use komado_core::{Role, ThreadId};
use komado_engine::Thread;

const NOT_RUN: &str = "[not run: the task has reached its bounds]";

/// The reason, and what the model says of the work so far. A model that cannot be asked any more does not keep a task from
/// ending.
pub(super) fn say<'e>(
    mind: &mut dyn ModelSession<'e>,
    kit: &TaskContext<'_>,
    reached: &LimitReached,
) -> Result<String> {
    let mut root = mind.open(kit.session, &ThreadId::root())?;
    answer_calls(&mut root)?;
    root.say(Message::text(Role::User, question(reached)))?;
    let turned = mind.turn(&mut root, kit.orders.cancel(), &mut |_| {});
    let summary = match turned {
        Ok(turned) => {
            for call in turned.message.calls() {
                root.say(not_run(call))?;
            }
            turned.message.words()
        }
        Err(why) => {
            (kit.tell)(TaskProgress::Trouble { why: why.to_string() });
            String::new()
        }
    };
    begin_anew(mind, kit, &mut root)?;
    let summary = summary.trim();
    Ok(if summary.is_empty() { reached.to_string() } else { format!("{reached}\n\n{summary}") })
}

fn question(reached: &LimitReached) -> String {
    format!(
        "The task ends here: {reached}. Call no tool any more. Write a summary for the next worker: what was done, where, and \
         what is open."
    )
}

/// Calls that were not begun are told so; one in doubt was interrupted.
fn answer_calls(root: &mut Thread<'_>) -> Result<()> {
    if playbook::rests(root)?
        && let Entry::Message(message, _) = root.record(root.view().open().unit)?.entry
    {
        for call in message.calls() {
            if root.view().open().waits_for(&call.id) {
                root.say(not_run(call))?;
            }
        }
    }
    Ok(root.answer_open_calls()?)
}

fn not_run(call: &Call) -> Message {
    playbook::no_result(call, NOT_RUN, Some(0))
}

/// To let the task go on gives it as much again: what it took so far does not count then.
fn begin_anew<'e>(mind: &dyn ModelSession<'e>, kit: &TaskContext<'_>, root: &mut Thread<'_>) -> Result<()> {
    root.settle()?;
    let answered = AnsweredCount::of_session(mind.engine(), kit.session)?;
    let mark = TaskMark {
        spent_ms: 0,
        turns_from: answered.turns,
        tokens_from: answered.tokens,
        ..TaskMark::of(root)?.unwrap_or_default()
    };
    root.note(ABOUT, mark.raw()?).map_err(Error::from)?;
    Ok(())
}
