//! An answer, encoded.
//!
//! Blocks come one after the other. Only a call whose arguments are not whole yet stays open while others begin,
//! because some providers write several calls at once; each piece names its block, so a client can tell them apart.
//! Arguments that are not on their way to be an object are held until they are whole: clients read each piece.

use super::NAME;
use super::request::{self, input};
use crate::dialect::json::{call_fields, complaint, frame, inner, list, object, of, quoted, text};
use crate::dialect::{Encode, ResponseForm, ResponseStamp};
use crate::event::{ModelEvent, ModelResponse, ProviderFailure};
use komado_core::journal::Usage;
use komado_core::message::{Call, CallKind, MessagePart, Opaque};
use komado_core::raw::{RawJson, RawObject};

/// An answer being written.
#[derive(Debug, Default)]
pub struct Encoder {
    form: ResponseForm,
    stamp: ResponseStamp,
    /// What was said; the whole of it only for the form that comes in one piece.
    heard: ModelResponse,
    begun: bool,
    /// The next block's index.
    next: usize,
    open: Open,
    calls: Vec<OpenCall>,
    /// True when an answer has said that it begins: another one goes on with it.
    told: bool,
    /// Calls so far.
    made: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Text(usize),
    /// The seal is held until it is whole: clients take the last piece of it for all of it.
    Thinking(usize, String),
}

#[derive(Debug)]
struct OpenCall {
    index: usize,
    /// Its block; `None` while fields may still join its beginning.
    block: Option<usize>,
    call: Call,
    /// How much of its arguments was sent.
    sent: usize,
}

impl OpenCall {
    /// True when its arguments can be sent in pieces.
    fn flows(&self) -> bool {
        self.call.kind == CallKind::Function && self.call.arguments.trim_start().starts_with('{')
    }

    /// True when no more arguments can come.
    fn is_whole(&self) -> bool {
        self.flows() && RawObject::parse(&self.call.arguments).is_ok()
    }

    fn stop(&self, out: &mut Vec<u8>) {
        let Some(block) = self.block else { return };
        if !self.flows() && !self.call.arguments.trim().is_empty() {
            delta(block, &input_piece(&input(&self.call.arguments)), out);
        }
        stop(block, out);
    }
}

impl Encoder {
    pub(in crate::dialect) fn new(form: ResponseForm, stamp: ResponseStamp) -> Self {
        Self { form, stamp, ..Self::default() }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let message = self.message("[]", "null", &usage(self.heard.usage.unwrap_or_default()));
        frame("message_start", &format!("{{\"type\":\"message_start\",\"message\":{message}}}"), out);
    }

    fn message(&self, content: &str, reason: &str, usage: &str) -> String {
        let id = self.heard.id.clone().unwrap_or_else(|| format!("msg_{}", self.stamp.created));
        let (id, model) = (quoted(&id), quoted(self.heard.model.as_deref().unwrap_or_default()));
        format!(
            "{{\"id\":{id},\"type\":\"message\",\"role\":\"assistant\",\"model\":{model},\"content\":{content},\
             \"stop_reason\":{reason},\"stop_sequence\":null,\"usage\":{usage}}}"
        )
    }

    fn start(&mut self, block: &str, out: &mut Vec<u8>) -> usize {
        let index = self.next;
        self.next += 1;
        let json =
            format!("{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}");
        frame("content_block_start", &json, out);
        index
    }

    /// Closes what is open and whole.
    fn settle(&mut self, out: &mut Vec<u8>) {
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::Text(index) => stop(index, out),
            Open::Thinking(index, seal) => {
                if !seal.is_empty() {
                    let json = format!(r#"{{"type":"signature_delta","signature":{}}}"#, quoted(&seal));
                    delta(index, &json, out);
                }
                stop(index, out);
            }
        }
        self.start_calls(out);
        self.calls.retain(|open| {
            let whole = open.is_whole();
            if whole {
                open.stop(out);
            }
            !whole
        });
    }

    fn close_all(&mut self, out: &mut Vec<u8>) {
        self.settle(out);
        std::mem::take(&mut self.calls).iter().for_each(|open| open.stop(out));
    }

