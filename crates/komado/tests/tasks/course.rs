//! What the model does in each task. Where a task stands is seen from what its conversation contains, so a request that
//! is made again by another worker is answered as the first one was.

use komado_provider::scripted::{ScriptStep, ScriptedReply, ToolCall};
use serde_json::{Value, json};

/// Calls of one task, when none has to be made twice.
pub(crate) const CALLS: usize = 6;

/// What stands in the title of a task.
pub(crate) fn title(task: usize) -> String {
    format!("(t{task:02}) 直してください")
}

/// What the model says at the end of it.
pub(crate) fn last_words(task: usize) -> String {
    format!("Done with t{task:02}. できました。")
}

/// What is found in the conversation once step `step` has its result.
fn mark(task: usize, step: usize) -> String {
    format!("t{task:02}-e{step}")
}

/// The furthest step first: the first one whose mark is there is the one that comes next.
pub(crate) fn steps(tasks: usize) -> Vec<ScriptStep> {
    (0..tasks).flat_map(of_task).map(ScriptStep::always).collect()
}

fn of_task(task: usize) -> Vec<ScriptStep> {
    let mark = |step| mark(task, step);
    let file = format!("{}.txt", mark(1));
    let shell = format!("echo {} >> {file} && cat {file}", mark(3));
    let convert = json!({"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": "UTC"});
    vec![
        ScriptStep::say(last_words(task)).when_anywhere(mark(5)),
        calls(&[("far_echo", json!({"text": mark(5)}))]).when_anywhere(mark(4)),
        calls(&[("time_convert_time", convert), ("near_echo", json!({"text": mark(4)}))])
            .when_anywhere(mark(3)),
        calls(&[("shell", json!({"command": shell}))]).when_anywhere(mark(2)),
        calls(&[("read", json!({"path": file}))]).when_anywhere(mark(1)),
        calls(&[("edit", json!({"path": file, "content": mark(2)}))]).when_anywhere(title(task)),
    ]
}

fn calls(calls: &[(&str, Value)]) -> ScriptStep {
    let call = |(name, arguments): &(&str, Value)| ToolCall {
        id: None,
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    ScriptStep {
        reply: ScriptedReply { calls: calls.iter().map(call).collect(), ..ScriptedReply::default() },
        ..ScriptStep::default()
    }
}
