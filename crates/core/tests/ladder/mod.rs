//! What must hold for every journal in every window, tried on random ones.
//!
//! Each test is a law in one sentence. A failure prints the seed and the journal in the notation. In `make test` some
//! hundred thousand pairs of journal and window are tried, ten times as many under `make soak`.

mod budget;
use crate::fold::dice;
mod laws;
pub(crate) mod line;
mod markers;
use crate::fold::play;
use crate::fold::sayings;
mod shared;
pub(crate) mod stage;
mod working_set;
