//! An answer of chat completions, from events to bytes, as OpenAI itself would send it.
//!
//! What has no place in this API (a seal on a thought, parts of other dialects) is left out.

use super::{fault, thought, usage};
use crate::dialect::parting::Parting;
use crate::dialect::tools::fields::{Fields, list, quoted};
use crate::dialect::{Encode, Form, Stamp};
use crate::event::Event;
use crate::heard::Heard;
use komado_core::message::{Call, CallKind, Opaque, Part};
use komado_core::openai::DIALECT;

/// Encodes an answer.
#[derive(Debug)]
pub struct Encoder {
    form: Form,
    stamp: Stamp,
    heard: Heard,
    /// The index of each call in the events, in the order of the wire.
    calls: Vec<(usize, CallKind)>,
    /// True when the first chunk is out.
    begun: bool,
    refused: bool,
    failed: bool,
    parting: Parting,
    /// Calls so far.
    made: usize,
}

impl Encoder {
    /// An encoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: Form, stamp: Stamp) -> Self {
        Self {
            form,
            stamp,
            heard: Heard::default(),
            calls: Vec::new(),
            begun: false,
            refused: false,
            failed: false,
            parting: Parting::default(),
            made: 0,
        }
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Some(event) = self.parting.told(event) else { return };
        let named = self.named(&event);
        let event = named.as_ref().unwrap_or(&event);
        self.note(event);
        match (self.form, event) {
            (_, Event::Failed(failed)) => {
                self.failed = true;
                self.line(&fault::body(failed), out);
            }
            (Form::Whole, _) => self.heard.take(event),
            (Form::Stream, _) => self.stream(event, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        match self.form {
            Form::Whole => self.line(&self.whole(), out),
            Form::Stream => {
                if let Some(usage) = self.heard.usage.filter(|_| self.stamp.usage) {
                    let mut chunk = self.frame("chat.completion.chunk");
                    chunk.put("choices", "[]");
                    chunk.put("usage", usage::write(&usage));
                    self.line(&chunk.json(), out);
                }
                self.line("[DONE]", out);
            }
        }
    }
}

impl Encoder {
    /// A call that came without an id, with one: a client pairs by it.
    fn named(&mut self, event: &Event) -> Option<Event> {
        let Event::Call { index, id, name, kind } = event else { return None };
        self.made += 1;
        let id = if id.is_empty() { format!("call_{}", self.made - 1) } else { return None };
        Some(Event::Call { index: *index, id, name: name.clone(), kind: *kind })
    }

