//! A request for chat completions, a message at a time.
//!
//! Everything that may change from one request of a conversation to the next stands behind the messages, so that the
//! next request is this one's bytes and more, and the provider's cache knows them.

use super::thought;
use crate::ask::{Ask, Tools};
use crate::dialect::tools::fields::{Fields, quoted};
use crate::dialect::{Dialect, WriteRequest, tools};
use komado_core::message::Message;
use komado_core::openai::{self, Blobs};
use std::io::{self, Write};

/// What this writer writes itself.
const OWN: [&str; 6] =
    ["model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"];

/// Writes a request.
#[derive(Debug)]
pub struct Writer {
    /// True when a message stands before the next one.
    begun: bool,
    tail: String,
}

impl Writer {
    /// Writes what stands before the messages of the conversation.
    pub(in crate::dialect) fn begin(ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{},\"messages\":[", quoted(ask.model))?;
        if let Some(system) = &ask.setup.system {
            write!(out, "{{\"role\":\"system\",\"content\":{}}}", quoted(system))?;
        }
        Ok(Self { begun: ask.setup.system.is_some(), tail: tail(ask) })
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            out.write_all(b",")?;
        }
        openai::write(&thought::filled(message), blobs, out)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"]")?;
        out.write_all(self.tail.as_bytes())?;
        out.write_all(b"}")
    }
}

/// What stands behind the messages, with a comma before each field.
fn tail(ask: &Ask<'_>) -> String {
    let mut given = Fields::default();
    for (key, value) in tools::params(ask.setup, Dialect::Chat, &[]) {
        given.put(&key, value);
    }
    let mut fields = Fields::default();
    if let Some(tools) = tools::tools(ask.setup, Dialect::Chat) {
        fields.put("tools", tools);
    }
    for (key, value) in given.iter().filter(|(key, _)| !OWN.contains(key)) {
        fields.suggest(key, value);
    }
    write_limit(ask, &given, &mut fields);
    if ask.tools == Tools::NamedOnly && has_tools(&fields) {
        fields.take("tool_choice");
        fields.say("tool_choice", "none");
    }
    if ask.stream {
        fields.put("stream", "true");
        let mut options = Fields::of(given.get("stream_options").unwrap_or_default());
        options.put("include_usage", "true");
        fields.put("stream_options", options.json());
    }
    if fields.is_empty() { String::new() } else { format!(",{}", fields.inner()) }
}

/// Newer models of OpenAI refuse the old name, other servers do not know the new one: the client knows which.
fn write_limit(ask: &Ask<'_>, given: &Fields, fields: &mut Fields) {
    let key =
        if given.get("max_completion_tokens").is_some() { "max_completion_tokens" } else { "max_tokens" };
    let value = ask.max_tokens.map(|most| most.to_string());
    if let Some(value) = value.or_else(|| given.get(key).map(str::to_owned)) {
        fields.put(key, value);
    }
}

fn has_tools(fields: &Fields) -> bool {
    let tools = fields.get("tools").unwrap_or_default();
    tools.trim().strip_prefix('[').is_some_and(|rest| !rest.trim_start().starts_with(']'))
}
