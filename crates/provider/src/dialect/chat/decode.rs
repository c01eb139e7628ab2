//! What the chunks of an answer say.
//!
//! A whole answer is read as one chunk whose message is its delta: the fields are the same. Why the model stopped is
//! held back until nothing more can come, because the usage stands behind it.

use super::request;
use crate::dialect::Tell;
use crate::dialect::json::{JsonFields, kept, list, number, object, objects, opaque, rest, said, tell, text};
use crate::event::ModelEvent;
use crate::lines::{LONGEST, SseSplitter};
use komado_core::journal::Usage;
use komado_core::message::CallKind;
use komado_core::openai::DIALECT;
use komado_core::raw::{RawJson, RawObject};
use serde_json::value::RawValue;

/// The fields of a delta that are understood.
const KNOWN: [&str; 7] =
    ["role", "content", "refusal", "tool_calls", "function_call", "reasoning", request::FIELD];

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct ChatDecoder {
    begun: bool,
    /// True when thoughts came in the field that wants them back.
    marked: bool,
    refusal: String,
    calls: ChatCalls,
    usage: Option<Usage>,
    finish: Option<String>,
}

impl Tell for ChatDecoder {
    type Pieces = SseSplitter;
    const GUESSES: bool = true;

    fn piece(&mut self, name: &str, data: &str, is_last: bool, each: &mut dyn FnMut(ModelEvent)) {
        let understood = (is_last || name != "error") && self.data(data.trim(), each);
        if !understood && !is_last {
            each(ModelEvent::failed(data));
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(ModelEvent)) {
        let chosen = RawObject::parse(body)
            .is_ok_and(|object| object.get("error").is_some() || first_choice(&object).is_some());
        if chosen && self.chunk(body, CallForm::Whole, each) {
            self.done(each);
        } else {
            each(ModelEvent::failed(body));
        }
        self.finish(each);
    }

    fn overlong(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        each(ModelEvent::failed(&format!("the answer is longer than {LONGEST} bytes")));
    }

    /// Nothing more comes. An answer that never said why it stopped did not finish.
    fn finish(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        let refused = !self.refusal.is_empty();
        if refused {
            let mut fields = JsonFields::default();
            fields.say("refusal", &std::mem::take(&mut self.refusal));
            tell(kept(&fields, DIALECT).map(ModelEvent::Extra), each);
        }
        if let Some(why) = self.finish.take() {
            self.calls.close(each);
            each(ModelEvent::Finished(self.word(&why, refused)));
        }
    }
}

impl ChatDecoder {
    /// Takes the data of one event in. False when it is nothing known.
    fn data(&mut self, data: &str, each: &mut dyn FnMut(ModelEvent)) -> bool {
        match data {
            "[DONE]" => self.done(each),
            _ => return data.is_empty() || self.chunk(data, CallForm::InPieces, each),
        }
        true
    }

    /// Takes a chunk in. False when it is not a JSON object.
    fn chunk(&mut self, json: &str, given: CallForm, each: &mut dyn FnMut(ModelEvent)) -> bool {
        let Ok(chunk) = RawObject::parse(json) else { return false };
        let choice = first_choice(&chunk);
        if is_error(&chunk, choice.as_ref()) {
            each(ModelEvent::failed(json));
            return true;
        }
        self.begin(&chunk, choice.is_some(), each);
        self.count(&chunk, choice.as_ref(), each);
        if let Some(choice) = choice {
            let delta = choice.get("delta").or_else(|| choice.get("message"));
            if let Some(delta) = delta.and_then(|delta| RawObject::parse(delta.get()).ok()) {
                self.delta(&delta, given, each);
            }
            self.finish = said(&choice, "finish_reason").or(self.finish.take());
        }
        true
    }

