//! Operations that change what the model sees. None of them removes anything: each is an entry, and each can be undone.

mod pin;
mod revert;
mod rewind;
mod trim;
mod truncate;
mod unpin;

pub use pin::Pin;
pub use revert::Revert;
pub use rewind::Rewind;
pub use trim::Trim;
pub use truncate::Truncate;
pub use unpin::Unpin;

use crate::{Interfaces, Route};

/// An edit of a thread: a verb, a route of the same name, a tool.
const fn everywhere(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("view", path))
}

/// The same for edits that a model makes better with `condense`.
const fn not_for_models(verb: &'static str, path: &'static str) -> Interfaces {
    everywhere(verb, path).not_mcp("a model has `condense`, which says what it hides")
}
