//! MCP servers as a task meets them: real ones, made with the official SDK and ready-made, and every kind of bad one.
mod far;
mod ground;
mod real;
mod rogue;
