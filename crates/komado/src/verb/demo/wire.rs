//! The other end: a model server in this process, which says what the script wants and enforces the window.
//!
//! The words are played, and nothing else is: each request is rendered to a file, sent over a socket, counted by the
//! server, and refused there if it were too large.

use super::hand::MODEL;
use super::script::Turn;
use crate::fault::{Exit, Fault, Outcome};
use komado_engine::turn::Asking;
use komado_provider::scripted::{Options, Reply, Server, Step, ToolCall};
use komado_provider::{Client, Dialect, Patience, Provider};

/// A server, and how it is asked.
pub(super) struct Wire {
    server: Server,
    pub(super) asking: Asking,
}

impl Wire {
    pub(super) fn new(window: u32) -> Outcome<Self> {
        let window = u64::from(window);
        let server = Server::start(Options { window: Some(window), keep: 1, ..Options::default() })?;
        let failed = |error: &dyn std::fmt::Display| Fault::new(Exit::Failed, error.to_string());
        let provider = Provider::at("demo", Dialect::Chat, server.url()).map_err(|e| failed(&e))?;
        let client = Client::new(Patience::default()).map_err(|e| failed(&e))?;
        let asking = Asking::new(client, provider, MODEL, window);
        Ok(Self { server, asking })
    }

    /// What the model will say next; `n` tells its calls from all others.
    pub(super) fn will_say(&self, turn: &Turn, n: usize) {
        let calls = turn.acts.iter().enumerate().map(|(i, act)| ToolCall {
            id: Some(format!("call_{n}_{i}")),
            name: act.tool().to_owned(),
            arguments: act.arguments(),
        });
        let reply = Reply { text: turn.says.clone(), calls: calls.collect(), ..Reply::default() };
        self.server.add(Step { reply, chunk: Some(200), ..Step::default() });
    }
}