    /// Begins the blocks of calls that were only named so far.
    fn start_calls(&mut self, out: &mut Vec<u8>) {
        for at in 0..self.calls.len() {
            if self.calls[at].block.is_none() {
                let empty = Call { arguments: String::new(), ..self.calls[at].call.clone() };
                let block = self.start(&call_block(&empty), out);
                self.calls[at].block = Some(block);
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Open::Text(index) => index,
            _ => {
                self.settle(out);
                self.start("{\"type\":\"text\",\"text\":\"\"}", out)
            }
        };
        self.open = Open::Text(index);
        delta(index, &format!("{{\"type\":\"text_delta\",\"text\":{}}}", quoted(text)), out);
    }

    fn thinking(&mut self, text: &str, more_seal: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Open::Thinking(..)) {
            self.settle(out);
            let index = self.start("{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}", out);
            self.open = Open::Thinking(index, String::new());
        }
        if let Open::Thinking(index, seal) = &mut self.open {
            seal.push_str(more_seal);
            if !text.is_empty() {
                let json = format!("{{\"type\":\"thinking_delta\",\"thinking\":{}}}", quoted(text));
                delta(*index, &json, out);
            }
        }
    }

    fn call(&mut self, index: usize, (id, name): (&str, &str), kind: CallKind, out: &mut Vec<u8>) {
        self.settle(out);
        let id = self.id(id);
        let call = Call { id, name: name.to_owned(), arguments: String::new(), kind, extra: None };
        self.calls.push(OpenCall { index, block: None, call, sent: 0 });
    }

    /// The id of the next call: a client pairs by it, so there must be one.
    fn id(&mut self, given: &str) -> String {
        self.made += 1;
        if given.is_empty() {
            format!("toolu_{}_{}", self.stamp.created, self.made - 1)
        } else {
            given.to_owned()
        }
    }

    fn arguments(&mut self, index: usize, text: &str, out: &mut Vec<u8>) {
        self.start_calls(out);
        let Some(open) = self.calls.iter_mut().rev().find(|open| open.index == index) else { return };
        open.call.arguments.push_str(text);
        if let (true, Some(block)) = (open.flows(), open.block) {
            delta(block, &input_piece(&open.call.arguments[open.sent..]), out);
            open.sent = open.call.arguments.len();
        }
    }

    fn part_done(&mut self, extra: Option<&Opaque>, out: &mut Vec<u8>) {
        if let (Open::Text(index), Some(extra)) = (&self.open, of(extra, NAME)) {
            for citation in citations(extra) {
                delta(*index, &format!("{{\"type\":\"citations_delta\",\"citation\":{citation}}}"), out);
            }
        }
        self.settle(out);
    }

