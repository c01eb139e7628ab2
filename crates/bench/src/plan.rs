//! What does it cost to plan and to render a view of 200,000 tokens, and does it cost more in a longer session?
//!
//! Three sessions: a short one, a long one in which the model sees the same, and a short one with messages ten times
//! as long. It refuses to compare what differs in anything else: all grow by the same words under the same policy.

mod filling;
mod report;
mod run;

use super::child::ask;
use super::costs::median;
use super::heading;
use super::machine::Machine;
use super::place::BenchFolder;
use crate::context::BenchContext;
use crate::error::Result;
use clap::Args as ClapArgs;
use filling::{PlanSession, fill, size};
use komado_core::budget::{Budget, Policy, Preset, ToolBudget};
use report::{as_json, as_text};
use run::{PlanFigures, PlanRun};
use std::path::PathBuf;
use std::time::Instant;

pub(crate) use run::{Args as DeedArgs, run as run_deed};

/// Entries of the short sessions, more or less.
const SHORT: u64 = 1000;
/// How much longer messages are in the wide one.
const WIDE: u32 = 10;
/// Tokens of the window that the sessions grow in.
const FILL_WINDOW: u64 = 315_000;
/// Tokens of the window that is planned for. The view is larger, so something must leave.
const PLAN_WINDOW: u64 = 200_000;
/// Processes that each deed is timed in, in each session.
const ROUNDS: u32 = 5;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Entries in the long session
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=4_000_000_000))]
    entries: u64,
    /// Times each deed is timed in each session
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sample: u32,
    /// Folder on the disk to measure; the working folder when left out
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Komado's own policy, without a bound on outputs, so that it does the same with messages of any length.
fn budget(window: u64) -> Budget {
    Budget::new(Policy { tools: ToolBudget::Unbounded, ..Preset::Komado.policy() }, window, &[])
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    let place =
        BenchFolder::new(args.dir.as_deref(), size(args.entries, 1) + size(SHORT, WIDE) + (64 << 20))?;
    let machine = Machine::here(place.base().parent().unwrap_or(place.base()))?;
    let report = measure(&place, &args)?;
    drop(place);
    if context.out.json {
        return context.out.write_json(&as_json(&args, &machine, &report));
    }
    heading(&mut context.out, &machine)?;
    as_text(&mut context.out, &report)
}

/// The three sessions.
struct Report {
    short: Session,
    long: Session,
    wide: Session,
    fill_seconds: f64,
}

/// A session, and what was done to it.
struct Session {
    built: PlanSession,
    took: [PlanFigures; PlanRun::ALL.len()],
}

impl Session {
    fn took(&self, deed: PlanRun) -> &PlanFigures {
        &self.took[deed as usize]
    }

    /// Time on the processor for a request from a session that was closed: open it, judge, plan, render.
    fn whole(&self) -> f64 {
        [PlanRun::Open, PlanRun::Judge, PlanRun::Plan, PlanRun::Render]
            .iter()
            .map(|deed| self.took(*deed).cpu_us)
            .sum()
    }

    /// The most that is held at once on that way.
    fn peak(&self) -> u64 {
        let peak = |deed| self.took(deed).heap.peak;
        peak(PlanRun::Open).max(peak(PlanRun::Plan)).max(peak(PlanRun::Render))
    }
}

fn measure(place: &BenchFolder, args: &Args) -> Result<Report> {
    let start = Instant::now();
    let built = [
        fill(place, "short", SHORT, 1)?,
        fill(place, "long", args.entries, 1)?,
        fill(place, "wide", SHORT, WIDE)?,
    ];
    let fill_seconds = start.elapsed().as_secs_f64();
    let mut sessions = built.map(|built| Session { built, took: Default::default() });
    for deed in PlanRun::ALL {
        // The peer reads everything there is: twice in a process is enough.
        let (rounds, sample) =
            if deed == PlanRun::Peer { (1, 1) } else { (ROUNDS.min(args.sample), args.sample) };
        take_turns(place, &mut sessions, deed, rounds, sample.div_ceil(rounds))?;
    }
    let [short, long, wide] = sessions;
    Ok(Report { short, long, wide, fill_seconds })
}

/// A deed in each session, one after the other: noise comes in stretches and must hit all alike.
fn take_turns(place: &BenchFolder, to: &mut [Session; 3], deed: PlanRun, rounds: u32, sample: u32) -> Result {
    let sample = sample.to_string();
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        for (session, times) in to.iter_mut().zip(&mut times) {
            let window = (PLAN_WINDOW * u64::from(session.built.scale)).to_string();
            let name = session.built.name;
            let words = ["plan-child", deed.name(), name, "--window", &window, "--sample", &sample];
            let (figures, _): (PlanFigures, f64) = ask(place.base(), &words)?;
            times.push(figures.cpu_us);
            session.took[deed as usize] = figures;
        }
    }
    for (session, times) in to.iter_mut().zip(&times) {
        session.took[deed as usize].cpu_us = median(times);
    }
    Ok(())
}
