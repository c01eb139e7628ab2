//! A window shared out between threads: what each may take, what it always sees, and how that is changed.

mod balance;
mod budget;
#[path = "../../../store/tests/suite/dice.rs"]
#[allow(dead_code)]
mod chance;
mod kit;
mod refused;
use crate::engine::room;
use crate::turn::kit as talk;
mod trees;
mod world;