    fn stream(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        match event {
            ModelEvent::Begun { .. } | ModelEvent::Usage(_) | ModelEvent::Finished(_) => {
                self.heard.take(event)
            }
            ModelEvent::Failed(failed) => return frame("error", &error(failed), out),
            _ => {}
        }
        // A usage that comes early is told at the beginning.
        if matches!(event, ModelEvent::Begun { .. })
            || matches!(event, ModelEvent::Usage(_)) && self.heard.id.is_none()
        {
            return;
        }
        self.begin(out);
        match event {
            ModelEvent::Text(text) => self.text(text, out),
            ModelEvent::Reasoning(text) => self.thinking(text, "", out),
            ModelEvent::Signature(seal) => self.thinking("", seal, out),
            ModelEvent::Call { index, id, name, kind } => self.call(*index, (id, name), *kind, out),
            ModelEvent::Arguments { index, text } => self.arguments(*index, text, out),
            ModelEvent::CallExtra { index, json } => {
                if let Some(open) = self.calls.iter_mut().rev().find(|open| open.index == *index) {
                    open.call.extra = Some(json.clone());
                }
            }
            ModelEvent::Part(part) => {
                if let Some(json) = of(Some(part), NAME) {
                    self.settle(out);
                    let index = self.start(json, out);
                    stop(index, out);
                }
            }
            ModelEvent::PartDone(extra) => self.part_done(extra.as_ref(), out),
            ModelEvent::Finished(_) => self.close_all(out),
            ModelEvent::Begun { .. }
            | ModelEvent::Extra(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Failed(_) => {}
        }
    }

    fn whole(&self, out: &mut Vec<u8>) {
        if let Some(failed) = &self.heard.failed {
            return out.extend_from_slice(error(failed).as_bytes());
        }
        let parts = self.heard.message().map(|message| message.parts).unwrap_or_default();
        let blocks: Vec<String> = parts.iter().filter_map(whole_block).collect();
        let content = format!("[{}]", blocks.join(","));
        let usage = usage(self.heard.usage.unwrap_or_default());
        out.extend_from_slice(self.message(&content, &self.reason(), &usage).as_bytes());
    }

    fn reason(&self) -> String {
        quoted(match self.heard.finish.as_deref() {
            None | Some("stop") => "end_turn",
            Some("length") => "max_tokens",
            Some("tool_calls" | "function_call") => "tool_use",
            Some("content_filter") => "refusal",
            Some(other) => other,
        })
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        let again = matches!(event, ModelEvent::Begun { .. }) && std::mem::replace(&mut self.told, true);
        match (self.form, event) {
            (ResponseForm::Stream, _) if again => self.close_all(out),
            (ResponseForm::Stream, _) => self.stream(event, out),
            (ResponseForm::Whole, _) if again => self.heard.take(&ModelEvent::PartDone(None)),
            (ResponseForm::Whole, ModelEvent::Call { index, id, name, kind }) => {
                let (index, id, name, kind) = (*index, self.id(id), name.clone(), *kind);
                self.heard.take(&ModelEvent::Call { index, id, name, kind });
            }
            (ResponseForm::Whole, _) => self.heard.take(event),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.form == ResponseForm::Whole {
            return self.whole(out);
        }
        self.begin(out);
        self.close_all(out);
        let (reason, usage) = (self.reason(), usage(self.heard.usage.unwrap_or_default()));
        let last = format!(
            "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{reason},\"stop_sequence\":null}},\"usage\":{usage}}}"
        );
        frame("message_delta", &last, out);
        frame("message_stop", "{\"type\":\"message_stop\"}", out);
    }
}

fn delta(index: usize, json: &str, out: &mut Vec<u8>) {
    let json = format!("{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{json}}}");
    frame("content_block_delta", &json, out);
}

fn input_piece(text: &str) -> String {
    format!("{{\"type\":\"input_json_delta\",\"partial_json\":{}}}", quoted(text))
}

fn stop(index: usize, out: &mut Vec<u8>) {
    frame("content_block_stop", &format!("{{\"type\":\"content_block_stop\",\"index\":{index}}}"), out);
}

fn usage(usage: Usage) -> String {
    format!(
        "{{\"input_tokens\":{},\"cache_creation_input_tokens\":{},\"cache_read_input_tokens\":{},\"output_tokens\":{}}}",
        usage.input_tokens, usage.cache_creation_tokens, usage.cache_read_tokens, usage.output_tokens
    )
}

fn call_block(call: &Call) -> String {
    let extra = call_fields(call.extra.as_ref(), NAME);
    let extra = extra.as_deref().and_then(inner).map(|inner| format!(",{inner}")).unwrap_or_default();
    let (id, name, input) = (quoted(&call.id), quoted(&call.name), input(&call.arguments));
    format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{input}{extra}}}")
}

/// A part as it stands in a whole answer; unlike in a request, a thought need not be signed.
fn whole_block(part: &MessagePart) -> Option<String> {
    let mut block = Vec::new();
    let written = match part {
        MessagePart::Text { text, .. } if text.is_empty() => return None,
        MessagePart::Text { text, extra } => request::write_text(text, extra.as_ref(), &mut block),
        MessagePart::Reasoning { text, signature } => {
            request::write_thinking(text, signature.as_deref().unwrap_or_default(), &mut block)
        }
        MessagePart::Call(call) => request::write_call(call, &mut block),
        MessagePart::Opaque(opaque) => return of(Some(opaque), NAME).map(str::to_owned),
        MessagePart::Image { .. } | MessagePart::Result(_) => return None,
    };
    written.ok().and_then(|()| String::from_utf8(block).ok())
}

fn citations(extra: &str) -> Vec<&str> {
    RawObject::parse(extra).map(|extra| list(&extra, "citations")).unwrap_or_default()
}

/// An error as this API words it; its own are handed on as they came.
fn error(failed: &ProviderFailure) -> String {
    let own = RawObject::parse(&failed.body).is_ok_and(|body| {
        text(&body, "type").as_deref() == Some("error") && object(&body, "error").is_some()
    });
    match RawJson::parse(failed.body.as_str()) {
        Ok(body) if own => body.get().to_owned(),
        _ => {
            let words = quoted(&complaint(&failed.body).1);
            format!(r#"{{"type":"error","error":{{"type":"api_error","message":{words}}}}}"#)
        }
    }
}
