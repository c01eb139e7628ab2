//! `komado task work`: take tasks from the queue and work on them, each in a process of its own.
//!
//! What the worker prints is progress, a line each; what a task says is in its session.

mod lines;

use crate::app::{App, holder};
use crate::cli_output::say;
use crate::render::task::counted;
use crate::server::log;
use crate::{process, signals};
use komado_agent::handler::TaskOrders;
use komado_agent::progress::{TaskOrder, TaskProgress};
use komado_agent::worker::{
    ChildHandle, JobExit as ProcessExit, JobRunner, StopWhen, TaskProcess, Worker, WorkerEvent, orphans,
    read_taken,
};
use komado_core::amount::TimeUnit;
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, SCRIPTED_TOOL_WINDOW};
use komado_ops::choice::{ModelArgs, time};
use komado_ops::task::{FetchTasks, FetchedTasks, tell_tracker_stopped};
use komado_ops::work::Runner;
use komado_ops::{FaultKind, OpFault, OpResult, OperationContext};
use komado_provider::Cancel;
use komado_store::{Holder, TakenJob};
use std::ffi::OsString;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(crate) struct WorkArgs {
    /// How many tasks to work on at once; default: the settings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: Option<u32>,
    /// End when nothing in the queue can be taken now
    #[arg(long)]
    once: bool,
    /// Work on threads of this process instead of one process for each task
    #[arg(long)]
    in_process: bool,
    /// Fetch new tasks from the trackers of the settings so often while working, such as 90s or 5m
    #[arg(long, value_name = "SECONDS", value_parser = time::<u64>(TimeUnit::Second, 1))]
    fetch: Option<u64>,
    /// Work on the one job that is on standard input
    #[arg(long, hide = true)]
    job: bool,
    #[command(flatten)]
    model: ModelArgs,
}

