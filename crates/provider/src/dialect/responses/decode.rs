//! An answer, decoded.
//!
//! Text and arguments are handed on as they come. A thought goes out once, whole, when it is done: it is an item that
//! must come back as it was, and its summary would stand in the message twice. Not every server numbers its events or
//! sends all of them, so an item is found by its place, by its id, or by being the last, and what was not said in
//! pieces is taken from the whole.

use super::{NAME, beside, call_kind, kind, usage, words};
use crate::dialect::Tell;
use crate::dialect::json::{call_extra, list, number, object, opaque, rest, said, tell, text};
use crate::event::ModelEvent;
use crate::lines::SseSplitter;
use komado_core::message::{CallKind, Opaque};
use komado_core::raw::{RawJson, RawObject};

/// An answer, as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct ResponsesDecoder {
    begun: bool,
    named: bool,
    items: Vec<Item>,
    calls: usize,
    refused: bool,
}

/// An item that is not whole yet, or was just finished.
#[derive(Debug)]
struct Item {
    place: Option<u64>,
    id: Option<String>,
    said: Said,
}

#[derive(Debug)]
enum Said {
    /// Which part of it is being said, what was said of it, and the fields beside it once they are known.
    Message { part: u64, said: String, extra: Option<Opaque> },
    /// A call and its arguments so far.
    Call { index: usize, said: String },
    /// Anything else waits until it is whole.
    Other,
}

impl Tell for ResponsesDecoder {
    type Pieces = SseSplitter;

    fn piece(&mut self, name: &str, json: &str, _is_last: bool, each: &mut dyn FnMut(ModelEvent)) {
        let Ok(event) = RawObject::parse(json) else { return };
        let response = object(&event, "response");
        match (text(&event, "type").as_deref().unwrap_or(name), response) {
            ("response.created" | "response.in_progress", Some(response)) => self.begin(&response, each),
            (kind @ ("response.completed" | "response.incomplete"), Some(response)) => {
                self.begin(&response, each);
                self.finish(&response, &kind["response.".len()..], each);
            }
            ("error" | "response.failed", _) => each(ModelEvent::failed(json)),
            ("response.output_item.added", _) => {
                if let Some(item) = object(&event, "item") {
                    self.add(&item, number(&event, "output_index"), each);
                }
            }
            ("response.output_item.done", _) => {
                if let (Some(item), Some(raw)) = (object(&event, "item"), event.get("item")) {
                    let at = self.find(&event, Some(&item));
                    self.close(at, &item, raw.get(), each);
                }
            }
            (kind, _) if kind.ends_with(".delta") => self.delta(kind, &event, each),
            ("response.content_part.done", _) => self.part_done(&event),
            (kind, _) if !kind.starts_with("response.") && event.get("error").is_some() => {
                each(ModelEvent::failed(json));
            }
            _ => {}
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(ModelEvent)) {
        let Ok(response) = RawObject::parse(body) else { return };
        let status = text(&response, "status");
        let failed = matches!(status.as_deref(), Some("failed" | "cancelled"));
        if failed || response.get("error").is_some() {
            return each(ModelEvent::failed(body));
        }
        if response.get("output").is_none() {
            return;
        }
        self.begin(&response, each);
        self.finish(&response, status.as_deref().unwrap_or("completed"), each);
    }
}

impl ResponsesDecoder {
    fn begin(&mut self, response: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let (id, model) = (text(response, "id"), said(response, "model"));
        // Some name the model only at the end.
        if id.is_some() && (!self.begun || !self.named && model.is_some()) {
            (self.begun, self.named) = (true, model.is_some());
            each(ModelEvent::Begun { id, model });
        }
    }

    /// The item that an event speaks of.
    fn find(&self, event: &RawObject<'_>, item: Option<&RawObject<'_>>) -> Option<usize> {
        let place = number(event, "output_index");
        let id = text(event, "item_id").or_else(|| name(item?));
        let at = |same: &dyn Fn(&Item) -> bool| self.items.iter().rposition(same);
        match (place, id) {
            (Some(place), _) => at(&|item| item.place == Some(place)),
            (None, Some(id)) => at(&|item| item.id.as_ref() == Some(&id)),
            (None, None) => self.items.len().checked_sub(1),
        }
    }

    fn add(&mut self, item: &RawObject<'_>, place: Option<u64>, each: &mut dyn FnMut(ModelEvent)) -> usize {
        let kind = kind(item);
        let said = match (call_kind(&kind), kind.as_str()) {
            (Some((kind, _)), _) => {
                let index = self.calls;
                self.calls += 1;
                let word = |key: &str| text(item, key).unwrap_or_default();
                each(ModelEvent::Call { index, id: word("call_id"), name: word("name"), kind });
                Said::Call { index, said: String::new() }
            }
            (None, "message") => Said::Message { part: 0, said: String::new(), extra: None },
            _ => Said::Other,
        };
        self.items.push(Item { place, id: name(item), said });
        self.items.len() - 1
    }