    /// The server says that this was all.
    fn done(&mut self, each: &mut dyn FnMut(ModelEvent)) {
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

    fn begin(&mut self, chunk: &RawObject<'_>, says: bool, each: &mut dyn FnMut(ModelEvent)) {
        let (id, model) = (said(chunk, "id"), said(chunk, "model"));
        if !self.begun && (says || id.is_some() || model.is_some()) {
            self.begun = true;
            each(ModelEvent::Begun { id, model });
        }
    }

    /// Usage stands in the last chunk, in every chunk, or in a corner of the server's own.
    fn count(
        &mut self,
        chunk: &RawObject<'_>,
        choice: Option<&RawObject<'_>>,
        each: &mut dyn FnMut(ModelEvent),
    ) {
        let at = |object: &RawObject<'_>| object.get("usage").and_then(|json| read_usage(json.get()));
        let corner = || object(chunk, "x_groq").as_ref().and_then(at);
        let found = at(chunk).or_else(corner).or_else(|| choice.and_then(at));
        if let Some(usage) = found.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            each(ModelEvent::Usage(usage));
        }
    }

    fn delta(&mut self, delta: &RawObject<'_>, given: CallForm, each: &mut dyn FnMut(ModelEvent)) {
        self.thoughts(delta, each);
        match delta.get("content").map(RawValue::get) {
            Some(content) if content.starts_with('[') => parts(delta, each),
            _ => tell(said(delta, "content").map(ModelEvent::Text), each),
        }
        self.refusal.push_str(&text(delta, "refusal").unwrap_or_default());
        list(delta, "tool_calls").into_iter().for_each(|call| self.calls.take(call, given, each));
        if let Some(call) = delta.get("function_call") {
            // The old way: one call, never a second, without an id.
            self.calls.take(
                &format!("{{\"index\":0,\"function\":{}}}", call.get()),
                CallForm::InPieces,
                each,
            );
        }
        tell(kept(&rest(delta, &KNOWN), DIALECT).map(ModelEvent::Extra), each);
    }

    fn thoughts(&mut self, delta: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        if let Some(words) = said(delta, request::FIELD) {
            each(ModelEvent::Reasoning(words));
            let mark = request::mark().filter(|_| !std::mem::replace(&mut self.marked, true));
            tell(mark.map(ModelEvent::Extra), each);
        } else {
            tell(said(delta, "reasoning").map(ModelEvent::Reasoning), each);
        }
    }
}

/// The first choice; others were not asked for.
fn first_choice<'a>(chunk: &RawObject<'a>) -> Option<RawObject<'a>> {
    objects(chunk, "choices").find(|choice| number(choice, "index").unwrap_or(0) == 0)
}

fn is_error(chunk: &RawObject<'_>, choice: Option<&RawObject<'_>>) -> bool {
    let told = |object: &RawObject<'_>, key: &str| {
        object.get("error").is_some() || text(object, key).as_deref() == Some("error")
    };
    told(chunk, "object") || choice.is_some_and(|choice| told(choice, "finish_reason"))
}

/// Content as a list of parts, as Mistral's thinking models send it.
fn parts(delta: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
    for json in list(delta, "content") {
        let Ok(part) = RawObject::parse(json) else { continue };
        let event = match text(&part, "type").as_deref() {
            Some("text") => said(&part, "text").map(ModelEvent::Text),
            Some("thinking") => thought_within(&part).map(ModelEvent::Reasoning),
            _ => RawJson::parse(json).ok().map(|json| ModelEvent::Part(opaque(DIALECT, json))),
        };
        tell(event, each);
    }
}

/// What a part thinks: a text, or a list of them.
fn thought_within(part: &RawObject<'_>) -> Option<String> {
    let pieces = || objects(part, "thinking").filter_map(|piece| text(&piece, "text")).collect();
    said(part, "thinking").or_else(|| Some(pieces()).filter(|words: &String| !words.is_empty()))
}

// Calls, put together from the pieces that a stream brings.
//
// By the book a piece names its call by `index`, and only the first piece has id and name. Servers repeat both, send
// no index, or send every whole call with index 0; so a piece is held to belong to a call unless something says that
// it cannot.

/// Whether calls come in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallForm {
    /// Each element is a piece.
    InPieces,
    /// Each element is a call.
    Whole,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct ChatCalls {
    slots: Vec<Piece>,
}

