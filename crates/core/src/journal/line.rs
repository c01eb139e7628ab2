//! Entries to lines and back.
//!
//! Fields come in a fixed order, so that the same entry is always the same bytes. Reading takes any order and passes
//! over fields it does not know: a later minor version may add some, and a line is never written again.

use super::{Anchor, Chronicle, Close, Edit, EditKind, Entry, Record, Reply, Sent, Setup, Share, Slice};
use crate::message::{Message, MessagePart};
use crate::openai::{self, BadMessage};
use crate::raw::{BadField, RawJson, RawObject};
use crate::{Seq, ThreadId};
use serde::Serialize;
use serde_json::value::RawValue;

/// Why a line is not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(String),
    /// A field is missing.
    #[error("field `{0}` is missing")]
    Missing(&'static str),
    /// A field of the wrong kind.
    #[error(transparent)]
    Field(#[from] BadField),
    /// A message that is none.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// An op this version does not know.
    #[error("unknown op {0:?}; the journal may be from a newer version of komado")]
    Op(String),
}

/// Writes `record` as one line, line break included.
pub fn encode(record: &Record) -> Vec<u8> {
    let mut line = LineWriter::begin(record.seq);
    match &record.entry {
        Entry::Message(message, reply) => line.message(message, reply.as_ref()),
        Entry::Setup(setup) => line.setup(setup),
        Entry::Edit(edit) => line.edit(edit),
        Entry::Revert { target } => line.op("revert").field("target", target),
        Entry::Rewind { to } => line.op("rewind").field("to", to),
        Entry::Pin { span } => line.op("pin").field("span", span),
        Entry::Unpin { span } => line.op("unpin").field("span", span),
        Entry::Anchor(anchor) => line.anchor(anchor),
        Entry::Sent(sent) => line.op("sent").splice(sent),
        Entry::Lost(reply) => line.op("reply").splice(reply),
        Entry::Close(close) => line.op("close").splice(close),
        Entry::Share(share) => line.share(share),
        Entry::Chronicle(chronicle) => line.op("chronicle").splice(chronicle),
        Entry::Tell { to, text } => line.op("tell").field("to", to).field("text", text),
        Entry::Heard { from, upto } => line.op("heard").field("from", from).field("upto", upto),
        Entry::Note { about, value } => line.op("note").field("about", about).field("value", value),
    };
    line.field("timestamp", &record.timestamp);
    line.field("tokens", &record.tokens);
    line.end()
}

/// A line in the making: `{"seq":N` and then fields.
pub(crate) struct LineWriter(Vec<u8>);

impl LineWriter {
    pub(crate) fn begin(seq: Seq) -> Self {
        Self(format!("{{\"seq\":{seq}").into_bytes())
    }

    pub(crate) fn field<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> &mut Self {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
        // Writing our own types to memory cannot fail: no map has a key that is not text.
        let _ = serde_json::to_writer(&mut self.0, value);
        self
    }

    pub(crate) fn maybe<T: Serialize>(&mut self, key: &str, value: Option<&T>) -> &mut Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    fn list<T: Serialize>(&mut self, key: &str, values: &[T]) -> &mut Self {
        if values.is_empty() { self } else { self.field(key, values) }
    }

    fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        if value { self.field(key, &true) } else { self }
    }

    pub(crate) fn op(&mut self, name: &str) -> &mut Self {
        self.field("op", name)
    }

    /// The fields of a struct beside ours.
    fn splice<T: Serialize>(&mut self, value: &T) -> &mut Self {
        if let Ok(json) = serde_json::to_string(value) {
            let inner = json.trim_start_matches('{').strip_suffix('}').unwrap_or_default();
            if !inner.is_empty() {
                self.0.push(b',');
                self.0.extend_from_slice(inner.as_bytes());
            }
        }
        self
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }

    fn setup(&mut self, setup: &Setup) -> &mut Self {
        self.op("setup").maybe("system", setup.system.as_ref()).maybe("tools", setup.tools.as_ref());
        self.maybe("params", setup.params.as_ref()).maybe("dialect", setup.dialect.as_ref())
    }

    fn edit(&mut self, edit: &Edit) -> &mut Self {
        self.op(edit.kind.name());
        self.list("hide", &edit.hide).list("show", &edit.show).list("replace", &edit.replace);
        self.field("cause", &edit.cause)
    }

    fn anchor(&mut self, anchor: &Anchor) -> &mut Self {
        self.op("anchor").field("thread", anchor.thread.as_str()).maybe("label", anchor.label.as_ref());
        self.maybe("ending", anchor.ending.as_ref())
            .maybe("first", anchor.first.as_ref())
            .field("text", &anchor.text)
            .maybe("brief", anchor.brief.as_ref())
    }

    fn share(&mut self, share: &Share) -> &mut Self {
        self.op("share").field("thread", &share.thread).field("window", &share.window);
        self.field("slices", &share.slices).flag("lends", share.lends);
        self.maybe("chronicle_prompt", share.chronicle_prompt.as_ref())
            .maybe("anchor_tokens", share.anchor_tokens.as_ref())
            .maybe("held_by", share.held_by.as_ref())
    }

    fn message(&mut self, message: &Message, reply: Option<&Reply>) -> &mut Self {
        self.field("role", message.role.name()).maybe("name", message.name.as_ref());
        if let Some(outcome) = message.outcome() {
            self.maybe("tool_name", outcome.name.as_ref()).field("tool_call_id", &outcome.call_id);
            self.content(&outcome.content)
                .flag("is_error", outcome.is_error)
                .flag("interrupted", outcome.interrupted);
            self.maybe("replaces", outcome.replaces.as_ref());
            self.maybe("output_ref", outcome.output_ref.as_ref())
                .maybe("duration_ms", outcome.duration_ms.as_ref());
        } else {
            self.content_and_calls(&message.parts);
        }
        if let Some(extra) = &message.extra {
            self.field("extra", extra);
        }
        self.maybe("reply", reply)
    }

    /// Calls go to `tool_calls` when they stand last, as they do in the chat API; otherwise in their place.
    fn content_and_calls(&mut self, parts: &[MessagePart]) -> &mut Self {
        let first = parts.iter().position(|p| matches!(p, MessagePart::Call(_))).unwrap_or(parts.len());
        if !parts[first..].iter().all(|p| matches!(p, MessagePart::Call(_))) {
            return self.content(parts);
        }
        if first == 0 && !parts.is_empty() {
            self.0.extend_from_slice(b",\"content\":null");
        } else {
            self.content(&parts[..first]);
        }
        for (i, part) in parts[first..].iter().enumerate() {
            self.0.extend_from_slice(if i == 0 { b",\"tool_calls\":[" } else { b"," });
            self.part_call(part);
        }
        if first < parts.len() {
            self.0.push(b']');
        }
        self
    }

    fn part_call(&mut self, part: &MessagePart) {
        if let MessagePart::Call(call) = part {
            let _ = openai::write_call(call, &mut self.0);
        }
    }

    fn content(&mut self, parts: &[MessagePart]) -> &mut Self {
        if let [MessagePart::Text { text, extra: None }] = parts {
            return self.field("content", text);
        }
        self.0.extend_from_slice(b",\"content\":[");
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                self.0.push(b',');
            }
            self.part(part);
        }
        self.0.push(b']');
        self
    }

    fn part(&mut self, part: &MessagePart) {
        match part {
            MessagePart::Text { text, extra: None } => self.typed("text").field("text", text),
            MessagePart::Text { text, extra: Some(extra) } => {
                self.typed("marked_text").field("text", text).splice(extra)
            }
            MessagePart::Image { source, detail } => {
                self.typed("image").splice(source).maybe("detail", detail.as_ref())
            }
            MessagePart::Reasoning { text, signature } => {
                self.typed("reasoning").field("text", text).maybe("signature", signature.as_ref())
            }
            MessagePart::Opaque(opaque) => self.typed("opaque").splice(opaque),
            MessagePart::Call(_) => {
                self.typed("tool_call").0.extend_from_slice(b",\"call\":");
                self.part_call(part);
                &mut *self
            }
            // `admit` lets a result stand only as the one part of a tool's message.
            MessagePart::Result(_) => self.typed("text").field("text", ""),
        };
        self.0.push(b'}');
    }

    /// Begins a part.
    fn typed(&mut self, kind: &str) -> &mut Self {
        self.0.extend_from_slice(format!("{{\"type\":\"{kind}\"").as_bytes());
        self
    }
}

