//! How much memory things hold, by an allocator that counts: a program of its own, and one test at a time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod child;
mod heap;
mod output;
mod place;
mod report;
