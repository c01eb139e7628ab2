//! One process of `komado-bench plan`: does one thing to one session, and tells what it took.
//!
//! What can be counted is counted, because counts come out the same in every run: look-ups, reading calls, bytes,
//! allocations, bytes held at once. The processor's time is measured beside them, without the counters.

use super::super::child::{tail, tell};
use super::super::costs::Costs;
use super::super::machine::ProcessFigures;
use super::super::place::{holder, opened};
use super::budget;
use crate::clock::BenchClock;
use crate::error::{Error, Result};
use crate::heap::{Allocated, watch};
use clap::{Args as ClapArgs, ValueEnum};
use komado_core::message::Message;
use komado_core::openai::{self, BlobReader};
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::{Engine, Thread};
use komado_store::{FileStore, OpenMode, Store};
use komado_testkit::Faulty;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Times that what takes no time is done before the clock is looked at again.
const OFTEN: u32 = 1000;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// What to do
    what: PlanRun,
    /// The session
    session: String,
    /// The folder of the sessions
    #[arg(long)]
    base_dir: PathBuf,
    /// Tokens of the window that is planned for
    #[arg(long)]
    window: u64,
    /// Times it is timed
    #[arg(long)]
    sample: u32,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlanRun {
    /// Open the session
    Open,
    /// Say whether something will be done
    Judge,
    /// Plan what will be done
    Plan,
    /// Write the request as it would be sent
    Render,
    /// The peer: read the whole file, keep the end of it, write that
    Peer,
}

impl PlanRun {
    pub(super) const ALL: [Self; 5] = [Self::Open, Self::Judge, Self::Plan, Self::Render, Self::Peer];

    /// Its name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Open => "open the session",
            Self::Judge => "say whether to act",
            Self::Plan => "plan",
            Self::Render => "render the request",
            Self::Peer => "the peer",
        }
    }

    /// Its name for programs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Judge => "judge",
            Self::Plan => "plan",
            Self::Render => "render",
            Self::Peer => "peer",
        }
    }
}

/// What one deed took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PlanFigures {
    /// Time on the processor in microseconds, the median.
    pub(super) cpu_us: f64,
    /// Entries looked up, by their head or whole.
    pub(super) lookups: u64,
    /// Reading calls of the process: each entry that is read whole is one.
    pub(super) reads: u64,
    /// Bytes they brought.
    pub(super) bytes_read: u64,
    /// What was allocated.
    #[serde(flatten)]
    pub(super) heap: Allocated,
    /// What came out.
    #[serde(flatten)]
    pub(super) made: PlanMade,
}

/// What came out of a deed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PlanMade {
    /// Tokens of the view afterwards, or of the one that was looked at.
    pub(super) tokens: u64,
    /// Bytes written.
    pub(super) written: u64,
    /// The rungs that were stepped on.
    pub(super) rungs: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result {
    let id = SessionId::new(args.session.as_str())?;
    let (store, engine) = opened(&args.base_dir);
    let figures = match args.what {
        PlanRun::Peer => {
            let path = store.folder(&id)?.join("messages.jsonl");
            let window = usize::try_from(args.window).unwrap_or(usize::MAX);
            take(1, args.sample, || peer(&path, window))?
        }
        PlanRun::Open => {
            let lookups = looked_up(&args.base_dir, |engine| open(engine, &id).map(drop))?;
            let figures = take(1, args.sample, || Ok(made(&open(&engine, &id)?)))?;
            PlanFigures { lookups, ..figures }
        }
        PlanRun::Judge | PlanRun::Plan | PlanRun::Render => {
            let all = looked_up(&args.base_dir, |engine| {
                act(args.what, &open(engine, &id)?, args.window).map(drop)
            })?;
            let opening = looked_up(&args.base_dir, |engine| open(engine, &id).map(drop))?;
            let thread = open(&engine, &id)?;
            let often = if args.what == PlanRun::Judge { OFTEN } else { 1 };
            let figures = take(often, args.sample, || act(args.what, &thread, args.window))?;
            PlanFigures { lookups: all - opening, ..figures }
        }
    };
    tell(&figures)
}

