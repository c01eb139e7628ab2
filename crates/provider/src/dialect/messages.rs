//! Anthropic's messages API.
//!
//! A request is `model`, `tools`, `system`, `messages` and then everything that may change from one request to the
//! next, so that the bytes before it only grow. Roles must alternate and a user must begin, therefore neighbours are
//! joined; a message stays open until it is known that the next one is someone else's. It refuses nothing that another
//! dialect allows: what the API would not take (empty texts, a model that begins, arguments that are no object) is
//! written in the nearest form it does take.

mod block;
mod decode;
mod encode;
mod piece;
mod read;
mod system;
mod write;

pub(in crate::dialect) use decode::Answer;
pub use encode::Encoder;
pub(super) use read::{read, read_elements};
pub use write::Writer;

/// The dialect's name in what is kept for it alone.
const NAME: &str = super::Dialect::Messages.name();
