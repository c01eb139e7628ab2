//! `komado setup`: what stands before the conversation, with tools and parameters from files.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::raw::Raw;
use komado_ops::address::AtThread;
use komado_ops::journal::SetUp;
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
    let value = |raw: Raw| RawValue::from_string(raw.get().to_owned());
    let tools = given.tools.as_deref().map(read_tools).transpose()?.map(value).transpose()?;
    let params = given.params.as_deref().map(|path| read(path, '{', "a JSON object")).transpose()?;
    let params = params.map(value).transpose()?;
    app.show(SetUp { at, system: given.system, tools, params, dialect: Some(dialect) })
}

/// Tool definitions from a file.
pub(super) fn read_tools(path: &Path) -> Outcome<Raw> {
    read(path, '[', "a JSON array")
}

fn read(path: &Path, first: char, what: &str) -> Outcome<Raw> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Fault::new(Exit::NotFound, format!("cannot read {}: {e}", path.display())))?;
    let wrong = |why: String| Fault::input(format!("{} is not {what}: {why}", path.display()));
    let raw = Raw::parse(text.trim()).map_err(|e| wrong(e.to_string()))?;
    if raw.get().starts_with(first) { Ok(raw) } else { Err(wrong("it begins otherwise".into())) }
}
