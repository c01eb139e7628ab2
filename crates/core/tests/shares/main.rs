//! How a window is shared out, and which part of a thread its children see, tried on random windows and journals.
//!
//! A failure prints the seed and the journal in the notation; `KOMADO_ROUNDS=10` tries as many times more.

#![allow(clippy::unwrap_used)]

mod cut;
#[path = "../fold/dice.rs"]
mod dice;
#[path = "../ladder/line.rs"]
#[allow(dead_code)]
mod line;
mod numbers;
#[path = "../fold/play.rs"]
#[allow(dead_code)]
mod play;
#[path = "../fold/sayings.rs"]
mod sayings;
#[path = "../ladder/stage.rs"]
#[allow(dead_code)]
mod stage;