/// One element of `tool_calls`, or all of those that are one call.
#[derive(Debug, Default)]
struct Piece {
    /// The index the server gave it, which need not be its place.
    index: Option<u64>,
    id: String,
    name: String,
    kind: CallKind,
    arguments: String,
    extra: JsonFields,
    announced: bool,
}

impl ChatCalls {
    /// True when no call was made.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes one element of `tool_calls` in.
    pub(super) fn take(&mut self, json: &str, given: CallForm, each: &mut dyn FnMut(ModelEvent)) {
        let Ok(object) = RawObject::parse(json) else { return };
        let piece = read_piece(&object);
        let at = match given {
            CallForm::InPieces => self.place(&piece),
            CallForm::Whole => None,
        };
        let index = at.unwrap_or_else(|| {
            self.slots.push(Piece { index: piece.index, kind: piece.kind, ..Piece::default() });
            self.slots.len() - 1
        });
        self.add(index, piece, given, each);
    }

    /// No more comes: a call that never got all it needs is told as far as it is known.
    pub(super) fn close(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        (0..self.slots.len()).for_each(|index| self.announce(index, each));
    }

    /// Which call a piece belongs to; `None` when it begins one.
    fn place(&self, piece: &Piece) -> Option<usize> {
        let fits = |slot: &Piece| piece.index.is_none() || slot.index == piece.index;
        if !piece.id.is_empty() {
            if let Some(at) = self.slots.iter().position(|slot| fits(slot) && slot.id == piece.id) {
                return Some(at);
            }
            // An id that comes after the name belongs to the call that has none.
            let waits =
                |slot: &Piece| slot.id.is_empty() && slot.arguments.is_empty() && piece.name.is_empty();
            return self.slots.iter().rposition(|slot| piece.index.is_some() && fits(slot) && waits(slot));
        }
        let at = self.slots.iter().rposition(fits)?;
        let slot = &self.slots[at];
        let another = !piece.name.is_empty() && !slot.name.is_empty() && is_whole(&slot.arguments);
        let begins = piece.name != slot.name || piece.arguments.trim_start().starts_with('{');
        (!(another && begins)).then_some(at)
    }

    fn add(&mut self, index: usize, piece: Piece, given: CallForm, each: &mut dyn FnMut(ModelEvent)) {
        let slot = &mut self.slots[index];
        if slot.id.is_empty() {
            slot.id = piece.id;
        }
        if slot.name.is_empty() {
            slot.name = piece.name;
        }
        slot.arguments.push_str(&piece.arguments);
        let known = !slot.id.is_empty() || !slot.arguments.is_empty() || given == CallForm::Whole;
        let more = !piece.extra.is_empty();
        piece.extra.iter().for_each(|(key, value)| slot.extra.put(key, value));
        if !slot.announced {
            if known && (!slot.name.is_empty() || given == CallForm::Whole) {
                self.announce(index, each);
            }
            return;
        }
        if !piece.arguments.is_empty() {
            each(ModelEvent::Arguments { index, text: piece.arguments });
        }
        if more {
            tell_extra(index, slot, each);
        }
    }

    fn announce(&mut self, index: usize, each: &mut dyn FnMut(ModelEvent)) {
        if self.slots[index].announced {
            return;
        }
        let slot = &mut self.slots[index];
        slot.announced = true;
        // One that came without an id gets it where it is kept: only there is it known which are taken.
        each(ModelEvent::Call { index, id: slot.id.clone(), name: slot.name.clone(), kind: slot.kind });
        if !slot.arguments.is_empty() {
            each(ModelEvent::Arguments { index, text: slot.arguments.clone() });
        }
        if !slot.extra.is_empty() {
            tell_extra(index, slot, each);
        }
    }
}

fn tell_extra(index: usize, slot: &Piece, each: &mut dyn FnMut(ModelEvent)) {
    if let Ok(json) = RawJson::parse(slot.extra.json()) {
        each(ModelEvent::CallExtra { index, json });
    }
}

