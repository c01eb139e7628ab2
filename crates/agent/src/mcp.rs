//! Tools of MCP servers: started or connected to once, kept open, and never able to hold a task up for good.
//!
//! A server is a stranger's program. So each step with it has an end: its start, its list of tools, each call, each message
//! it sends and the time it is given to leave. What it does wrong is told to the model as an answer, with its own last words,
//! and the task goes on. Its tools are listed once: they stand before the conversation, and a server that changes its mind
//! later does not change what was offered.

mod door;
mod lines;
mod link;
mod names;
mod process;
mod pump;
mod seat;
mod shown;
mod words;

use crate::sandbox::Confinement;
use crate::tools::{Answer, Definition, Tools};
use komado_provider::Cancel;
use pump::Pump;
use seat::Seat;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The most bytes of one message. A longer one is not read to its end: it would be held as a whole, more than once.
const MOST_MESSAGE: usize = 8 << 20;

/// A server from the settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Its name: the beginning of its tools' names.
    pub name: String,
    /// How it is reached.
    pub how: How,
    /// How long it may take to start, and to say what it has.
    pub start: Duration,
    /// How long a call may take.
    pub call: Duration,
    /// The only tools of it that are offered; all when empty.
    pub only: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum How {
    /// As a process that is spoken to over its standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment, on top of the few that every confined process has.
        env: Vec<(String, String)>,
        /// Where it runs; in a private folder when there is none.
        folder: Option<PathBuf>,
        /// The working folder of the task, which it may read and write. `{folder}` in arguments and variables stands for it.
        work: Option<PathBuf>,
        /// How it is confined.
        confinement: Confinement,
    },
    /// At an address (streamable HTTP).
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
}

/// Why a server's tools cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It did not start, or said nothing that is MCP.
    #[error("the MCP server {server} cannot be used: {why}")]
    Server {
        /// Its name.
        server: String,
        /// Why, and what to do.
        why: String,
    },
}

/// Servers that are open. They are closed, and their processes ended, when this is dropped.
pub struct Servers {
    definitions: Vec<Definition>,
    places: Vec<Place>,
    seats: Vec<Arc<Mutex<Seat>>>,
    pump: Pump,
}

/// Where a tool is: at which server, and what it is called there.
struct Place {
    seat: usize,
    tool: String,
}

impl Servers {
    /// Starts or reaches all of them, at the same time. Where one cannot be used, none is kept.
    pub fn open(servers: &[Server], cancel: &Cancel) -> Result<Self, Error> {
        let pump = Pump::start().map_err(|why| Error::Server {
            server: servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", "),
            why: format!("no thread for it: {why}"),
        })?;
        let mut open = Self { definitions: Vec::new(), places: Vec::new(), seats: Vec::new(), pump };
        let opened = open.pump.all(servers.iter().cloned().map(|server| Seat::open(server, cancel.clone())));
        let mut failed = None;
        let mut names = names::Names::default();
        for (server, opened) in servers.iter().zip(opened) {
            let opened = opened.unwrap_or_else(|| Err("it could not be waited for".to_owned()));
            match opened {
                Ok((seat, tools)) => open.take(&server.name, seat, tools, &mut names),
                Err(why) => failed = failed.or(Some(Error::Server { server: server.name.clone(), why })),
            }
        }
        failed.map_or(Ok(open), Err)
    }

    fn take(&mut self, server: &str, seat: Seat, tools: Vec<Definition>, names: &mut names::Names) {
        for tool in tools {
            let name = names.give(server, &tool.name);
            self.places.push(Place { seat: self.seats.len(), tool: tool.name });
            self.definitions.push(Definition { name, ..tool });
        }
        self.seats.push(Arc::new(Mutex::new(seat)));
    }
}

impl Tools for Servers {
    fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> Answer {
        let place = self.definitions.iter().position(|tool| tool.name == name);
        let Some(Place { seat, tool }) = place.and_then(|place| self.places.get(place)) else {
            return Answer::wrong(format!("there is no tool {name:?}"));
        };
        let arguments = match object(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Answer::wrong(format!("{name}: {why}")),
        };
        let (seat, tool, cancel) = (Arc::clone(&self.seats[*seat]), tool.clone(), cancel.clone());
        let heard = self.pump.wait(async move { seat.lock().await.call(tool, arguments, &cancel).await });
        match heard {
            Some(Ok(result)) => words::answer(result),
            Some(Err(why)) => Answer::wrong(why),
            None => Answer::wrong(format!("{name}: the call could not be waited for; try something else")),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let close = |seat: Arc<Mutex<Seat>>| async move { seat.lock().await.close().await };
        self.pump.all(self.seats.drain(..).map(close));
    }
}

/// The arguments that a model wrote. Some write nothing where nothing is wanted.
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(arguments).map_err(|why| format!("the arguments are no JSON object: {why}"))
}
