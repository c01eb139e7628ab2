//! A request for chat completions, a message at a time.
//!
//! Everything that may change from one request of a conversation to the next stands behind the messages, so that the
//! next request is this one's bytes and more, and the provider's cache knows them.

use super::{legacy, thought};
use crate::ask::{Ask, Tools};
use crate::dialect::tools::fields::{Fields, quoted};
use crate::dialect::{Dialect, WriteRequest, tools};
use komado_core::message::{Message, Part, Role};
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
    is_strict: bool,
    joins: bool,
    /// True when the last message is a text of the user that the next one may go on with.
    open: bool,
    tail: String,
}

impl Writer {
    /// Writes what stands before the messages of the conversation.
    pub(in crate::dialect) fn begin(ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{},\"messages\":[", quoted(ask.model))?;
        if let Some(system) = &ask.setup.system {
            write!(out, "{{\"role\":\"system\",\"content\":{}}}", quoted(system))?;
        }
        let (begun, is_strict, joins) = (ask.setup.system.is_some(), ask.is_strict, ask.joins);
        Ok(Self { begun, is_strict, joins, open: false, tail: tail(ask) })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, is_strict: false, joins: false, open: false, tail: String::new() }
    }

    /// Writes a text of the user and leaves it open, or goes on with the one before.
    fn join(&mut self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        let quoted = quoted(text);
        let inner = &quoted.as_bytes()[1..quoted.len() - 1];
        if self.open {
            out.write_all(b"\\n\\n")?;
            return out.write_all(inner);
        }
        self.part(out)?;
        self.open = true;
        out.write_all(b"{\"role\":\"user\",\"content\":\"")?;
        out.write_all(inner)
    }

    /// Ends what is open.
    fn close(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.open) { out.write_all(b"\"}") } else { Ok(()) }
    }

    /// Ends what is open and parts the next message from it.
    fn part(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close(out)?;
        if std::mem::replace(&mut self.begun, true) { out.write_all(b",") } else { Ok(()) }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        if let Some(text) = plain(message).filter(|_| self.joins) {
            return self.join(text, out);
        }
        self.part(out)?;
        let message = if self.is_strict { thought::left_out(message) } else { thought::filled(message) };
        if let Some(old) = legacy::written(&message, blobs)? {
            return out.write_all(old.as_bytes());
        }
        openai::write(&message, blobs, out)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close(out)?;
        write!(out, "]{}}}", self.tail)
    }
}

/// The words of a user's message that is nothing else.
fn plain(message: &Message) -> Option<&str> {
    match message.parts.as_slice() {
        [Part::Text { text, extra: None }]
            if message.role == Role::User && message.name.is_none() && message.extra.is_none() =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// What stands behind the messages, with a comma before each field.
fn tail(ask: &Ask<'_>) -> String {
    let given = tools::params(ask.setup, Dialect::Chat, &[]);
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
        // Those who refuse the question tell the usage without being asked.
        if !ask.is_strict {
            let mut options = Fields::of(given.get("stream_options").unwrap_or_default());
            options.put("include_usage", "true");
            fields.put("stream_options", options.json());
        }
    }
    if fields.is_empty() { String::new() } else { format!(",{}", fields.inner()) }
}

/// Newer models of OpenAI refuse the old name, other servers do not know the new one: the client knows which, or the
/// model's name tells.
fn write_limit(ask: &Ask<'_>, given: &Fields, fields: &mut Fields) {
    let is_new = given.get("max_completion_tokens").is_some()
        || given.get("max_tokens").is_none() && refuses_max_tokens(ask.model);
    let key = if is_new { "max_completion_tokens" } else { "max_tokens" };
    let value = ask.max_tokens.map(|most| most.to_string());
    if let Some(value) = value.or_else(|| given.get(key).map(str::to_owned)) {
        fields.put(key, value);
    }
}

/// True for OpenAI's models that think: o1, o3 and their like, gpt-5 and what comes after it. Azure writes 3.5 as 35.
fn refuses_max_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let version = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("").parse::<u32>();
    name.strip_prefix('o').is_some_and(digit)
        || name
            .strip_prefix("gpt-")
            .is_some_and(|rest| version(rest).is_ok_and(|major| (5..35).contains(&major)))
}

fn has_tools(fields: &Fields) -> bool {
    let tools = fields.get("tools").unwrap_or_default();
    tools.trim().strip_prefix('[').is_some_and(|rest| !rest.trim_start().starts_with(']'))
}

#[cfg(test)]
mod tests {
    use super::refuses_max_tokens;

    #[test]
    fn models_that_think_are_told_by_their_names() {
        assert!(
            ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5.1", "openai/gpt-5-mini"]
                .iter()
                .all(|m| refuses_max_tokens(m))
        );
        assert!(
            ["gpt-4o", "gpt-4.1", "gpt-35-turbo", "olmo-2", "gpt-oss-20b", "qwen3"]
                .iter()
                .all(|m| !refuses_max_tokens(m))
        );
    }
}
