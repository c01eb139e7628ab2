//! The tests of this crate through its public interface, as one program: it is linked once.

mod builtin;
mod mcp;
mod playbook;
mod source;
mod worker;
