//! What does it take to open a session that has grown large, and to read what the model sees of it?

use super::child::{ChildTask, Took, spawn};
use super::costs::median;
use super::dice::Dice;
use super::machine::Machine;
use super::place::BenchFolder;
use super::words::BenchWords;
use super::{command, heading, megabytes, round};
use crate::context::{BenchContext, BenchEngine};
use crate::error::{Error, Result};
use crate::output::progress;
use crate::output::{BenchOutput, number};
use clap::Args as ClapArgs;
use komado_core::message::{Message, Role};
use komado_core::{Meter, Seq, Span, ThreadId};
use komado_engine::Thread;
use komado_store::OpenMode;
use rustix::fs::{Advice, fadvise};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Tokens in view at which the session is condensed while it grows.
const FULL: u64 = 100_000;
/// Tokens at its end that are left as they were said.
const RECENT: u64 = 40_000;
/// Bytes of what stands for the rest: about 500 tokens.
const SUMMARY: usize = 2000;
/// Bytes of a line that are not its body: number, role, time, names.
const AROUND: usize = 180;
/// Times a quick process is measured.
const TIMES: usize = 5;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Entries in the large session
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(10..))]
    entries: u32,
    /// Its size on disk in GB, more or less
    #[arg(long, value_name = "GB", default_value_t = 2.0, value_parser = gigabytes)]
    gb: f64,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn gigabytes(text: &str) -> Result<f64, String> {
    let gb: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if gb.is_finite() && (0.0..=10_000.0).contains(&gb) {
        Ok(gb)
    } else {
        Err("a size between 0 and 10000".into())
    }
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    let bytes = (args.gb * 1e9) as u64;
    let place = BenchFolder::new(
        args.dir.as_deref(),
        bytes + bytes / 10 + u64::from(args.entries) * 100 + (64 << 20),
    )?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    let report = measure(&context.komado()?, &place, &args)?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&as_json(&machine, &report));
    }
    heading(&mut context.out, &machine)?;
    as_text(&mut context.out, &report)
}

/// What was built, and what each process took for it and for an empty session.
struct Report {
    built: Built,
    fill_seconds: f64,
    show: Pair,
    context: Pair,
    tail: Pair,
    cold: Took,
}

/// The large session.
struct Built {
    entries: u64,
    bytes: u64,
    edits: u64,
    items: u64,
    tokens: u64,
}

/// The same deed on the large session and on an empty one.
struct Pair {
    large: Took,
    empty: Took,
}

impl Pair {
    fn read(&self) -> u64 {
        self.large.process.read.saturating_sub(self.empty.process.read)
    }

    fn memory(&self) -> f64 {
        self.large.process.peak as f64 - self.empty.process.peak as f64
    }
}

fn measure(komado: &BenchEngine, place: &BenchFolder, args: &Args) -> Result<Report> {
    let empty = place.session("empty", Meter::Bytes4)?;
    // Opened once, so that it has everything but words.
    place.engine.open(&empty, &ThreadId::root(), OpenMode::Write)?.settle()?;
    let id = place.session("large", Meter::Bytes4)?;
    let start = Instant::now();
    let mut thread = place.engine.open(&id, &ThreadId::root(), OpenMode::Write)?;
    let mut built = Filling::new(&mut thread, args).run()?;
    drop(thread);
    let fill_seconds = start.elapsed().as_secs_f64();
    let folder = place.store.folder(&id)?;
    built.bytes = std::fs::metadata(folder.join("messages.jsonl"))?.len();
    let pair = |deed: ChildTask, times: usize| {
        let (large, empty) = (
            spawn_often(komado, place.base(), deed, "large", times)?,
            spawn_often(komado, place.base(), deed, "empty", times)?,
        );
        Ok::<_, Error>(Pair { large, empty })
    };
    let (show, context, tail) =
        (pair(ChildTask::Show, TIMES)?, pair(ChildTask::Context, TIMES)?, pair(ChildTask::Tail, 1)?);
    forget(&folder)?;
    let cold = spawn(komado, place.base(), ChildTask::Show, "large")?;
    Ok(Report { built, fill_seconds, show, context, tail, cold })
}

/// Runs a deed several times; the figures of the last, with the median of the seconds.
fn spawn_often(
    komado: &BenchEngine,
    base: &Path,
    deed: ChildTask,
    session: &str,
    times: usize,
) -> Result<Took> {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..times {
        let took = spawn(komado, base, deed, session)?;
        seconds.push(took.seconds);
        last = Some(took);
    }
    let last = last.ok_or_else(|| Error::usage("nothing was measured"))?;
    Ok(Took { seconds: median(&seconds), ..last })
}

/// Asks the kernel to keep nothing of the session in memory, as after a boot.
fn forget(folder: &Path) -> Result {
    for name in ["messages.jsonl", "index"] {
        let file = File::open(folder.join(name))?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(std::io::Error::from)?;
    }
    Ok(())
}

/// A session that grows, and is condensed whenever its view is full.
struct Filling<'t, 'e> {
    thread: &'t mut Thread<'e>,
    words: BenchWords,
    entries: u32,
    /// Bytes of a call with its result.
    unit: usize,
    said: u64,
    edits: u64,
    /// First entry and tokens of each unit since the last edit's end.
    recent: VecDeque<(Seq, u64)>,
}

impl<'t, 'e> Filling<'t, 'e> {
    fn new(thread: &'t mut Thread<'e>, args: &Args) -> Self {
        let body = (args.gb * 1e9 / f64::from(args.entries)) as usize;
        let unit = 2 * body.saturating_sub(AROUND).max(32);
        Self {
            thread,
            words: BenchWords::new(),
            entries: args.entries,
            unit,
            said: 0,
            edits: 0,
            recent: VecDeque::new(),
        }
    }

