//! How each API writes a request and an answer; pure, both ways, no sockets.
//!
//! Four halves for each dialect: a request is written ([`Dialect::writer`]) and read ([`Dialect::read`]), an answer is
//! decoded ([`Dialect::decoder`]) and encoded ([`Dialect::encoder`]). What a dialect does not know it keeps and gives
//! back to the same dialect, byte for byte; to another dialect it says nothing of it.

use crate::ask::{Ask, Asked, BadRequest};
use crate::event::Event;
use komado_core::message::{Call, Message};
use komado_core::openai::Blobs;
use std::io::{self, Write};
pub use tail::Tail;
use told::Told;

pub mod chat;
mod json;
pub mod messages;
pub mod ollama;
mod parting;
pub mod responses;
mod tail;
mod told;
mod tools;

/// An API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions, and everyone who speaks like them.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Ollama's chat.
    Ollama,
}

komado_core::names! {
    /// Its name in settings, and in what is kept for it alone.
    Dialect {
        Chat = komado_core::openai::DIALECT, Responses = "responses", Messages = "anthropic",
        Ollama = "ollama",
    }
}

/// In one piece or in many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Server-sent events, or a line of JSON for each piece.
    Stream,
    /// One JSON object.
    Whole,
}

impl Dialect {
    /// Begins a request; what stands before the messages is written to `out`.
    pub fn writer(self, ask: &Ask<'_>, out: &mut dyn Write) -> io::Result<Box<dyn WriteRequest>> {
        Ok(match self {
            Self::Chat => Box::new(chat::Writer::begin(ask, out)?),
            Self::Responses => Box::new(responses::Writer::begin(ask, out)?),
            Self::Messages => Box::new(messages::Writer::begin(ask, out)?),
            Self::Ollama => Box::new(ollama::Writer::begin(ask, out)?),
        })
    }

    /// Reads a request.
    pub fn read(self, body: &str) -> Result<Asked, BadRequest> {
        match self {
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Ollama => ollama::read(body),
        }
    }

    /// Reads elements of a transcript that follow on others, as JSON texts. `open` are the calls made before them that
    /// wait for an answer, in order: without them some dialects cannot tell what an answer answers.
    pub fn read_elements(self, elements: &[&str], open: &[Call]) -> Result<Tail, BadRequest> {
        tail::read(self, elements, open)
    }

    /// Like [`Self::read_elements`], for elements that are to be written again next to others of the same transcript: where
    /// they do not name a call by an id, it has none here either.
    pub fn read_told(self, elements: &[&str], open: &[Call]) -> Result<Tail, BadRequest> {
        tail::read_told(self, elements, open)
    }

    /// Writes messages as elements of a transcript, comma between them, as they stand in a request. Neighbours are
    /// joined where the dialect wants it, and a system message is an element like any other.
    pub fn write_elements(self, messages: &[Message], blobs: &mut dyn Blobs) -> io::Result<Vec<u8>> {
        tail::write(self, messages, blobs)
    }

    /// The tools of `setup` as a JSON array in this dialect's form; `None` when it names none that this one knows.
    pub fn tools(self, setup: &komado_core::journal::Setup) -> Option<String> {
        tools::tools(setup, self)
    }

    /// Decodes an answer.
    pub fn decoder(self, form: Form) -> Box<dyn Decode> {
        match self {
            Self::Chat => Box::new(Told::<chat::Answer>::new(form)),
            Self::Responses => Box::new(Told::<responses::Answer>::new(form)),
            Self::Messages => Box::new(Told::<messages::Answer>::new(form)),
            Self::Ollama => Box::new(Told::<ollama::Said>::new(form)),
        }
    }

    /// Encodes an answer.
    pub fn encoder(self, form: Form, stamp: Stamp) -> Box<dyn Encode> {
        match self {
            Self::Chat => Box::new(chat::Encoder::new(form, stamp)),
            Self::Responses => Box::new(responses::Encoder::new(form, stamp)),
            Self::Messages => Box::new(messages::Encoder::new(form, stamp)),
            Self::Ollama => Box::new(ollama::Encoder::new(form, stamp)),
        }
    }
}

/// What an answer carries that its events do not: it comes from outside, because codecs have neither clock nor chance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Seconds since 1970.
    pub created: u64,
    /// The same as RFC 3339, for those who write it so.
    pub created_at: String,
    /// True when the client asked for usage in the stream (`stream_options.include_usage`); others always give it.
    pub usage: bool,
}

/// A request being written, a message at a time; no two messages are held.
pub trait WriteRequest: Send {
    /// Writes the next message. Neighbours are joined where the dialect wants it.
    fn message(&mut self, message: &Message, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()>;

    /// Writes what stands after the messages.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// An answer being read, however its bytes are cut.
pub trait Decode: Send {
    /// Takes bytes in and hands on the events that are now whole.
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Event));

    /// No more comes: hands on what is left. Whether the answer was whole is to be seen from [`Event::Finished`].
    fn end(&mut self, each: &mut dyn FnMut(Event));
}

/// An answer being written.
///
/// It may be made of several answers, one after the other: a second [`Event::Begun`] says that the next one comes. The
/// client sees one, with the first one's id; what is open is closed, and indexes go on. Of [`Event::Usage`] and
/// [`Event::Finished`] only the last answer's are to be told.
pub trait Encode: Send {
    /// Adds the bytes of one event to `out`.
    fn event(&mut self, event: &Event, out: &mut Vec<u8>);

    /// Adds what stands at the end. Only for an answer that finished: a broken one just stops.
    fn end(&mut self, out: &mut Vec<u8>);
}
