//! OpenAI's chat completions, and everyone who speaks like them.
//!
//! The message codec is the core's; here is what stands around it. Servers that call themselves compatible differ in
//! many small things, so reading is generous: whatever a server sends that can only mean one thing is taken to mean
//! it. Writing is strict: only what OpenAI itself would take or send, and what the same dialect said before.

mod decode;
mod encode;
mod request;

pub(super) use decode::ChatDecoder;
pub use encode::Encoder;
pub use request::Writer;
pub(super) use request::{as_told, leading_system, read, read_elements, thoughts};
