//! Chat completions and Ollama's chat, both ways: what real servers send, however it is cut, and what we send ourselves.

mod answers;
mod cuts;
mod dice;
mod echoes;
mod kit;
mod requests;
mod translations;
