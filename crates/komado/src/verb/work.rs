//! `komado work`: take tasks from the queue and work on them, each in a process of its own.
//!
//! What the worker prints is progress, a line each; what a task says is in its session.

mod errand;
mod here;
mod job;
mod lines;
mod signals;

pub(crate) use errand::source_of;

use super::task::{fetch, stop};
use crate::app::{App, hostname};
use crate::connect::Wishes;
use crate::fault::Outcome;
use crate::paper::say;
use crate::thrift;
use clap::Args as ClapArgs;
use here::Here;
use komado_agent::worker::{Launch, Pace, Process, Until, Worker, orphans};
use komado_core::session::MetaConfig;
use komado_store::Holder;
use lines::Lines;
use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// How many tasks are worked on at once; else as the settings say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: Option<u32>,
    /// End when nothing in the queue can be taken now
    #[arg(long)]
    once: bool,
    /// Work on threads of this process instead of one process for each task
    #[arg(long)]
    in_process: bool,
    /// Fetch new tasks from the trackers of the settings so often while working
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    fetch: Option<u64>,
    /// Work on the one job that is on standard input
    #[arg(long, hide = true)]
    job: bool,
    #[command(flatten)]
    wishes: Wishes,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    thrift::few_arenas();
    if args.job {
        return job::run(app, args.wishes);
    }
    // What is wrong with the settings would cost every task a try.
    app.connect(&MetaConfig::default(), &args.wishes)?;
    for orphan in orphans(&app.engine).map_err(super::task::fault)? {
        say(format!("komado: {} ({}): nobody works on it any more; stopped", orphan.session, orphan.key));
        stop::tell_tracker_of(app, &orphan.key);
    }
    if args.once && args.fetch.is_some() {
        fetch::all(app, None)?.tell();
    }
    let launch: Box<dyn Launch> = match args.in_process {
        true => Box::new(Here::new(app, args.wishes.clone())),
        false => Box::new(process()?),
    };
    let every = args.fetch.filter(|_| !args.once).map(Duration::from_secs);
    std::thread::scope(|scope| {
        let shared = app.shared();
        // Held to the end: whoever fetches ends when it is gone.
        let (until_the_end, ended) = channel::<()>();
        if let Some(every) = every {
            scope.spawn(move || while_working(every, || fetch_told(&shared), &ended));
        }
        let worked = take_tasks(app, &args, &*launch);
        drop(until_the_end);
        worked
    })
}

fn take_tasks(app: &mut App, args: &Args, launch: &dyn Launch) -> Outcome {
    let engine = app.engine.clone();
    let concurrency = args.concurrency.unwrap_or(app.config.agent.work.concurrency);
    let worker = Worker::new(&engine, launch, holder(app), pace(app), concurrency);
    let bell = worker.bell();
    signals::each(move || bell.stop())?;
    let until = if args.once { Until::Empty } else { Until::Told };
    let mut lines = Lines::new(app);
    let worked = worker.run(until, &mut |happened| lines.tell(&happened));
    lines.end()?;
    worked.map_err(super::task::fault)
}

/// Does something now and again until the channel ends.
fn while_working(every: Duration, act: impl Fn(), ended: &Receiver<()>) {
    loop {
        act();
        if ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn fetch_told(app: &App) {
    match fetch::all(app, None) {
        Ok(fetched) => fetched.tell_news(),
        Err(fault) => say(format!("komado: cannot fetch: {}", fault.message())),
    }
}

/// How jobs are taken, as the settings say.
fn pace(app: &App) -> Pace {
    let work = &app.config.agent.work;
    Pace { tries: work.tries, hidden: work.hidden, pause: work.pause, grace: work.grace, poll: work.poll }
}

fn holder(app: &App) -> Holder {
    Holder {
        pid: std::process::id(),
        host: hostname(),
        program: "komado work".to_owned(),
        since: app.engine.now(),
    }
}

/// This program once more, with the same words: settings and wishes are those of the worker.
fn process() -> Outcome<Process> {
    let args = std::env::args_os().skip(1).chain([OsString::from("--job")]).collect();
    Ok(Process { program: std::env::current_exe()?, args })
}
