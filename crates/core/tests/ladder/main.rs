//! What must hold for every journal in every window, tried on random ones.
//!
//! Each test is a law in one sentence. A failure prints the seed and the journal in the notation. In `make test` some
//! hundred thousand pairs of journal and window are tried; `KOMADO_ROUNDS=10` tries as many times more.

#![allow(clippy::unwrap_used)]

mod budget;
#[path = "../fold/dice.rs"]
mod dice;
mod laws;
mod line;
mod markers;
#[path = "../fold/play.rs"]
#[allow(dead_code)]
mod play;
#[path = "../fold/sayings.rs"]
mod sayings;
mod shared;
mod stage;
