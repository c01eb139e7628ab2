//! What the condense-then-truncate design does, fact by fact, under the preset that stands for it.
//!
//! `facts.rs` says what is known of the original; each test plays a fact in a real session and holds what the model
//! then sees against it. Where we differ on purpose the fact says why, and the test asserts our side.

mod condense;
mod decide;
mod facts;
mod history;
use crate::engine::room;
mod story;
mod tokens;
