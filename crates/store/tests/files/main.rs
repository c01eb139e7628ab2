//! What only the file store promises: names, permissions, repair, cost, and what happens when the system refuses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod beside;
mod cost;
mod derived;
#[path = "../suite/dice.rs"]
mod dice;
mod halves;
mod index;
mod layout;
mod lease;
mod limits;
#[path = "../suite/play.rs"]
mod play;
mod room;
#[path = "../suite/shares.rs"]
mod shares;
mod shelf;
mod spawned;
mod spots;
mod table;
mod torn;
mod tree;
