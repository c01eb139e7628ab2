//! Recall as a tool that a model can call.
//!
//! Results are lines with the number to read on at. What the model gets wrong is answered in words it can act on, as a
//! tool's answer, never as a failure of the conversation.

use super::{Ask, Found, How, Scope};
use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::{Role, Seq, ThreadId};
use serde::Deserialize;

/// The tool's definition, in the form that chat APIs take.
pub const TOOL: &str = r#"{"type":"function","function":{"name":"recall","description":"Search everything that was ever said in this session, including what is no longer in your context: messages, tool calls and whole tool outputs. Results are short; each begins with @number, by which it can be read in full.","parameters":{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in your own words; a name, a path or an error message is best."},"k":{"type":"integer","minimum":1,"maximum":50,"description":"How many results; 8 when left out."},"mode":{"type":"string","enum":["ranked","exact","regex"],"description":"ranked: best fit first. exact: the text as it stands. regex: a regular expression. ranked when left out."},"role":{"type":"string","enum":["system","developer","user","assistant","tool"],"description":"Only what this speaker said."},"tool":{"type":"string","description":"Only calls and results of this tool."},"file":{"type":"string","description":"Only calls and results about this file or folder."}},"required":["query"],"additionalProperties":false}}}"#;

/// The tool's name.
pub(crate) const NAME: &str = "recall";

/// Results when the model does not say.
const K: usize = 8;
/// The most it may ask for.
const MOST: usize = 50;
/// Tokens of an answer.
const BUDGET: u64 = 2000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    k: Option<usize>,
    mode: Option<String>,
    role: Option<String>,
    tool: Option<String>,
    file: Option<String>,
}

impl Arguments {
    fn ask(self) -> std::result::Result<Ask, String> {
        let mut ask = Ask::new(self.query);
        ask.k = self.k.unwrap_or(K).clamp(1, MOST);
        ask.budget = Some(BUDGET);
        if let Some(mode) = &self.mode {
            ask.how =
                How::named(mode).ok_or(format!("no mode {mode:?}; there are ranked, exact and regex"))?;
        }
        if let Some(role) = &self.role {
            let known = Role::ALL.map(Role::name).join(", ");
            ask.filter.role = Some(Role::named(role).ok_or(format!("no role {role:?}; there are {known}"))?);
        }
        (ask.filter.tool, ask.filter.file) = (self.tool, self.file);
        Ok(ask)
    }
}

/// Answers a call of the tool, `arguments` as the model wrote them, that stands in entry `at` of thread `here`: it finds
/// neither itself nor what comes with it, and no other search either, whose words are those of what it looked for. One that
/// stands nowhere is at [`Seq::MAX`].
pub fn call(engine: &Engine, scope: &Scope, (here, at): (&ThreadId, Seq), arguments: &str) -> Result<String> {
    let parsed = serde_json::from_str::<Arguments>(arguments).map_err(|e| e.to_string());
    let mut ask = match parsed.and_then(Arguments::ask) {
        Ok(ask) => ask,
        Err(why) => return Ok(format!("recall: {why}. Call it as recall({{\"query\":\"…\"}}).")),
    };
    if at < Seq::MAX {
        ask.filter.before = Some((here.clone(), at));
        ask.filter.not_tool = Some(NAME.to_owned()).filter(|name| ask.filter.tool.as_ref() != Some(name));
    }
    match engine.recall(scope, &ask) {
        Ok(found) => Ok(answer(&ask, here, &found)),
        Err(error @ (Error::NoQuery | Error::BadPattern(_))) => Ok(format!("recall: {error}.")),
        Err(other) => Err(other),
    }
}

fn answer(ask: &Ask, here: &ThreadId, found: &[Found]) -> String {
    let Some(best) = found.first() else {
        let hint = match ask.how {
            How::Ranked => "Try other words, or fewer filters.",
            How::Exact | How::Regex => "Try mode ranked, or a shorter text.",
        };
        return format!("Nothing was found for {:?}. {hint}", ask.query);
    };
    let mut text: String = found.iter().map(|one| one.line(here)).collect();
    let place = if best.thread == *here { "" } else { best.thread.as_str() };
    let call = serde_json::json!({ "ref_id": format!("{place}@{}", best.seq) });
    text.push_str(&format!("To read one in full: tool_output_cache({call})"));
    text
}
