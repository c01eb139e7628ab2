//! Bars that the systems we grew out of fail, each a test with the bar's number.
//!
//! Real sessions, several rounds, through [`Thread::fit`](komado_engine::Thread::fit) as a caller would use it. What
//! the ladder promises for every journal is tried on random ones elsewhere; these are the ones people have met.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod count;
mod keep;
#[path = "../stelis/kit.rs"]
#[allow(dead_code)]
mod kit;
mod output;
#[path = "../engine/room.rs"]
#[allow(dead_code)]
mod room;
mod summary;
mod talk;
mod threads;
mod wire;
