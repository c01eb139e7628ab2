//! What does one durable append cost, and does it cost more as the session grows?

use super::costs::Costs;
use super::machine::{Machine, ProcessFigures};
use super::peers::{Peer, RawPeer, Sqlite};
use super::place::{BenchFolder, meter};
use super::words::BenchWords;
use super::{command, heading, megabytes, round};
use crate::context::BenchContext;
use crate::error::{Error, Result};
use crate::output::progress;
use crate::output::{BenchOutput, number, say};
use clap::Args as ClapArgs;
use komado_core::journal::{Entry, Record, encode};
use komado_core::{Meter, ThreadId};
use komado_engine::Thread;
use komado_store::OpenMode;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Entries of the small session before it is measured.
const SMALL: u64 = 1000;
/// Entries written at once while filling.
const BATCH: u64 = 1000;
/// Appends measured in a row before the next one has its turn: noise comes in stretches and must hit all alike.
const BLOCK: u64 = 4;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Entries in the large session
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    entries: u64,
    /// Appends measured in each session and for each peer
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    sample: u64,
    /// How tokens are counted; bytes4 counts without a table, so that counting is not what is measured
    #[arg(long, value_name = "METER", default_value = "bytes4", value_parser = meter)]
    meter: Meter,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    // Journal and the peer's table at their full size, and room to move.
    let place = BenchFolder::new(args.dir.as_deref(), args.entries * 1200 + (64 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    if machine.is_memory() {
        say("komado-bench: this folder is in memory, where a sync costs nothing; --dir names one on a disk");
    }
    let report = measure(&place, &args)?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&as_json(&args, &machine, &report));
    }
    heading(&mut context.out, &machine)?;
    as_text(&mut context.out, &args, &report)
}

/// What is measured side by side, in the order of the report.
const SMALL_SESSION: usize = 0;
const LARGE_SESSION: usize = 1;
const RAW: usize = 2;
const SQLITE: usize = 3;

struct Report {
    costs: [Costs; 4],
    peers: [String; 2],
    /// Writes and syncs of the large session's journal while it was measured, and writing calls of the process.
    writes: u64,
    syncs: u64,
    calls: u64,
    appends: u64,
    before: ProcessFigures,
    after: ProcessFigures,
    fill_seconds: f64,
    bytes: u64,
}

fn measure(place: &BenchFolder, args: &Args) -> Result<Report> {
    let words = BenchWords::new();
    let small = SMALL.min(args.entries);
    let mut raw = RawPeer::new(&place.path("peer.jsonl"))?;
    let mut sqlite = Sqlite::new(&place.path("peer.db"))?;
    fill_peer(&mut sqlite, &words, args.entries)?;
    let root = ThreadId::root();
    let ids = [place.session("small", args.meter)?, place.session("large", args.meter)?];
    let mut threads = [
        place.engine.open(&ids[0], &root, OpenMode::Write)?,
        place.engine.open(&ids[1], &root, OpenMode::Write)?,
    ];
    fill(&mut threads[0], &words, small)?;
    // From here on memory is watched: code is loaded and buffers are there, what grows now grows with the session.
    let before = ProcessFigures::now()?;
    let start = Instant::now();
    fill(&mut threads[1], &words, args.entries)?;
    let fill_seconds = start.elapsed().as_secs_f64();
    let mut sampling = Sampling {
        place,
        words: &words,
        threads: &mut threads,
        next: [small, args.entries, args.entries, args.entries],
        peers: [&mut raw, &mut sqlite],
        report: Report {
            costs: Default::default(),
            peers: Default::default(),
            writes: 0,
            syncs: 0,
            calls: 0,
            appends: 0,
            before,
            after: before,
            fill_seconds,
            bytes: 0,
        },
    };
    sampling.run(args.sample)?;
    let mut report = sampling.report;
    report.peers = [raw.name(), sqlite.name()];
    report.after = ProcessFigures::now()?;
    let journal = place.store.folder(&ids[1])?.join("messages.jsonl");
    report.bytes = std::fs::metadata(journal)?.len();
    Ok(report)
}

