//! `komado task`: what waits in the queue, what is worked on, and what became of it.

use super::work;
use super::write::read_stdin;
use crate::app::App;
use komado_core::amount::TimeUnit;
use komado_ops::choice::time;
use komado_ops::task::{
    AddTask, AddTasks, FetchTasks, ListTasks, PauseTask, ResumeTask, RetryTask, ShowTask, StopTask,
};
use komado_ops::{OpFault, OpResult};
use std::path::PathBuf;
use std::time::Duration;

verbs! {
    pub(crate) enum TaskVerb {
        /// Put a task into the queue: text, a file, or standard input
        Add(AddTaskArgs) => add,
        /// Put labelled issues from GitHub and GitLab into the queue
        Fetch(FetchTasksArgs) => fetch,
        /// List tasks that are queued, running or paused
        List(ListTasks),
        /// Show one task: its text, its state, and why
        Show(ShowTask),
        /// Pause a task
        Pause(PauseTask),
        /// Resume a paused task
        Resume(ResumeTask),
        /// Stop a task, also a running one; `retry` starts it again
        Stop(StopTask),
        /// Retry a task that failed, was stopped, or waits for its next try
        Retry(RetryTask),
        /// Take tasks from the queue and work on them
        Work(work::WorkArgs) => work::work,
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct AddTaskArgs {
    /// What to do; `-` for standard input
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    text: Option<String>,
    /// Tasks from a file: JSON lines, a JSON array, or text (a title, then the rest; --- between tasks)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// One line about it; the beginning of the text when left out
    #[arg(long)]
    title: Option<String>,
    /// The folder to work in; one of its own when left out
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The playbook to follow; the settings' when left out
    #[arg(long, value_name = "FILE")]
    playbook: Option<PathBuf>,
    /// The user the task belongs to
    #[arg(long)]
    user: Option<String>,
    /// Its name: of two with the same one only one is in the queue, and the later inherits what the earlier came to
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

fn add(app: &mut App, args: AddTaskArgs) -> OpResult {
    let AddTaskArgs { text, file, title, folder, playbook, user, key } = args;
    if let Some(file) = file {
        if key.is_some() || title.is_some() {
            return Err(OpFault::usage("--key and --title are for one task; a file says them itself"));
        }
        return app.show(AddTasks { file, user, folder, playbook });
    }
    let text = match text {
        Some(text) if text != "-" => text,
        _ => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(OpFault::usage("there is no task: write it, or pipe it in with `-`"));
    }
    app.show(AddTask { text, title, key, user, folder, playbook })
}

#[derive(clap::Args, Debug)]
pub(crate) struct FetchTasksArgs {
    /// Only from this tracker
    #[arg(long, value_name = "NAME", value_parser = ["github", "gitlab"])]
    source: Option<String>,
    /// Fetch again so often until stopped, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = time::<u64>(TimeUnit::Second, 1))]
    watch: Option<u64>,
}

fn fetch(app: &mut App, args: FetchTasksArgs) -> OpResult {
    loop {
        app.show(FetchTasks { source: args.source.clone() })?;
        app.paper.flush()?;
        let Some(seconds) = args.watch else { return Ok(()) };
        std::thread::sleep(Duration::from_secs(seconds));
    }
}