    /// Remembers what later bytes depend on.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Begun { .. } | Event::Usage(_) if self.form == Form::Stream => self.heard.take(event),
            Event::Extra(extra) => self.refused |= own(extra).is_some_and(|f| f.get("refusal").is_some()),
            _ => {}
        }
    }

    fn line(&self, json: &str, out: &mut Vec<u8>) {
        match self.form {
            Form::Whole => out.extend_from_slice(json.as_bytes()),
            Form::Stream => out.extend_from_slice(format!("data: {json}\n\n").as_bytes()),
        }
    }

    fn frame(&self, object: &str) -> Fields {
        let mut fields = Fields::default();
        match &self.heard.id {
            Some(id) => fields.say("id", id),
            None => fields.say("id", &format!("chatcmpl-{}", self.stamp.created)),
        }
        fields.say("object", object);
        fields.put("created", self.stamp.created.to_string());
        fields.say("model", self.heard.model.as_deref().unwrap_or_default());
        fields
    }

    fn chunk(&self, delta: &Fields, finish: Option<&str>, out: &mut Vec<u8>) {
        let mut choice = Fields::default();
        choice.put("index", "0");
        choice.put("delta", delta.json());
        choice.put("logprobs", "null");
        choice.put("finish_reason", finish.map_or_else(|| "null".into(), quoted));
        let mut chunk = self.frame("chat.completion.chunk");
        chunk.put("choices", list([choice.json().as_str()]));
        if self.stamp.usage {
            chunk.put("usage", "null");
        }
        self.line(&chunk.json(), out);
    }

    fn stream(&mut self, event: &Event, out: &mut Vec<u8>) {
        let (delta, finish) = match event {
            Event::Finished(why) => (Fields::default(), Some(self.word(why))),
            // The first chunk says who speaks; everything else waits for it.
            Event::Begun { .. } => (Fields::default(), None),
            _ => match self.delta(event) {
                Some(delta) => (delta, None),
                None => return,
            },
        };
        if !std::mem::replace(&mut self.begun, true) {
            let mut first = Fields::default();
            first.say("role", "assistant");
            first.say("content", "");
            self.chunk(&first, None, out);
        }
        if finish.is_some() || !delta.is_empty() {
            self.chunk(&delta, finish.as_deref(), out);
        }
    }

    /// What one event changes; `None` when this API has no word for it.
    fn delta(&mut self, event: &Event) -> Option<Fields> {
        let mut delta = Fields::default();
        match event {
            Event::Text(text) => delta.say("content", text),
            Event::Reasoning(text) => delta.say(thought::FIELD, text),
            Event::Part(part) if part.dialect == DIALECT => {
                delta.put("content", list([part.json.get()]));
            }
            Event::Extra(extra) => {
                // Thoughts were told as they came; what is left of them here is where they stood.
                delta = own(extra)?;
                delta.take(thought::FIELD);
            }
            Event::Call { index, id, name, kind } => {
                self.calls.push((*index, *kind));
                let at = self.calls.len() - 1;
                let mut call = Fields::default();
                call.put("index", at.to_string());
                put_call(&mut call, id, name, "", *kind);
                delta.put("tool_calls", list([call.json().as_str()]));
            }
            Event::Arguments { index, text } => {
                let (at, kind) = self.place(*index)?;
                let (holder, argument) = words(kind);
                let mut inner = Fields::default();
                inner.say(argument, text);
                delta.put("tool_calls", format!("[{{\"index\":{at},\"{holder}\":{}}}]", inner.json()));
            }
            Event::CallExtra { index, json } => {
                let mut call = Fields::default();
                call.put("index", self.place(*index)?.0.to_string());
                Fields::of(json.get()).iter().for_each(|(key, value)| call.put(key, value));
                delta.put("tool_calls", list([call.json().as_str()]));
            }
            _ => return None,
        }
        Some(delta)
    }

    fn place(&self, index: usize) -> Option<(usize, CallKind)> {
        let at = self.calls.iter().rposition(|(known, _)| *known == index)?;
        Some((at, self.calls[at].1))
    }

    /// OpenAI's word for why the model stopped.
    fn word(&self, why: &str) -> String {
        match why {
            "refusal" if self.refused => "stop".into(),
            "refusal" => "content_filter".into(),
            why => why.into(),
        }
    }

    fn whole(&self) -> String {
        let mut choice = Fields::default();
        choice.put("index", "0");
        choice.put("message", self.message().json());
        choice.put("logprobs", "null");
        choice.put("finish_reason", quoted(&self.word(self.heard.finish.as_deref().unwrap_or("stop"))));
        let mut answer = self.frame("chat.completion");
        answer.put("choices", list([choice.json().as_str()]));
        if let Some(usage) = &self.heard.usage {
            answer.put("usage", usage::write(usage));
        }
        answer.json()
    }

    fn message(&self) -> Fields {
        let heard = self.heard.message();
        let parts = heard.as_ref().map_or(&[][..], |message| &message.parts);
        let mut message = Fields::default();
        message.say("role", "assistant");
        message.put("content", content(parts));
        message.put("refusal", "null");
        if let Some(words) = thought::words(parts) {
            message.say(thought::FIELD, &words);
        }
        let calls: Vec<String> = parts.iter().filter_map(call).collect();
        if !calls.is_empty() {
            message.put("tool_calls", list(calls.iter().map(String::as_str)));
        }
        let extra = heard.as_ref().and_then(|message| own(message.extra.as_ref()?)).unwrap_or_default();
        let kept = extra.iter().filter(|(key, _)| *key != thought::FIELD);
        kept.for_each(|(key, value)| message.put(key, value));
        message
    }
}

/// The fields of `extra` that are this dialect's.
fn own(extra: &Opaque) -> Option<Fields> {
    (extra.dialect == DIALECT).then(|| Fields::of(extra.json.get()))
}

/// All words as one text, which is what clients expect; a list only where there are parts that are no words.
fn content(parts: &[Part]) -> String {
    let odd = |part: &Part| matches!(part, Part::Opaque(opaque) if opaque.dialect == DIALECT);
    let texts = || {
        parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
    };
    if parts.iter().any(odd) {
        let shown: Vec<String> = parts.iter().filter_map(content_part).collect();
        return list(shown.iter().map(String::as_str));
    }
    if texts().next().is_none() {
        return "null".into();
    }
    quoted(&texts().collect::<String>())
}

fn content_part(part: &Part) -> Option<String> {
    match part {
        Part::Text { text, .. } => Some(format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text))),
        Part::Opaque(opaque) if opaque.dialect == DIALECT => Some(opaque.json.get().to_owned()),
        _ => None,
    }
}

fn call(part: &Part) -> Option<String> {
    let Part::Call(Call { id, name, arguments, kind, extra }) = part else { return None };
    let mut call = Fields::default();
    put_call(&mut call, id, name, arguments, *kind);
    if let Some(extra) = extra {
        Fields::of(extra.get()).iter().for_each(|(key, value)| call.put(key, value));
    }
    Some(call.json())
}

fn put_call(call: &mut Fields, id: &str, name: &str, arguments: &str, kind: CallKind) {
    let (holder, argument) = words(kind);
    let mut inner = Fields::default();
    inner.say("name", name);
    inner.say(argument, arguments);
    call.say("id", id);
    call.say("type", holder);
    call.put(holder, inner.json());
}

const fn words(kind: CallKind) -> (&'static str, &'static str) {
    match kind {
        CallKind::Function => ("function", "arguments"),
        CallKind::Custom => ("custom", "input"),
    }
}
