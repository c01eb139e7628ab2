//! OpenAI's responses API.
//!
//! A conversation is a list of items: messages, calls, outputs, thoughts, and whatever the API grows next. Items nobody
//! else has are kept whole at their place, with the output beside its call, so that no edit can part the two. A request
//! is `model`, `instructions`, `tools`, `input` and then everything that may change from one request to the next. It
//! refuses to lean on what the server remembers: `store` is false unless the parameters say otherwise.

mod decode;
mod encode;
mod item;
mod read;
mod write;

pub(in crate::dialect) use decode::Answer;
pub use encode::Encoder;
pub(super) use read::{read, read_elements};
pub use write::Writer;

/// The dialect's name in what is kept for it alone.
const NAME: &str = super::Dialect::Responses.name();
