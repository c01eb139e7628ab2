//! An answer as it arrives: in server-sent events, or in one object.
//!
//! What an event or the object means is the dialect's ([`Tell`]); how bytes become either is the same for all who stream
//! named events.

use crate::dialect::{Decode, Form};
use crate::event::Event;
use crate::lines::{self, LONGEST, Sse};

/// A dialect's understanding of an answer, as far as it has come.
pub(super) trait Tell: Default + Send {
    /// Takes an event in.
    fn event(&mut self, name: &str, json: &str, each: &mut dyn FnMut(Event));

    /// Takes the whole answer in.
    fn whole(&mut self, body: &str, each: &mut dyn FnMut(Event));

    /// No event comes any more.
    fn finish(&mut self, _each: &mut dyn FnMut(Event)) {}
}

/// An answer being read.
#[derive(Debug)]
pub(super) struct Told<T> {
    form: Form,
    sse: Sse,
    /// The whole answer, for the form that comes in one piece.
    body: Body,
    answer: T,
}

impl<T: Tell> Told<T> {
    pub(super) fn new(form: Form) -> Self {
        Self { form, sse: Sse::default(), body: Body::default(), answer: T::default() }
    }
}

impl<T: Tell> Decode for Told<T> {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event)) {
        match self.form {
            Form::Stream => self.sse.push(bytes, &mut |name, json| self.answer.event(name, json, each)),
            Form::Whole => self.body.push(bytes),
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(Event)) {
        match self.form {
            Form::Stream => {
                self.sse.end(&mut |name, json| self.answer.event(name, json, each));
                self.answer.finish(each);
            }
            Form::Whole => self.answer.whole(&self.body.take(), each),
        }
    }
}

/// An answer that comes in one piece, held until all of it is there.
#[derive(Debug, Default)]
struct Body {
    bytes: Vec<u8>,
    overlong: bool,
}

impl Body {
    /// Takes bytes in. Past [`LONGEST`] all of it is given up: an answer with a hole must not be read.
    fn push(&mut self, bytes: &[u8]) {
        self.overlong |= self.bytes.len() + bytes.len() > LONGEST;
        if self.overlong {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// What came.
    fn take(&mut self) -> String {
        lines::text(&std::mem::take(&mut self.bytes)).into_owned()
    }
}
