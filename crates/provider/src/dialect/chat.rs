//! OpenAI's chat completions, and everyone who speaks like them.
//!
//! The message codec is the core's; here is what stands around it. Servers that call themselves compatible differ in
//! many small things, so reading is generous: whatever a server sends that can only mean one thing is taken to mean
//! it. Writing is strict: only what OpenAI itself would take or send, and what the same dialect said before.

mod answer;
mod calls;
mod encode;
pub(super) mod fault;
mod legacy;
mod read;
pub(super) mod thought;
pub(super) mod usage;
mod write;

pub(super) use answer::Answer;
pub use encode::Encoder;
pub(super) use legacy::as_told;
pub(super) use read::{leading_system, read, read_elements};
pub use write::Writer;