    fn delta(&mut self, kind: &str, event: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let last = self.items.len().checked_sub(1);
        let Some(at) = self.find(event, None).or(last) else { return };
        let delta = text(event, "delta").unwrap_or_default();
        match (&mut self.items[at].said, kind) {
            (
                Said::Message { part, said, extra },
                "response.output_text.delta" | "response.refusal.delta",
            ) => {
                let now = number(event, "content_index").unwrap_or(*part);
                if now != *part {
                    each(ModelEvent::PartDone(extra.take()));
                    (*part, *said) = (now, String::new());
                }
                say(said, &delta, &mut |text| each(ModelEvent::Text(text)));
            }
            (
                Said::Call { index, said },
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
            ) => {
                let index = *index;
                say(said, &delta, &mut |text| each(ModelEvent::Arguments { index, text }));
            }
            _ => {}
        }
    }

    /// The fields beside a part that another one follows in the same item.
    fn part_done(&mut self, event: &RawObject<'_>) {
        let Some(at) = self.find(event, None) else { return };
        if let (Said::Message { extra, .. }, Some(part)) = (&mut self.items[at].said, object(event, "part")) {
            *extra = beside(&part, &Default::default());
        }
    }

    /// The item is whole: says what was not said in pieces.
    fn close(
        &mut self,
        at: Option<usize>,
        item: &RawObject<'_>,
        json: &str,
        each: &mut dyn FnMut(ModelEvent),
    ) {
        let at = at.unwrap_or_else(|| self.add(item, None, each));
        match &mut self.items[at].said {
            Said::Message { part, said, .. } => {
                let (part, said) = (*part, std::mem::take(said));
                self.refused |= close_message(item, part, &said, each);
            }
            Said::Call { index, said } => close_call(item, *index, said, each),
            Said::Other => {
                if let Ok(json) = RawJson::parse(json) {
                    each(ModelEvent::Part(opaque(NAME, json)));
                }
            }
        }
    }

    /// The answer is whole. What a server did not say in pieces it says here.
    fn finish(&mut self, response: &RawObject<'_>, status: &str, each: &mut dyn FnMut(ModelEvent)) {
        if self.items.is_empty() {
            for raw in list(response, "output") {
                if let Ok(item) = RawObject::parse(raw) {
                    self.close(None, &item, raw, each);
                }
            }
        }
        tell(usage(response).map(ModelEvent::Usage), each);
        let cut = object(response, "incomplete_details").and_then(|details| text(&details, "reason"));
        let reason = match (status, cut.as_deref()) {
            // Asked for in the background: there is nothing to wait for here.
            ("queued" | "in_progress", _) => return,
            ("incomplete", Some("max_output_tokens") | None) => "length",
            ("incomplete", Some(other)) => other,
            _ if self.calls > 0 => "tool_calls",
            _ if self.refused => "refusal",
            _ => "stop",
        };
        each(ModelEvent::Finished(reason.to_owned()));
    }
}

/// What events call an item; some servers give a call no id but the one it is answered by.
fn name(item: &RawObject<'_>) -> Option<String> {
    text(item, "id").or_else(|| text(item, "call_id"))
}

/// Hands on a piece and remembers it.
fn say(said: &mut String, piece: &str, each: &mut dyn FnMut(String)) {
    if !piece.is_empty() {
        said.push_str(piece);
        each(piece.to_owned());
    }
}

/// Says the parts of a message that were not said yet, of which `part` is the one begun. True when one is a refusal.
fn close_message(item: &RawObject<'_>, part: u64, said: &str, each: &mut dyn FnMut(ModelEvent)) -> bool {
    let mut fields = rest(item, &["type", "role", "content", "status", "id"]);
    let parts = list(item, "content");
    let mut refused = false;
    for (i, json) in parts.iter().enumerate().skip(usize::try_from(part).unwrap_or(0)) {
        let Ok(content) = RawObject::parse(json) else { continue };
        let Some(whole) = words(&content) else { continue };
        let before = if i as u64 == part { said } else { "" };
        if let Some(more) = whole.strip_prefix(before).filter(|more| !more.is_empty()) {
            each(ModelEvent::Text(more.to_owned()));
        }
        refused |= text(&content, "type").as_deref() == Some("refusal");
        let extra = if whole.is_empty() { None } else { beside(&content, &fields) };
        each(ModelEvent::PartDone(extra));
        fields.take("id");
    }
    refused
}

fn close_call(item: &RawObject<'_>, index: usize, said: &str, each: &mut dyn FnMut(ModelEvent)) {
    let (_, field) = call_kind(&kind(item)).unwrap_or((CallKind::Function, "arguments"));
    let whole = text(item, field).unwrap_or_default();
    if let Some(more) = whole.strip_prefix(said).filter(|more| !more.is_empty()) {
        each(ModelEvent::Arguments { index, text: more.to_owned() });
    }
    let fields = rest(item, &["type", "id", "status", "call_id", "name", field]);
    tell(call_extra(&fields, NAME).map(|json| ModelEvent::CallExtra { index, json }), each);
}
