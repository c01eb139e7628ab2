//! `komado thread start`: a child thread, with tools that are read from a file.

use super::super::setup::read_tools;
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_ops::thread::{ChildOptions, StartThread, ToolDefinitions};
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
    /// Adds them to what a child is to be like.
    pub(super) fn read(self, child: &mut ChildOptions) -> Outcome {
        child.tools = self.tools.map(|path| read_tools(&path).map(ToolDefinitions)).transpose()?;
        Ok(())
    }
}

pub(crate) fn run(app: &mut App, mut args: Args) -> Outcome {
    args.tools.read(&mut args.request.child)?;
    app.show(args.request)
}
