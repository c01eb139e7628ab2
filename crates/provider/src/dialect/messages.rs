//! Anthropic's messages API.
//!
//! A request is `model`, `tools`, `system`, `messages` and then everything that may change from one request to the
//! next, so that the bytes before it only grow. Roles must alternate and a user must begin, therefore neighbours are
//! joined; a message stays open until it is known that the next one is someone else's. It refuses nothing that another
//! dialect allows: what the API would not take (empty texts, a model that begins, arguments that are no object) is
//! written in the nearest form it does take.

mod decode;
mod encode;
mod request;
mod system;

pub(in crate::dialect) use decode::MessagesDecoder;
pub use encode::Encoder;
pub use request::Writer;
pub(super) use request::{read, read_elements};

/// The dialect's name in what is kept for it alone.
const NAME: &str = super::Dialect::Messages.name();
