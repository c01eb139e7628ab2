//! What the lines of an answer say.

use super::DIALECT;
use super::request::{call, put_thoughts, read_arguments};
use crate::dialect::json::{
    JsonFields, array, error_words, kept, number, object, objects, of, rest, said, tell,
};
use crate::dialect::{Encode, Parting, ResponseForm, ResponseStamp, Tell};
use crate::event::{ModelEvent, ModelResponse};
use crate::lines::{LONGEST, LineSplitter};
use komado_core::journal::Usage;
use komado_core::message::{CallKind, MessagePart};
use komado_core::raw::RawObject;
use serde_json::value::RawValue;

/// The fields of a message that are understood.
const KNOWN: [&str; 4] = ["role", "content", "thinking", "tool_calls"];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct OllamaDecoder {
    begun: bool,
    calls: usize,
}

impl Tell for OllamaDecoder {
    type Pieces = LineSplitter;

    fn piece(&mut self, _name: &str, line: &str, is_last: bool, each: &mut dyn FnMut(ModelEvent)) {
        if !line.trim().is_empty() && !self.line(line, each) && !is_last {
            each(ModelEvent::failed(line));
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(ModelEvent)) {
        let known = ["message", "done", "error"];
        let answers =
            RawObject::parse(body).is_ok_and(|line| known.iter().any(|key| line.get(key).is_some()));
        if !(answers && self.line(body, each)) {
            each(ModelEvent::failed(body));
        }
    }

    fn overlong(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        each(ModelEvent::failed(&format!("the answer is longer than {LONGEST} bytes")));
    }
}

impl OllamaDecoder {
    /// Takes a line in. False when it is not a JSON object.
    fn line(&mut self, json: &str, each: &mut dyn FnMut(ModelEvent)) -> bool {
        let Ok(line) = RawObject::parse(json) else { return false };
        if line.get("error").is_some() {
            each(ModelEvent::failed(json));
            return true;
        }
        if !std::mem::replace(&mut self.begun, true) {
            each(ModelEvent::Begun { id: None, model: said(&line, "model") });
        }
        if let Some(message) = object(&line, "message") {
            self.message(&message, each);
        }
        if line.read("done").ok().flatten().unwrap_or(false) {
            self.finish(&line, each);
        }
        true
    }

    fn message(&mut self, message: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        tell(said(message, "thinking").map(ModelEvent::Reasoning), each);
        tell(said(message, "content").map(ModelEvent::Text), each);
        objects(message, "tool_calls").for_each(|call| self.call(&call, each));
        tell(kept(&rest(message, &KNOWN), DIALECT).map(ModelEvent::Extra), each);
    }

    /// Calls come whole, and in older versions without an id.
    fn call(&mut self, call: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let Some(function) = object(call, "function") else { return };
        let index = self.calls;
        self.calls += 1;
        // One that came without an id gets it where it is kept: only there is it known which are taken.
        let (id, name) = (said(call, "id").unwrap_or_default(), said(&function, "name").unwrap_or_default());
        each(ModelEvent::Call { index, id, name, kind: CallKind::Function });
        let arguments = function.get("arguments").map_or("{}", RawValue::get);
        each(ModelEvent::Arguments { index, text: read_arguments(arguments) });
        let extra = call.rest(&["id", "type", "function"]);
        tell(extra.map(|json| ModelEvent::CallExtra { index, json }), each);
    }

