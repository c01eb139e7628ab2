//! An answer, decoded.

use super::NAME;
use super::request::arguments;
use crate::dialect::Tell;
use crate::dialect::json::{
    JsonFields, add, all, call_extra, grow, kept, list, number, object, opaque, rest, said, tell, text,
};
use crate::event::ModelEvent;
use crate::lines::SseSplitter;
use komado_core::journal::Usage;
use komado_core::message::CallKind;
use komado_core::raw::{RawJson, RawObject};

/// An answer, as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct MessagesDecoder {
    /// Blocks that are not whole, by their index.
    pieces: Vec<(u64, ContentBlock)>,
    calls: usize,
    usage: Usage,
    stop: Option<String>,
}

impl Tell for MessagesDecoder {
    type Pieces = SseSplitter;

    fn piece(&mut self, name: &str, json: &str, _is_last: bool, each: &mut dyn FnMut(ModelEvent)) {
        let Ok(event) = RawObject::parse(json) else { return };
        let index = number(&event, "index").unwrap_or_default();
        match text(&event, "type").as_deref().unwrap_or(name) {
            "message_start" => {
                let Some(message) = object(&event, "message") else { return };
                each(ModelEvent::Begun { id: text(&message, "id"), model: text(&message, "model") });
                self.count(&message, each);
            }
            "content_block_start" => {
                let Some(block) = object(&event, "content_block") else { return };
                self.close(index, each);
                let piece = ContentBlock::begin(&block, &mut self.calls, each);
                self.pieces.push((index, piece));
            }
            "content_block_delta" => {
                let piece = self.pieces.iter_mut().find(|(known, _)| *known == index);
                if let (Some((_, piece)), Some(delta)) = (piece, object(&event, "delta")) {
                    piece.take(&delta, each);
                }
            }
            "content_block_stop" => self.close(index, each),
            "message_delta" => {
                let reason = object(&event, "delta").and_then(|delta| text(&delta, "stop_reason"));
                self.stop = reason.or(self.stop.take());
                self.count(&event, each);
            }
            "message_stop" => {
                self.stop.get_or_insert_with(|| "end_turn".into());
                self.finish(each);
            }
            "ping" => {}
            // An error by name, or one in another API's shape.
            "error" => each(ModelEvent::failed(json)),
            _ if event.get("error").is_some() => each(ModelEvent::failed(json)),
            _ => {}
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(ModelEvent)) {
        let Ok(message) = RawObject::parse(body) else { return };
        if message.get("content").is_none() {
            if message.get("error").is_some() || text(&message, "type").as_deref() == Some("error") {
                each(ModelEvent::failed(body));
            }
            return;
        }
        each(ModelEvent::Begun { id: text(&message, "id"), model: text(&message, "model") });
        for block in list(&message, "content") {
            if let Ok(block) = RawObject::parse(block) {
                ContentBlock::begin(&block, &mut self.calls, each).end(each);
            }
        }
        self.count(&message, each);
        self.stop = Some(text(&message, "stop_reason").unwrap_or_else(|| "end_turn".into()));
        self.finish(each);
    }

    // The reason is the last thing said; the event after it only says goodbye, and may be missing.
    fn finish(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        let Some(reason) = self.stop.take() else { return };
        std::mem::take(&mut self.pieces).into_iter().for_each(|(_, piece)| piece.end(each));
        each(ModelEvent::Finished(heard_reason(reason)));
    }
}

impl MessagesDecoder {
    fn close(&mut self, index: u64, each: &mut dyn FnMut(ModelEvent)) {
        if let Some(at) = self.pieces.iter().position(|(known, _)| *known == index) {
            self.pieces.remove(at).1.end(each);
        }
    }