    fn run(mut self) -> Result<Built> {
        let bar = progress("filling the session", u64::from(self.entries));
        let first = self.thread.say(Message::text(Role::User, "Go through the whole of this repository."))?;
        while self.thread.last() < self.entries {
            self.fill_view()?;
            if self.thread.view().tokens() > FULL && self.thread.last() < self.entries {
                self.condense(first + 1)?;
            }
            bar.set_position(u64::from(self.thread.last()));
        }
        bar.finish_and_clear();
        let view = self.thread.view();
        let (items, tokens) = (view.weight().items, view.tokens());
        Ok(Built { entries: u64::from(self.thread.last()), bytes: 0, edits: self.edits, items, tokens })
    }

    /// Says units, all at once, until the view is full or the session long enough; one at least.
    fn fill_view(&mut self) -> Result {
        let meter = self.thread.meter();
        let mut tokens = self.thread.view().tokens();
        let mut batch = self.thread.batch();
        let mut last = self.thread.last();
        while (tokens <= FULL || batch.is_empty()) && last < self.entries && batch.len() < 4096 {
            let mut unit = self.words.unit(self.said, self.unit).to_vec();
            if self.entries - last == 1 {
                // A call would wait for its result; the last entry is a message.
                unit = vec![Message::text(Role::User, "Go on.")];
            }
            let weight = unit.iter().map(|message| u64::from(meter.message(message))).sum();
            self.recent.push_back((last + 1, weight));
            for message in unit {
                last = batch.say(message, None)?;
            }
            tokens += weight;
            self.said += 1;
        }
        let (_, work) = batch.finish();
        Ok(self.thread.commit(work)?)
    }

    /// One text in place of everything from `from` up to the recent units; an earlier one goes with it.
    fn condense(&mut self, from: Seq) -> Result {
        let mut tokens: u64 = self.recent.iter().map(|(_, tokens)| tokens).sum();
        while tokens > RECENT && self.recent.len() > 1 {
            tokens -= self.recent.pop_front().map_or(0, |(_, tokens)| tokens);
        }
        let Some(&(cut, _)) = self.recent.front() else { return Ok(()) };
        if cut <= from {
            return Ok(());
        }
        let text = self.words.text(&mut Dice::new(self.edits), SUMMARY);
        self.thread.condense(vec![Span::new(from, cut - 1)], &text, "bench")?;
        self.edits += 1;
        Ok(())
    }
}

fn as_json(machine: &Machine, report: &Report) -> serde_json::Value {
    let Report { built, show, context, tail, cold, .. } = report;
    json!({
        "command": command(),
        "machine": machine,
        "entries": built.entries,
        "bytes": built.bytes,
        "edits": built.edits,
        "view_items": built.items,
        "view_tokens": built.tokens,
        "view_bytes": show.large.process.written,
        "bytes_read": show.read(),
        "read_share": show.read() as f64 / built.bytes as f64,
        "rss_growth_mb": megabytes(show.memory()),
        "seconds": round(show.large.seconds),
        "seconds_empty": round(show.empty.seconds),
        "context_bytes_read": context.read(),
        "context_rss_growth_mb": megabytes(context.memory()),
        "context_seconds": round(context.large.seconds),
        "cold_seconds": round(cold.seconds),
        "cold_disk_bytes": cold.process.from_disk,
        "ratio_to_peer": show.read() as f64 / tail.read().max(1) as f64,
        "peer": {
            "name": PEER,
            "bytes_read": tail.read(),
            "rss_growth_mb": megabytes(tail.memory()),
            "seconds": round(tail.large.seconds),
        },
        "fill_seconds": round(report.fill_seconds),
    })
}

/// What the peer is.
const PEER: &str = "a JSONL reader that parses every line and keeps the last 128,000 tokens";

fn as_text(out: &mut BenchOutput, report: &Report) -> Result {
    let Report { built, show, context, tail, cold, .. } = report;
    let size = number(built.bytes / 1_000_000);
    let line = format!(
        "{} entries, {size} MB, {} edits; the model sees {} things, {} tokens",
        number(built.entries),
        number(built.edits),
        number(built.items),
        number(built.tokens)
    );
    out.line(line)?;
    out.line("")?;
    let heads = ["open and read the view", "bytes read", "of the journal", "memory", "seconds"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (name, pair) in [("  komado show", show), ("  komado context", context), ("  the peer", tail)] {
        rows.push(vec![
            name.to_owned(),
            number(pair.read()),
            format!("{:.3} %", 100.0 * pair.read() as f64 / built.bytes as f64),
            format!("{:+.1} MB", pair.memory() / 1e6),
            format!("{:.3}", pair.large.seconds),
        ]);
    }
    out.table(&rows, &[1, 2, 3, 4])?;
    out.line("")?;
    let share = format!("×{:.5}", show.read() as f64 / tail.read().max(1) as f64);
    let line = format!("against    {} of the bytes; the peer is {PEER}", out.bold(&share));
    out.line(line)?;
    out.line("counted    beyond what the same process takes for an empty session")?;
    out.line(format!(
        "cold       {:.3} s and {} bytes from the disk when the kernel has nothing of the session in memory",
        cold.seconds,
        number(cold.process.from_disk)
    ))?;
    out.line(format!("empty      {:.3} s for an empty session", show.empty.seconds))
}
