//! Bars that the systems we grew out of fail, each a test with the bar's number.
//!
//! Real sessions, several rounds, through [`Thread::fit`](komado_engine::Thread::fit) as a caller would use it. What
//! the ladder promises for every journal is tried on random ones elsewhere; these are the ones people have met.

mod count;
mod keep;
use crate::stelis::kit;
mod output;
use crate::engine::room;
mod summary;
mod talk;
mod threads;
mod wire;
