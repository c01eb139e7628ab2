//! Which tool the model must or may call, in each dialect's words.
//!
//! A choice is only written when the tools it speaks of are: every provider refuses a choice without tools, and one
//! that names a tool it was not given.

use super::Tool;
use super::fields::{Fields, quoted};
use crate::dialect::Dialect;
use komado_core::message::CallKind;
use komado_core::raw::Object;

/// Which tools may be called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    Auto,
    None,
    Required,
    Named(String),
}

/// The choice in `params` of `from`, when there is one that others know.
pub(super) fn read(params: &Fields, from: Dialect) -> Option<Choice> {
    let json = params.get("tool_choice").filter(|_| from != Dialect::Ollama)?;
    if let Ok(word) = serde_json::from_str::<String>(json) {
        return plain(&word);
    }
    let object = Object::parse(json).ok()?;
    let kind: String = object.read("type").ok()??;
    let named = |object: &Object<'_>| object.read("name").ok().flatten().map(Choice::Named);
    match (from, kind.as_str()) {
        (Dialect::Messages, "auto" | "any" | "none") => plain(&kind),
        (Dialect::Messages, "tool") | (Dialect::Responses, "function" | "custom") => named(&object),
        (Dialect::Chat, "function" | "custom") => named(&Object::parse(object.get(&kind)?.get()).ok()?),
        _ => None,
    }
}

/// The choice that is one word.
fn plain(word: &str) -> Option<Choice> {
    match word {
        "auto" => Some(Choice::Auto),
        "none" => Some(Choice::None),
        "required" | "any" => Some(Choice::Required),
        _ => None,
    }
}

/// Whether several calls may stand in one answer, when `params` say so.
pub(super) fn parallel(params: &Fields, from: Dialect) -> Option<bool> {
    match from {
        Dialect::Chat | Dialect::Responses => {
            params.get("parallel_tool_calls").and_then(|json| json.parse().ok())
        }
        Dialect::Messages => {
            let choice = Fields::of(params.get("tool_choice")?);
            choice.get("disable_parallel_tool_use")?.parse().ok().map(|disabled: bool| !disabled)
        }
        Dialect::Ollama => None,
    }
}

/// Writes both into `out` in `to`'s words; `tools` are those that `to` is given.
pub(super) fn write(
    choice: Option<Choice>,
    parallel: Option<bool>,
    tools: &[Tool<'_>],
    to: Dialect,
    out: &mut Fields,
) {
    if tools.is_empty() {
        return;
    }
    let choice = choice.filter(|choice| match choice {
        Choice::Named(name) => tools.iter().any(|tool| tool.name == *name),
        _ => true,
    });
    match to {
        Dialect::Ollama => {}
        Dialect::Messages => {
            let single = parallel == Some(false);
            if let Some(choice) = choice.or(single.then_some(Choice::Auto)) {
                out.put("tool_choice", for_messages(&choice, parallel));
            }
        }
        Dialect::Chat | Dialect::Responses => {
            if let Some(choice) = choice {
                out.put("tool_choice", for_openai(&choice, tools, to));
            }
            if let Some(parallel) = parallel {
                out.put("parallel_tool_calls", parallel.to_string());
            }
        }
    }
}

fn for_messages(choice: &Choice, parallel: Option<bool>) -> String {
    let mut fields = Fields::default();
    match choice {
        Choice::Auto => fields.say("type", "auto"),
        Choice::None => fields.say("type", "none"),
        Choice::Required => fields.say("type", "any"),
        Choice::Named(name) => {
            fields.say("type", "tool");
            fields.say("name", name);
        }
    }
    if parallel == Some(false) && *choice != Choice::None {
        fields.put("disable_parallel_tool_use", "true");
    }
    fields.json()
}

fn for_openai(choice: &Choice, tools: &[Tool<'_>], to: Dialect) -> String {
    let name = match choice {
        Choice::Auto => return quoted("auto"),
        Choice::None => return quoted("none"),
        Choice::Required => return quoted("required"),
        Choice::Named(name) => name,
    };
    let custom = tools.iter().any(|tool| tool.name == *name && tool.kind == CallKind::Custom);
    let kind = if custom { "custom" } else { "function" };
    let mut inner = Fields::default();
    inner.say("name", name);
    super::held(to, kind, inner)
}
