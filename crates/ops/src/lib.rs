//! Every operation of Komado, each as a type: its fields are the request, its doc comment the description, one function gives
//! a typed result.
//!
//! The command line, the HTTP API and the MCP server are three interfaces to what stands here. They decode a request, run the
//! operation and encode its result; what a caller may see, which session a name means and how changes wait for each other is
//! decided here, once. From the one list in [`ALL`] come the routes, the OpenAPI document, the tools of MCP and the table in
//! `docs/operations.md`. Nothing here knows a terminal, an argument vector, an HTTP request or a line of printed text.

#![forbid(unsafe_code)]

pub mod address;
pub mod arguments;
pub mod caller;
pub mod change;
pub mod choice;
pub mod clock;
pub mod context;
pub mod fault;
pub mod operation;
pub mod page;
pub mod private;
pub mod stream;
pub mod tools;
pub mod watch;

mod list;
mod near;

pub mod ask;
pub mod config;
pub mod doctor;
pub mod edit;
pub mod event;
pub mod journal;
pub mod key;
pub mod migrate;
pub mod model;
pub mod output;
pub mod playbook;
pub mod recall;
pub mod replay;
pub mod report;
pub mod session;
pub mod task;
pub mod thread;
pub mod user;
pub mod window;
pub mod work;

pub use arguments::NamedArguments;
pub use caller::ApiCaller;
pub use change::ChangedView;
pub use context::{BaseFolder, Naming, OpenedStore, OperationContext, OperationProgress, PlannedEntries};
pub use fault::{FaultKind, Missing, OpFault, OpResult};
pub use list::{ALL, table};
pub use operation::{
    Effect, EncodedResult, HttpMethod, InterfaceOffer, Interfaces, Operation, OperationLabel, OperationRow,
    ResultReader, Route,
};
pub use page::ResultPage;
pub use stream::Streamed;
