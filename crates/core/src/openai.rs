//! Messages as OpenAI's chat API writes them: the common tongue.
//!
//! `current.jsonl`, transcripts people bring along and the journal's own message lines all look like this, so the
//! codec lives beside the message. Reading keeps what it does not know; writing gives what the API accepts.

use crate::message::{
    Call, CallKind, ImageSource, Message, MessagePart, Opaque, OutputRef, Role, ToolOutcome,
};
use crate::raw::{self, BadField, RawJson, RawObject};
use serde_json::value::RawValue;
use std::io::{self, Write};

/// The dialect's name in [`Opaque`].
pub const DIALECT: &str = "openai";

const KNOWN: [&str; 10] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "is_error",
    "output_ref",
    "duration_ms",
    "interrupted",
];

/// Why a text is not a chat message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMessage {
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(String),
    /// No role, or an unknown one.
    #[error("unknown role: {0}; known are system, developer, user, assistant and tool")]
    Role(String),
    /// A field of the wrong kind.
    #[error(transparent)]
    Field(#[from] BadField),
    /// A part without a type, a call without a function, and the like.
    #[error("{0}")]
    Shape(String),
}

/// Whose parts a content array may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageForm {
    /// The chat API's.
    Chat,
    /// The journal's, which has a few of its own.
    Journal,
}

/// Reads one message from one JSON object.
pub fn read(text: &str) -> Result<Message, BadMessage> {
    let object = RawObject::parse(text).map_err(|e| BadMessage::Json(e.to_string()))?;
    let mut message = from_object(&object, MessageForm::Chat)?;
    raw::check(text).map_err(|why| BadMessage::Shape(why.into()))?;
    message.extra = object.rest(&KNOWN).map(|json| Opaque { dialect: DIALECT.into(), json });
    Ok(message)
}

/// Reads the known fields of a message; journal lines use it too.
pub(crate) fn from_object(object: &RawObject<'_>, form: MessageForm) -> Result<Message, BadMessage> {
    let role: String = object.read("role")?.ok_or_else(|| BadMessage::Role("(none)".into()))?;
    let role = Role::named(&role).ok_or(BadMessage::Role(format!("{role:?}")))?;
    let mut parts = match object.get("content") {
        Some(content) => read_content(content, form)?,
        None => Vec::new(),
    };
    let mut name: Option<String> = object.read("name")?;
    if let Some(calls) = object.read::<Vec<&RawValue>>("tool_calls")? {
        for call in calls {
            parts.push(MessagePart::Call(read_call(call)?));
        }
    }
    if role == Role::Tool {
        let tool: Option<String> = object.read("tool_name")?;
        parts = vec![MessagePart::Result(ToolOutcome {
            call_id: object.read("tool_call_id")?.unwrap_or_default(),
            name: tool.or_else(|| if form == MessageForm::Chat { name.take() } else { None }),
            content: parts,
            is_error: object.read("is_error")?.unwrap_or(false),
            output_ref: object.read::<OutputRef>("output_ref")?,
            duration_ms: object.read("duration_ms")?,
            interrupted: object.read("interrupted")?.unwrap_or(false),
            // Only the journal has numbers of entries.
            replaces: if form == MessageForm::Journal { object.read("replaces")? } else { None },
        })];
    } else if parts.is_empty() {
        parts.push(MessagePart::text(""));
    }
    Ok(Message { role, name, parts, extra: None })
}

fn read_content(content: &RawValue, form: MessageForm) -> Result<Vec<MessagePart>, BadMessage> {
    let json =
        |e: serde_json::Error| BadMessage::Field(BadField { key: "content".into(), why: e.to_string() });
    match content.get().as_bytes().first() {
        Some(b'"') => {
            Ok(vec![MessagePart::text(serde_json::from_str::<String>(content.get()).map_err(json)?)])
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(json)?;
            parts.into_iter().map(|part| read_part(part, form)).collect()
        }
        _ => Err(BadMessage::Shape("field `content`: must be a string, an array of parts or null".into())),
    }
}

