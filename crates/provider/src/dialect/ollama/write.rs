//! A request for Ollama's chat, a message at a time.
//!
//! The model's window is asked for with every request, and nothing may be dropped behind our back: a conversation
//! that does not fit must be an error here, not a hole in what the model knows.

use super::{DIALECT, arguments};
use crate::ask::{Ask, Tools};
use crate::dialect::chat::thought;
use crate::dialect::json::{own, splice};
use crate::dialect::tools::fields::{Fields, list, quoted};
use crate::dialect::{Dialect, WriteRequest, tools};
use komado_core::message::{Call, ImageSource, Message, Outcome, Part, Role};
use komado_core::openai::Blobs;
use std::io::{self, Write};

/// What this writer writes itself.
const OWN: [&str; 4] = ["model", "messages", "tools", "stream"];

/// Writes a request.
#[derive(Debug)]
pub struct Writer {
    begun: bool,
    tail: String,
    /// The calls whose results come next, for results that do not say whose they are.
    open: Vec<(String, String)>,
}

impl Writer {
    /// Writes what stands before the messages of the conversation.
    pub(in crate::dialect) fn begin(ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{},\"messages\":[", quoted(ask.model))?;
        if let Some(system) = &ask.setup.system {
            write!(out, "{{\"role\":\"system\",\"content\":{}}}", quoted(system))?;
        }
        Ok(Self { begun: ask.setup.system.is_some(), tail: tail(ask), open: Vec::new() })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, tail: String::new(), open: Vec::new() }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            out.write_all(b",")?;
        }
        let mut fields = Fields::default();
        match message.outcome() {
            Some(outcome) => {
                self.result(outcome, &mut fields);
                write!(out, "{{{}", fields.inner())?;
            }
            None => {
                self.speech(message, &mut fields);
                write!(out, "{{{}", fields.inner())?;
                write_images(&message.parts, blobs, out)?;
            }
        }
        let extra = own(message.extra.as_ref(), DIALECT).map(|extra| extra.json());
        splice(extra.as_deref(), out)?;
        out.write_all(b"}")
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "],{}}}", self.tail)
    }
}

impl Writer {
    fn speech(&mut self, message: &Message, fields: &mut Fields) {
        let role = if message.role == Role::Developer { Role::System } else { message.role };
        fields.say("role", role.name());
        fields.say("content", &words(&message.parts, false));
        put_thoughts(fields, &message.parts);
        let calls: Vec<String> = message.calls().map(|each| call(None, each)).collect();
        list(&calls).into_iter().for_each(|calls| fields.put("tool_calls", calls));
        self.open = message.calls().map(|call| (call.id.clone(), call.name.clone())).collect();
    }

    fn result(&self, outcome: &Outcome, fields: &mut Fields) {
        fields.say("role", Role::Tool.name());
        fields.say("content", &words(&outcome.content, true));
        let is_named = !outcome.call_id.is_empty();
        let asked = || self.open.iter().find(|(id, _)| is_named && *id == outcome.call_id);
        let asked = || asked().map(|(_, name)| name.as_str());
        if let Some(name) = outcome.name.as_deref().or_else(asked) {
            fields.say("tool_name", name);
        }
        // Without one it answers the next call of its tool, as its client had it.
        if is_named {
            fields.say("tool_call_id", &outcome.call_id);
        }
    }
}

/// All thoughts among `parts` as one text.
pub(super) fn put_thoughts(fields: &mut Fields, parts: &[Part]) {
    if let Some(thoughts) = thought::words(parts).filter(|thoughts| !thoughts.is_empty()) {
        fields.say("thinking", &thoughts);
    }
}

/// A call with its id: versions that know no ids do not look at it. An answer numbers its calls.
pub(super) fn call(index: Option<usize>, call: &Call) -> String {
    let index = index.map(|index| format!("\"index\":{index},")).unwrap_or_default();
    let (name, arguments) = (quoted(&call.name), arguments::write(&call.arguments));
    let mut fields = Fields::default();
    if !call.id.is_empty() {
        fields.say("id", &call.id);
    }
    fields.put("function", format!("{{{index}\"name\":{name},\"arguments\":{arguments}}}"));
    if let Some(extra) = &call.extra {
        Fields::of(extra.get()).iter().for_each(|(key, value)| fields.suggest(key, value));
    }
    fields.json()
}

/// What is said as one text; pictures that cannot travel are named. None travels in a tool's answer, which keeps instead
/// what only others know.
fn words(parts: &[Part], of_tool: bool) -> String {
    let said = parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Image { source, .. } if of_tool || carried(source).is_none() => Some(named(source)),
        Part::Opaque(opaque) if of_tool => Some(opaque.json.get().to_owned()),
        _ => None,
    });
    said.collect::<Vec<_>>().join("\n")
}

fn named(source: &ImageSource) -> String {
    match source {
        ImageSource::Blob { blob, media_type, byte_size } => {
            format!("[image: {media_type}, {byte_size} bytes, ref={blob}]")
        }
        ImageSource::Url { url } => {
            let head = url.split_once(',').filter(|_| url.starts_with("data:")).map(|(head, _)| head);
            format!("[image: {}]", head.unwrap_or(url))
        }
    }
}

/// An image whose bytes can go along.
enum Carried<'a> {
    Blob(&'a str),
    Base64(&'a str),
}

fn carried(source: &ImageSource) -> Option<Carried<'_>> {
    match source {
        ImageSource::Blob { blob, .. } => Some(Carried::Blob(blob)),
        ImageSource::Url { url } => {
            let (head, bytes) = url.strip_prefix("data:")?.split_once(',')?;
            // What is not base64 would break the request's own quotes.
            let plain = bytes.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
            (head.ends_with(";base64") && plain).then_some(Carried::Base64(bytes))
        }
    }
}

fn write_images(parts: &[Part], blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
    let images = parts.iter().filter_map(|part| match part {
        Part::Image { source, .. } => carried(source),
        _ => None,
    });
    let mut any = false;
    for image in images {
        out.write_all(if any { b",\"" } else { b",\"images\":[\"" })?;
        match image {
            Carried::Blob(id) => blobs.base64(id, out)?,
            Carried::Base64(bytes) => out.write_all(bytes.as_bytes())?,
        }
        out.write_all(b"\"")?;
        any = true;
    }
    if any { out.write_all(b"]") } else { Ok(()) }
}

/// What stands behind the messages.
fn tail(ask: &Ask<'_>) -> String {
    let mut fields = Fields::default();
    // There is no way to name tools and forbid their use; of the two, that none is called matters more.
    if let Some(tools) = tools::tools(ask.setup, Dialect::Ollama).filter(|_| ask.tools == Tools::AsSetUp) {
        fields.put("tools", tools);
    }
    let mut params = tools::params(ask.setup, Dialect::Ollama, &OWN);
    let mut options = params.take("options").map(|json| Fields::of(&json)).unwrap_or_default();
    params.iter().for_each(|(key, value)| fields.put(key, value));
    fields.suggest("truncate", "false");
    fields.suggest("shift", "false");
    if let Some(window) = ask.window {
        options.put("num_ctx", window.to_string());
    }
    if let Some(most) = ask.max_tokens {
        options.put("num_predict", most.to_string());
    }
    if !options.is_empty() {
        fields.put("options", options.json());
    }
    fields.put("stream", ask.stream.to_string());
    fields.inner()
}
