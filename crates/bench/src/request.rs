//! What does it take to send a long conversation: how much memory, and how often are its bytes copied?
//!
//! Each request is made in a process of its own, because nothing else has an honest peak of memory: it opens the
//! session, plans, writes the request to disk, sends it and journals the reply. The receiver of the request is in this
//! process. Beside it the same messages go to the same place the usual way, from a list in Python. It refuses to
//! measure a turn that differs from everyone else's: the one measured is the engine's own.

mod filling;
mod peer;
mod report;
mod run;
mod sink;

use super::child::ask;
use super::heading;
use super::machine::Machine;
use super::place::BenchFolder;
use crate::context::BenchContext;
use crate::error::{Error, Result};
use clap::Args as ClapArgs;
use filling::{RequestSession, fill};
use peer::RequestPeer;
use report::{as_json, as_text};
use run::RequestFigures;
use sink::{Got, RequestSink};
use std::path::PathBuf;
use std::time::Instant;

pub(super) use peer::Python;
pub(crate) use run::{Args as DeedArgs, run as run_deed};

/// MB of the request that the large one is compared with.
const SMALL: u64 = 1;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// MB of messages in the request
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    mb: u64,
    /// Do not measure the peer, a Python client
    #[arg(long)]
    no_peer: bool,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    // Before the long work, not after it.
    let python = if args.no_peer { None } else { Python::find()? };
    // Journal, what people read of it, request, and room to move.
    let place = BenchFolder::new(args.dir.as_deref(), (args.mb + SMALL) * 3_300_000 + (64 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    let report = measure(&place, &args, python.as_ref())?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&as_json(&args, &machine, &report));
    }
    heading(&mut context.out, &machine)?;
    as_text(&mut context.out, &report)
}

/// A small request, the large one, and the peer's.
struct Report {
    small: Sent,
    large: Sent,
    peer: Option<RequestPeer>,
    fill_seconds: f64,
}

/// A request that was sent, and what it took.
struct Sent {
    built: RequestSession,
    took: RequestFigures,
    got: Got,
    seconds: f64,
}

fn measure(place: &BenchFolder, args: &Args, python: Option<&Python>) -> Result<Report> {
    let start = Instant::now();
    let built = [fill(place, "small", SMALL)?, fill(place, "large", args.mb)?];
    let fill_seconds = start.elapsed().as_secs_f64();
    let sink = RequestSink::start()?;
    // The peer first: afterwards the session has a reply more.
    let peer = python.map(|python| python.send(place, &sink, &built[1])).transpose()?;
    let [small, large] = built.map(|built| send(place, &sink, built));
    let (small, large) = (small?, large?);
    Ok(Report { small, large, peer, fill_seconds })
}

/// Sends a session from a process of its own. What was taken must be what was journaled as sent.
fn send(place: &BenchFolder, sink: &RequestSink, built: RequestSession) -> Result<Sent> {
    let words = ["request-child", built.name, "--url", sink.url()];
    let (took, seconds): (RequestFigures, f64) = ask(place.base(), &words)?;
    let got = sink.last()?;
    if got.digest != took.digest || got.bytes != took.request_bytes {
        return Err(Error::input(format!(
            "what arrived is not what was sent: {} bytes with digest {}, journaled as {} bytes with {}",
            got.bytes, got.digest, took.request_bytes, took.digest
        )));
    }
    Ok(Sent { built, took, got, seconds })
}
