//! `komado thread chronicle`: what was done in a child thread; shown, written by hand or from a file, or told again.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::read_text;
use clap::Args as ClapArgs;
use komado_core::Seq;
use komado_ops::address::AtThread;
use komado_ops::thread::{ChronicleWriter, ReadChronicle, WriteChronicle};
use std::path::PathBuf;

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
    let text = text.map(Ok).or_else(|| file.as_deref().map(read_text)).transpose()?;
    match again || text.is_some() || restore.is_some() {
        true => app.show(WriteChronicle { at, text, restore, writer }),
        false => app.show(ReadChronicle { at }),
    }
}
