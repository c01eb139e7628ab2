//! The blocks of an answer, from their first piece to their last.

use super::NAME;
use super::block::arguments;
use crate::dialect::json::{add, all, call_extra, grow, kept, opaque, rest, text};
use crate::dialect::tools::fields::Fields;
use crate::event::Event;
use komado_core::message::CallKind;
use komado_core::raw::{Object, Raw};

/// A block that is not whole yet.
#[derive(Debug)]
pub(super) enum Piece {
    /// Words; the fields beside them are told at the end.
    Text { said: bool, fields: Fields },
    /// A thought.
    Thinking,
    /// A call; `input` is what the block began with, for a model that sends no pieces of it.
    Call { index: usize, input: String, said: bool },
    /// Anything else: handed on when it is whole.
    Other { fields: Fields, input: String },
}

impl Piece {
    /// Begins a block. `calls` counts the calls so far.
    pub(super) fn begin(block: &Object<'_>, calls: &mut usize, each: &mut dyn FnMut(Event)) -> Self {
        let words = |key: &str| text(block, key).filter(|words| !words.is_empty());
        match text(block, "type").as_deref() {
            Some("text") => {
                let first = words("text");
                let said = first.is_some();
                first.into_iter().for_each(|text| each(Event::Text(text)));
                Self::Text { said, fields: rest(block, &["type", "text"]) }
            }
            Some("thinking") => {
                words("thinking").into_iter().for_each(|text| each(Event::Reasoning(text)));
                words("signature").into_iter().for_each(|seal| each(Event::Signature(seal)));
                Self::Thinking
            }
            Some("tool_use") => {
                let index = *calls;
                *calls += 1;
                let (id, name) = (words("id").unwrap_or_default(), words("name").unwrap_or_default());
                each(Event::Call { index, id, name, kind: CallKind::Function });
                let fields = rest(block, &["type", "id", "name", "input"]);
                if let Some(json) = call_extra(&fields, NAME) {
                    each(Event::CallExtra { index, json });
                }
                let input = block.get("input").map_or_else(|| "{}".into(), arguments);
                Self::Call { index, input, said: false }
            }
            _ => Self::Other { fields: all(block), input: String::new() },
        }
    }

    /// Takes the next piece in.
    pub(super) fn take(&mut self, delta: &Object<'_>, each: &mut dyn FnMut(Event)) {
        let words = |key: &str| text(delta, key).filter(|words| !words.is_empty());
        let kind = text(delta, "type").unwrap_or_default();
        match (self, kind.as_str()) {
            (Self::Text { said, .. }, "text_delta") => {
                if let Some(text) = words("text") {
                    *said = true;
                    each(Event::Text(text));
                }
            }
            (Self::Text { fields, .. } | Self::Other { fields, .. }, "citations_delta") => {
                if let Some(citation) = delta.get("citation") {
                    add(fields, "citations", citation.get());
                }
            }
            (Self::Thinking, "thinking_delta") => {
                words("thinking").into_iter().for_each(|text| each(Event::Reasoning(text)));
            }
            (Self::Thinking, "signature_delta") => {
                words("signature").into_iter().for_each(|seal| each(Event::Signature(seal)));
            }
            (Self::Call { index, said, .. }, "input_json_delta") => {
                if let Some(text) = words("partial_json") {
                    *said = true;
                    each(Event::Arguments { index: *index, text });
                }
            }
            (Self::Other { input, .. }, "input_json_delta") => {
                input.push_str(&words("partial_json").unwrap_or_default());
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
            Self::Text { said, fields } => {
                // Fields without words would be taken for those of the text before.
                each(Event::PartDone(if said { kept(&fields, NAME) } else { None }));
            }
            Self::Thinking => each(Event::PartDone(None)),
            Self::Call { said: true, .. } => {}
            Self::Call { index, input, .. } => each(Event::Arguments { index, text: input }),
            Self::Other { mut fields, input } => {
                if Raw::parse(input.as_str()).is_ok() {
                    fields.put("input", input);
                }
                if let Ok(json) = Raw::parse(fields.json()) {
                    each(Event::Part(opaque(NAME, json)));
                }
            }
        }
    }
}
