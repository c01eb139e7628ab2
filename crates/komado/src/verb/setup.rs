//! `komado setup`: what stands before the conversation, with tools and parameters from files.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::read_text;
use clap::Args as ClapArgs;
use komado_core::raw::Raw;
use komado_ops::address::AtThread;
use komado_ops::journal::SetUp;
use komado_ops::tools::ToolDefinitions;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct Given {
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Tool definitions: a file with a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Other parameters of the request: a file with a JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) params: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    #[command(flatten)]
    given: Given,
    /// Whose form tools and parameters have
    #[arg(long, default_value = "openai")]
    dialect: String,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let Args { at, given, dialect } = args;
    let tools = given.tools.as_deref().map(read_tools).transpose()?;
    let params = given.params.as_deref().map(|path| read(path, '{', "a JSON object")).transpose()?;
    let params = params.map(|raw| RawValue::from_string(raw.get().to_owned())).transpose()?;
    app.show(SetUp { at, system: given.system, tools, params, dialect: Some(dialect) })
}

/// Tool definitions from a file.
pub(super) fn read_tools(path: &Path) -> Outcome<ToolDefinitions> {
    let raw = read(path, '[', "a JSON array")?;
    raw.try_into().map_err(|why| Fault::input(format!("{}: {why}", path.display())))
}

fn read(path: &Path, first: char, what: &str) -> Outcome<Raw> {
    let text = read_text(path)?;
    let wrong = |why: String| Fault::input(format!("{} is not {what}: {why}", path.display()));
    let raw = Raw::parse(text.trim()).map_err(|e| wrong(e.to_string()))?;
    if raw.get().starts_with(first) { Ok(raw) } else { Err(wrong("it begins otherwise".into())) }
}
