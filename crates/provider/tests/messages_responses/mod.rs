//! The messages and responses dialects: requests that only grow, answers however they are cut.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod echo;
mod grammar;
mod play;
mod reading;
mod writing;
