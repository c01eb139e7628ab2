//! An answer, decoded.

use super::piece::Piece;
use crate::dialect::json::{list, number, object, text};
use crate::dialect::told::Tell;
use crate::event::Event;
use crate::lines::Sse;
use komado_core::journal::Usage;
use komado_core::raw::Object;

/// An answer, as far as it has come.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Answer {
    /// Blocks that are not whole, by their index.
    pieces: Vec<(u64, Piece)>,
    calls: usize,
    usage: Usage,
    stop: Option<String>,
    done: bool,
}

impl Tell for Answer {
    type Pieces = Sse;

    fn piece(&mut self, name: &str, json: &str, _is_last: bool, each: &mut dyn FnMut(Event)) {
        let Ok(event) = Object::parse(json) else { return };
        if self.done {
            return;
        }
        let index = number(&event, "index").unwrap_or_default();
        match text(&event, "type").as_deref().unwrap_or(name) {
            "message_start" => {
                let Some(message) = object(&event, "message") else { return };
                each(Event::Begun { id: text(&message, "id"), model: text(&message, "model") });
                self.count(&message, each);
            }
            "content_block_start" => {
                let Some(block) = object(&event, "content_block") else { return };
                self.close(index, each);
                let piece = Piece::begin(&block, &mut self.calls, each);
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
            "error" => self.fail(json, each),
            _ if event.get("error").is_some() => self.fail(json, each),
            _ => {}
        }
    }

    fn whole(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        let Ok(message) = Object::parse(body) else { return };
        if message.get("content").is_none() {
            if message.get("error").is_some() || text(&message, "type").as_deref() == Some("error") {
                self.fail(body, each);
            }
            return;
        }
        each(Event::Begun { id: text(&message, "id"), model: text(&message, "model") });
        for block in list(&message, "content") {
            if let Ok(block) = Object::parse(block) {
                Piece::begin(&block, &mut self.calls, each).end(each);
            }
        }
        self.count(&message, each);
        self.stop = Some(text(&message, "stop_reason").unwrap_or_else(|| "end_turn".into()));
        self.finish(each);
    }

    // The reason is the last thing said; the event after it only says goodbye, and may be missing.
    fn finish(&mut self, each: &mut dyn FnMut(Event)) {
        let Some(reason) = self.stop.take().filter(|_| !self.done) else { return };
        std::mem::take(&mut self.pieces).into_iter().for_each(|(_, piece)| piece.end(each));
        each(Event::Finished(heard_reason(reason)));
        self.done = true;
    }
}

impl Answer {
    fn close(&mut self, index: u64, each: &mut dyn FnMut(Event)) {
        if let Some(at) = self.pieces.iter().position(|(known, _)| *known == index) {
            self.pieces.remove(at).1.end(each);
        }
    }

    /// What is told later is told in sum, so it replaces; what is not told again stays.
    fn count(&mut self, holder: &Object<'_>, each: &mut dyn FnMut(Event)) {
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
        each(Event::Usage(self.usage));
    }

    fn fail(&mut self, body: &str, each: &mut dyn FnMut(Event)) {
        each(Event::failed(body));
        self.done = true;
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
