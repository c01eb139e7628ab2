//! `komado log`: the journal, one line per entry. It is read by pages, so that a long one is never held.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::Ink;
use clap::Args as ClapArgs;
use komado_core::{Address, Seq};
use komado_ops::address::{AtMoment, AtThread};
use komado_ops::journal::{EntriesOf, Log};

/// Entries read at a time.
const PAGE: u32 = 500;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD, or SESSION@SEQ for everything up to there
    address: Address,
    /// Begin at this entry
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: Seq,
    /// Only the last N entries
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<u32>,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let (session, thread) = (Some(found.session.to_string()), Some(found.thread.to_string()));
    let width = u32::try_from(app.paper.width).ok();
    let at = AtMoment { session: session.clone(), thread: thread.clone(), seq: found.seq };
    // The first page only says where the journal ends.
    let page = Log { at, limit: Some(1), full: args.full, width, ..Log::default() };
    let end = app.context.run(page.clone())?.end;
    let from = args.last.map_or(args.from, |n| end.saturating_sub(n) + 1).max(1);
    if app.paper.json {
        return lines(
            app,
            EntriesOf {
                at: AtThread { session, thread },
                from: Some(from),
                to: Some(end),
                ..EntriesOf::default()
            },
        );
    }
    let at = AtMoment { seq: Some(end), ..page.at };
    let mut next = Some(from).filter(|from| *from <= end);
    while let Some(from) = next {
        let at = at.clone();
        let page =
            app.context.run(Log { at, from: Some(from), limit: Some(PAGE), full: args.full, width })?;
        for line in page.text.lines() {
            // What a rewind left behind is set off as a comment of the notation.
            let line = if line.starts_with("# ") { app.paper.ink(Ink::Dim, line) } else { line.to_owned() };
            app.paper.line(line)?;
        }
        next = page.next;
    }
    Ok(())
}

/// Prints the lines of a journal as they stand there.
fn lines(app: &mut App, mut request: EntriesOf) -> Outcome {
    if request.from > request.to {
        return Ok(());
    }
    loop {
        let page = app.context.run(request.clone())?;
        page.items.iter().try_for_each(|entry| app.paper.json(entry))?;
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => return Ok(()),
        }
    }
}
