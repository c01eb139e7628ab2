//! `komado log`: the journal, one line per entry.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::Ink;
use clap::Args as ClapArgs;
use komado_core::{Address, notation};
use komado_store::Mode;
use std::io::Write;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD, or SESSION@SEQ for everything up to there
    address: Address,
    /// Begin at this entry
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u32,
    /// Only the last N entries
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<u32>,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let end = found.seq.unwrap_or(thread.last());
    let now = thread.view_at(end)?;
    let from = args.last.map_or(args.from, |n| end.saturating_sub(n) + 1).max(1);
    for seq in from..=end {
        if app.paper.json {
            app.paper.safe().write_all(&thread.source().line(seq)?)?;
            continue;
        }
        let record = thread.record(seq)?;
        // What a rewind left behind is set off as a comment of the notation.
        let mark = if now.on_path(seq) { "" } else { "# " };
        let width = app.paper.width - mark.len();
        let text = if args.full { notation::entry(&record) } else { notation::brief(&record, width) };
        let text = if mark.is_empty() { text } else { app.paper.ink(Ink::Dim, &format!("{mark}{text}")) };
        app.paper.line(text)?;
    }
    Ok(())
}
