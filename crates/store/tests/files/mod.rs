//! What only the file store promises: names, permissions, repair, cost, and what happens when the system refuses.

mod beside;
mod cost;
mod derived;
use crate::suite::dice;
mod halves;
mod index;
mod layout;
mod lease;
mod limits;
use crate::suite::play;
mod room;
use crate::suite::shares;
mod shelf;
mod spawned;
mod spots;
mod table;
mod torn;
mod tree;
