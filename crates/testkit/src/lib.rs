//! What tests and benchmarks share, and no user gets: a thread in memory, the notation's reader, a store that fails on
//! purpose, a summariser that follows a script, trackers to test against.
//!
//! Crates that ship may have this one as a dev-dependency only. Each part that needs more than the core is a feature, so
//! that the tests of a small crate build no large one.

#![forbid(unsafe_code)]

mod book;
#[cfg(feature = "faulty")]
mod faulty;
pub mod notation;
#[cfg(feature = "scripted")]
mod scripted;
pub mod soak;
#[cfg(feature = "tracker")]
pub mod tracker;

pub use book::{Book, BookRows};
#[cfg(feature = "faulty")]
pub use faulty::{Faulty, injected_at};
#[cfg(feature = "scripted")]
pub use scripted::Scripted;
