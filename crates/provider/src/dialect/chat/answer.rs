//! What the chunks of an answer say.
//!
//! A whole answer is read as one chunk whose message is its delta: the fields are the same. Why the model stopped is
//! held back until nothing more can come, because the usage stands behind it.

use super::calls::{Calls, Given};
use super::{thought, usage};
use crate::dialect::tools::fields::{Fields, quoted};
use crate::event::{Event, Failed};
use komado_core::journal::Usage;
use komado_core::message::Opaque;
use komado_core::openai::DIALECT;
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;

/// The fields of a delta that are understood.
const KNOWN: [&str; 7] =
    ["role", "content", "refusal", "tool_calls", "function_call", "reasoning", thought::FIELD];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Answer {
    begun: bool,
    /// True when thoughts came in the field that wants them back.
    marked: bool,
    refusal: String,
    calls: Calls,
    usage: Option<Usage>,
    finish: Option<String>,
    /// True when it failed or finished; nothing after that counts.
    pub(super) over: bool,
}

impl Answer {
    /// Takes a chunk in. False when it is no JSON object.
    pub(super) fn chunk(&mut self, json: &str, given: Given, each: &mut dyn FnMut(Event)) -> bool {
        let Ok(chunk) = Object::parse(json) else { return false };
        let choice = first_choice(&chunk);
        let choice = choice.and_then(|choice| Object::parse(choice.get()).ok());
        if is_error(&chunk, choice.as_ref()) {
            self.fail(json, each);
            return true;
        }
        self.begin(&chunk, choice.is_some(), each);
        self.count(&chunk, choice.as_ref(), each);
        if let Some(choice) = choice {
            let said = choice.get("delta").or_else(|| choice.get("message"));
            if let Some(delta) = said.and_then(|delta| Object::parse(delta.get()).ok()) {
                self.delta(&delta, given, each);
            }
            let why: Option<String> = choice.read("finish_reason").ok().flatten();
            self.finish = why.filter(|why| !why.is_empty()).or(self.finish.take());
        }
        true
    }

    /// Takes a whole answer in. False when it is none.
    pub(super) fn whole(&mut self, json: &str, each: &mut dyn FnMut(Event)) -> bool {
        let chosen = Object::parse(json)
            .is_ok_and(|object| object.get("error").is_some() || first_choice(&object).is_some());
        chosen && self.chunk(json, Given::Whole, each)
    }

    /// The provider gave up.
    pub(super) fn fail(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.over, true) {
            each(Event::Failed(Failed { status: 200, body: body.to_owned() }));
        }
    }

    /// The server says that this was all.
    pub(super) fn done(&mut self, each: &mut dyn FnMut(Event)) {
        if self.begun && self.finish.is_none() {
            self.finish = Some("stop".into());
        }
        self.close(each);
    }

    /// Nothing more comes. An answer that never said why it stopped did not finish.
    pub(super) fn close(&mut self, each: &mut dyn FnMut(Event)) {
        if self.over {
            return;
        }
        let refused = !self.refusal.is_empty();
        if refused {
            let mut fields = Fields::default();
            fields.put("refusal", quoted(&std::mem::take(&mut self.refusal)));
            tell(&fields, each);
        }
        if let Some(why) = self.finish.take() {
            self.calls.close(each);
            each(Event::Finished(self.word(&why, refused)));
            self.over = true;
        }
    }

    /// Why the model stopped, in the words that every dialect shares; an unknown word goes on as it is.
    fn word(&self, why: &str, refused: bool) -> String {
        let word = match why {
            "stop" | "eos" | "end_turn" | "stop_sequence" => "stop",
            "length" | "max_tokens" => "length",
            "tool_calls" | "function_call" | "tool_use" => "tool_calls",
            other => other,
        };
        // Not every server that makes calls says so at the end.
        match word {
            "stop" if refused => "refusal".into(),
            "stop" if !self.calls.is_empty() => "tool_calls".into(),
            word => word.into(),
        }
    }

    fn begin(&mut self, chunk: &Object<'_>, says: bool, each: &mut dyn FnMut(Event)) {
        let text = |key: &str| chunk.read::<String>(key).ok().flatten().filter(|text| !text.is_empty());
        let (id, model) = (text("id"), text("model"));
        if !self.begun && (says || id.is_some() || model.is_some()) {
            self.begun = true;
            each(Event::Begun { id, model });
        }
    }

    /// Usage stands in the last chunk, in every chunk, or in a corner of the server's own.
    fn count(&mut self, chunk: &Object<'_>, choice: Option<&Object<'_>>, each: &mut dyn FnMut(Event)) {
        let corner = || {
            let groq = Object::parse(chunk.get("x_groq")?.get()).ok()?;
            groq.get("usage").and_then(|json| usage::read(json.get()))
        };
        let at = |object: &Object<'_>| object.get("usage").and_then(|json| usage::read(json.get()));
        let found = at(chunk).or_else(corner).or_else(|| choice.and_then(at));
        if let Some(usage) = found.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            each(Event::Usage(usage));
        }
    }

    fn delta(&mut self, delta: &Object<'_>, given: Given, each: &mut dyn FnMut(Event)) {
        self.thoughts(delta, each);
        match delta.get("content").map(RawValue::get) {
            Some(content) if content.starts_with('[') => parts(content, each),
            Some(content) => tell_text(content, each),
            None => {}
        }
        if let Some(refusal) = text(delta, "refusal") {
            self.refusal.push_str(&refusal);
        }
        let calls: Vec<&RawValue> = delta.read("tool_calls").ok().flatten().unwrap_or_default();
        calls.iter().for_each(|call| self.calls.take(call.get(), given, each));
        if let Some(call) = delta.get("function_call") {
            // The old way: one call, never a second, without an id.
            self.calls.take(&format!("{{\"index\":0,\"function\":{}}}", call.get()), Given::InPieces, each);
        }
        let mut rest = Fields::default();
        for (key, value) in delta.0.iter().filter(|(key, _)| !KNOWN.contains(&key.as_ref())) {
            if !matches!(value.get(), "null" | "[]") {
                rest.put(key, value.get());
            }
        }
        tell(&rest, each);
    }

    fn thoughts(&mut self, delta: &Object<'_>, each: &mut dyn FnMut(Event)) {
        if let Some(words) = text(delta, thought::FIELD) {
            each(Event::Reasoning(words));
            if let Some(mark) = thought::mark().filter(|_| !std::mem::replace(&mut self.marked, true)) {
                each(Event::Extra(mark));
            }
        } else if let Some(words) = text(delta, "reasoning") {
            each(Event::Reasoning(words));
        }
    }
}

