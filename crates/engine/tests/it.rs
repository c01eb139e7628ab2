//! The tests of this crate through its public interface, as one program: it is linked once.

mod bars;
mod engine;
mod place;
mod relay;
mod roo;
mod shares;
mod stelis;
mod turn;