fn read_part(part: &RawValue, form: MessageForm) -> Result<MessagePart, BadMessage> {
    let object =
        RawObject::parse(part.get()).map_err(|e| BadMessage::Shape(format!("a content part: {e}")))?;
    let kind: String =
        object.read("type")?.ok_or_else(|| BadMessage::Shape("a content part has no `type`".into()))?;
    let opaque = || MessagePart::Opaque(Opaque { dialect: DIALECT.into(), json: RawJson::from_value(part) });
    Ok(match (kind.as_str(), form) {
        ("text", _) => MessagePart::Text {
            text: object.read("text")?.unwrap_or_default(),
            extra: object.rest(&["type", "text"]).map(|json| Opaque { dialect: DIALECT.into(), json }),
        },
        ("image_url", MessageForm::Chat) => read_image(&object)?.unwrap_or_else(opaque),
        (_, MessageForm::Chat) => opaque(),
        (_, MessageForm::Journal) => read_own_part(part, &object, &kind)?,
    })
}

/// Parts that only the journal writes.
fn read_own_part(part: &RawValue, object: &RawObject<'_>, kind: &str) -> Result<MessagePart, BadMessage> {
    let lacks = |field: &str| BadMessage::Shape(format!("a part of type {kind:?} has no `{field}`"));
    Ok(match kind {
        "image" => {
            let source = serde_json::from_str(part.get());
            let source = source.map_err(|e| BadMessage::Shape(format!("an image part: {e}")))?;
            MessagePart::Image { source, detail: object.read("detail")? }
        }
        "marked_text" => MessagePart::Text {
            text: object.read("text")?.ok_or_else(|| lacks("text"))?,
            extra: Some(read_opaque(object)?),
        },
        "reasoning" => MessagePart::Reasoning {
            text: object.read("text")?.unwrap_or_default(),
            signature: object.read("signature")?,
        },
        "tool_call" => MessagePart::Call(read_call(object.get("call").ok_or_else(|| lacks("call"))?)?),
        "opaque" => MessagePart::Opaque(read_opaque(object)?),
        _ => return Err(BadMessage::Shape(format!("unknown part type {kind:?}"))),
    })
}

pub(crate) fn read_opaque(object: &RawObject<'_>) -> Result<Opaque, BadMessage> {
    // Here `null` is a value like any other: whatever was written must be readable.
    let json = object.0.iter().rev().find(|(key, _)| key == "json").map(|(_, value)| *value);
    let json = json.ok_or_else(|| BadMessage::Shape("something opaque has no `json`".into()))?;
    Ok(Opaque { dialect: object.read("dialect")?.unwrap_or_default(), json: RawJson::from_value(json) })
}

/// `image_url` with nothing but a URL and a detail; anything more is kept opaque.
fn read_image(object: &RawObject<'_>) -> Result<Option<MessagePart>, BadMessage> {
    let Some(inner) = object.get("image_url") else { return Ok(None) };
    let Ok(image) = RawObject::parse(inner.get()) else { return Ok(None) };
    if object.rest(&["type", "image_url"]).is_some() || image.rest(&["url", "detail"]).is_some() {
        return Ok(None);
    }
    let Some(url) = image.read::<String>("url")? else { return Ok(None) };
    Ok(Some(MessagePart::Image { source: ImageSource::Url { url }, detail: image.read("detail")? }))
}

fn read_call(call: &RawValue) -> Result<Call, BadMessage> {
    let object = RawObject::parse(call.get()).map_err(|e| BadMessage::Shape(format!("a tool call: {e}")))?;
    let kind = match object.read::<String>("type")?.as_deref() {
        Some("custom") => CallKind::Custom,
        _ => CallKind::Function,
    };
    let (holder, argument) = kind.fields();
    let inner =
        object.get(holder).ok_or_else(|| BadMessage::Shape(format!("a tool call has no `{holder}`")))?;
    let inner = RawObject::parse(inner.get())
        .map_err(|e| BadMessage::Shape(format!("a tool call's {holder}: {e}")))?;
    let name: Option<String> = inner.read("name")?;
    Ok(Call {
        id: object.read("id")?.unwrap_or_default(),
        name: name.ok_or_else(|| BadMessage::Shape("a tool call has no name".into()))?,
        arguments: read_arguments(&inner, argument)?,
        kind,
        extra: object.rest(&["id", "type", holder, "index"]),
    })
}

