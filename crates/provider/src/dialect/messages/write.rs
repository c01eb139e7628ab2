//! A request, written a message at a time.

use super::NAME;
use super::block::{self, EMPTY, is_shown};
use super::system::{self, System};
use crate::ask::{Ask, Tools};
use crate::dialect::json::{inner, number, of, splice};
use crate::dialect::tools::fields::{Fields, quoted};
use crate::dialect::{Dialect, WriteRequest, tools};
use komado_core::message::{Message, Part, Role};
use komado_core::openai::Blobs;
use komado_core::raw::Object;
use std::io::{self, Write};

/// Said by the user when the model would begin.
const OPENER: &str = "(continued)";

/// The longest answer when nobody says: the API wants a number.
const MAX_TOKENS: u64 = 4096;

/// Marks what the provider shall cache.
const MARK: &str = "\"cache_control\"";

/// A request being written.
#[derive(Debug)]
pub struct Writer {
    system: System,
    /// True when the list of messages was opened.
    begun: bool,
    /// Whose message is open: the user's, the model's, or one of instructions.
    open: Option<Role>,
    /// What stands after the messages.
    tail: String,
    /// True when someone has marked what shall be cached.
    marked: bool,
    /// True when only elements are written: who speaks before them is not known.
    alone: bool,
}

impl Writer {
    pub(in crate::dialect) fn begin(ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{}", quoted(ask.model))?;
        let tools = tools::tools(ask.setup, Dialect::Messages);
        if let Some(tools) = &tools {
            write!(out, ",\"tools\":{tools}")?;
        }
        let system = System::begin(ask.setup, out)?;
        let tail = tail(ask, tools.is_some());
        let list = system::raw_list(ask.setup);
        let marked =
            [Some(&tail), tools.as_ref(), list.as_ref()].into_iter().flatten().any(|s| s.contains(MARK));
        Ok(Self { system, begun: false, open: None, tail, marked, alone: false })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        let (system, tail) = (System::Absent, String::new());
        Self { system, begun: true, open: None, tail, marked: true, alone: true }
    }

    /// Writes what closes the last message.
    pub(in crate::dialect) fn close(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.open.is_some() { out.write_all(b"]}") } else { Ok(()) }
    }

    fn begin_messages(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.system.close(out)?;
        out.write_all(b",\"messages\":[")
    }

    /// Makes room for the next block of `wire`: in the open message when it is theirs, else in a new one.
    fn next_block(&mut self, wire: Role, message: Option<&Message>, out: &mut dyn Write) -> io::Result<()> {
        if self.open == Some(wire) {
            return out.write_all(b",");
        }
        if self.open.is_none() && wire == Role::Assistant && !self.alone {
            self.next_block(Role::User, None, out)?;
            block::write_text(OPENER, None, out)?;
        }
        out.write_all(if self.open.is_some() { b"]},{" } else { b"{" })?;
        // A tool's answer has its fields in its own block.
        let extra = message.filter(|message| message.role != Role::Tool).and_then(|m| m.extra.as_ref());
        match of(extra, NAME).filter(|extra| is_native(extra)) {
            Some(native) if wire == Role::System => {
                out.write_all(inner(native).unwrap_or_default().as_bytes())?
            }
            native => {
                write!(out, "\"role\":\"{}\"", wire.name())?;
                splice(of(extra, NAME).filter(|_| native.is_none()), out)?;
            }
        }
        self.open = Some(wire);
        out.write_all(b",\"content\":[")
    }

    /// True when the API takes a system message here. Among elements alone it was there, so it was taken.
    fn may_instruct(&self) -> bool {
        matches!(self.open, Some(Role::User | Role::System)) || self.alone && self.open.is_none()
    }

