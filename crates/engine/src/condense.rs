//! From a span that is about to leave the view to the text that will stand in its place.
//!
//! Which span leaves is decided elsewhere, and the edit is appended elsewhere; here the words are written. Whoever
//! writes them is exchangeable: a [`Summariser`] gets one text and gives one back. The default, [`ByDigest`], needs
//! no model. [`compose`] reads the span message by message, hands it over in parts that fit the summariser's own
//! window, checks what came back, and returns the texts or a [`Declined`] with numbers.
//!
//! It refuses to touch the conversation. It gets no handle that could append, so neither its question nor the answer
//! can ever become part of what it summarises, and a failure leaves everything as it was.

use komado_core::Meter;
use komado_core::digest::{Digest, Fact};
use komado_core::journal::{Setup, Show, Usage};
use komado_core::message::Message;

mod answer;
mod chunk;
mod command;
mod compose;
mod cut;
mod declined;
mod frame;
mod language;
mod leaving;
mod marker;
#[cfg(feature = "client")]
mod model;
mod prompt;
mod render;
mod retain;
mod settings;

pub use answer::{Parsed, parse};
pub use command::Command;
pub use compose::compose;
pub(crate) use compose::{Goal, write};
pub(crate) use cut::{prefix as cut_prefix, split as cut_split};
pub use declined::Declined;
pub use language::Language;
#[cfg(feature = "client")]
pub use model::ByModel;
pub use settings::{Reach, Settings};

/// Writes a summary. It blocks, like the store.
pub trait Summariser {
    /// The model's name, for the cause of the edit; `digest` when there is none.
    fn name(&self) -> &str;

    /// How many tokens it takes, question and answer together; `None` when it does not matter.
    ///
    /// Without a bound the span is still handed over in parts of a million tokens, so that memory stays flat.
    fn window(&self) -> Option<u64>;

    /// True when nobody waits for its answers any more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What it is given.
    fn reads(&self) -> Reads {
        Reads::Request
    }

    /// Answers one request.
    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure>;

    /// Answers a request that stands behind the conversation itself, for one whose provider has that in its cache; `None`
    /// when it has not, or when both together would not fit.
    fn go_on(&mut self, _talk: &dyn Transcript, _request: &Request) -> Option<Result<Answer, Failure>> {
        None
    }
}

/// The conversation up to the end of what leaves, as the model was last sent it.
pub trait Transcript {
    /// Its tokens, by the session's meter.
    fn tokens(&self) -> u64;

    /// System prompt, tools and parameters.
    fn setup(&self) -> crate::Result<Setup>;

    /// Hands on every message, one at a time.
    fn pour(&self, each: &mut dyn FnMut(&Message) -> crate::Result<()>) -> crate::Result<()>;
}

/// What a summariser is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// A [`Request`]: instructions, and the messages as the model sees them.
    Request,
    /// No request: the facts of the messages as they were said, also of those that are shown trimmed.
    Facts,
}

/// One question to a summariser. It never has tools.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The system prompt.
    pub system: Option<String>,
    /// The whole user message: instructions and messages.
    pub text: String,
    /// The longest answer that is of use.
    pub max_tokens: u64,
    /// Which part of the span this is, from 1.
    pub part: u32,
}

/// What a summariser wrote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The whole answer, tags and all.
    pub text: String,
    /// What it took.
    pub usage: Option<Usage>,
    /// The model that wrote it, when it is not the one that was asked.
    pub model: Option<String>,
}

/// Why a summariser wrote nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Failure {
    /// The reason, in its own words.
    pub why: String,
    /// What it took all the same.
    pub usage: Option<Usage>,
}

impl Failure {
    /// A failure that cost nothing.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), usage: None }
    }
}

/// The texts for an edit, and what they took.
#[derive(Clone, PartialEq, Debug)]
pub struct Composed {
    /// What is kept word for word (if anything), then the summary.
    pub show: Vec<Show>,
    /// Who wrote it.
    pub model: Option<String>,
    /// What all parts took together.
    pub usage: Option<Usage>,
    /// How many facts of the span are still told, and what else is worth knowing.
    pub note: Option<String>,
    /// In how many parts the span was read; 0 when nobody was asked.
    pub chunks: u32,
    /// Tokens of what will no longer be shown.
    pub hidden: u64,
    /// Facts of the span that the summary does not tell. The most important ones stand in the ledger under it.
    pub lost: Vec<Fact>,
}

impl Composed {
    /// Tokens of all texts together.
    pub fn tokens(&self) -> u64 {
        self.show.iter().map(|show| u64::from(show.tokens)).sum()
    }
}

/// Tells the facts of a span. The default: it costs nothing, waits for nothing and cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct ByDigest {
    meter: Meter,
}

impl ByDigest {
    /// Counts tokens with `meter`.
    pub fn new(meter: Meter) -> Self {
        Self { meter }
    }
}

impl Summariser for ByDigest {
    fn name(&self) -> &str {
        "digest"
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn reads(&self) -> Reads {
        Reads::Facts
    }

    /// Nobody sends it a request where facts can be had; asked all the same, it tells those of the request.
    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure> {
        let mut digest = Digest::new(self.meter);
        digest.earlier(&request.text);
        Ok(Answer { text: digest.text(request.max_tokens), ..Answer::default() })
    }
}
