//! The words before the work: what the model is told it is, the rules of the place, and the task itself.

use super::TaskContext;
use crate::source::head;
use crate::task::Task;
use crate::tools::ToolSet;
use komado_core::journal::Setup;
use komado_core::raw::RawJson;
use komado_engine::exchange::RecallTools;
use serde_json::{Value, json};

/// Most bytes of a rules file that are told.
const MOST_RULES: usize = 64 << 10;

/// What stands before the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskInstructions {
    /// What the model is told first; the built-in words when there are none.
    pub system: Option<String>,
    /// The name of a file with rules, and what it says.
    pub rules: Option<(String, String)>,
}

impl TaskInstructions {
    /// The system prompt with the rules under a heading of their own.
    pub fn system(&self) -> String {
        let mut text = self.system.clone().unwrap_or_else(|| SYSTEM.trim().to_owned());
        if let Some((name, rules)) = &self.rules {
            let (rules, rest) = bounded(rules.trim());
            text.push_str(&format!("\n\n# Rules of this place ({name})\n\n{rules}{rest}"));
        }
        text
    }
}

/// The beginning of a text, and a word about the rest.
fn bounded(text: &str) -> (&str, String) {
    if text.len() <= MOST_RULES {
        return (text, String::new());
    }
    let kept = head(text, MOST_RULES);
    (kept, format!("\n\n[{} more bytes are in the file: read it there]", text.len() - kept.len()))
}

/// What stands before the conversation, for its journal: the same words every turn.
pub fn setup(brief: &TaskInstructions, tools: &ToolSet) -> Setup {
    let defined: Vec<Value> = tools
        .definitions()
        .into_iter()
        .map(|tool| {
            json!({
                "type": "function",
                "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
            })
        })
        .collect();
    let tools =
        (!defined.is_empty()).then(|| RawJson::parse(Value::from(defined).to_string()).ok()).flatten();
    RecallTools::offered(Setup { system: Some(brief.system()), tools, ..Setup::default() })
}

/// The task as the model hears it.
pub(super) fn first_message(kit: &TaskContext<'_>, earlier: Option<&str>) -> String {
    let Task { name, title, text, url, .. } = kit.task;
    let mut words = format!("Task {name}: {title}\n");
    if let Some(url) = url {
        words.push_str(&format!("{url}\n"));
    }
    // A text of one line is its own title.
    if !text.trim().is_empty() && text.trim() != title {
        words.push_str(&format!("\n{}\n", text.trim()));
    }
    if let Some(earlier) = earlier {
        words.push_str(&format!(
            "\n---\nEarlier work on this task ended with this summary; what it says is done need not be done again:\n\n{}\n",
            earlier.trim()
        ));
    }
    words
}

const SYSTEM: &str = "
You are an agent that works on one task until it is done. You work unattended: decide for yourself, and do the work with \
the tools you have. Look before you change anything, check what you did, and go on from what a tool says went wrong instead \
of repeating the same call.

Your window is small and what leaves it is not lost: older outputs can be read again with tool_output_cache and \
tool_output_cache_grep, and everything said so far can be searched with recall.

Answer in the language of the task. Messages that begin with [comment by NAME] come from people who follow the task while you \
work: take them into account. When the task is done, or cannot be done, call no tool any more and write a summary: what was \
done, where, how it was checked, and what is open. That summary is what people read.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_under_their_own_heading_and_a_long_file_is_cut_between_characters() {
        let brief =
            |rules: &str| TaskInstructions { system: None, rules: Some(("AGENTS.md".into(), rules.into())) };
        let text = brief("テストを先に書く。").system();
        assert!(text.ends_with("# Rules of this place (AGENTS.md)\n\nテストを先に書く。"), "{text}");
        assert!(text.starts_with("You are an agent"));
        let long = brief(&"窓".repeat(MOST_RULES)).system();
        assert!(
            long.len() < MOST_RULES + 4_096 && long.contains("more bytes are in the file"),
            "{}",
            long.len()
        );
    }

    #[test]
    fn tools_are_offered_in_one_form_beside_those_that_lead_back() {
        let setup = setup(&TaskInstructions::default(), &ToolSet::default());
        let tools = setup.tools.unwrap();
        assert!(tools.get().contains("\"recall\"") && setup.dialect.as_deref() == Some("openai"));
    }
}
