//! What a provider says, piece by piece, in words that are the same for every dialect.
//!
//! A decoder turns bytes into events, an encoder turns events into bytes, and [`Heard`](crate::Heard) adds them up to a
//! message. An event owns its words, so that it can be handed on while the next bytes arrive.

use komado_core::journal::Usage;
use komado_core::message::{CallKind, Opaque};
use komado_core::raw::Raw;

/// One piece of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The answer began.
    Begun {
        /// The answer's id, as the provider calls it.
        id: Option<String>,
        /// The model that answers, as it calls itself.
        model: Option<String>,
    },
    /// More words; they join the text before them unless an [`Event::PartDone`] came between.
    Text(String),
    /// More of what the model thinks, before it speaks.
    Reasoning(String),
    /// The seal on the thought that just ended.
    Signature(String),
    /// A call begins.
    Call {
        /// Which one; its arguments name it by this.
        index: usize,
        /// Pairs it with its result; empty when the provider gives none.
        id: String,
        /// The tool.
        name: String,
        /// Function or custom.
        kind: CallKind,
    },
    /// More of a call's arguments, as the model writes them.
    Arguments {
        /// Which call.
        index: usize,
        /// The next piece of text.
        text: String,
    },
    /// Fields of a call that only its dialect knows, as one JSON object.
    CallExtra {
        /// Which call.
        index: usize,
        /// The fields.
        json: Raw,
    },
    /// A whole part that only its dialect understands.
    Part(Opaque),
    /// The part before it is whole; with fields beside a text that only its dialect knows.
    PartDone(Option<Opaque>),
    /// Fields of the message that only its dialect knows, as one JSON object. A later one adds to it: lists grow, other
    /// values are replaced.
    Extra(Opaque),
    /// What it took so far; a later one replaces it.
    Usage(Usage),
    /// The model stopped: `stop`, `length`, `tool_calls`, `content_filter`, `refusal`, or the provider's own word.
    Finished(String),
    /// The provider gave up, after its answer had begun.
    Failed(Failed),
}

/// An error in place of an answer, or in the middle of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// The HTTP status; 200 inside a stream.
    pub status: u16,
    /// The whole body, or the event's own JSON.
    pub body: String,
}

impl Event {
    /// The provider gave up in the middle of an answer, and said `body`.
    pub(crate) fn failed(body: &str) -> Self {
        Self::Failed(Failed { status: 200, body: body.to_owned() })
    }

    /// True when a person would see something of it: from here on an answer cannot be taken back.
    pub fn is_content(&self) -> bool {
        !matches!(self, Self::Begun { .. } | Self::Usage(_) | Self::Failed(_) | Self::Finished(_))
    }
}
