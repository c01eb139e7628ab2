//! `komado thread start`: a child thread, with tools that are read from a file.

use super::super::setup::read_tools;
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_ops::thread::StartThread;
use komado_ops::tools::ToolDefinitions;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    request: StartThread,
    #[command(flatten)]
    tools: ToolsFile,
}

/// Tools of a child thread.
#[derive(ClapArgs, Debug)]
pub(super) struct ToolsFile {
    /// Tool definitions of its own, in place of those above: a file with a JSON array
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

impl ToolsFile {
    /// Reads them.
    pub(super) fn read(&self) -> Outcome<Option<ToolDefinitions>> {
        self.tools.as_deref().map(read_tools).transpose()
    }
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let tools = args.tools.read()?;
    app.show(StartThread { tools, ..args.request })
}
