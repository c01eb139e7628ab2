//! An answer of chat completions, from bytes to events.
//!
//! A server that was asked for a stream and sends one object all the same is understood, too.

use super::answer::Answer;
use super::calls::Given;
use crate::dialect::{Decode, Form};
use crate::event::Event;
use crate::lines::{self, LONGEST, Sse};

/// Decodes an answer.
#[derive(Debug)]
pub struct Decoder {
    body: Body,
    answer: Answer,
}

#[derive(Debug)]
enum Body {
    /// Nothing but white space came yet.
    Unknown,
    Stream(Sse),
    Whole(Vec<u8>),
}

impl Decoder {
    /// A decoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: Form) -> Self {
        let body = match form {
            Form::Stream => Body::Unknown,
            Form::Whole => Body::Whole(Vec::new()),
        };
        Self { body, answer: Answer::default() }
    }

    fn settle(&mut self, bytes: &[u8]) {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (&self.body, first) {
            (Body::Unknown, Some(b'{' | b'[')) => self.body = Body::Whole(Vec::new()),
            (Body::Unknown, Some(_)) => self.body = Body::Stream(Sse::default()),
            _ => {}
        }
    }
}

impl Decode for Decoder {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event)) {
        self.settle(bytes);
        let answer = &mut self.answer;
        match &mut self.body {
            Body::Unknown => {}
            Body::Stream(sse) => sse.push(bytes, &mut |name, data| {
                if name == "error" || !event(answer, data, each) {
                    answer.fail(data, each);
                }
            }),
            Body::Whole(held) if held.len() + bytes.len() <= LONGEST => held.extend_from_slice(bytes),
            Body::Whole(held) => {
                held.clear();
                answer.fail(&format!("the answer is longer than {LONGEST} bytes"), each);
            }
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(Event)) {
        let answer = &mut self.answer;
        match &mut self.body {
            Body::Unknown => {}
            // The last event may be half of one: then the answer was cut, and that is all there is to say.
            Body::Stream(sse) => sse.end(&mut |_, data| {
                let _ = event(answer, data, each);
            }),
            Body::Whole(held) => {
                let text = lines::text(held);
                match answer.over || answer.whole(&text, each) {
                    true => answer.done(each),
                    false => answer.fail(&text, each),
                }
                held.clear();
            }
        }
        answer.close(each);
    }
}

/// Takes the data of one event in. False when nobody knows what it says.
fn event(answer: &mut Answer, data: &str, each: &mut dyn FnMut(Event)) -> bool {
    let data = data.trim();
    if answer.over || data.is_empty() {
        return true;
    }
    if data == "[DONE]" {
        answer.done(each);
        return true;
    }
    answer.chunk(data, Given::InPieces, each)
}
