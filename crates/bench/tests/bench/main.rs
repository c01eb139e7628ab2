//! What the benches count must hold on any machine; what they time is for people to read.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod counts;
mod request;
mod run;
mod task;
