//! What the chunks of an answer say.
//!
//! A whole answer is read as one chunk whose message is its delta: the fields are the same. Why the model stopped is
//! held back until nothing more can come, because the usage stands behind it.

use super::calls::{Calls, Given};
use super::{thought, usage};
use crate::dialect::json::{kept, list, number, object, objects, opaque, rest, said, tell, text};
use crate::dialect::told::Tell;
use crate::dialect::tools::fields::Fields;
use crate::event::Event;
use crate::lines::{LONGEST, Sse};
use komado_core::journal::Usage;
use komado_core::openai::DIALECT;
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;

/// The fields of a delta that are understood.
const KNOWN: [&str; 7] =
    ["role", "content", "refusal", "tool_calls", "function_call", "reasoning", thought::FIELD];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Answer {
    begun: bool,
    /// True when thoughts came in the field that wants them back.
    marked: bool,
    refusal: String,
    calls: Calls,
    usage: Option<Usage>,
    finish: Option<String>,
    /// True when it failed or finished; nothing after that counts.
    over: bool,
}

impl Tell for Answer {
    type Pieces = Sse;
    const GUESSES: bool = true;

    fn piece(&mut self, name: &str, data: &str, is_last: bool, each: &mut dyn FnMut(Event)) {
        let understood = (is_last || name != "error") && self.data(data.trim(), each);
        if !understood && !is_last {
            self.fail(data, each);
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        let chosen = Object::parse(body)
            .is_ok_and(|object| object.get("error").is_some() || first_choice(&object).is_some());
        if self.over || chosen && self.chunk(body, Given::Whole, each) {
            self.done(each);
        } else {
            self.fail(body, each);
        }
        self.finish(each);
    }

    fn overlong(&mut self, each: &mut dyn FnMut(Event)) {
        self.fail(&format!("the answer is longer than {LONGEST} bytes"), each);
    }

    /// Nothing more comes. An answer that never said why it stopped did not finish.
    fn finish(&mut self, each: &mut dyn FnMut(Event)) {
        if self.over {
            return;
        }
        let refused = !self.refusal.is_empty();
        if refused {
            let mut fields = Fields::default();
            fields.say("refusal", &std::mem::take(&mut self.refusal));
            tell(kept(&fields, DIALECT).map(Event::Extra), each);
        }
        if let Some(why) = self.finish.take() {
            self.calls.close(each);
            each(Event::Finished(self.word(&why, refused)));
            self.over = true;
        }
    }
}

impl Answer {
    /// Takes the data of one event in. False when it is nothing known.
    fn data(&mut self, data: &str, each: &mut dyn FnMut(Event)) -> bool {
        match data {
            "[DONE]" if !self.over => self.done(each),
            _ => return self.over || data.is_empty() || self.chunk(data, Given::InPieces, each),
        }
        true
    }

    /// Takes a chunk in. False when it is no JSON object.
    fn chunk(&mut self, json: &str, given: Given, each: &mut dyn FnMut(Event)) -> bool {
        let Ok(chunk) = Object::parse(json) else { return false };
        let choice = first_choice(&chunk);
        if is_error(&chunk, choice.as_ref()) {
            self.fail(json, each);
            return true;
        }
        self.begin(&chunk, choice.is_some(), each);
        self.count(&chunk, choice.as_ref(), each);
        if let Some(choice) = choice {
            let delta = choice.get("delta").or_else(|| choice.get("message"));
            if let Some(delta) = delta.and_then(|delta| Object::parse(delta.get()).ok()) {
                self.delta(&delta, given, each);
            }
            self.finish = said(&choice, "finish_reason").or(self.finish.take());
        }
        true
    }

    /// The provider gave up.
    fn fail(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.over, true) {
            each(Event::failed(body));
        }
    }

    /// The server says that this was all.
    fn done(&mut self, each: &mut dyn FnMut(Event)) {
        if self.begun && self.finish.is_none() {
            self.finish = Some("stop".into());
        }
        self.finish(each);
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
        let (id, model) = (said(chunk, "id"), said(chunk, "model"));
        if !self.begun && (says || id.is_some() || model.is_some()) {
            self.begun = true;
            each(Event::Begun { id, model });
        }
    }

    /// Usage stands in the last chunk, in every chunk, or in a corner of the server's own.
    fn count(&mut self, chunk: &Object<'_>, choice: Option<&Object<'_>>, each: &mut dyn FnMut(Event)) {
        let at = |object: &Object<'_>| object.get("usage").and_then(|json| usage::read(json.get()));
        let corner = || object(chunk, "x_groq").as_ref().and_then(at);
        let found = at(chunk).or_else(corner).or_else(|| choice.and_then(at));
        if let Some(usage) = found.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            each(Event::Usage(usage));
        }
    }

    fn delta(&mut self, delta: &Object<'_>, given: Given, each: &mut dyn FnMut(Event)) {
        self.thoughts(delta, each);
        match delta.get("content").map(RawValue::get) {
            Some(content) if content.starts_with('[') => parts(delta, each),
            _ => tell(said(delta, "content").map(Event::Text), each),
        }
        self.refusal.push_str(&text(delta, "refusal").unwrap_or_default());
        list(delta, "tool_calls").into_iter().for_each(|call| self.calls.take(call, given, each));
        if let Some(call) = delta.get("function_call") {
            // The old way: one call, never a second, without an id.
            self.calls.take(&format!("{{\"index\":0,\"function\":{}}}", call.get()), Given::InPieces, each);
        }
        tell(kept(&rest(delta, &KNOWN), DIALECT).map(Event::Extra), each);
    }

    fn thoughts(&mut self, delta: &Object<'_>, each: &mut dyn FnMut(Event)) {
        if let Some(words) = said(delta, thought::FIELD) {
            each(Event::Reasoning(words));
            let mark = thought::mark().filter(|_| !std::mem::replace(&mut self.marked, true));
            tell(mark.map(Event::Extra), each);
        } else {
            tell(said(delta, "reasoning").map(Event::Reasoning), each);
        }
    }
}

/// The first choice; others were not asked for.
fn first_choice<'a>(chunk: &Object<'a>) -> Option<Object<'a>> {
    objects(chunk, "choices").find(|choice| number(choice, "index").unwrap_or(0) == 0)
}

fn is_error(chunk: &Object<'_>, choice: Option<&Object<'_>>) -> bool {
    let told = |object: &Object<'_>, key: &str| {
        object.get("error").is_some() || text(object, key).as_deref() == Some("error")
    };
    told(chunk, "object") || choice.is_some_and(|choice| told(choice, "finish_reason"))
}

/// Content as a list of parts, as Mistral's thinking models send it.
fn parts(delta: &Object<'_>, each: &mut dyn FnMut(Event)) {
    for json in list(delta, "content") {
        let Ok(part) = Object::parse(json) else { continue };
        let event = match text(&part, "type").as_deref() {
            Some("text") => said(&part, "text").map(Event::Text),
            Some("thinking") => thought_within(&part).map(Event::Reasoning),
            _ => Raw::parse(json).ok().map(|json| Event::Part(opaque(DIALECT, json))),
        };
        tell(event, each);
    }
}

/// What a part thinks: a text, or a list of them.
fn thought_within(part: &Object<'_>) -> Option<String> {
    let pieces = || objects(part, "thinking").filter_map(|piece| text(&piece, "text")).collect();
    said(part, "thinking").or_else(|| Some(pieces()).filter(|words: &String| !words.is_empty()))
}
