//! A request, read.
//!
//! A user's message that answers calls becomes several: one for each tool, then what the user says. Blocks nobody else
//! has are kept whole.

use super::NAME;
use super::block::arguments;
use super::system;
use crate::ask::{Asked, BadRequest};
use crate::dialect::json::{self, call_extra, field, kept, object, opaque, parsed, rest, said, text};
use crate::dialect::tail::Read;
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, ImageSource, Message, Opaque, Outcome, Part, Role};
use komado_core::raw::{self, Object, Raw};
use serde_json::value::RawValue;

const KNOWN: [&str; 5] = ["model", "messages", "tools", "max_tokens", "stream"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<Asked, BadRequest> {
    let request = parsed(body, "request")?;
    raw::check(body).map_err(|why| BadRequest::new("request", why))?;
    let missing = |key: &str| BadRequest::new(key, "it is missing; give it");
    let list: Vec<&RawValue> = field(&request, "", "messages")?.ok_or_else(|| missing("messages"))?;
    let elements: Vec<&str> = list.into_iter().map(RawValue::get).collect();
    Ok(Asked {
        messages: read_elements(&elements)?.messages,
        model: field(&request, "", "model")?.ok_or_else(|| missing("model"))?,
        setup: read_setup(&request)?,
        max_tokens: field(&request, "", "max_tokens")?,
        stream: field(&request, "", "stream")?.unwrap_or(false),
    })
}

/// Reads messages that follow on others.
pub(in crate::dialect) fn read_elements(elements: &[&str]) -> Result<Read, BadRequest> {
    let mut read = Read::default();
    for (i, element) in elements.iter().enumerate() {
        let from = read.messages.len();
        read_message(element, &format!("messages[{i}]"), &mut read.messages)?;
        read.became.push(from..read.messages.len());
    }
    Ok(read)
}

/// A system prompt that is a list of blocks is kept as it came among the parameters, beside its words.
fn read_setup(request: &Object<'_>) -> Result<Setup, BadRequest> {
    let mut known = KNOWN.to_vec();
    let system = match request.get("system") {
        Some(value) if value.get().starts_with('[') => system::words(value),
        Some(value) => {
            known.push("system");
            let words: Result<String, _> = serde_json::from_str(value.get());
            Some(words.map_err(|_| BadRequest::new("system", "it must be a text or a list of blocks"))?)
        }
        None => None,
    };
    let tools = json::tools(request)?;
    Ok(Setup { system, tools, params: request.rest(&known), dialect: Some(NAME.into()) })
}

fn read_message(json: &str, place: &str, messages: &mut Vec<Message>) -> Result<(), BadRequest> {
    let message = parsed(json, place)?;
    let role = text(&message, "role").unwrap_or_default();
    let role = match role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            let why = format!("unknown role: {other:?}; known are user, assistant and system");
            return Err(BadRequest::new(place, why));
        }
    };
    // The role of a system message stays among its fields: that is how the writer knows that this API had it so.
    let known: &[&str] = if role == Role::System { &["content"] } else { &["role", "content"] };
    let extra = kept(&rest(&message, known), NAME);
    let before = messages.len();
    let mut parts = Vec::new();
    for (i, block) in json::parts(&message, "content", place, "blocks")?.into_iter().enumerate() {
        let place = format!("{place}.content[{i}]");
        match read_block(&block, role, &place)? {
            Block::Part(part) => parts.push(part),
            Block::Answer(outcome, extra) => {
                messages.push(Message { extra, ..Message::of(Role::Tool, vec![Part::Result(outcome)]) });
            }
        }
    }
    let answered = messages.len() > before;
    if parts.is_empty() && answered && extra.is_none() {
        return Ok(());
    }
    if parts.is_empty() {
        parts.push(Part::text(""));
    }
    messages.push(Message { role, name: None, parts, extra });
    Ok(())
}

enum Block {
    Part(Part),
    Answer(Outcome, Option<Opaque>),
}

fn read_block(json: &str, role: Role, place: &str) -> Result<Block, BadRequest> {
    let bad = |why: String| BadRequest::new(place, why);
    let block = parsed(json, place)?;
    let kind = text(&block, "type").ok_or_else(|| bad("a block has no `type`".into()))?;
    let part = match (kind.as_str(), role) {
        ("text", _) => {
            let words: Option<String> = block.read("text").map_err(|e| bad(e.to_string()))?;
            let words = words.ok_or_else(|| bad("a text block has no `text`".into()))?;
            Some(Part::Text { text: words, extra: kept(&rest(&block, &["type", "text"]), NAME) })
        }
        ("image", _) => read_image(&block),
        ("thinking", Role::Assistant) => read_thinking(&block),
        ("tool_use", Role::Assistant) => Some(Part::Call(read_call(&block).map_err(bad)?)),
        ("tool_result", Role::User) => return read_answer(&block, place),
        _ => None,
    };
    let whole = || Raw::parse(json).map(|json| Part::Opaque(opaque(NAME, json)));
    part.map_or_else(whole, Ok).map(Block::Part).map_err(|e| bad(e.to_string()))
}

/// A picture with nothing but bytes or an address; anything more is kept whole.
fn read_image(block: &Object<'_>) -> Option<Part> {
    if block.rest(&["type", "source"]).is_some() {
        return None;
    }
    let source = object(block, "source")?;
    let url = match text(&source, "type")?.as_str() {
        "base64" => format!("data:{};base64,{}", text(&source, "media_type")?, text(&source, "data")?),
        "url" => text(&source, "url")?,
        _ => return None,
    };
    Some(Part::Image { source: ImageSource::Url { url }, detail: None })
}

/// A thought. An empty seal is none: so unsigned thoughts of other providers are told here.
fn read_thinking(block: &Object<'_>) -> Option<Part> {
    if block.rest(&["type", "thinking", "signature"]).is_some() {
        return None;
    }
    Some(Part::Reasoning { text: text(block, "thinking")?, signature: said(block, "signature") })
}

fn read_call(block: &Object<'_>) -> Result<Call, String> {
    let need = |key: &str| text(block, key).ok_or_else(|| format!("a tool_use block has no `{key}`"));
    Ok(Call {
        id: need("id")?,
        name: need("name")?,
        arguments: block.get("input").map_or_else(|| "{}".into(), arguments),
        kind: CallKind::Function,
        extra: call_extra(&rest(block, &["type", "id", "name", "input"]), NAME),
    })
}

fn read_answer(block: &Object<'_>, place: &str) -> Result<Block, BadRequest> {
    let call_id = text(block, "tool_use_id")
        .ok_or_else(|| BadRequest::new(place, "a tool_result block has no `tool_use_id`"))?;
    let mut content = Vec::new();
    for (i, inside) in json::parts(block, "content", place, "blocks")?.into_iter().enumerate() {
        // A tool does not call, think or answer; what looks like it is kept whole.
        if let Block::Part(part) = read_block(&inside, Role::Tool, &format!("{place}.content[{i}]"))? {
            content.push(part);
        }
    }
    let is_error = block.read("is_error").ok().flatten().unwrap_or(false);
    let outcome = Outcome { call_id, content, is_error, ..Outcome::default() };
    let extra = kept(&rest(block, &["type", "tool_use_id", "content", "is_error"]), NAME);
    Ok(Block::Answer(outcome, extra))
}