fn open<'e>(engine: &'e Engine, id: &SessionId) -> Result<Thread<'e>> {
    Ok(engine.open(id, &ThreadId::root(), OpenMode::Read)?)
}

/// Counts what a deed looks up in the journal. A store that counts its calls and fails none is what tests have.
fn looked_up(base: &Path, deed: impl FnOnce(&Engine) -> Result) -> Result<u64> {
    let store = Arc::new(Faulty::new(FileStore::new(base, holder()), 0));
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(BenchClock));
    deed(&engine)?;
    Ok(store.calls())
}

/// Does it once with every counter on, then `sample` times by the clock.
fn take(often: u32, sample: u32, mut deed: impl FnMut() -> Result<PlanMade>) -> Result<PlanFigures> {
    let (first, second) = (ProcessFigures::now()?, ProcessFigures::now()?);
    let before = ProcessFigures::now()?;
    let (made, heap) = watch(&mut deed);
    let after = ProcessFigures::now()?;
    let made = made?;
    let mut costs = Costs::default();
    for _ in 0..sample {
        costs.time(|| (0..often).try_for_each(|_| deed().map(|made| drop(black_box(made)))))?;
    }
    // Looking at the counters is reading, too.
    let beyond = |of: fn(&ProcessFigures) -> u64| {
        let idle = of(&second) - of(&first);
        (of(&after) - of(&before)).saturating_sub(idle)
    };
    Ok(PlanFigures {
        cpu_us: costs.cpu() / f64::from(often),
        lookups: 0,
        reads: beyond(|process| process.reads),
        bytes_read: beyond(|process| process.read),
        heap,
        made,
    })
}

fn act(what: PlanRun, thread: &Thread<'_>, window: u64) -> Result<PlanMade> {
    match what {
        PlanRun::Judge => {
            let verdict = black_box(thread).will_manage(&budget(window));
            Ok(PlanMade { tokens: verdict?.tokens, ..PlanMade::default() })
        }
        PlanRun::Plan => plan(thread, window),
        PlanRun::Render => render(thread),
        PlanRun::Open | PlanRun::Peer => Err(Error::usage("this is not done to a thread that is open")),
    }
}

fn made(thread: &Thread<'_>) -> PlanMade {
    PlanMade { tokens: thread.view().tokens(), ..PlanMade::default() }
}

fn plan(thread: &Thread<'_>, window: u64) -> Result<PlanMade> {
    let mut by = ByDigest::new(thread.meter());
    let mut ladder = Ladder { budget: budget(window), settings: CondenseSettings::default(), by: &mut by };
    let fitted = thread.plan(&mut ladder)?;
    let rungs = fitted.done.iter().map(|done| done.rung.name().to_owned()).collect();
    Ok(PlanMade { tokens: fitted.after, rungs, written: 0 })
}

/// Every message the model sees, as it would be sent, to nowhere.
fn render(thread: &Thread<'_>) -> Result<PlanMade> {
    let mut sink = Sink::default();
    thread.view().pour(thread.source(), &mut |_: Seq, message: &Message| -> Result {
        Ok(openai::write(message, &mut ByName, &mut sink)?)
    })?;
    Ok(PlanMade { written: sink.0, ..made(thread) })
}

fn peer(path: &Path, window: usize) -> Result<PlanMade> {
    let mut sink = Sink::default();
    tail(path, window, &mut |message| Ok(serde_json::to_writer(&mut sink, message)?))?;
    Ok(PlanMade { written: sink.0, ..PlanMade::default() })
}

/// Counts bytes and keeps none.
#[derive(Default)]
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += black_box(bytes).len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// There are no pictures in a measured session.
struct ByName;

impl BlobReader for ByName {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}
