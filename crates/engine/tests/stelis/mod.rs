//! Stelis threads: what a child sees, what its parent is told, and what is left after a crash.

mod again;
mod anchors;
mod chronicle;
mod crash;
mod fork;
pub(crate) mod kit;
mod later;
mod life;
mod many;
mod redacted;
use crate::engine::room;
mod spawn;
use crate::turn::kit as talk;
mod tell;
mod tree;
mod turns;