fn read_piece(call: &RawObject<'_>) -> Piece {
    let custom = call.get("custom").filter(|_| call.get("function").is_none());
    let kind = if custom.is_some() { CallKind::Custom } else { CallKind::Function };
    let (holder, argument) = kind.fields();
    let inner = object(call, holder).unwrap_or(RawObject(Vec::new()));
    let mut extra = JsonFields::default();
    for (key, value) in call.0.iter().filter(|(_, value)| value.get() != "null") {
        if !["index", "id", "type", "function", "custom"].contains(&key.as_ref()) {
            extra.put(key, value.get());
        }
    }
    // A string by the book; some servers send an object instead.
    let unquoted = |json: &RawValue| json.get().to_owned();
    let arguments = text(&inner, argument).or_else(|| inner.get(argument).map(unquoted));
    Piece {
        index: number(call, "index"),
        id: text(call, "id").unwrap_or_default(),
        name: text(&inner, "name").unwrap_or_default(),
        kind,
        arguments: arguments.unwrap_or_default(),
        extra,
        announced: false,
    }
}

fn is_whole(arguments: &str) -> bool {
    RawObject::parse(arguments).is_ok()
}

// Tokens, as chat completions count them.
//
// OpenAI counts what came from the cache among the prompt's tokens; we keep the two apart, so that the four numbers
// of a usage add up to the total. Some servers leave the model's thoughts out of what it wrote but not out of the
// total; then the total is believed.

/// Reads a `usage` object; `None` when it counts nothing.
pub(super) fn read_usage(json: &str) -> Option<Usage> {
    let usage = RawObject::parse(json).ok()?;
    let details = object(&usage, "prompt_tokens_details");
    let detail = |key: &str| details.as_ref().and_then(|details| number(details, key));
    let (prompt, completion) = (number(&usage, "prompt_tokens"), number(&usage, "completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let hit = detail("cached_tokens").or_else(|| number(&usage, "prompt_cache_hit_tokens")).unwrap_or(0);
    let cache_read_tokens = hit.min(prompt);
    let made = detail("cache_write_tokens").or_else(|| detail("cache_creation_tokens")).unwrap_or(0);
    let cache_creation_tokens = made.min(prompt - cache_read_tokens);
    let total = number(&usage, "total_tokens").unwrap_or(0);
    Some(Usage {
        input_tokens: prompt - cache_read_tokens - cache_creation_tokens,
        output_tokens: completion.max(total.saturating_sub(prompt)),
        cache_creation_tokens,
        cache_read_tokens,
    })
}

/// Writes a `usage` object.
pub(super) fn write_usage(usage: &Usage) -> String {
    let prompt = usage.total() - usage.output_tokens;
    let written = match usage.cache_creation_tokens {
        0 => String::new(),
        tokens => format!(",\"cache_write_tokens\":{tokens}"),
    };
    format!(
        "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{},\"total_tokens\":{},\
         \"prompt_tokens_details\":{{\"cached_tokens\":{}{written}}}}}",
        usage.output_tokens,
        usage.total(),
        usage.cache_read_tokens
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(json: &str) -> [u64; 4] {
        let u = read_usage(json).unwrap();
        [u.input_tokens, u.output_tokens, u.cache_creation_tokens, u.cache_read_tokens]
    }

    #[test]
    fn the_four_numbers_add_up_to_the_total_for_any_provider() {
        let openai = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}"#;
        assert_eq!(four(openai), [36, 20, 0, 64]);
        let gemini = r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}"#;
        assert_eq!(four(gemini), [10, 30, 0, 0]);
        let deepseek = r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}"#;
        assert_eq!(four(deepseek), [2, 5, 0, 8]);
        let openrouter = r#"{"prompt_tokens":10.0,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}"#;
        assert_eq!(four(openrouter), [3, 5, 4, 3]);
        assert_eq!(four(r#"{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}"#), [0, 0, 0, 1]);
        assert_eq!(read_usage(r#"{"prompt_tokens":null}"#), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let usage =
            Usage { input_tokens: 3, output_tokens: 5, cache_creation_tokens: 7, cache_read_tokens: 11 };
        assert_eq!(read_usage(&write_usage(&usage)), Some(usage));
    }
}
