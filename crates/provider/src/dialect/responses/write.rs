//! A request, written a message at a time.

use super::NAME;
use super::item::{apart, call_words, is_hollow};
use crate::ask::{Ask, Tools};
use crate::dialect::json::{call_fields, of, splice, text, write_string};
use crate::dialect::tools::fields::{Fields, quoted};
use crate::dialect::{Dialect, WriteRequest, tools};
use komado_core::message::{Call, CallKind, ImageSource, Message, Opaque, Outcome, Part, Role};
use komado_core::openai::Blobs;
use komado_core::raw::Object;
use std::io::{self, Write};

/// A request being written.
#[derive(Debug)]
pub struct Writer {
    /// True when an item was written.
    begun: bool,
    /// True when the server keeps what it answers.
    stores: bool,
    /// Ids of the custom calls made last: their outputs are of another type.
    custom: Vec<String>,
    /// What stands after the input.
    tail: String,
}

impl Writer {
    pub(in crate::dialect) fn begin(ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{}", quoted(ask.model))?;
        if let Some(system) = ask.setup.system.as_deref().filter(|system| !system.is_empty()) {
            write!(out, ",\"instructions\":{}", quoted(system))?;
        }
        let tools = tools::tools(ask.setup, Dialect::Responses);
        if let Some(tools) = &tools {
            write!(out, ",\"tools\":{tools}")?;
        }
        out.write_all(b",\"input\":[")?;
        let (tail, stores) = tail(ask, tools.is_some());
        Ok(Self { begun: false, stores, custom: Vec::new(), tail })
    }

    /// Writes items alone. What the server keeps is not known here, so no thought is taken for hollow.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, stores: true, custom: Vec::new(), tail: String::new() }
    }

    fn next_item(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { out.write_all(b",") } else { Ok(()) }
    }

    fn assistant(&mut self, message: &Message, out: &mut dyn Write) -> io::Result<()> {
        if message.calls().next().is_some() {
            let custom = message.calls().filter(|call| call.kind == CallKind::Custom);
            self.custom = custom.map(|call| call.id.clone()).collect();
        }
        for part in &message.parts {
            match part {
                Part::Text { text, .. } if text.is_empty() => {}
                Part::Text { text, extra } => {
                    self.next_item(out)?;
                    write_answer(text, extra.as_ref(), out)?;
                }
                Part::Call(call) => {
                    self.next_item(out)?;
                    write_call(call, out)?;
                }
                Part::Opaque(opaque) => self.opaque(opaque, out)?,
                Part::Image { .. } | Part::Result(_) | Part::Reasoning { .. } => {}
            }
        }
        Ok(())
    }

    /// A message of anyone but the model: its parts are one item, unless one of them is an item itself.
    fn spoken(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        let mut open = false;
        for part in &message.parts {
            if is_content(part) {
                if open {
                    out.write_all(b",")?;
                } else {
                    self.next_item(out)?;
                    write!(out, "{{\"type\":\"message\",\"role\":\"{}\"", message.role.name())?;
                    splice(of(message.extra.as_ref(), NAME), out)?;
                    out.write_all(b",\"content\":[")?;
                    open = true;
                }
                write_content(part, blobs, out)?;
            } else if let Part::Opaque(opaque) = part {
                if std::mem::take(&mut open) {
                    out.write_all(b"]}")?;
                }
                self.opaque(opaque, out)?;
            }
        }
        if open { out.write_all(b"]}") } else { Ok(()) }
    }

    fn opaque(&mut self, opaque: &Opaque, out: &mut dyn Write) -> io::Result<()> {
        let Some(json) = of(Some(opaque), NAME) else { return Ok(()) };
        if !self.stores && Object::parse(json).is_ok_and(|item| is_hollow(&item)) {
            return Ok(());
        }
        self.next_item(out)?;
        out.write_all(json.as_bytes())
    }

    fn result(
        &mut self,
        outcome: &Outcome,
        extra: Option<&Opaque>,
        blobs: &mut dyn Blobs,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let kind = if self.custom.contains(&outcome.call_id) { CallKind::Custom } else { CallKind::Function };
        self.next_item(out)?;
        let mut fields = Fields::of(of(extra, NAME).unwrap_or_default());
        let told = fields.take("type");
        let (kind, id) = (quoted(&format!("{}_output", call_words(kind).0)), quoted(&outcome.call_id));
        write!(out, "{{\"type\":{},\"call_id\":{id},\"output\":", told.unwrap_or(kind))?;
        let own = |part: &&Part| matches!(part, Part::Opaque(opaque) if opaque.dialect == NAME);
        let shown: Vec<&Part> = outcome.content.iter().filter(|p| is_content(p) || own(p)).collect();
        match shown.as_slice() {
            [] => out.write_all(b"\"\"")?,
            [Part::Text { text, extra }] if of(extra.as_ref(), NAME).is_none() => write_string(text, out)?,
            parts => {
                for (i, part) in parts.iter().enumerate() {
                    out.write_all(if i == 0 { b"[" } else { b"," })?;
                    write_content(part, blobs, out)?;
                }
                out.write_all(b"]")?;
            }
        }
        splice(Some(&fields.json()), out)?;
        out.write_all(b"}")
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
        match (message.role, message.outcome()) {
            (Role::Assistant, _) => self.assistant(message, out),
            (_, Some(outcome)) => self.result(outcome, message.extra.as_ref(), blobs, out),
            (_, None) => self.spoken(message, blobs, out),
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "]{}}}", self.tail)
    }
}

