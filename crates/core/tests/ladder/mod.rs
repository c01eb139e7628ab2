//! What must hold for every journal in every window, tried on random ones.
//!
//! Each test is a law in one sentence. A failure prints the seed and the journal in the notation. `make soak` tries some
//! hundred thousand pairs of journal and window, `make test` a quarter of them.

mod budget;
use crate::fold::dice;
mod laws;
pub(crate) mod line;
mod markers;
use crate::fold::play;
use crate::fold::sayings;
mod shared;
pub(crate) mod stage;