/// A string by the book; some servers send an object instead, which is then kept as its text.
fn read_arguments(inner: &RawObject<'_>, argument: &str) -> Result<String, BadMessage> {
    match inner.get(argument) {
        Some(value) if !value.get().starts_with('"') => Ok(RawJson::from_value(value).get().to_owned()),
        _ => Ok(inner.read(argument)?.unwrap_or_default()),
    }
}

/// Writes a call as an element of `tool_calls`.
pub(crate) fn write_call(call: &Call, out: &mut dyn Write) -> io::Result<()> {
    let (holder, argument) = call.kind.fields();
    let [id, name, arguments] =
        [&call.id, &call.name, &call.arguments].map(|text| serde_json::Value::from(text.as_str()));
    let inner = format!("{{\"name\":{name},\"{argument}\":{arguments}}}");
    let mut json = format!("{{\"id\":{id},\"type\":\"{holder}\",\"{holder}\":{inner}}}").into_bytes();
    splice(&mut json, call.extra.as_ref());
    out.write_all(&json)
}

/// Adds the fields of `extra` before the closing brace of `json`.
fn splice(json: &mut Vec<u8>, extra: Option<&RawJson>) {
    let Some(inner) = extra.and_then(|raw| raw.get().trim().strip_prefix('{')?.strip_suffix('}')) else {
        return;
    };
    if json.pop().is_some() && !inner.trim().is_empty() {
        json.push(b',');
        json.extend_from_slice(inner.as_bytes());
    }
    json.push(b'}');
}

/// Gives a blob's bytes as base64, for images that travel inside the message.
pub trait BlobReader {
    /// Writes the base64 of blob `id` to `out`.
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()>;
}

/// Writes `message` as the chat API takes it, without a line break. What the API cannot carry (reasoning, parts of
/// other dialects) is left out; an image inside a tool's answer is named instead of shown.
pub fn write(message: &Message, blobs: &mut dyn BlobReader, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"role\":\"{}\"", message.role.name())?;
    if let (Some(name), Role::System | Role::Developer | Role::User | Role::Assistant) =
        (&message.name, message.role)
    {
        out.write_all(b",\"name\":")?;
        serde_json::to_writer(&mut *out, name)?;
    }
    if let Some(outcome) = message.outcome() {
        out.write_all(b",\"tool_call_id\":")?;
        serde_json::to_writer(&mut *out, &outcome.call_id)?;
        out.write_all(b",\"content\":")?;
        serde_json::to_writer(&mut *out, &flat_text(&outcome.content))?;
    } else {
        write_content(message, blobs, out)?;
        write_calls(message, out)?;
    }
    let ours = message.extra.as_ref().filter(|extra| extra.dialect == DIALECT);
    let fields = ours.and_then(|extra| extra.json.get().strip_prefix('{')?.strip_suffix('}'));
    if let Some(fields) = fields.filter(|fields| !fields.trim().is_empty()) {
        out.write_all(b",")?;
        out.write_all(fields.as_bytes())?;
    }
    out.write_all(b"}")
}

fn write_content(message: &Message, blobs: &mut dyn BlobReader, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b",\"content\":")?;
    let shown: Vec<&MessagePart> = message.parts.iter().filter(|p| is_content(p)).collect();
    match shown.as_slice() {
        [] if message.calls().next().is_some() => out.write_all(b"null"),
        [] => out.write_all(b"\"\""),
        [MessagePart::Text { text, extra: None }] => Ok(serde_json::to_writer(&mut *out, text)?),
        parts => {
            for (i, part) in parts.iter().enumerate() {
                out.write_all(if i == 0 { b"[" } else { b"," })?;
                write_part(part, blobs, out)?;
            }
            out.write_all(b"]")
        }
    }
}

fn is_content(part: &MessagePart) -> bool {
    match part {
        MessagePart::Text { .. } | MessagePart::Image { .. } => true,
        MessagePart::Opaque(opaque) => opaque.dialect == DIALECT,
        MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. } => false,
    }
}

