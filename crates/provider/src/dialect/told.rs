//! An answer as it arrives: in pieces, or in one object.
//!
//! What a piece or the object means is the dialect's ([`Tell`]); how bytes become either is the same for all.

use crate::dialect::{Decode, Form};
use crate::event::Event;
use crate::lines::{self, LONGEST, Lines, Sse};

/// A dialect's understanding of an answer, as far as it has come.
pub(super) trait Tell: Default + Send {
    /// How its stream is cut into pieces.
    type Pieces: Pieces;

    /// True when a stream that begins like an object is taken for one: some servers send one all the same.
    const GUESSES: bool = false;

    /// Takes a piece in: an event with its name, or a line. The last one may be half of one, because the answer was cut.
    fn piece(&mut self, name: &str, data: &str, is_last: bool, each: &mut dyn FnMut(Event));

    /// Takes the whole answer in.
    fn whole(&mut self, body: &str, each: &mut dyn FnMut(Event));

    /// The answer is longer than is taken in.
    fn overlong(&mut self, _each: &mut dyn FnMut(Event)) {}

    /// No piece comes any more.
    fn finish(&mut self, _each: &mut dyn FnMut(Event)) {}
}

/// Cuts a stream into pieces, each with its name, which may be empty.
pub(super) trait Pieces: Default + Send {
    /// Takes bytes in.
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str));

    /// No more comes.
    fn end(&mut self, each: &mut dyn FnMut(&str, &str));
}

impl Pieces for Sse {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str)) {
        self.push(bytes, each);
    }

    fn end(&mut self, each: &mut dyn FnMut(&str, &str)) {
        self.end(each);
    }
}

impl Pieces for Lines {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str)) {
        self.push(bytes, &mut |line| each("", &lines::text(line)));
    }

    fn end(&mut self, each: &mut dyn FnMut(&str, &str)) {
        self.end(&mut |line| each("", &lines::text(line)));
    }
}

/// An answer being read.
pub(super) struct Told<T: Tell> {
    body: Body<T::Pieces>,
    answer: T,
}

enum Body<P> {
    /// Nothing but white space came yet, and it is not known which it is.
    Unknown,
    Stream(P),
    /// Held until all of it is there; `None` when it was too long: an answer with a hole must not be read.
    Whole(Option<Vec<u8>>),
}

impl<T: Tell> Told<T> {
    pub(super) fn new(form: Form) -> Self {
        let body = match form {
            Form::Whole => Body::Whole(Some(Vec::new())),
            Form::Stream if T::GUESSES => Body::Unknown,
            Form::Stream => Body::Stream(T::Pieces::default()),
        };
        Self { body, answer: T::default() }
    }

    fn settle(&mut self, bytes: &[u8]) {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (&self.body, first) {
            (Body::Unknown, Some(b'{' | b'[')) => self.body = Body::Whole(Some(Vec::new())),
            (Body::Unknown, Some(_)) => self.body = Body::Stream(T::Pieces::default()),
            _ => {}
        }
    }
}

impl<T: Tell> Decode for Told<T> {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event)) {
        self.settle(bytes);
        let answer = &mut self.answer;
        match &mut self.body {
            Body::Unknown | Body::Whole(None) => {}
            Body::Stream(pieces) => {
                pieces.push(bytes, &mut |name, data| answer.piece(name, data, false, each));
            }
            Body::Whole(Some(held)) if held.len() + bytes.len() <= LONGEST => held.extend_from_slice(bytes),
            Body::Whole(held) => {
                *held = None;
                answer.overlong(each);
            }
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(Event)) {
        let answer = &mut self.answer;
        match &mut self.body {
            Body::Unknown => {}
            Body::Stream(pieces) => {
                pieces.end(&mut |name, data| answer.piece(name, data, true, each));
                answer.finish(each);
            }
            Body::Whole(held) => answer.whole(&lines::text(&held.take().unwrap_or_default()), each),
        }
    }
}