    fn finish(&mut self, line: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let (input, output) = (number(line, "prompt_eval_count"), number(line, "eval_count"));
        if input.is_some() || output.is_some() {
            each(ModelEvent::Usage(Usage {
                input_tokens: input.unwrap_or(0),
                output_tokens: output.unwrap_or(0),
                ..Usage::default()
            }));
        }
        let why = said(line, "done_reason").unwrap_or_else(|| "stop".into());
        let why = if why == "stop" && self.calls > 0 { "tool_calls".into() } else { why };
        each(ModelEvent::Finished(why));
    }
}

// An answer of Ollama's chat, from events to bytes.
//
// Calls are whole objects on this wire, so they are held until the model has stopped. How long things took is not known
// here; clients are told zero.

/// Encodes an answer.
#[derive(Debug, Default)]
pub struct Encoder {
    form: ResponseForm,
    stamp: ResponseStamp,
    heard: ModelResponse,
    failed: bool,
    parting: Parting,
}

impl Encoder {
    /// An encoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: ResponseForm, stamp: ResponseStamp) -> Self {
        Self { form, stamp, ..Self::default() }
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        let Some(event) = self.parting.told(event) else { return };
        let event = event.as_ref();
        if let ModelEvent::Failed(failed) = event {
            self.failed = true;
            let mut error = JsonFields::default();
            error.say("error", &error_words(&failed.body));
            return self.line(&error, out);
        }
        let mut message = spoken("");
        match (self.form, event) {
            (ResponseForm::Stream, ModelEvent::Text(text)) => message.say("content", text),
            (ResponseForm::Stream, ModelEvent::Reasoning(text)) => message.say("thinking", text),
            (ResponseForm::Stream, ModelEvent::Extra(extra)) if extra.dialect == DIALECT => {
                message.put_all(extra.json.get());
            }
            (ResponseForm::Stream, ModelEvent::Finished(_)) => {
                self.heard.take(event);
                let Some(calls) = self.calls() else { return };
                message.put("tool_calls", calls);
            }
            _ => return self.heard.take(event),
        }
        let mut line = self.frame(&message);
        line.put("done", "false");
        self.line(&line, out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        let message = match self.form {
            ResponseForm::Stream => spoken(""),
            ResponseForm::Whole => self.whole(),
        };
        let mut line = self.frame(&message);
        line.put("done", "true");
        line.say("done_reason", self.reason());
        line.put("total_duration", "0");
        if let Some(usage) = &self.heard.usage {
            line.put("prompt_eval_count", (usage.total() - usage.output_tokens).to_string());
            line.put("eval_count", usage.output_tokens.to_string());
        }
        self.line(&line, out);
    }
}

impl Encoder {
    fn line(&self, fields: &JsonFields, out: &mut Vec<u8>) {
        out.extend_from_slice(fields.json().as_bytes());
        if self.form == ResponseForm::Stream {
            out.push(b'\n');
        }
    }

    fn frame(&self, message: &JsonFields) -> JsonFields {
        let mut line = JsonFields::default();
        line.say("model", self.heard.model.as_deref().unwrap_or_default());
        line.say("created_at", &self.stamp.created_at);
        line.put("message", message.json());
        line
    }

    /// Ollama has no word of its own for a stop that is a call.
    fn reason(&self) -> &str {
        match self.heard.finish.as_deref() {
            None | Some("tool_calls") => "stop",
            Some(why) => why,
        }
    }

    fn calls(&self) -> Option<String> {
        let message = self.heard.message()?;
        array(&message.calls().enumerate().map(|(i, each)| call(Some(i), each)).collect::<Vec<_>>())
    }

    fn whole(&self) -> JsonFields {
        let heard = self.heard.message();
        let parts = heard.as_ref().map_or(&[][..], |message| &message.parts);
        let texts = parts.iter().filter_map(|part| match part {
            MessagePart::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let mut message = spoken(&texts.collect::<String>());
        put_thoughts(&mut message, parts);
        self.calls().into_iter().for_each(|calls| message.put("tool_calls", calls));
        let extra = heard.as_ref().and_then(|message| of(message.extra.as_ref(), DIALECT));
        extra.into_iter().for_each(|extra| message.put_all(extra));
        message
    }
}

fn spoken(words: &str) -> JsonFields {
    let mut message = JsonFields::default();
    message.say("role", "assistant");
    message.say("content", words);
    message
}
