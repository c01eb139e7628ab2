//! The tests of this crate through its public interface, as one program: it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod builtin;
mod mcp;
mod playbook;
mod source;
mod worker;