/// The first choice; others were not asked for.
fn first_choice<'a>(chunk: &Object<'a>) -> Option<&'a RawValue> {
    let choices: Vec<&'a RawValue> = chunk.read("choices").ok().flatten()?;
    choices.into_iter().find(|choice| {
        let index = Object::parse(choice.get()).ok().and_then(|choice| choice.read::<u64>("index").ok());
        index.flatten().unwrap_or(0) == 0
    })
}

fn is_error(chunk: &Object<'_>, choice: Option<&Object<'_>>) -> bool {
    let word = |object: &Object<'_>, key: &str| object.read::<String>(key).ok().flatten();
    chunk.get("error").is_some()
        || word(chunk, "object").as_deref() == Some("error")
        || choice.is_some_and(|choice| {
            choice.get("error").is_some() || word(choice, "finish_reason").as_deref() == Some("error")
        })
}

/// A text that is there and says something.
fn text(object: &Object<'_>, key: &str) -> Option<String> {
    object.read::<String>(key).ok().flatten().filter(|text| !text.is_empty())
}

fn tell_text(json: &str, each: &mut dyn FnMut(Event)) {
    match serde_json::from_str::<String>(json) {
        Ok(text) if !text.is_empty() => each(Event::Text(text)),
        _ => {}
    }
}

/// Content as a list of parts, as Mistral's thinking models send it.
fn parts(json: &str, each: &mut dyn FnMut(Event)) {
    let parts: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    for part in parts {
        let Ok(object) = Object::parse(part.get()) else { continue };
        match text(&object, "type").as_deref() {
            Some("text") => object.get("text").into_iter().for_each(|text| tell_text(text.get(), each)),
            Some("thinking") => {
                Some(words_within(&object))
                    .filter(|words| !words.is_empty())
                    .map(Event::Reasoning)
                    .map(&mut *each);
            }
            _ => each(Event::Part(Opaque { dialect: DIALECT.into(), json: Raw::from_value(part) })),
        }
    }
}

fn words_within(part: &Object<'_>) -> String {
    if let Some(words) = text(part, "thinking") {
        return words;
    }
    let inner: Vec<&RawValue> = part.read("thinking").ok().flatten().unwrap_or_default();
    let words = inner.iter().filter_map(|piece| text(&Object::parse(piece.get()).ok()?, "text"));
    words.collect()
}

fn tell(fields: &Fields, each: &mut dyn FnMut(Event)) {
    if let Some(extra) = thought::opaque(fields) {
        each(Event::Extra(extra));
    }
}
