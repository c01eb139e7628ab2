//! `komado thread chronicle`: what was done in a child thread; shown, written by hand or from a file, or told again.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Seq;
use komado_ops::address::AtThread;
use komado_ops::thread::{ChronicleWriter, ReadChronicle, WriteChronicle};
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    /// Write it by hand
    #[arg(long, value_name = "TEXT", group = "what")]
    text: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,
    /// Have it told again
    #[arg(long, group = "what")]
    again: bool,
    /// Say again what entry SEQ said
    #[arg(long, value_name = "SEQ", group = "what")]
    restore: Option<Seq>,
    #[command(flatten)]
    writer: ChronicleWriter,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let Args { at, text, file, again, restore, writer } = args;
    let text = text.map(Ok).or_else(|| file.as_deref().map(read)).transpose()?;
    match again || text.is_some() || restore.is_some() {
        true => app.show(WriteChronicle { at, text, restore, writer }),
        false => app.show(ReadChronicle { at }),
    }
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Fault::new(Exit::NotFound, format!("cannot read {}: {e}", path.display())))
}
