//! `komado setup`: what stands before the conversation.

use super::change::{self, Change};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::{Entry, Setup};
use komado_core::raw::Raw;
use komado_engine::Thread;
use komado_engine::engine::Found;
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
    pub(crate) address: Address,
    #[command(flatten)]
    pub(crate) given: Given,
    /// Whose form tools and parameters have
    #[arg(long, default_value = "openai")]
    pub(crate) dialect: String,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let tools = args.given.tools.as_deref().map(read_tools).transpose()?;
    let params = args.given.params.as_deref().map(|path| read(path, '{', "a JSON object")).transpose()?;
    let dialect = (tools.is_some() || params.is_some()).then_some(args.dialect);
    apply(app, &found, Setup { system: args.given.system, tools, params, dialect })
}

/// Sets up what is given; what is not given stays.
pub(crate) fn apply(app: &mut App, found: &Found, given: Setup) -> Outcome {
    change::make(
        app,
        found,
        |thread| {
            let before = current(thread)?;
            thread.set_up(Setup {
                system: given.system.or(before.system),
                tools: given.tools.or(before.tools),
                params: given.params.or(before.params),
                dialect: given.dialect.or(before.dialect),
            })
        },
        |seq| Change {
            op: "setup",
            what: "set up; what was not given stays".into(),
            undo: Some(change::rewind_before(found, seq)),
        },
    )
}

/// The setup in force; what is not given anew is carried over.
fn current(thread: &Thread<'_>) -> komado_engine::Result<Setup> {
    let Some(seq) = thread.view().setup() else { return Ok(Setup::default()) };
    match thread.record(seq)?.entry {
        Entry::Setup(setup) => Ok(setup),
        _ => Ok(Setup::default()),
    }
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
