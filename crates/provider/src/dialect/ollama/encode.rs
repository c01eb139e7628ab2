//! An answer of Ollama's chat, from events to bytes.
//!
//! Calls are whole objects on this wire, so they are held until the model has stopped. How long things took nobody
//! here knows; clients are told zero.

use super::DIALECT;
use super::write::{call, put_thoughts};
use crate::dialect::chat::fault;
use crate::dialect::json::of;
use crate::dialect::parting::Parting;
use crate::dialect::tools::fields::{Fields, list};
use crate::dialect::{Encode, Form, Stamp};
use crate::event::Event;
use crate::heard::Heard;
use komado_core::message::Part;

/// Encodes an answer.
#[derive(Debug)]
pub struct Encoder {
    form: Form,
    stamp: Stamp,
    heard: Heard,
    failed: bool,
    parting: Parting,
}

impl Encoder {
    /// An encoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: Form, stamp: Stamp) -> Self {
        Self { form, stamp, heard: Heard::default(), failed: false, parting: Parting::default() }
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Some(event) = self.parting.told(event) else { return };
        let event = event.as_ref();
        if let Event::Failed(failed) = event {
            self.failed = true;
            let mut error = Fields::default();
            error.say("error", &fault::message(&failed.body));
            return self.line(&error, out);
        }
        let mut message = spoken("");
        match (self.form, event) {
            (Form::Stream, Event::Text(text)) => message.say("content", text),
            (Form::Stream, Event::Reasoning(text)) => message.say("thinking", text),
            (Form::Stream, Event::Extra(extra)) if extra.dialect == DIALECT => {
                message.put_all(extra.json.get());
            }
            (Form::Stream, Event::Finished(_)) => {
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
            Form::Stream => spoken(""),
            Form::Whole => self.whole(),
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
    fn line(&self, fields: &Fields, out: &mut Vec<u8>) {
        out.extend_from_slice(fields.json().as_bytes());
        if self.form == Form::Stream {
            out.push(b'\n');
        }
    }

    fn frame(&self, message: &Fields) -> Fields {
        let mut line = Fields::default();
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
        list(&message.calls().enumerate().map(|(i, each)| call(Some(i), each)).collect::<Vec<_>>())
    }

    fn whole(&self) -> Fields {
        let heard = self.heard.message();
        let parts = heard.as_ref().map_or(&[][..], |message| &message.parts);
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
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

fn spoken(words: &str) -> Fields {
    let mut message = Fields::default();
    message.say("role", "assistant");
    message.say("content", words);
    message
}
