//! A request for chat completions, read.

use super::legacy::{self, Pairing};
use super::thought;
use crate::ask::{Asked, BadRequest};
use crate::dialect::Dialect;
use crate::dialect::json::{field, list, parsed};
use crate::dialect::tail::Read;
use crate::dialect::tools::fields::Fields;
use komado_core::journal::Setup;
use komado_core::message::{Call, Message, Part, Role};
use komado_core::openai;
use komado_core::raw::{self, Object, Raw};
use serde_json::value::RawValue;

/// What is not a parameter.
const KNOWN: [&str; 6] = ["model", "messages", "tools", "stream", "functions", "function_call"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<Asked, BadRequest> {
    let object = parsed(body, "body")?;
    let model: Option<String> = field(&object, "", "model")?;
    let model = model.ok_or_else(|| BadRequest::new("model", "is missing; name the model to ask"))?;
    let raws: Option<Vec<&RawValue>> = field(&object, "", "messages")?;
    let raws = raws.ok_or_else(|| BadRequest::new("messages", "is missing; give a list of messages"))?;
    let texts: Vec<&str> = raws.iter().map(|raw| raw.get()).collect();
    let mut messages = read_texts(&texts, Pairing::default())?;
    raw::check(body).map_err(|why| BadRequest::new("body", why))?;
    let setup = Setup {
        system: leading_system(&mut messages),
        tools: read_tools(&object)?,
        params: read_params(&object),
        dialect: Some(Dialect::Chat.name().into()),
    };
    let max_tokens = match limit(&object, "max_completion_tokens")? {
        None => limit(&object, "max_tokens")?,
        most => most,
    };
    let stream = field(&object, "", "stream")?.unwrap_or(false);
    Ok(Asked { model, setup, messages, max_tokens, stream })
}

/// A limit below zero is some servers' word for none.
fn limit(object: &Object<'_>, key: &str) -> Result<Option<u64>, BadRequest> {
    Ok(field::<i64>(object, "", key)?.and_then(|most| u64::try_from(most).ok()))
}

/// Reads messages that follow on others, of whose calls `open` wait for an answer.
pub(in crate::dialect) fn read_elements(elements: &[&str], open: &[Call]) -> Result<Read, BadRequest> {
    Ok(Read::one_by_one(read_texts(elements, Pairing::after(open))?))
}

fn read_texts(texts: &[&str], mut pairing: Pairing) -> Result<Vec<Message>, BadRequest> {
    let mut messages = Vec::with_capacity(texts.len());
    for (i, text) in texts.iter().enumerate() {
        let read = pairing.read(text).unwrap_or_else(|| openai::read(text));
        messages.push(thought::parted(read.map_err(|bad| {
            let (inside, why) = inside(text).unwrap_or_else(|| (String::new(), bad.to_string()));
            BadRequest::new(format!("messages[{i}]{inside}"), why)
        })?));
    }
    Ok(messages)
}

/// Which element of a message is at fault, when it is one that can be tried alone.
fn inside(text: &str) -> Option<(String, String)> {
    let object = Object::parse(text).ok()?;
    for key in ["tool_calls", "content"] {
        for (i, element) in list(&object, key).iter().enumerate() {
            let alone = format!("{{\"role\":\"assistant\",\"{key}\":[{element}]}}");
            if let Err(bad) = openai::read(&alone) {
                return Some((format!(".{key}[{i}]"), bad.to_string()));
            }
        }
    }
    None
}

/// Takes a system prompt out that leads the conversation, when it is one message of plain words.
pub(in crate::dialect) fn leading_system(messages: &mut Vec<Message>) -> Option<String> {
    let alone = messages.get(1).is_none_or(|next| !matches!(next.role, Role::System | Role::Developer));
    let first = messages.first().filter(|first| first.role == Role::System && alone)?;
    if first.name.is_some() || first.extra.is_some() {
        return None;
    }
    let [Part::Text { text, extra: None }] = first.parts.as_slice() else { return None };
    let text = text.clone();
    messages.remove(0);
    Some(text)
}

fn read_tools(object: &Object<'_>) -> Result<Option<Raw>, BadRequest> {
    let tools: Option<Vec<&RawValue>> = field(object, "", "tools")?;
    let functions: Option<Vec<&RawValue>> = field(object, "", "functions")?;
    let json = match (tools, functions) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Ok(object.get("tools").map(Raw::from_value)),
        (tools, Some(functions)) => legacy::tools(&functions, &tools.unwrap_or_default()),
    };
    Raw::parse(json).map(Some).map_err(|e| BadRequest::new("tools", e))
}

fn read_params(object: &Object<'_>) -> Option<Raw> {
    let rest = object.rest(&KNOWN);
    let Some(old) = object.get("function_call") else { return rest };
    let mut fields = Fields::of(rest.as_ref().map_or("{}", Raw::get));
    fields.suggest("tool_choice", &legacy::choice(old.get()));
    Raw::parse(fields.json()).ok()
}
