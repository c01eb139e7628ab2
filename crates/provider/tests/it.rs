//! The tests of this crate through its public interface, as one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chat_ollama;
mod client;
mod gateway;
mod messages_responses;
mod overflow;
mod own_process;
mod probe;
mod registry;
mod scripted_answers;
mod scripted_kit;
mod scripted_refusals;
