//! An answer of Ollama's chat, from bytes to events.

use super::said::Said;
use crate::dialect::{Decode, Form};
use crate::event::Event;
use crate::lines::{self, LONGEST, Lines};

/// Decodes an answer.
#[derive(Debug)]
pub struct Decoder {
    body: Body,
    said: Said,
}

#[derive(Debug)]
enum Body {
    Stream(Lines),
    Whole(Vec<u8>),
}

impl Decoder {
    /// A decoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: Form) -> Self {
        let body = match form {
            Form::Stream => Body::Stream(Lines::default()),
            Form::Whole => Body::Whole(Vec::new()),
        };
        Self { body, said: Said::default() }
    }
}

impl Decode for Decoder {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event)) {
        let said = &mut self.said;
        match &mut self.body {
            Body::Stream(lines) => lines.push(bytes, &mut |line| {
                let text = lines::text(line);
                if !text.trim().is_empty() && !said.line(&text, each) {
                    said.fail(&text, each);
                }
            }),
            Body::Whole(held) if held.len() + bytes.len() <= LONGEST => held.extend_from_slice(bytes),
            Body::Whole(held) => {
                held.clear();
                said.fail(&format!("the answer is longer than {LONGEST} bytes"), each);
            }
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(Event)) {
        let said = &mut self.said;
        match &mut self.body {
            // Half a line means that the answer was cut, and that is all there is to say.
            Body::Stream(lines) => lines.end(&mut |line| {
                let _ = said.line(&lines::text(line), each);
            }),
            Body::Whole(held) => {
                let text = lines::text(held);
                if !said.whole(&text, each) {
                    said.fail(&text, each);
                }
                held.clear();
            }
        }
    }
}
