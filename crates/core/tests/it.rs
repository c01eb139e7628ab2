//! The tests of this crate through its public interface, as one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admit;
mod fold;
mod ladder;
mod shares;
