//! Ollama's chat: a line of JSON for each piece.
//!
//! It differs from OpenAI's in what it lacks: content is one text, calls had no ids for a long time, and a window that
//! is too small is answered by silently dropping the oldest messages. That last one is always switched off unless the
//! parameters ask for it.

mod answer;
mod request;

pub use answer::Encoder;
pub(super) use answer::OllamaDecoder;
pub use request::Writer;
pub(super) use request::{as_told, read, read_elements};

/// What is kept for this dialect alone is marked with it.
const DIALECT: &str = crate::dialect::Dialect::Ollama.name();
