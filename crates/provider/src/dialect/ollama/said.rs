//! What the lines of an answer say.

use super::{DIALECT, arguments};
use crate::dialect::chat::usage::number;
use crate::dialect::tools::fields::Fields;
use crate::event::{Event, Failed};
use komado_core::journal::Usage;
use komado_core::message::{CallKind, Opaque};
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;

/// The fields of a message that are understood.
const KNOWN: [&str; 4] = ["role", "content", "thinking", "tool_calls"];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Said {
    begun: bool,
    calls: usize,
    /// True when it failed or finished; nothing after that counts.
    pub(super) over: bool,
}

impl Said {
    /// Takes a line in. False when it is no JSON object.
    pub(super) fn line(&mut self, json: &str, each: &mut dyn FnMut(Event)) -> bool {
        let Ok(line) = Object::parse(json) else { return false };
        if self.over {
            return true;
        }
        if line.get("error").is_some() {
            self.fail(json, each);
            return true;
        }
        if !std::mem::replace(&mut self.begun, true) {
            each(Event::Begun { id: None, model: text(&line, "model") });
        }
        if let Some(message) = line.get("message").and_then(|json| Object::parse(json.get()).ok()) {
            self.message(&message, each);
        }
        if line.read("done").ok().flatten().unwrap_or(false) {
            self.finish(&line, each);
        }
        true
    }

    /// Takes a whole answer in. False when it is none.
    pub(super) fn whole(&mut self, json: &str, each: &mut dyn FnMut(Event)) -> bool {
        let known = ["message", "done", "error"];
        let answers = Object::parse(json).is_ok_and(|line| known.iter().any(|key| line.get(key).is_some()));
        answers && self.line(json, each)
    }

    /// The provider gave up.
    pub(super) fn fail(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.over, true) {
            each(Event::Failed(Failed { status: 200, body: body.to_owned() }));
        }
    }

    fn message(&mut self, message: &Object<'_>, each: &mut dyn FnMut(Event)) {
        text(message, "thinking").map(Event::Reasoning).into_iter().for_each(&mut *each);
        text(message, "content").map(Event::Text).into_iter().for_each(&mut *each);
        let calls: Vec<&RawValue> = message.read("tool_calls").ok().flatten().unwrap_or_default();
        calls
            .iter()
            .filter_map(|call| Object::parse(call.get()).ok())
            .for_each(|call| self.call(&call, each));
        let mut rest = Fields::default();
        for (key, value) in message.0.iter().filter(|(key, _)| !KNOWN.contains(&key.as_ref())) {
            if !matches!(value.get(), "null" | "[]") {
                rest.put(key, value.get());
            }
        }
        if let Some(json) = Raw::parse(rest.json()).ok().filter(|_| !rest.is_empty()) {
            each(Event::Extra(Opaque { dialect: DIALECT.into(), json }));
        }
    }

    /// Calls come whole, and in older versions without an id.
    fn call(&mut self, call: &Object<'_>, each: &mut dyn FnMut(Event)) {
        let Some(function) = call.get("function").and_then(|json| Object::parse(json.get()).ok()) else {
            return;
        };
        let index = self.calls;
        self.calls += 1;
        // One that came without an id gets it where it is kept: only there is it known which are taken.
        let id = text(call, "id").unwrap_or_default();
        let name = text(&function, "name").unwrap_or_default();
        each(Event::Call { index, id, name, kind: CallKind::Function });
        let arguments = function.get("arguments").map_or("{}", RawValue::get);
        each(Event::Arguments { index, text: arguments::read(arguments) });
        if let Some(json) = call.rest(&["id", "type", "function"]) {
            each(Event::CallExtra { index, json });
        }
    }

    fn finish(&mut self, line: &Object<'_>, each: &mut dyn FnMut(Event)) {
        let (input, output) = (number(line, "prompt_eval_count"), number(line, "eval_count"));
        if input.is_some() || output.is_some() {
            each(Event::Usage(Usage {
                input_tokens: input.unwrap_or(0),
                output_tokens: output.unwrap_or(0),
                ..Usage::default()
            }));
        }
        let why = text(line, "done_reason").unwrap_or_else(|| "stop".into());
        let why = if why == "stop" && self.calls > 0 { "tool_calls".into() } else { why };
        each(Event::Finished(why));
        self.over = true;
    }
}

/// A text that is there and says something.
fn text(object: &Object<'_>, key: &str) -> Option<String> {
    object.read::<String>(key).ok().flatten().filter(|text| !text.is_empty())
}