/// Everything that may change from one request to the next, and whether the server keeps its answers.
fn tail(ask: &Ask<'_>, has_tools: bool) -> (String, bool) {
    let own = ["model", "input", "instructions", "tools", "stream"];
    let mut params = tools::params(ask.setup, Dialect::Responses, &own);
    let mut fields = Fields::default();
    fields.put("stream", ask.stream.to_string());
    if let Some(most) = ask.max_tokens {
        params.take("max_output_tokens");
        fields.put("max_output_tokens", most.to_string());
    }
    if ask.tools == Tools::NamedOnly {
        params.take("tool_choice");
        if has_tools {
            fields.say("tool_choice", "none");
        }
    }
    params.iter().for_each(|(key, json)| fields.put(key, json));
    fields.suggest("store", "false");
    (format!(",{}", fields.inner()), fields.get("store") == Some("true"))
}

/// True for what stands inside a message or an output; anything else opaque is an item.
fn is_content(part: &Part) -> bool {
    match part {
        Part::Text { .. } | Part::Image { .. } => true,
        Part::Opaque(opaque) => of(Some(opaque), NAME)
            .and_then(|json| text(&Object::parse(json).ok()?, "type"))
            .is_some_and(|kind| kind.starts_with("input_")),
        Part::Call(_) | Part::Result(_) | Part::Reasoning { .. } => false,
    }
}

fn write_content(part: &Part, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
    match part {
        Part::Text { text, extra } => {
            out.write_all(b"{\"type\":\"input_text\",\"text\":")?;
            write_string(text, out)?;
            splice(of(extra.as_ref(), NAME), out)?;
            out.write_all(b"}")
        }
        Part::Image { source, detail } => {
            out.write_all(b"{\"type\":\"input_image\",\"image_url\":")?;
            match source {
                ImageSource::Url { url } => write_string(url, out)?,
                ImageSource::Blob { blob, media_type, .. } => {
                    // The opening quote is ours, the closing one comes after the bytes.
                    let media = quoted(&format!("data:{media_type};base64,"));
                    out.write_all(&media.as_bytes()[..media.len() - 1])?;
                    blobs.base64(blob, out)?;
                    out.write_all(b"\"")?;
                }
            }
            if let Some(detail) = detail {
                write!(out, ",\"detail\":{}", quoted(detail))?;
            }
            out.write_all(b"}")
        }
        Part::Opaque(opaque) => out.write_all(opaque.json.get().as_bytes()),
        Part::Call(_) | Part::Result(_) | Part::Reasoning { .. } => Ok(()),
    }
}

/// What the model said, as an item of its own.
fn write_answer(text: &str, extra: Option<&Opaque>, out: &mut dyn Write) -> io::Result<()> {
    let beside = apart(extra);
    let (kind, field) = if beside.refusal { ("refusal", "refusal") } else { ("output_text", "text") };
    out.write_all(b"{\"type\":\"message\",\"role\":\"assistant\"")?;
    splice(Some(&beside.item.json()), out)?;
    write!(out, ",\"content\":[{{\"type\":\"{kind}\",\"{field}\":")?;
    write_string(text, out)?;
    splice(Some(&beside.part.json()), out)?;
    out.write_all(b"}]}")
}

fn write_call(call: &Call, out: &mut dyn Write) -> io::Result<()> {
    let (kind, field) = call_words(call.kind);
    let (id, name) = (quoted(&call.id), quoted(&call.name));
    write!(out, "{{\"type\":\"{kind}\",\"call_id\":{id},\"name\":{name},\"{field}\":")?;
    write_string(&call.arguments, out)?;
    splice(call_fields(call.extra.as_ref(), NAME).as_deref(), out)?;
    out.write_all(b"}")
}
