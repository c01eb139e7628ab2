//! The tests of this crate through its public interface, as one program: it is linked once.

mod admit;
mod fold;
mod ladder;
mod shares;
