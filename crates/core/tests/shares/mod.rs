//! How a window is shared out, and which part of a thread its children see, tried on random windows and journals.
//!
//! A failure prints the seed and the journal in the notation; `make soak` tries more.

mod cut;
use crate::fold::dice;
use crate::ladder::line;
mod numbers;
use crate::fold::play;
use crate::ladder::stage;