pub(crate) fn work(app: &mut App, args: WorkArgs) -> OpResult {
    process::few_arenas();
    let choice = ModelChoice { scripted_window: Some(SCRIPTED_TOOL_WINDOW), ..args.model.clone().into() };
    let runner = Runner { context: app.context.clone(), choice, counting: process::unpack };
    if args.job {
        return work_on_job(&runner);
    }
    // What is wrong with the settings would cost every task a try.
    app.models().resolve(&MetaConfig::default(), &runner.choice)?;
    for orphan in orphans(&app.context.engine)? {
        say(format!("komado: {} ({}): no worker works on it any more; stopped", orphan.session, orphan.key));
        tell_tracker_stopped(&app.context, &orphan.key);
    }
    if args.once && args.fetch.is_some() {
        let fetched = app.run(FetchTasks::default())?;
        tell_new(&fetched);
        say(format!("komado: {}", counted(&fetched)));
    }
    let context = app.context.clone();
    let launch: Box<dyn JobRunner> = match args.in_process {
        true => Box::new(ThreadLauncher(runner)),
        false => Box::new(ProcessLauncher::new(runner)?),
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

fn take_tasks(app: &mut App, args: &WorkArgs, launch: &dyn JobRunner) -> OpResult {
    let engine = app.context.engine.clone();
    let concurrency = args.concurrency.unwrap_or(app.context.config.agent.concurrency);
    let holder = Holder { program: "komado task work".to_owned(), ..holder() };
    let worker = Worker::new(&engine, launch, holder, app.context.config.agent.pace, concurrency);
    let bell = worker.bell();
    signals::each(signals::ALL, move || bell.stop())?;
    let until = if args.once { StopWhen::Empty } else { StopWhen::Told };
    let (mut taken, mut is_stopped) = (0, false);
    let mut lines = lines::WorkerOutput::new(app);
    let worked = worker.run(until, &mut |happened| {
        taken += u64::from(matches!(happened, WorkerEvent::Taken(_)));
        is_stopped |= matches!(happened, WorkerEvent::Stopping { .. });
        lines.tell(&happened);
    });
    lines.end()?;
    worked?;
    if args.once && !is_stopped {
        lines::tell_waiting(&app.context, taken)?;
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

fn fetch(context: &OperationContext, cancel: &Cancel) {
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

/// Each task in a process of its own. When all of them died, this one tells so: it does nothing of what they died of.
struct ProcessLauncher {
    runner: Runner,
    process: TaskProcess,
}

impl ProcessLauncher {
    /// This program once more, with the same words: settings and wishes are those of the worker.
    fn new(runner: Runner) -> OpResult<Self> {
        let args = std::env::args_os().skip(1).chain([OsString::from("--job")]).collect();
        Ok(Self { runner, process: TaskProcess { program: std::env::current_exe()?, args } })
    }
}

impl JobRunner for ProcessLauncher {
    fn run(
        &self,
        taken: &TakenJob,
        leash: &ChildHandle,
        tell: &(dyn Fn(TaskProgress) + Sync),
    ) -> ProcessExit {
        self.process.run(taken, leash, tell)
    }

    fn give_up(&self, taken: &TakenJob, why: &str, tell: &(dyn Fn(TaskProgress) + Sync)) {
        self.runner.give_up(taken, why, tell);
    }
}

/// Tasks on threads of the worker's own process: less to start, and one that brings the process down brings all down.
struct ThreadLauncher(Runner);

impl JobRunner for ThreadLauncher {
    fn run(
        &self,
        taken: &TakenJob,
        leash: &ChildHandle,
        tell: &(dyn Fn(TaskProgress) + Sync),
    ) -> ProcessExit {
        let orders = Arc::new(self.0.orders());
        let (rest, end) = (Arc::clone(&orders), Arc::clone(&orders));
        leash.tie(move || rest.give(TaskOrder::Leave("its worker ends".into())), move || end.hurry());
        let ran = self.0.run(taken, &orders, tell);
        leash.untie();
        match ran {
            Ok(()) => ProcessExit::Finished,
            Err(fault) => ProcessExit::Died(fault.message().to_owned()),
        }
    }

    fn give_up(&self, taken: &TakenJob, why: &str, tell: &(dyn Fn(TaskProgress) + Sync)) {
        self.0.give_up(taken, why, tell);
    }
}

/// Most bytes of a job.
const MOST: u64 = 64 << 20;
/// How long after its step was ended a task may take to come to rest.
const STUCK: Duration = Duration::from_secs(30);
/// The variable that says how much is logged.
const LOG: &str = "KOMADO_LOG";

/// The process of one task: its job comes on standard input, its progress goes to standard output, a line of JSON each.
///
/// The end of the input means that the worker is gone or wants the task to rest; so does a signal. A second signal ends
/// what is under way at once.
fn work_on_job(runner: &Runner) -> OpResult {
    let level = std::env::var(LOG).unwrap_or_else(|_| "warn,rmcp=off".to_owned());
    log::begin(Some(&level), log::LogFormat::Text, None)?;
    let mut line = String::new();
    std::io::stdin().lock().take(MOST).read_line(&mut line)?;
    let taken = read_taken(&line).map_err(|why| {
        OpFault::input(format!(
            "standard input holds no job ({why}); `komado task work` starts this, not you"
        ))
    })?;
    let orders = Arc::new(runner.orders());
    leave_at_the_end_of_input(&orders)?;
    leave_on_signals(&orders)?;
    end_when_stuck(&orders)?;
    runner.run(&taken, &orders, &print)
}

/// A worker that is gone hears nothing; the task goes on to where it can rest.
fn print(progress: TaskProgress) {
    if let Ok(line) = serde_json::to_string(&progress) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

fn leave_at_the_end_of_input(orders: &Arc<TaskOrders>) -> OpResult {
    beside("komado-leash", orders, |orders| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        orders.give(TaskOrder::Leave("its worker ends".into()));
    })
}

/// A task that hangs in something that cannot be broken off must not keep its worker from the next one. What it started
/// ends with this process, and a task whose job is still there is tried again.
fn end_when_stuck(orders: &Arc<TaskOrders>) -> OpResult {
    beside("komado-stuck", orders, |orders| {
        if orders.is_stuck(STUCK) {
            tracing::error!(
                "the task has not stopped {} s after it was told to: its process ends",
                STUCK.as_secs()
            );
            std::process::exit(FaultKind::Failed as i32);
        }
    })
}

/// Does something on a thread of its own.
fn beside(name: &str, orders: &Arc<TaskOrders>, work: fn(&TaskOrders)) -> OpResult {
    let orders = Arc::clone(orders);
    std::thread::Builder::new().name(name.into()).spawn(move || work(&orders))?;
    Ok(())
}

fn leave_on_signals(orders: &Arc<TaskOrders>) -> OpResult {
    let orders = Arc::clone(orders);
    signals::each(signals::ALL, move || match orders.now() {
        None => orders.give(TaskOrder::Leave("its process was asked to end".into())),
        Some(_) => orders.hurry(),
    })
}