/// Reads one line, with or without its line break.
pub fn decode(line: &str) -> Result<Record, BadLine> {
    let object = RawObject::parse(line).map_err(|e| BadLine::Json(e.to_string()))?;
    Ok(Record {
        seq: need(&object, "seq")?,
        timestamp: object.read("timestamp")?.unwrap_or_default(),
        tokens: object.read("tokens")?.unwrap_or(0),
        entry: decode_entry(&object, line)?,
    })
}

fn need<'a, T: serde::Deserialize<'a>>(object: &RawObject<'a>, key: &'static str) -> Result<T, BadLine> {
    object.read(key)?.ok_or(BadLine::Missing(key))
}

/// The fields of a struct that stands beside ours in the line.
fn whole<'a, T: serde::Deserialize<'a>>(line: &'a str) -> Result<T, BadLine> {
    serde_json::from_str(line).map_err(|e| BadLine::Json(e.to_string()))
}

fn decode_entry(object: &RawObject<'_>, line: &str) -> Result<Entry, BadLine> {
    if object.get("role").is_some() {
        return decode_message(object);
    }
    let op: String = need(object, "op")?;
    Ok(match op.as_str() {
        "setup" => Entry::Setup(Setup {
            system: object.read("system")?,
            tools: object.get("tools").map(RawJson::from_value),
            params: object.get("params").map(RawJson::from_value),
            dialect: object.read("dialect")?,
        }),
        "revert" => Entry::Revert { target: need(object, "target")? },
        "rewind" => Entry::Rewind { to: need(object, "to")? },
        "pin" => Entry::Pin { span: need(object, "span")? },
        "unpin" => Entry::Unpin { span: need(object, "span")? },
        "anchor" => Entry::Anchor(Anchor {
            thread: thread(object, "thread")?,
            label: object.read("label")?,
            ending: object.read("ending")?,
            text: object.read("text")?.unwrap_or_default(),
            brief: object.read("brief")?,
            first: object.read("first")?,
        }),
        "sent" => Entry::Sent(whole::<Sent>(line)?),
        "reply" => Entry::Lost(whole::<Reply>(line)?),
        "close" => Entry::Close(whole::<Close>(line)?),
        "share" => Entry::Share(decode_share(object)?),
        "chronicle" => Entry::Chronicle(Chronicle {
            text: need(object, "text")?,
            covers: need(object, "covers")?,
            partial: object.read("partial")?.unwrap_or(false),
            model: object.read("model")?,
            usage: object.read("usage")?,
        }),
        "tell" => Entry::Tell { to: thread(object, "to")?, text: need(object, "text")? },
        "heard" => Entry::Heard { from: thread(object, "from")?, upto: need(object, "upto")? },
        "note" => Entry::Note {
            about: need(object, "about")?,
            value: object.get("value").map(RawJson::from_value).ok_or(BadLine::Missing("value"))?,
        },
        other => match EditKind::named(other) {
            Some(kind) => Entry::Edit(decode_edit(object, kind)?),
            None => return Err(BadLine::Op(op)),
        },
    })
}

