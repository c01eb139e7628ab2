//! The tests of this crate through its public interface, as one program: it is linked once.

mod conformance;
mod files;
mod killed;
mod postgres;
mod redis;
mod servers;
mod suite;
