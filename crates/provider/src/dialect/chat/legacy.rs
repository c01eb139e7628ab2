//! Functions, as chat completions had them before there were tools.
//!
//! A call had no id and its result came from a role of its own. They are read as today's calls and results, with ids
//! made up from their place, so that the rest of the program need not know there ever was another way.

use crate::dialect::json::{kept, own, text};
use crate::dialect::tools::fields::{Fields, quoted};
use komado_core::message::{Call, CallKind, Message, Part};
use komado_core::openai::{self, BadMessage, Blobs};
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;
use std::io;

/// Pairs old calls with old results, in the order of the messages.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    made: usize,
    open: Option<String>,
}

impl Pairing {
    /// Goes on where the calls `open` wait; the last one is who is answered.
    pub(super) fn after(open: &[Call]) -> Self {
        Self { made: 0, open: open.last().map(|call| call.id.clone()) }
    }

    /// Reads a message of the old form; `None` when it is not one.
    pub(super) fn read(&mut self, text: &str) -> Option<Result<Message, BadMessage>> {
        let object = Object::parse(text).ok()?;
        let role = object.read::<String>("role").ok()??;
        match (role.as_str(), object.get("function_call")) {
            ("assistant", Some(call)) => Some(self.call(text, &object, call.get())),
            ("function", _) => Some(self.result(text)),
            _ => None,
        }
    }

    fn call(&mut self, text: &str, object: &Object<'_>, call: &str) -> Result<Message, BadMessage> {
        let mut rest = Fields::of(text);
        rest.take("function_call");
        let mut message = openai::read(&rest.json())?;
        if object.get("content").is_none() && message.calls().next().is_none() {
            message.parts.clear();
        }
        let call = Object::parse(call).map_err(|e| BadMessage::Shape(format!("`function_call`: {e}")))?;
        let name: Option<String> = call.read("name")?;
        let id = format!("call_{}", self.made);
        self.made += 1;
        self.open = Some(id.clone());
        message.parts.push(Part::Call(Call {
            id,
            name: name.ok_or_else(|| BadMessage::Shape("`function_call` has no name".into()))?,
            arguments: call.read("arguments")?.unwrap_or_default(),
            kind: CallKind::Function,
            extra: None,
        }));
        Ok(message)
    }

    fn result(&mut self, text: &str) -> Result<Message, BadMessage> {
        let mut fields = Fields::of(text);
        fields.say("role", "tool");
        fields.say("tool_call_id", &self.open.take().unwrap_or_default());
        openai::read(&fields.json())
    }
}

/// Marks a message that its client wrote in the old form, to be written in it again.
pub(in crate::dialect) fn as_told(message: &mut Message, json: &str) {
    let Ok(object) = Object::parse(json) else { return };
    let role = text(&object, "role");
    let is_old = role.as_deref() == Some("function") || object.get("function_call").is_some();
    if let Some(role) = role.filter(|_| is_old) {
        let mut extra = own(message.extra.as_ref(), openai::DIALECT).unwrap_or_default();
        extra.say("role", &role);
        message.extra = kept(&extra, openai::DIALECT);
    }
}

/// A message of today's form in the old one, where it is marked so; `None` where it is not. Only the old form has one
/// call, and an answer without an id.
pub(super) fn written(message: &Message, blobs: &mut dyn Blobs) -> io::Result<Option<String>> {
    let Some(mut extra) = own(message.extra.as_ref(), openai::DIALECT) else { return Ok(None) };
    let Some(role) = extra.take("role") else { return Ok(None) };
    let mut out = Vec::new();
    openai::write(&Message { extra: kept(&extra, openai::DIALECT), ..message.clone() }, blobs, &mut out)?;
    let mut fields = Fields::of(&String::from_utf8_lossy(&out));
    fields.put("role", role);
    fields.take("tool_call_id");
    fields.take("tool_calls");
    if let Some(name) = message.outcome().and_then(|outcome| outcome.name.as_deref()) {
        fields.say("name", name);
    }
    if let Some(call) = message.calls().last() {
        let (name, arguments) = (quoted(&call.name), quoted(&call.arguments));
        fields.put("function_call", format!("{{\"name\":{name},\"arguments\":{arguments}}}"));
    }
    Ok(Some(fields.json()))
}

/// `functions` as today's tools, behind those that are there already.
pub(super) fn tools(functions: &[&RawValue], tools: &[&RawValue]) -> String {
    let tools = tools.iter().map(|tool| tool.get().to_owned());
    let all: Vec<String> = tools.chain(functions.iter().map(|function| wrapped(function.get()))).collect();
    format!("[{}]", all.join(","))
}

fn wrapped(function: &str) -> String {
    format!("{{\"type\":\"function\",\"function\":{function}}}")
}

/// The parameter `function_call` as today's `tool_choice`.
pub(super) fn choice(json: &str) -> String {
    let Ok(object) = Object::parse(json) else { return json.to_owned() };
    wrapped(object.rest(&[]).as_ref().map_or("{}", Raw::get))
}
