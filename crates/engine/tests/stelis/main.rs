//! Stelis threads: what a child sees, what its parent is told, and what is left after a crash.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod again;
mod anchors;
mod chronicle;
mod crash;
mod fork;
mod kit;
mod later;
mod life;
mod many;
mod redacted;
#[path = "../engine/room.rs"]
#[allow(dead_code)]
mod room;
mod spawn;
#[path = "../turn/kit.rs"]
#[allow(dead_code)]
mod talk;
mod tell;
mod tree;
mod turns;
