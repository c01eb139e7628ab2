//! The tests of this crate through its public interface, as one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bars;
mod engine;
mod place;
mod relay;
mod roo;
mod shares;
mod stelis;
mod turn;
