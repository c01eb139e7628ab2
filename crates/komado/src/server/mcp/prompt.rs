//! The prompt that takes up an old thread.

use super::tool::{Answer, call, find};
use crate::fault::{Exit, Fault, Outcome};
use komado_ops::Context;
use rmcp::model::{JsonObject, Prompt, PromptArgument};
use serde_json::json;

/// Its name.
const RESUME: &str = "resume";

/// Entries that it quotes.
const ENTRIES: u32 = 20;

/// The prompts there are.
pub(super) fn all() -> Vec<Prompt> {
    let argument = |name: &str, about: &str| PromptArgument::new(name).with_description(about);
    let arguments = vec![
        argument("session", "The session or its address; not needed when only one can be meant"),
        argument("thread", "The thread; the root when left out"),
    ];
    let about = "Go on with a session: what fills its window, its last entries, and how to find the rest";
    vec![Prompt::new(RESUME, Some(about), Some(arguments)).with_title("Go on with a session")]
}

/// The words of a prompt.
pub(super) fn say(context: &Context, name: &str, given: &JsonObject) -> Outcome<String> {
    if name != RESUME {
        return Err(Fault::new(Exit::NotFound, format!("there is no prompt {name:?}; there is {RESUME:?}")));
    }
    let window = run(context, "context", given.clone())?;
    let mut asked = given.clone();
    asked.insert("limit".to_owned(), json!(ENTRIES));
    let log = run(context, "log", asked)?;
    let word = |name: &str| log.value[name].as_str().unwrap_or_default().to_owned();
    let (session, thread) = (word("session"), word("thread"));
    Ok(format!(
        "Go on with the work of session {session}, thread {thread}.\n\nIts window:\n{}\n\nIts last entries:\n{}\n\n\
         Everything that was ever said in it can be found with the tool `recall` and read in full with \
         `tool_output_cache` (ref_id \"@NUMBER\"). Say in a few sentences where the work stands and what comes next, \
         then go on.",
        window.text, log.text
    ))
}

fn run(context: &Context, name: &str, given: JsonObject) -> Outcome<Answer> {
    let tool = find(name).ok_or_else(|| Fault::usage(format!("there is no tool {name:?}")))?;
    call(tool, given, context)
}
