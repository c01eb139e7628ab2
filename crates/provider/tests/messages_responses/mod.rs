//! The messages and responses dialects: requests that only grow, answers however they are cut.

mod answers;
mod echo;
mod grammar;
mod play;
mod reading;
mod writing;
