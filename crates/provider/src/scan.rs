//! A request, skimmed: where everything stands in it, and a running digest over its transcript.
//!
//! One pass over the bytes as they arrive; nothing of them is held. What is known already is recognised by its digest and
//! never read again; only what is new is read for good, from the places noted here. The digest is over what an element
//! says: spaces, cache marks and thoughts that clients drop do not change it (`skim/element.rs` says what does).

mod digest;
mod json;
mod references;
mod request;

pub use references::{ReferenceScanner, References};

use crate::dialect::{BadRequest, Dialect};
use json::JsonScanner;
use request::RequestWatch;
use std::ops::Range;

/// Who an element of a transcript is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementAuthor {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model: words, calls, thoughts.
    Model,
    /// A tool's answer (also a user's message that holds some, in Anthropic's dialect).
    Tool,
    /// Something that only its dialect knows.
    Other,
}

/// One element of a transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TranscriptElement {
    /// Where it stands in the body.
    pub span: Range<u64>,
    /// Whose it is.
    pub by: ElementAuthor,
    /// Running digest of the transcript up to and with it, 128 bits.
    pub digest: [u8; 16],
}

/// A field of the request itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestField {
    /// Its name.
    pub key: String,
    /// Where its value stands.
    pub span: Range<u64>,
    /// True when its value is a list or an object that holds something; not said of the transcript.
    pub filled: bool,
}

/// A request, skimmed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScannedRequest {
    /// How it is written.
    pub dialect: Dialect,
    /// Its length.
    pub len: u64,
    /// Every field, in order; of two with one name both.
    pub fields: Vec<RequestField>,
    /// The elements of the transcript (`messages`, or `input`; an input that is a text is one element).
    pub elements: Vec<TranscriptElement>,
    /// The model.
    pub model: Option<String>,
    /// True when the answer is to come in pieces, as the dialect understands a missing word.
    pub stream: bool,
    /// `previous_response_id`, where it has one.
    pub previous: Option<String>,
}

impl ScannedRequest {
    /// Where the value of a field stands.
    pub fn field(&self, key: &str) -> Option<Range<u64>> {
        self.fields.iter().rev().find(|field| field.key == key).map(|field| field.span.clone())
    }

    /// Where the list of elements stands, brackets included; for an input that is a text, where that stands.
    pub fn list(&self) -> Option<Range<u64>> {
        self.field(self.list_name())
    }

    /// What the list of elements is called.
    const fn list_name(&self) -> &'static str {
        match self.dialect {
            Dialect::Responses => "input",
            Dialect::Chat | Dialect::Messages | Dialect::Ollama => "messages",
        }
    }

    /// True when the request offers tools.
    pub fn has_tools(&self) -> bool {
        ["tools", "functions"].iter().any(|key| self.fills(key))
    }

    /// True when a field is a list or an object that holds something.
    pub fn fills(&self, key: &str) -> bool {
        self.fields.iter().rev().find(|field| field.key == key).is_some_and(|field| field.filled)
    }

    /// The running digest over the first `elements` of the transcript, as text.
    pub fn digest(&self, elements: usize) -> Option<String> {
        let element = self.elements.get(elements.checked_sub(1)?)?;
        Some(element.digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Skims a request as it arrives.
///
/// Of a field that stands twice the last one counts, as for every JSON reader: a second transcript replaces the first.
#[derive(Debug)]
pub struct RequestScanner {
    scanner: JsonScanner,
    request: RequestWatch,
}

impl RequestScanner {
    /// For a request in `dialect`. Digests of requests with different salts have nothing in common.
    pub fn new(dialect: Dialect, salt: &[u8]) -> Self {
        Self { scanner: JsonScanner::default(), request: RequestWatch::new(dialect, salt) }
    }

    /// Takes bytes in, cut anywhere. An error names the byte at which this is not a request any more; nothing is to be
    /// pushed after one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        self.scanner.push(bytes, &mut self.request)
    }

    /// No more comes. A body that is not one JSON object is an error, and so is one without a transcript, where the API
    /// wants one: a response may lean on the server's memory, and Ollama loads a model when nothing is said.
    pub fn end(self) -> Result<ScannedRequest, BadRequest> {
        let len = self.scanner.end()?;
        self.request.end(len)
    }
}
