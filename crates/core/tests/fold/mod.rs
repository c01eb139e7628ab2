//! What must hold for every journal, tried on a hundred thousand random ones.
//!
//! Each test is a law in one sentence. A failure prints the seed and the journal in the notation; a journal's length
//! grows with its seed (modulo 56), so the smallest failing seed is often a short story.

mod above;
mod branch;
mod cost;
pub(crate) mod dice;
mod elders;
mod late;
mod laws;
mod lines;
pub(crate) mod play;
mod reference;
pub(crate) mod sayings;
mod time;
