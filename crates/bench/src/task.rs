//! What does the process of a task hold?
//!
//! A task is worked on by `komado task work`, in a process of its own as ever, for a model in this process that does what a
//! script says: it has a file read, again and again. Whenever it is asked, the kernel is asked what the process that
//! asks holds. Nothing in that process knows that it is measured. With `--mb` everything that was read is in every
//! request, and the same loop is written in Python beside it, with its messages in a list; with `--calls` the window is
//! a small one, and the question is whether the process at the last call holds more than at an early one.

mod course;
mod grown;
mod long;
mod peer;
mod report;
mod ruler;
mod worker;

use super::heading;
use super::machine::Machine;
use super::place::BenchFolder;
use super::request::Python;
use crate::context::BenchContext;
use crate::error::Result;
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// MB that are read and stay in every request; several with commas between
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 100],
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    mb: Vec<u64>,
    /// Instead, one long task: so many calls with large outputs
    #[arg(long, value_name = "N", conflicts_with_all = ["mb", "no_peer"],
          value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    calls: Option<u64>,
    /// The window of the long task, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 16_000, requires = "calls",
          value_parser = clap::value_parser!(u32).range(8_000..=1_000_000))]
    window: u32,
    /// Do not measure the peer, the same loop in Python
    #[arg(long)]
    no_peer: bool,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    match args.calls {
        Some(calls) => run_long(context, &args, calls),
        None => run_grown(context, &args),
    }
}

fn run_long(context: &mut BenchContext, args: &Args, calls: u64) -> Result {
    let komado = context.komado()?;
    // Whole outputs, what is shown of them, and room to move.
    let place = BenchFolder::new(args.dir.as_deref(), calls * 300_000 + (256 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    let report = long::measure(&komado, &place, calls, args.window)?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&report::long_json(&machine, &report));
    }
    heading(&mut context.out, &machine)?;
    report::long_text(&mut context.out, &report)
}

fn run_grown(context: &mut BenchContext, args: &Args) -> Result {
    let komado = context.komado()?;
    // Before the long work, not after it.
    let python = if args.no_peer { None } else { Python::find()? };
    let largest = args.mb.iter().copied().max().unwrap_or(1);
    // Journal, what people read of it, requests, and room to move.
    let place = BenchFolder::new(args.dir.as_deref(), largest * 8_000_000 + (256 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    let sizes: Result<Vec<_>> =
        args.mb.iter().map(|mb| grown::measure(&komado, &place, *mb, python.as_ref())).collect();
    let sizes = sizes?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&report::grown_json(&machine, &sizes));
    }
    heading(&mut context.out, &machine)?;
    report::grown_text(&mut context.out, &sizes)
}
