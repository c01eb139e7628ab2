//! One server of a task: its connection, and what is done when that ends. It is opened again by the next call, a few times;
//! its tools stay the ones it had in the beginning.

use super::link::{Link, Miss};
use super::{How, Server};
use crate::tools::{Again, Definition};
use komado_provider::Cancel;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde_json::{Value, json};
use std::collections::HashSet;
use tokio::time::Instant;

/// How often a process that ended is started again.
const RESTARTS: u32 = 3;
/// The most bytes of all definitions of a server: they are in every request to the model.
const MOST_DEFINED: usize = 1 << 20;

/// A server and its connection, if it is open.
pub(super) struct Seat {
    server: Server,
    link: Option<Link>,
    restarts: u32,
}

impl Seat {
    /// Opens a server: with its tools, under the names it gives them.
    pub(super) async fn open(server: Server, cancel: Cancel) -> Result<(Self, Vec<Definition>), String> {
        let opened = open_and_list(&server, &cancel).await;
        let (link, tools) = opened.map_err(|why| server.hide(&why))?;
        match chosen(&server, tools) {
            Ok(tools) => Ok((Self { server, link: Some(link), restarts: 0 }, tools)),
            Err(why) => {
                link.close().await;
                Err(why)
            }
        }
    }

    /// Calls a tool; else says why there is no result.
    pub(super) async fn call(
        &mut self,
        tool: String,
        arguments: JsonObject,
        cancel: &Cancel,
    ) -> Result<CallToolResult, String> {
        let link = match self.link.take() {
            Some(link) if !link.is_closed() => link,
            gone => self.open_again(gone, cancel).await.map_err(|why| self.told(&why))?,
        };
        let heard = match link.call(tool, arguments, self.server.call, cancel).await {
            Err(Miss::Lost(why)) => return Err(self.told(&link.fate(why).await)),
            Err(Miss::Told(why)) => Err(self.told(&why)),
            Ok(result) => Ok(result),
        };
        self.link = Some(link);
        heard
    }

    fn told(&self, why: &str) -> String {
        self.server.hide(&format!("the MCP server {}: {why}", self.server.name))
    }

    async fn open_again(&mut self, gone: Option<Link>, cancel: &Cancel) -> Result<Link, String> {
        if let Some(link) = gone {
            let fate = link.fate(None).await;
            tracing::debug!(
                server = self.server.name,
                fate = self.server.hide(&fate),
                "an MCP server is gone"
            );
        }
        // A process that always ends would be started forever; to reach for an address costs nothing.
        if matches!(self.server.how, How::Command { .. }) {
            if self.restarts == RESTARTS {
                return Err(format!(
                    "it was started again {RESTARTS} times and always ended; do without its tools"
                ));
            }
            self.restarts += 1;
        }
        Link::open(&self.server, Instant::now() + self.server.start, cancel).await
    }

    /// Closes it; its process is gone afterwards.
    pub(super) async fn close(&mut self) {
        if let Some(link) = self.link.take() {
            link.close().await;
        }
    }
}

async fn open_and_list(server: &Server, cancel: &Cancel) -> Result<(Link, Vec<Tool>), String> {
    let until = Instant::now() + server.start;
    let link = Link::open(server, until, cancel).await?;
    match link.tools(until, cancel).await {
        Ok(tools) => Ok((link, tools)),
        Err(why) => Err(link.fate(why).await),
    }
}

/// The tools that are offered, each once.
fn chosen(server: &Server, tools: Vec<Tool>) -> Result<Vec<Definition>, String> {
    let missing = server.only.iter().find(|name| tools.iter().all(|tool| tool.name != name.as_str()));
    if let Some(missing) = missing {
        let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        return Err(format!(
            "it has no tool {missing:?}, which mcp_servers.{}.tools names; it has: {}",
            server.name,
            super::link::short(&known.join(", "))
        ));
    }
    let mut seen = HashSet::new();
    let is_wanted =
        |tool: &Tool| server.only.is_empty() || server.only.iter().any(|name| *name == *tool.name);
    let tools = tools.into_iter().filter(|tool| is_wanted(tool) && seen.insert(tool.name.to_string()));
    let definitions: Vec<Definition> = tools.map(definition).collect();
    let size = |tool: &Definition| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
    let defined: usize = definitions.iter().map(size).sum();
    if defined > MOST_DEFINED {
        return Err(format!(
            "what it says about its tools has {defined} bytes, and {MOST_DEFINED} are the most; choose some of them \
             (mcp_servers.{}.tools)",
            server.name
        ));
    }
    Ok(definitions)
}

fn definition(tool: Tool) -> Definition {
    let hints = tool.annotations.unwrap_or_default();
    let is_safe = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
    let takes_object = tool.input_schema.get("type").is_some_and(|kind| kind == "object");
    let schema = if takes_object {
        Value::Object((*tool.input_schema).clone())
    } else {
        json!({"type": "object", "properties": {}})
    };
    Definition {
        name: tool.name.into_owned(),
        description: tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into_owned(),
        schema,
        again: if is_safe { Again::Safe } else { Again::Unsafe },
    }
}
