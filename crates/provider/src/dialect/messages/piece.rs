//! The blocks of an answer, from their first piece to their last.

use super::NAME;
use super::block::arguments;
use crate::dialect::json::{add, all, call_extra, grow, kept, opaque, rest, said, tell, text};
use crate::dialect::tools::fields::Fields;
use crate::event::Event;
use komado_core::message::CallKind;
use komado_core::raw::{Object, Raw};

/// A block that is not whole yet.
#[derive(Debug)]
pub(super) enum Piece {
    /// Words; the fields beside them are told at the end.
    Text { is_said: bool, fields: Fields },
    /// A thought.
    Thinking,
    /// A call; `input` is what the block began with, for a model that sends no pieces of it.
    Call { index: usize, input: String, is_said: bool },
    /// Anything else: handed on when it is whole.
    Other { fields: Fields, input: String },
}

impl Piece {
    /// Begins a block. `calls` counts the calls so far.
    pub(super) fn begin(block: &Object<'_>, calls: &mut usize, each: &mut dyn FnMut(Event)) -> Self {
        match text(block, "type").as_deref() {
            Some("text") => {
                let first = said(block, "text");
                let is_said = first.is_some();
                tell(first.map(Event::Text), each);
                Self::Text { is_said, fields: rest(block, &["type", "text"]) }
            }
            Some("thinking") => {
                tell(said(block, "thinking").map(Event::Reasoning), each);
                tell(said(block, "signature").map(Event::Signature), each);
                Self::Thinking
            }
            Some("tool_use") => {
                let index = *calls;
                *calls += 1;
                let word = |key: &str| text(block, key).unwrap_or_default();
                each(Event::Call { index, id: word("id"), name: word("name"), kind: CallKind::Function });
                let extra = call_extra(&rest(block, &["type", "id", "name", "input"]), NAME);
                tell(extra.map(|json| Event::CallExtra { index, json }), each);
                let input = block.get("input").map_or_else(|| "{}".into(), arguments);
                Self::Call { index, input, is_said: false }
            }
            _ => Self::Other { fields: all(block), input: String::new() },
        }
    }

    /// Takes the next piece in.
    pub(super) fn take(&mut self, delta: &Object<'_>, each: &mut dyn FnMut(Event)) {
        let kind = text(delta, "type").unwrap_or_default();
        match (self, kind.as_str()) {
            (Self::Text { is_said, .. }, "text_delta") => {
                let words = said(delta, "text");
                *is_said |= words.is_some();
                tell(words.map(Event::Text), each);
            }
            (Self::Text { fields, .. } | Self::Other { fields, .. }, "citations_delta") => {
                if let Some(citation) = delta.get("citation") {
                    add(fields, "citations", citation.get());
                }
            }
            (Self::Thinking, "thinking_delta") => {
                tell(said(delta, "thinking").map(Event::Reasoning), each);
            }
            (Self::Thinking, "signature_delta") => {
                tell(said(delta, "signature").map(Event::Signature), each);
            }
            (Self::Call { index, is_said, .. }, "input_json_delta") => {
                let more = said(delta, "partial_json");
                *is_said |= more.is_some();
                tell(more.map(|text| Event::Arguments { index: *index, text }), each);
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
    pub(super) fn end(self, each: &mut dyn FnMut(Event)) {
        match self {
            Self::Text { is_said, fields } => {
                // Fields without words would be taken for those of the text before.
                each(Event::PartDone(if is_said { kept(&fields, NAME) } else { None }));
            }
            Self::Thinking => each(Event::PartDone(None)),
            Self::Call { is_said: true, .. } => {}
            Self::Call { index, input, .. } => each(Event::Arguments { index, text: input }),
            Self::Other { mut fields, input } => {
                if Raw::parse(input.as_str()).is_ok() {
                    fields.put("input", input);
                }
                let whole = Raw::parse(fields.json()).ok();
                tell(whole.map(|json| Event::Part(opaque(NAME, json))), each);
            }
        }
    }
}