fn thread(object: &RawObject<'_>, key: &'static str) -> Result<ThreadId, BadLine> {
    let name: String = need(object, key)?;
    ThreadId::new(name).map_err(|bad| BadField { key: key.into(), why: bad.to_string() }.into())
}

fn decode_share(object: &RawObject<'_>) -> Result<Share, BadLine> {
    let slices: Vec<&RawValue> = need(object, "slices")?;
    let slices = slices.into_iter().enumerate();
    Ok(Share {
        thread: thread(object, "thread")?,
        window: need(object, "window")?,
        slices: slices.map(|(i, json)| decode_slice(i, json)).collect::<Result<_, _>>()?,
        lends: object.read("lends")?.unwrap_or(false),
        chronicle_prompt: object.read("chronicle_prompt")?,
        anchor_tokens: object.read("anchor_tokens")?,
        held_by: object.read("held_by")?,
    })
}

/// Reads slice `i`; what is wrong in it is said with its place, such as `slices[1].ratio`.
fn decode_slice(i: usize, json: &RawValue) -> Result<Slice, BadLine> {
    let place = |key: &str, why: String| BadLine::Field(BadField { key: format!("slices[{i}]{key}"), why });
    let object = RawObject::parse(json.get()).map_err(|e| place("", e.to_string()))?;
    let read = || {
        Ok(Slice {
            thread: thread(&object, "thread")?,
            at: need(&object, "at")?,
            ratio: need(&object, "ratio")?,
            keep: need(&object, "keep")?,
            replace: object.read("replace")?.unwrap_or_default(),
            head: need(&object, "head")?,
            tokens: need(&object, "tokens")?,
        })
    };
    read().map_err(|bad| match bad {
        BadLine::Field(BadField { key, why }) => place(&format!(".{key}"), why),
        BadLine::Missing(key) => place(&format!(".{key}"), "it is missing".into()),
        other => other,
    })
}

fn decode_edit(object: &RawObject<'_>, kind: EditKind) -> Result<Edit, BadLine> {
    Ok(Edit {
        kind,
        hide: object.read("hide")?.unwrap_or_default(),
        show: object.read("show")?.unwrap_or_default(),
        replace: object.read("replace")?.unwrap_or_default(),
        cause: object.read("cause")?.unwrap_or_default(),
    })
}

fn decode_message(object: &RawObject<'_>) -> Result<Entry, BadLine> {
    let mut message = openai::from_object(object, openai::MessageForm::Journal)?;
    if let Some(extra) = object.get("extra") {
        let extra = RawObject::parse(extra.get()).map_err(|e| BadLine::Json(e.to_string()))?;
        message.extra = Some(openai::read_opaque(&extra)?);
    }
    Ok(Entry::Message(message, object.read::<Reply>("reply")?))
}

#[cfg(test)]
mod tests;
