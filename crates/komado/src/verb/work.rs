//! `komado work`: take tasks from the queue and work on them, each in a process of its own.
//!
//! What the worker prints is progress, a line each; what a task says is in its session.

mod apart;
mod here;
mod job;
mod lines;
mod waiting;

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use crate::render::task::counted;
use crate::stores::holder;
use crate::{signals, thrift};
use apart::Apart;
use clap::Args as ClapArgs;
use here::Here;
use komado_agent::worker::{Happened, Launch, Until, Worker, orphans};
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, SCRIPTED_TOOL_WINDOW};
use komado_ops::Context;
use komado_ops::choice::ModelArgs;
use komado_ops::task::{FetchTasks, FetchedTasks, tell_tracker_stopped};
use komado_ops::work::Runner;
use komado_provider::Cancel;
use komado_store::Holder;
use lines::Lines;
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
    model: ModelArgs,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    thrift::few_arenas();
    let choice = ModelChoice { scripted_window: Some(SCRIPTED_TOOL_WINDOW), ..args.model.clone().into() };
    let runner = Runner { context: app.context.clone(), choice, counting: thrift::unpack };
    if args.job {
        return job::run(&runner);
    }
    // What is wrong with the settings would cost every task a try.
    app.models().resolve(&MetaConfig::default(), &runner.choice)?;
    for orphan in orphans(&app.context.engine)? {
        say(format!("komado: {} ({}): nobody works on it any more; stopped", orphan.session, orphan.key));
        tell_tracker_stopped(&app.context, &orphan.key);
    }
    if args.once && args.fetch.is_some() {
        let fetched = app.run(FetchTasks::default())?;
        tell_new(&fetched);
        say(format!("komado: {}", counted(&fetched)));
    }
    let context = app.context.clone();
    let launch: Box<dyn Launch> = match args.in_process {
        true => Box::new(Here(runner)),
        false => Box::new(Apart::new(runner)?),
    };
    let every = args.fetch.filter(|_| !args.once).map(Duration::from_secs);
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        // Held to the end: the thread that fetches ends when it is gone.
        let (until_the_end, ended) = channel::<()>();
        if let Some(every) = every {
            let cancel = cancel.clone();
            scope.spawn(move || while_working(every, || fetch(&context, &cancel), &ended));
        }
        let worked = take_tasks(app, &args, &*launch);
        cancel.cancel();
        drop(until_the_end);
        worked
    })
}

fn take_tasks(app: &mut App, args: &Args, launch: &dyn Launch) -> Outcome {
    let engine = app.context.engine.clone();
    let concurrency = args.concurrency.unwrap_or(app.context.config.agent.concurrency);
    let holder = Holder { program: "komado work".to_owned(), ..holder() };
    let worker = Worker::new(&engine, launch, holder, app.context.config.agent.pace, concurrency);
    let bell = worker.bell();
    signals::each(signals::ALL, move || bell.stop())?;
    let until = if args.once { Until::Empty } else { Until::Told };
    let (mut taken, mut is_stopped) = (0, false);
    let mut lines = Lines::new(app);
    let worked = worker.run(until, &mut |happened| {
        taken += u64::from(matches!(happened, Happened::Taken(_)));
        is_stopped |= matches!(happened, Happened::Stopping { .. });
        lines.tell(&happened);
    });
    lines.end()?;
    worked?;
    if args.once && !is_stopped {
        waiting::tell(&app.context, taken)?;
    }
    Ok(())
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

fn fetch(context: &Context, cancel: &Cancel) {
    match FetchTasks::default().until(context, cancel) {
        Ok(fetched) => tell_new(&fetched),
        Err(fault) => say(format!("komado: cannot fetch: {}", fault.message())),
    }
}

/// Tells the person what is new.
fn tell_new(fetched: &FetchedTasks) {
    for new in &fetched.queued {
        say(format!("komado: {} is queued as {}", new.task, new.session));
    }
}
