//! MCP servers as a task meets them: real ones, made with the official SDK and ready-made, and every kind of bad one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod far;
mod ground;
mod real;
mod rogue;