    /// Whose message it becomes. A system message in the middle stays one where this API had it so and would take it
    /// again, right after the user's.
    fn wire(&self, message: &Message) -> Role {
        let native = || of(message.extra.as_ref(), NAME).is_some_and(is_native);
        match message.role {
            Role::Assistant => Role::Assistant,
            Role::System if self.may_instruct() && native() => Role::System,
            _ => Role::User,
        }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        let instructs = matches!(message.role, Role::System | Role::Developer);
        let leads = instructs && !self.begun;
        // In a prompt that is one text there is no place for a mark.
        self.marked |= is_marked(message) && (!leads || self.system == System::List);
        if leads {
            return self.system.add(message, out);
        }
        self.begin_messages(out)?;
        let wire = self.wire(message);
        let mut silent = true;
        for part in message.parts.iter().filter(|part| is_shown(part)) {
            self.next_block(wire, Some(message), out)?;
            silent = false;
            match part {
                Part::Text { text, extra } if instructs && wire == Role::User => {
                    block::write_text(&format!("<system>{text}</system>"), extra.as_ref(), out)?;
                }
                part => block::write(part, message.extra.as_ref(), blobs, out)?,
            }
        }
        if silent && self.open != Some(wire) {
            self.next_block(wire, Some(message), out)?;
            block::write_text(EMPTY, None, out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.begin_messages(out)?;
        if self.open.is_none() {
            self.next_block(Role::User, None, out)?;
            block::write_text(OPENER, None, out)?;
        }
        write!(out, "]}}]{}", self.tail)?;
        if !self.marked {
            out.write_all(b",\"cache_control\":{\"type\":\"ephemeral\"}")?;
        }
        out.write_all(b"}")
    }
}

/// True for the field that says: this API had it as a system message among the others.
fn is_native(extra: &str) -> bool {
    Object::parse(extra).is_ok_and(|extra| extra.get("role").is_some())
}

/// Everything that may change from one request to the next.
///
/// Tools that may not be called are named as ever: another `tool_choice` would cost the cached messages, for the sake of
/// which they are named at all. What is asked for says that none is to be called. Only a choice that demands a call has
/// to give way.
fn tail(ask: &Ask<'_>, has_tools: bool) -> String {
    let own = ["model", "messages", "system", "tools", "stream"];
    let mut params = tools::params(ask.setup, Dialect::Messages, &own);
    let mut fields = Fields::default();
    fields.put("max_tokens", max_tokens(ask, &params).to_string());
    fields.put("stream", ask.stream.to_string());
    let demands = params.get("tool_choice").is_some_and(|json| !json.contains("\"auto\""));
    if ask.tools == Tools::NamedOnly && demands {
        params.take("tool_choice");
        if has_tools {
            fields.put("tool_choice", "{\"type\":\"none\"}");
        }
    }
    params.take("max_tokens");
    params.iter().for_each(|(key, json)| fields.put(key, json));
    format!(",{}", fields.inner())
}

/// The longest answer. The API counts thoughts into it and wants room beside them, so a shorter answer than the
/// thoughts may be long is added to them.
fn max_tokens(ask: &Ask<'_>, params: &Fields) -> u64 {
    let Some(wanted) = ask.max_tokens else {
        return params.get("max_tokens").and_then(|json| json.parse().ok()).unwrap_or(MAX_TOKENS);
    };
    let thinking = params.get("thinking").and_then(|json| Object::parse(json).ok());
    match thinking.and_then(|thinking| number(&thinking, "budget_tokens")) {
        Some(thoughts) if thoughts >= wanted => thoughts.saturating_add(wanted),
        _ => wanted,
    }
}

/// True when the message carries a cache mark of this API.
fn is_marked(message: &Message) -> bool {
    of(message.extra.as_ref(), NAME).is_some_and(|extra| extra.contains(MARK)) || any_marked(&message.parts)
}

fn any_marked(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Text { extra, .. } => of(extra.as_ref(), NAME).is_some_and(|extra| extra.contains(MARK)),
        Part::Opaque(opaque) => of(Some(opaque), NAME).is_some_and(|json| json.contains(MARK)),
        Part::Call(call) => call.extra.as_ref().is_some_and(|extra| extra.get().contains(MARK)),
        Part::Result(outcome) => any_marked(&outcome.content),
        Part::Image { .. } | Part::Reasoning { .. } => false,
    })
}
