//! A request for Ollama's chat, read.

use super::pairing::Pairing;
use super::{DIALECT, arguments};
use crate::ask::{Asked, BadRequest};
use crate::dialect::chat::leading_system;
use crate::dialect::json::{self, field, list, objects, opaque, parsed, said};
use crate::dialect::tail::Read;
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, ImageSource, Message, Outcome, Part, Role};
use komado_core::raw::{self, Object, Raw};
use serde_json::value::RawValue;
use std::collections::HashSet;

/// What is not a parameter.
const KNOWN: [&str; 4] = ["model", "messages", "tools", "stream"];

/// The fields of a message that are understood.
const OF_MESSAGE: [&str; 7] =
    ["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<Asked, BadRequest> {
    let object = parsed(body, "body")?;
    let model: Option<String> = field(&object, "", "model")?;
    let model = model.ok_or_else(|| BadRequest::new("model", "is missing; name the model to ask"))?;
    // Without messages it is a request to load the model.
    let raws: Vec<&RawValue> = field(&object, "", "messages")?.unwrap_or_default();
    let texts: Vec<&str> = raws.iter().map(|raw| raw.get()).collect();
    let mut messages = read_texts(&texts, &[])?;
    raw::check(body).map_err(|why| BadRequest::new("body", why))?;
    let tools: Option<Vec<&RawValue>> = field(&object, "", "tools")?;
    let setup = Setup {
        system: leading_system(&mut messages),
        tools: tools.and_then(|_| object.get("tools")).map(Raw::from_value),
        params: object.rest(&KNOWN),
        dialect: Some(DIALECT.into()),
    };
    let stream = field(&object, "", "stream")?.unwrap_or(true);
    Ok(Asked { model, setup, messages, max_tokens: limit(&object)?, stream })
}

/// `num_predict`, where a number below zero means that there is no limit.
fn limit(object: &Object<'_>) -> Result<Option<u64>, BadRequest> {
    let Some(options) = object.get("options") else { return Ok(None) };
    let options = Object::parse(options.get()).map_err(|e| BadRequest::new("options", e))?;
    let most: Option<i64> = field(&options, "options", "num_predict")?;
    Ok(most.and_then(|most| u64::try_from(most).ok()))
}

/// Reads messages that follow on others, of whose calls `open` wait for an answer. Calls without an id get one that is
/// new among those and here.
pub(in crate::dialect) fn read_elements(elements: &[&str], open: &[Call]) -> Result<Read, BadRequest> {
    Ok(Read::one_by_one(read_texts(elements, open)?))
}

fn read_texts(texts: &[&str], open: &[Call]) -> Result<Vec<Message>, BadRequest> {
    let given = texts.iter().flat_map(|text| given_ids(text)).collect();
    let mut pairing = Pairing::after(open, given);
    let read = |(i, text): (usize, &&str)| read_message(text, &format!("messages[{i}]"), &mut pairing);
    texts.iter().enumerate().map(read).collect()
}

/// Takes the ids and names from a message that were made up for it.
pub(in crate::dialect) fn as_told(message: &mut Message, text: &str) {
    let Ok(object) = Object::parse(text) else { return };
    let mut calls = list(&object, "tool_calls").into_iter();
    for part in &mut message.parts {
        match part {
            Part::Result(outcome) => {
                if said(&object, "tool_call_id").is_none() {
                    outcome.call_id.clear();
                }
                if said(&object, "tool_name").is_none() {
                    outcome.name = None;
                }
            }
            Part::Call(call) => {
                let given = calls.next().and_then(|json| Object::parse(json).ok());
                if given.and_then(|given| said(&given, "id")).is_none() {
                    call.id.clear();
                }
            }
            _ => {}
        }
    }
}

/// The ids that a message's calls bring along.
fn given_ids(text: &str) -> HashSet<String> {
    let Ok(object) = Object::parse(text) else { return HashSet::new() };
    objects(&object, "tool_calls").filter_map(|call| json::text(&call, "id")).collect()
}