    /// What is told later is told in sum, so it replaces; what is not told again stays.
    fn count(&mut self, holder: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let Some(told) = object(holder, "usage") else { return };
        let Usage { input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens } = &mut self.usage;
        for (key, place) in [
            ("input_tokens", input_tokens),
            ("output_tokens", output_tokens),
            ("cache_creation_input_tokens", cache_creation_tokens),
            ("cache_read_input_tokens", cache_read_tokens),
        ] {
            *place = number(&told, key).unwrap_or(*place);
        }
        each(ModelEvent::Usage(self.usage));
    }
}

fn heard_reason(reason: String) -> String {
    match reason.as_str() {
        "end_turn" => "stop".into(),
        "max_tokens" => "length".into(),
        "tool_use" => "tool_calls".into(),
        _ => reason,
    }
}

// The blocks of an answer, from their first piece to their last.

/// A block that is not whole yet.
#[derive(Debug)]
pub(super) enum ContentBlock {
    /// Words; the fields beside them are told at the end.
    Text { is_said: bool, fields: JsonFields },
    /// A thought.
    Thinking,
    /// A call; `input` is what the block began with, for a model that sends no pieces of it.
    Call { index: usize, input: String, is_said: bool },
    /// Anything else: handed on when it is whole.
    Other { fields: JsonFields, input: String },
}

impl ContentBlock {
    /// Begins a block. `calls` counts the calls so far.
    pub(super) fn begin(block: &RawObject<'_>, calls: &mut usize, each: &mut dyn FnMut(ModelEvent)) -> Self {
        match text(block, "type").as_deref() {
            Some("text") => {
                let first = said(block, "text");
                let is_said = first.is_some();
                tell(first.map(ModelEvent::Text), each);
                Self::Text { is_said, fields: rest(block, &["type", "text"]) }
            }
            Some("thinking") => {
                tell(said(block, "thinking").map(ModelEvent::Reasoning), each);
                tell(said(block, "signature").map(ModelEvent::Signature), each);
                Self::Thinking
            }
            Some("tool_use") => {
                let index = *calls;
                *calls += 1;
                let word = |key: &str| text(block, key).unwrap_or_default();
                each(ModelEvent::Call {
                    index,
                    id: word("id"),
                    name: word("name"),
                    kind: CallKind::Function,
                });
                let extra = call_extra(&rest(block, &["type", "id", "name", "input"]), NAME);
                tell(extra.map(|json| ModelEvent::CallExtra { index, json }), each);
                let input = block.get("input").map_or_else(|| "{}".into(), arguments);
                Self::Call { index, input, is_said: false }
            }
            _ => Self::Other { fields: all(block), input: String::new() },
        }
    }

    /// Takes the next piece in.
    pub(super) fn take(&mut self, delta: &RawObject<'_>, each: &mut dyn FnMut(ModelEvent)) {
        let kind = text(delta, "type").unwrap_or_default();
        match (self, kind.as_str()) {
            (Self::Text { is_said, .. }, "text_delta") => {
                let words = said(delta, "text");
                *is_said |= words.is_some();
                tell(words.map(ModelEvent::Text), each);
            }
            (Self::Text { fields, .. } | Self::Other { fields, .. }, "citations_delta") => {
                if let Some(citation) = delta.get("citation") {
                    add(fields, "citations", citation.get());
                }
            }
            (Self::Thinking, "thinking_delta") => {
                tell(said(delta, "thinking").map(ModelEvent::Reasoning), each);
            }
            (Self::Thinking, "signature_delta") => {
                tell(said(delta, "signature").map(ModelEvent::Signature), each);
            }
            (Self::Call { index, is_said, .. }, "input_json_delta") => {
                let more = said(delta, "partial_json");
                *is_said |= more.is_some();
                tell(more.map(|text| ModelEvent::Arguments { index: *index, text }), each);
            }
            (Self::Other { input, .. }, "input_json_delta") => {
                input.push_str(&text(delta, "partial_json").unwrap_or_default());
            }
            (Self::Other { fields, .. }, _) => {
                let told = delta.0.iter().filter(|(key, _)| key != "type");
                told.for_each(|(key, value)| grow(fields, key, value.get()));
            }
            _ => {}
        }
    }

    /// The block is whole.
    pub(super) fn end(self, each: &mut dyn FnMut(ModelEvent)) {
        match self {
            Self::Text { is_said, fields } => {
                // Fields without words would be taken for those of the text before.
                each(ModelEvent::PartDone(if is_said { kept(&fields, NAME) } else { None }));
            }
            Self::Thinking => each(ModelEvent::PartDone(None)),
            Self::Call { is_said: true, .. } => {}
            Self::Call { index, input, .. } => each(ModelEvent::Arguments { index, text: input }),
            Self::Other { mut fields, input } => {
                if RawJson::parse(input.as_str()).is_ok() {
                    fields.put("input", input);
                }
                let whole = RawJson::parse(fields.json()).ok();
                tell(whole.map(|json| ModelEvent::Part(opaque(NAME, json))), each);
            }
        }
    }
}
