//! What the lines of an answer say.

use super::{DIALECT, arguments};
use crate::dialect::chat::usage::number;
use crate::dialect::json::{kept, object, objects, rest, said, tell};
use crate::dialect::told::Tell;
use crate::event::Event;
use crate::lines::{LONGEST, Lines};
use komado_core::journal::Usage;
use komado_core::message::CallKind;
use komado_core::raw::Object;
use serde_json::value::RawValue;

/// The fields of a message that are understood.
const KNOWN: [&str; 4] = ["role", "content", "thinking", "tool_calls"];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Said {
    begun: bool,
    calls: usize,
    /// True when it failed or finished; nothing after that counts.
    over: bool,
}

impl Tell for Said {
    type Pieces = Lines;

    fn piece(&mut self, _name: &str, line: &str, is_last: bool, each: &mut dyn FnMut(Event)) {
        if !line.trim().is_empty() && !self.line(line, each) && !is_last {
            self.fail(line, each);
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        let known = ["message", "done", "error"];
        let answers = Object::parse(body).is_ok_and(|line| known.iter().any(|key| line.get(key).is_some()));
        if !(answers && self.line(body, each)) {
            self.fail(body, each);
        }
    }

    fn overlong(&mut self, each: &mut dyn FnMut(Event)) {
        self.fail(&format!("the answer is longer than {LONGEST} bytes"), each);
    }
}

impl Said {
    /// Takes a line in. False when it is no JSON object.
    fn line(&mut self, json: &str, each: &mut dyn FnMut(Event)) -> bool {
        let Ok(line) = Object::parse(json) else { return false };
        if self.over {
            return true;
        }
        if line.get("error").is_some() {
            self.fail(json, each);
            return true;
        }
        if !std::mem::replace(&mut self.begun, true) {
            each(Event::Begun { id: None, model: said(&line, "model") });
        }
        if let Some(message) = object(&line, "message") {
            self.message(&message, each);
        }
        if line.read("done").ok().flatten().unwrap_or(false) {
            self.finish(&line, each);
        }
        true
    }

    /// The provider gave up.
    fn fail(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.over, true) {
            each(Event::failed(body));
        }
    }

    fn message(&mut self, message: &Object<'_>, each: &mut dyn FnMut(Event)) {
        tell(said(message, "thinking").map(Event::Reasoning), each);
        tell(said(message, "content").map(Event::Text), each);
        objects(message, "tool_calls").for_each(|call| self.call(&call, each));
        tell(kept(&rest(message, &KNOWN), DIALECT).map(Event::Extra), each);
    }

    /// Calls come whole, and in older versions without an id.
    fn call(&mut self, call: &Object<'_>, each: &mut dyn FnMut(Event)) {
        let Some(function) = object(call, "function") else { return };
        let index = self.calls;
        self.calls += 1;
        // One that came without an id gets it where it is kept: only there is it known which are taken.
        let (id, name) = (said(call, "id").unwrap_or_default(), said(&function, "name").unwrap_or_default());
        each(Event::Call { index, id, name, kind: CallKind::Function });
        let arguments = function.get("arguments").map_or("{}", RawValue::get);
        each(Event::Arguments { index, text: arguments::read(arguments) });
        let extra = call.rest(&["id", "type", "function"]);
        tell(extra.map(|json| Event::CallExtra { index, json }), each);
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
        let why = said(line, "done_reason").unwrap_or_else(|| "stop".into());
        let why = if why == "stop" && self.calls > 0 { "tool_calls".into() } else { why };
        each(Event::Finished(why));
        self.over = true;
    }
}
