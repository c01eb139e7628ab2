//! One process of `komado-bench request`: sends one session and tells what it took.
//!
//! The token tables are in memory before anything is measured, because every process that counts has them. From there
//! on the kernel is asked for the most memory there was, what was read and what was written.

use super::super::child::tell;
use super::super::machine::ProcessFigures;
use super::super::place::opened;
use crate::error::{Error, Result};
use crate::heap::{Allocated, watch};
use clap::Args as ClapArgs;
use komado_core::budget::{Budget, Policy, Preset, ToolBudget};
use komado_core::journal::Entry;
use komado_core::{Meter, Seq, SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::exchange::{ExchangeEvent, ModelTarget};
use komado_engine::fit::Ladder;
use komado_engine::{Engine, Thread};
use komado_provider::client::ClientTimeouts;
use komado_provider::{Client, Dialect, Provider, ResponseForm};
use komado_store::OpenMode;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A window that nothing here fills.
const WINDOW: u64 = 1 << 40;
/// Sets the most memory there ever was to what there is now.
const FORGET_PEAK: &str = "5";

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    session: String,
    /// The folder of the sessions
    #[arg(long)]
    base_dir: PathBuf,
    /// Where it is sent
    #[arg(long)]
    url: String,
}

/// What a request took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RequestFigures {
    /// Bytes of memory in use before the session was opened, with the token tables.
    pub(super) idle: u64,
    /// The most there ever were until then: making the tables takes more than having them.
    pub(super) idle_peak: u64,
    /// The most there were from then on.
    pub(super) peak: u64,
    /// Bytes of the request.
    pub(super) request_bytes: u64,
    /// Digest of the request, as journaled before it left.
    pub(super) digest: String,
    /// To open, plan and write the request to disk.
    pub(super) render: Copied,
    /// To send it, and to journal the reply.
    pub(super) send: Copied,
    /// What was allocated.
    pub(super) heap: Allocated,
}

/// What a process read and wrote.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Copied {
    fn between(from: &ProcessFigures, to: &ProcessFigures) -> Self {
        Self { read: to.read - from.read, written: to.written - from.written }
    }
}

pub(crate) fn run(args: Args) -> Result {
    let id = SessionId::new(args.session.as_str())?;
    let provider =
        Provider::at("sink", Dialect::Chat, &args.url).map_err(|why| Error::usage(why.to_string()))?;
    std::hint::black_box(Meter::O200k.said("小さな窓 small window"));
    let (_, engine) = opened(&args.base_dir);
    let idle = ProcessFigures::now()?;
    // Where the kernel does not let us, the peak of the tables stays in; that makes us look worse, not better.
    let _ = std::fs::write("/proc/self/clear_refs", FORGET_PEAK);
    let before = ProcessFigures::now()?;
    let (turned, heap) = watch(|| turn(&engine, &id, provider));
    let turned = turned?;
    let after = ProcessFigures::now()?;
    let thread = engine.open(&id, &ThreadId::root(), OpenMode::Read)?;
    let digest = match thread.record(turned.seq)?.entry {
        Entry::Sent(sent) => sent.digest,
        _ => return Err(Error::input(format!("entry {} is not a request", turned.seq))),
    };
    tell(&RequestFigures {
        idle: before.rss,
        idle_peak: idle.peak,
        peak: after.peak,
        request_bytes: turned.bytes,
        digest,
        render: Copied::between(&before, &turned.rendered),
        send: Copied::between(&turned.rendered, &after),
        heap,
    })
}

/// A request that was answered.
struct Turned {
    seq: Seq,
    bytes: u64,
    /// When it was on disk and not yet on its way.
    rendered: ProcessFigures,
}

fn turn(engine: &Engine, id: &SessionId, provider: Provider) -> Result<Turned> {
    let mut thread = engine.open(id, &ThreadId::root(), OpenMode::Write)?.clipping(None);
    let client = Client::new(ClientTimeouts::default()).map_err(|why| Error::input(why.to_string()))?;
    let asking =
        ModelTarget { form: ResponseForm::Whole, ..ModelTarget::new(client, provider, "sink", WINDOW) };
    let (seq, bytes, rendered) = ask(&mut thread, &asking)?;
    thread.settle()?;
    Ok(Turned { seq, bytes, rendered })
}

fn ask(thread: &mut Thread<'_>, asking: &ModelTarget) -> Result<(Seq, u64, ProcessFigures)> {
    let policy = Policy { tools: ToolBudget::Unbounded, ..Preset::Komado.policy() };
    let mut by = ByDigest::new(thread.meter());
    let mut ladder = Ladder {
        budget: Budget::new(policy, WINDOW, &[]),
        settings: CondenseSettings::default(),
        by: &mut by,
    };
    let mut sent = None;
    thread.turn(asking, &mut ladder, &mut |news| {
        if let ExchangeEvent::Sent { seq, bytes, .. } = news {
            sent = Some((seq, bytes, ProcessFigures::now()));
        }
    })?;
    let (seq, bytes, rendered) = sent.ok_or_else(|| Error::input("nothing was sent"))?;
    Ok((seq, bytes, rendered?))
}
