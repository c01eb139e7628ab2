//! What does the gateway cost, and does it keep what it is given?
//!
//! Three measurements on real processes: the way through it beside the direct one and beside another proxy, for the same
//! requests in the same run; many conversations at once that outgrow the window, each word of which is looked for in the
//! journals afterwards; and one conversation whose journal grows while its requests do not. The provider is the scripted
//! server, in a process of its own.

mod caller;
mod growth;
mod load;
mod overhead;
mod report;
mod servers;

use super::heading;
use super::machine::Machine;
use crate::context::BenchContext;
use crate::error::{Error, Result};
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Conversations at once
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    sessions: u32,
    /// Turns of each
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    turns: u32,
    /// The true window of the model, which neither side is told
    #[arg(long, value_name = "TOKENS", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1_024..))]
    window: u32,
    /// Requests each way when the way itself is measured
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(20..))]
    requests: u32,
    /// Requests in one conversation when its journal grows
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(100..))]
    growth: u32,
    /// LiteLLM's program (`pip install 'litellm[proxy]'`), to be measured beside
    #[arg(long, value_name = "PROGRAM")]
    litellm: Option<PathBuf>,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    let komado = context.komado()?;
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = tempfile::Builder::new()
        .prefix("komado-bench-")
        .tempdir_in(&dir)
        .map_err(|error| Error::usage(format!("--dir {}: {error}", dir.display())))?;
    let machine = Machine::here(folder.path())?;
    let overhead = overhead::measure(&komado, folder.path(), &args)?;
    let load = load::measure(&komado, folder.path(), &args)?;
    let growth = growth::measure(&komado, folder.path(), &args)?;
    let report = report::GatewayReport { overhead, load, growth };
    if context.out.json {
        context.out.write_json(&report::as_json(&machine, &report))?;
    } else {
        heading(&mut context.out, &machine)?;
        report::as_text(&mut context.out, &report)?;
    }
    report.load.check()
}