fn write_part(part: &MessagePart, blobs: &mut dyn BlobReader, out: &mut dyn Write) -> io::Result<()> {
    match part {
        MessagePart::Text { text, extra } => {
            let mut json = b"{\"type\":\"text\",\"text\":".to_vec();
            serde_json::to_writer(&mut json, text)?;
            json.push(b'}');
            splice(&mut json, extra.as_ref().filter(|e| e.dialect == DIALECT).map(|e| &e.json));
            out.write_all(&json)
        }
        MessagePart::Image { source, detail } => {
            out.write_all(b"{\"type\":\"image_url\",\"image_url\":{\"url\":")?;
            match source {
                ImageSource::Url { url } => serde_json::to_writer(&mut *out, url)?,
                ImageSource::Blob { blob, media_type, .. } => {
                    // The opening quote is ours, the closing one comes after the bytes.
                    let media = serde_json::Value::from(format!("data:{media_type};base64,")).to_string();
                    out.write_all(&media.as_bytes()[..media.len() - 1])?;
                    blobs.base64(blob, out)?;
                    out.write_all(b"\"")?;
                }
            }
            if let Some(detail) = detail {
                out.write_all(b",\"detail\":")?;
                serde_json::to_writer(&mut *out, detail)?;
            }
            out.write_all(b"}}")
        }
        MessagePart::Opaque(opaque) => out.write_all(opaque.json.get().as_bytes()),
        MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. } => Ok(()),
    }
}

fn write_calls(message: &Message, out: &mut dyn Write) -> io::Result<()> {
    for (i, call) in message.calls().enumerate() {
        out.write_all(if i == 0 { b",\"tool_calls\":[" } else { b"," })?;
        match &call.extra {
            Some(extra) => write_call(&Call { extra: own_fields(extra), ..call.clone() }, out)?,
            None => write_call(call, out)?,
        }
    }
    if message.calls().next().is_some() { out.write_all(b"]") } else { Ok(()) }
}

/// Fields of a call that another dialect left there stand under its name, and are for it alone.
fn own_fields(extra: &RawJson) -> Option<RawJson> {
    RawObject::parse(extra.get()).ok()?.rest(&["anthropic", "responses"])
}

/// The parts of a tool's answer as one text; the chat API takes no pictures there.
fn flat_text(parts: &[MessagePart]) -> String {
    let shown = parts.iter().map(|part| match part {
        MessagePart::Text { text, .. } => text.clone(),
        MessagePart::Image { source: ImageSource::Blob { blob, media_type, byte_size, .. }, .. } => {
            format!("[image: {media_type}, {byte_size} bytes, ref={blob}]")
        }
        MessagePart::Image { source: ImageSource::Url { url }, .. } => format!("[image: {url}]"),
        MessagePart::Opaque(opaque) => opaque.json.get().to_owned(),
        MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. } => String::new(),
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoBlobs;
    impl BlobReader for NoBlobs {
        fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
            out.write_all(id.as_bytes())
        }
    }

    fn round(text: &str) -> String {
        let mut out = Vec::new();
        write(&read(text).unwrap(), &mut NoBlobs, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_the_api_takes_comes_back_as_it_was() {
        for text in [
            r#"{"role":"system","content":"決まり"}"#,
            r#"{"role":"user","name":"ann","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"http://x/y.png","detail":"low"}}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}]}"#,
            r#"{"role":"assistant","content":"","refusal":"no","annotations":[12345678901234567890]}"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"ok"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"text","text":"b"}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":"free"}}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x=="}}}]}"#,
        ] {
            assert_eq!(round(text), text);
        }
    }

    #[test]
    fn what_another_dialect_left_on_a_call_stays_with_it() {
        let mut message = read(r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#).unwrap();
        let Some(MessagePart::Call(call)) =
            message.parts.iter_mut().find(|part| matches!(part, MessagePart::Call(_)))
        else {
            unreachable!()
        };
        call.extra = RawJson::parse(r#"{"anthropic":{"caller":1.0},"own":2}"#).ok();
        let mut out = Vec::new();
        write(&message, &mut NoBlobs, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\"own\":2") && !text.contains("caller"), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |text: &str| read(text).unwrap_err().to_string();
        assert!(why("[]").starts_with("not a JSON object"));
        assert!(why(r#"{"content":"x"}"#).starts_with("unknown role: (none)"));
        assert!(why(r#"{"role":"wizard"}"#).starts_with("unknown role: \"wizard\""));
        assert!(why(r#"{"role":"user","content":5}"#).contains("`content`"));
        assert!(why(r#"{"role":"user","content":"\ud800"}"#).contains("`content`"));
        assert!(why(r#"{"role":"assistant","tool_calls":[{"id":"a"}]}"#).contains("no `function`"));
    }
}