/// Says messages until the thread has `entries` of them.
pub(super) fn fill(thread: &mut Thread<'_>, words: &BenchWords, entries: u64) -> Result {
    let bar = progress("filling the session", entries);
    let mut said = u64::from(thread.last());
    while said < entries {
        let end = (said + BATCH).min(entries);
        let mut batch = thread.batch();
        for n in said..end {
            batch.say(words.message(n), None)?;
        }
        let (_, work) = batch.finish();
        thread.commit(work)?;
        said = end;
        bar.set_position(said);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The peer that has something to grow gets as many rows as the large session has entries.
fn fill_peer(sqlite: &mut Sqlite, words: &BenchWords, entries: u64) -> Result {
    let bar = progress("filling the peer", entries);
    for from in (0..entries).step_by(10 * BATCH as usize) {
        sqlite.fill((from..(from + 10 * BATCH).min(entries)).map(|n| line(words, n)))?;
        bar.set_position(from);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Message `n` as the journal writes it: what the peers keep.
pub(super) fn line(words: &BenchWords, n: u64) -> String {
    let message = words.message(n);
    let (seq, tokens) = (n as u32 + 1, Meter::Bytes4.message(&message));
    let timestamp = "2026-01-15T10:30:00.000000Z".to_owned();
    let line = encode(&Record { seq, timestamp, tokens, entry: Entry::Message(message, None) });
    String::from_utf8_lossy(&line).into_owned()
}

/// Sessions and peers taking turns.
struct Sampling<'a, 'e> {
    place: &'a BenchFolder,
    words: &'a BenchWords,
    threads: &'a mut [Thread<'e>; 2],
    peers: [&'a mut dyn Peer; 2],
    /// The next message of each.
    next: [u64; 4],
    report: Report,
}

impl Sampling<'_, '_> {
    fn run(&mut self, sample: u64) -> Result {
        let mut left = sample;
        let mut first = 0;
        while left > 0 {
            let block = left.min(BLOCK);
            // Each goes first in its turn, so that none always follows the same neighbour.
            for who in (0..4).map(|i| (first + i) % 4) {
                self.turn(who, block)?;
            }
            first += 1;
            left -= block;
        }
        Ok(())
    }

    /// One's turn, with an eye on what reaches the disk: by the store's count and by the kernel's. Looking costs a
    /// little, also in what follows, so everyone is looked at, though only the large session's figures are told.
    fn turn(&mut self, who: usize, block: u64) -> Result {
        let (work, process) = (self.place.store.work(), ProcessFigures::now()?);
        match who {
            SMALL_SESSION | LARGE_SESSION => self.say(who, block)?,
            peer => self.append(peer, block)?,
        }
        let (now, calls) = (self.place.store.work(), ProcessFigures::now()?.writes - process.writes);
        if who == LARGE_SESSION {
            self.report.writes += now.writes - work.writes;
            self.report.syncs += now.syncs - work.syncs;
            self.report.calls += calls;
            self.report.appends += block;
        }
        Ok(())
    }

    fn say(&mut self, who: usize, block: u64) -> Result {
        for _ in 0..block {
            let message = self.words.message(self.next[who]);
            let thread = &mut self.threads[who];
            let seq = self.report.costs[who].time(|| Ok(thread.say(message)?))?;
            self.next[who] += 1;
            if u64::from(seq) != self.next[who] {
                return Err(Error::input(format!("entry {seq} where {} was due", self.next[who])));
            }
        }
        Ok(())
    }

    fn append(&mut self, who: usize, block: u64) -> Result {
        for _ in 0..block {
            let line = line(self.words, self.next[who]);
            let peer = &mut self.peers[who - RAW];
            self.report.costs[who].time(|| peer.append(&line))?;
            self.next[who] += 1;
        }
        Ok(())
    }
}

impl Report {
    /// How often `a` is `b`, by the time on the wall.
    fn ratio(&self, a: usize, b: usize) -> f64 {
        round(self.costs[a].wall() / self.costs[b].wall())
    }

    fn cpu_growth(&self) -> f64 {
        round(self.costs[LARGE_SESSION].cpu() / self.costs[SMALL_SESSION].cpu())
    }

    fn per_append(&self, n: u64) -> f64 {
        round(n as f64 / self.appends as f64)
    }

    fn rss_growth(&self) -> f64 {
        megabytes(self.after.rss as f64 - self.before.rss as f64)
    }

    fn peak_growth(&self) -> f64 {
        megabytes(self.after.peak as f64 - self.before.rss as f64)
    }
}

fn as_json(args: &Args, machine: &Machine, report: &Report) -> serde_json::Value {
    let [small, large, raw, sqlite] = &report.costs;
    json!({
        "command": command(),
        "machine": machine,
        "entries": args.entries,
        "sample": args.sample,
        "meter": args.meter.name(),
        "growth": report.ratio(LARGE_SESSION, SMALL_SESSION),
        "cpu_growth": report.cpu_growth(),
        "us_per_append_small": round(small.wall()),
        "us_per_append_big": round(large.wall()),
        "cpu_us_per_append_small": round(small.cpu()),
        "cpu_us_per_append_big": round(large.cpu()),
        "writes_per_append": report.per_append(report.writes),
        "syncs_per_append": report.per_append(report.syncs),
        "write_syscalls_per_append": report.per_append(report.calls),
        "ratio_to_raw": report.ratio(LARGE_SESSION, RAW),
        "ratio_to_sqlite": report.ratio(LARGE_SESSION, SQLITE),
        "peers": [
            { "name": report.peers[0], "us_per_append": round(raw.wall()), "cpu_us_per_append": round(raw.cpu()) },
            { "name": report.peers[1], "us_per_append": round(sqlite.wall()), "cpu_us_per_append": round(sqlite.cpu()),
              "rows": args.entries },
        ],
        "rss_growth_mb": report.rss_growth(),
        "peak_rss_growth_mb": report.peak_growth(),
        "peak_rss_mb": megabytes(report.after.peak as f64),
        "bytes": report.bytes,
        "fill_seconds": round(report.fill_seconds),
    })
}

fn as_text(out: &mut BenchOutput, args: &Args, report: &Report) -> Result {
    let entries = number(args.entries);
    let names = [
        format!("komado, {} entries", number(SMALL.min(args.entries))),
        format!("komado, {entries} entries"),
        report.peers[0].clone(),
        format!("{}, {entries} rows", report.peers[1]),
    ];
    let title = format!("one durable append, median of {}", number(args.sample));
    let mut rows = vec![vec![title, "wall µs".into(), "CPU µs".into()]];
    for (name, costs) in names.into_iter().zip(&report.costs) {
        rows.push(vec![format!("  {name}"), format!("{:.1}", costs.wall()), format!("{:.1}", costs.cpu())]);
    }
    out.table(&rows, &[1, 2])?;
    out.line("")?;
    let growth = out.bold(&format!("×{:.2}", report.ratio(LARGE_SESSION, SMALL_SESSION)));
    let (to_raw, to_sqlite) = (report.ratio(LARGE_SESSION, RAW), report.ratio(LARGE_SESSION, SQLITE));
    out.line(format!("growth     {growth} on the wall, ×{:.2} on the processor", report.cpu_growth()))?;
    out.line(format!("against    ×{to_raw:.2} a plain file, ×{to_sqlite:.2} SQLite"))?;
    out.line(format!(
        "to disk    {} writes and {} syncs an append by the journal's count, {} writing calls by the kernel's",
        report.per_append(report.writes),
        report.per_append(report.syncs),
        report.per_append(report.calls)
    ))?;
    out.line(format!(
        "memory     {:+.1} MB for {entries} entries, {:+.1} MB at the peak",
        report.rss_growth(),
        report.peak_growth()
    ))?;
    let rate = number((args.entries as f64 / report.fill_seconds.max(1e-9)) as u64);
    let (bytes, seconds) = (number(report.bytes / 1_000_000), report.fill_seconds);
    out.line(format!(
        "filling    {bytes} MB in {seconds:.1} s: {rate} entries a second in batches of {BATCH}"
    ))
}
