//! What does a store cost beside its own driver, and does it cost more as a session grows?
//!
//! The same entries go into a session and, through the bare driver, into a table, list or file beside it: one at a time, in
//! the same run, each acknowledged before the next. The ratio is what leases, numbering and the index add. Opening is
//! measured as a writer does it, beside reading the last entry with the driver.

mod raw;
mod report;
mod servers;

use super::append::{fill, line};
use super::costs::Costs;
use super::heading;
use super::machine::Machine;
use super::place::{BenchFolder, holder};
use super::words::BenchWords;
use crate::clock::BenchClock;
use crate::context::BenchContext;
use crate::error::{Error, Result};
use crate::output::say;
use clap::Args as ClapArgs;
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::Engine;
use komado_store::{ConnectOptions, OpenMode, Store, StoreHealthFigures, connect};
use raw::{RawClient, raw};
use servers::StoreServer;
use std::path::PathBuf;
use std::sync::Arc;

/// Appends measured in a row before the other has its turn.
const BLOCK: u64 = 4;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// A store to measure, such as postgres://user@host/db or redis://host; may be given again. A folder on this disk
    /// when left out
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    /// Starts a PostgreSQL and a Redis of its own with scripts/server, and measures those beside the folder
    #[arg(long)]
    servers: bool,
    /// Entries in the largest session; a tenth and a hundredth of it are measured, too
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    entries: u64,
    /// Appends measured at each size, and a tenth as many openings
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    sample: u64,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What was measured of one store.
struct Measured {
    vitals: StoreHealthFigures,
    /// What the driver did, with all that bears on its figures.
    raw: String,
    steps: Vec<Step>,
}

/// What was measured at one size.
struct Step {
    entries: u64,
    append: Costs,
    raw_append: Costs,
    open: Costs,
    raw_open: Costs,
    /// Writes and syncs an append, by the journal's count; only a file is asked.
    work: Option<(f64, f64)>,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    // The journal, the peer beside it, and room to move.
    let place = BenchFolder::new(args.dir.as_deref(), args.entries * 2400 + (64 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    if machine.is_memory() {
        say("komado-bench: this folder is in memory, where a sync costs nothing; --dir names one on a disk");
    }
    let started = if args.servers { StoreServer::both()? } else { Vec::new() };
    let mut urls = args.urls.clone();
    if urls.is_empty() {
        urls.push("file:".to_owned());
    }
    urls.extend(started.iter().map(|server| server.url.clone()));
    let mut all = Vec::new();
    for url in &urls {
        all.push(measure(&place, url, &args)?);
    }
    if context.out.json {
        return context.out.write_json(&report::as_json(&args, &machine, &all));
    }
    heading(&mut context.out, &machine)?;
    report::as_text(&mut context.out, &args, &all)
}

fn measure(place: &BenchFolder, url: &str, args: &Args) -> Result<Measured> {
    let is_file = url == "file:";
    if !is_file && url.starts_with("file:") {
        return Err(Error::usage("--url file: measures a folder of its own; --dir says where"));
    }
    let store: Arc<dyn Store> =
        if is_file { Arc::clone(&place.store) as _ } else { connect(url, &ConnectOptions::new(holder()))? };
    let engine = Engine::new(Arc::clone(&store), Arc::new(BenchClock));
    let id = place.session_in(&engine, &format!("bench-{}", uuid::Uuid::new_v4()), Meter::Bytes4)?;
    let mut peer = match raw(url, &place.path("peer.jsonl"), &id) {
        Ok(peer) => peer,
        Err(fault) => {
            // What went wrong is worth more than that it could not be cleared away.
            let _ = store.remove(&id);
            return Err(fault);
        }
    };
    let subject = Subject { place, store: &*store, engine: &engine, id: &id, is_file };
    let sizes = [args.entries / 100, args.entries / 10, args.entries];
    let steps: Result<Vec<Step>> =
        sizes.into_iter().map(|size| subject.step(&mut *peer, size, args.sample)).collect();
    // Whatever came of it, nothing stays behind in a store that others use.
    let (removed, cleared) = (store.remove(&id), peer.clear());
    let steps = steps?;
    removed?;
    cleared?;
    Ok(Measured { vitals: store.vitals()?, raw: peer.name(), steps })
}

/// A session in a store, and what goes with it.
struct Subject<'a> {
    place: &'a BenchFolder,
    store: &'a dyn Store,
    engine: &'a Engine,
    id: &'a SessionId,
    is_file: bool,
}

impl Subject<'_> {
    /// Grows both to `size` entries, then measures them in turns.
    fn step(&self, peer: &mut dyn RawClient, size: u64, sample: u64) -> Result<Step> {
        let words = BenchWords::new();
        let mut step = Step {
            entries: size,
            append: Costs::default(),
            raw_append: Costs::default(),
            open: Costs::default(),
            raw_open: Costs::default(),
            work: None,
        };
        let root = ThreadId::root();
        let mut thread = self.engine.open(self.id, &root, OpenMode::Write)?;
        fill(&mut thread, &words, size)?;
        peer.fill(&words, size)?;
        let before = self.place.store.work();
        for _ in 0..sample.div_ceil(BLOCK) {
            for _ in 0..BLOCK {
                let message = words.message(u64::from(thread.last()));
                step.append.time(|| Ok(thread.say(message)?))?;
            }
            for _ in 0..BLOCK {
                let line = line(&words, peer.len());
                step.raw_append.time(|| peer.append(&line))?;
            }
        }
        if self.is_file {
            let (after, count) = (self.place.store.work(), (sample.div_ceil(BLOCK) * BLOCK) as f64);
            step.work = Some((
                (after.writes - before.writes) as f64 / count,
                (after.syncs - before.syncs) as f64 / count,
            ));
        }
        drop(thread);
        for _ in 0..(sample / 10).max(1) {
            step.open.time(|| Ok(self.store.open(self.id, &root, OpenMode::Write).map(drop)?))?;
            step.raw_open.time(|| peer.read_last())?;
        }
        Ok(step)
    }
}
