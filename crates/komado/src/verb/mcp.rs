//! `komado mcp`: the MCP server on standard input and output, for a client that starts it.
//!
//! Whoever can start it may read the sessions anyway, so it asks for no key. Standard output belongs to the protocol; talk
//! goes to standard error. It ends when its input does.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::server::mcp::Door;
use clap::Args as ClapArgs;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;

/// The variable that names the session when the command line does not.
const SESSION: &str = "KOMADO_SESSION";

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session that calls are about when they name none, or SESSION/THREAD; KOMADO_SESSION when left out
    #[arg(long, value_name = "ADDRESS")]
    session: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let named = args.session.or_else(|| std::env::var(SESSION).ok()).filter(|text| !text.is_empty());
    if let Some(text) = &named {
        app.find(&text.parse::<komado_core::Address>()?)?;
    }
    let door = Door::owned(app.context.clone(), named);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        match door.serve(stdio()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            // A client that leaves before it has said a word leaves nothing undone.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    // A read of standard input cannot be taken back, and must not hold up the end.
    runtime.shutdown_background();
    served.map_err(|why| Fault::new(Exit::Failed, format!("the MCP client could not be served: {why}")))
}