fn read_message(text: &str, place: &str, pairing: &mut Pairing) -> Result<Message, BadRequest> {
    let object = parsed(text, place)?;
    let role: Option<String> = field(&object, place, "role")?;
    let role = role.ok_or_else(|| BadRequest::new(place, "has no role"))?;
    let known = Role::named(&role.to_lowercase());
    let role = known.ok_or_else(|| {
        let why = format!("unknown role: {role:?}; known are system, user, assistant and tool");
        BadRequest::new(format!("{place}.role"), why)
    })?;
    let content: Option<String> = field(&object, place, "content")?;
    let parts = if role == Role::Tool {
        vec![read_result(&object, content, place, pairing)?]
    } else {
        pairing.turn();
        read_parts(&object, content, place, pairing)?
    };
    let extra = object.rest(&OF_MESSAGE).map(|json| opaque(DIALECT, json));
    Ok(Message { role, name: None, parts, extra })
}

fn read_result(
    object: &Object<'_>,
    content: Option<String>,
    place: &str,
    pairing: &mut Pairing,
) -> Result<Part, BadRequest> {
    let given: Option<String> = field(object, place, "tool_call_id")?;
    let name: Option<String> = field(object, place, "tool_name")?;
    let (call_id, name) = pairing.result(given.filter(|id| !id.is_empty()), name);
    let mut content = vec![Part::text(content.unwrap_or_default())];
    content.extend(read_images(object, place)?);
    Ok(Part::Result(Outcome { call_id, name, content, ..Outcome::default() }))
}

fn read_parts(
    object: &Object<'_>,
    content: Option<String>,
    place: &str,
    pairing: &mut Pairing,
) -> Result<Vec<Part>, BadRequest> {
    let mut parts = Vec::new();
    let thoughts: Option<String> = field(object, place, "thinking")?;
    if let Some(text) = thoughts.filter(|text| !text.is_empty()) {
        parts.push(Part::Reasoning { text, signature: None });
    }
    let words = content.filter(|text| !text.is_empty()).map(Part::text);
    parts.extend(words);
    parts.extend(read_images(object, place)?);
    let calls: Vec<&RawValue> = field(object, place, "tool_calls")?.unwrap_or_default();
    for (i, call) in calls.iter().enumerate() {
        parts.push(Part::Call(read_call(call.get(), &format!("{place}.tool_calls[{i}]"), pairing)?));
    }
    if parts.is_empty() {
        parts.push(Part::text(""));
    }
    Ok(parts)
}

fn read_call(text: &str, place: &str, pairing: &mut Pairing) -> Result<Call, BadRequest> {
    let object = parsed(text, place)?;
    let function = object.get("function").ok_or_else(|| BadRequest::new(place, "has no `function`"))?;
    let inside = format!("{place}.function");
    let function = Object::parse(function.get()).map_err(|e| BadRequest::new(&*inside, e))?;
    let name: Option<String> = field(&function, &inside, "name")?;
    let name = name.ok_or_else(|| BadRequest::new(&*inside, "has no name"))?;
    let given: Option<String> = field(&object, place, "id")?;
    Ok(Call {
        id: pairing.call(given.filter(|id| !id.is_empty()), &name),
        name,
        arguments: function.get("arguments").map_or_else(|| "{}".into(), |json| arguments::read(json.get())),
        kind: CallKind::Function,
        extra: object.rest(&["id", "type", "function"]),
    })
}

fn read_images(object: &Object<'_>, place: &str) -> Result<Vec<Part>, BadRequest> {
    let images: Vec<String> = field(object, place, "images")?.unwrap_or_default();
    let part = |bytes: &String| {
        let url = format!("data:{};base64,{bytes}", media_type(bytes));
        Part::Image { source: ImageSource::Url { url }, detail: None }
    };
    Ok(images.iter().map(part).collect())
}

/// What kind of picture it is, as its first bytes tell through their base64.
fn media_type(base64: &str) -> &'static str {
    match base64 {
        bytes if bytes.starts_with("/9j/") => "image/jpeg",
        bytes if bytes.starts_with("R0lG") => "image/gif",
        bytes if bytes.starts_with("UklG") => "image/webp",
        _ => "image/png",
    }
}
