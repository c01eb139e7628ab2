//! A window shared out between threads: what each may take, what it always sees, and how that is changed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod balance;
mod budget;
#[path = "../../../store/tests/suite/dice.rs"]
#[allow(dead_code)]
mod chance;
mod kit;
mod refused;
#[path = "../engine/room.rs"]
#[allow(dead_code)]
mod room;
#[path = "../turn/kit.rs"]
#[allow(dead_code)]
mod talk;
mod trees;
mod world;
