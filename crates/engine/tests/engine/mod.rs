//! What the engine promises, on every store that runs without a server.

mod cleanup;
mod condense;
mod diff;
mod edits;
mod export;
mod family;
mod faults;
mod find;
mod fit;
mod fork;
mod grep;
mod import;
mod life;
mod migrate;
mod note;
mod output;
mod quality;
mod recall;
mod redact;
pub(crate) mod room;
mod say;
mod shelf;
mod story;
mod user;
mod walk;
