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
        /// Put the issues that wait at GitHub and GitLab into the queue
        Fetch(FetchTasksArgs) => fetch,
        /// List tasks: those in the queue, and those that are worked on or rest
        List(ListTasks),
        /// Show one task: its words, where it stands, and why
        Show(ShowTask),
        /// Let a task rest
        Pause(PauseTask),
        /// Let a task that rests go on
        Resume(ResumeTask),
        /// End a task, also one that is worked on; `retry` takes it up again
        Stop(StopTask),
        /// Take up a task again that failed or was stopped, or that waits to be tried again
        Retry(RetryTask),
        /// Take tasks from the queue and work on them
        Work(work::WorkArgs) => work::work,
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct AddTaskArgs {
    /// What is to be done; `-` for standard input
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
    /// Whose task it is
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
        return Err(OpFault::usage("nothing is to be done: write the task, or pipe it in with `-`"));
    }
    app.show(AddTask { text, title, key, user, folder, playbook })
}

#[derive(clap::Args, Debug)]
pub(crate) struct FetchTasksArgs {
    /// Only from this tracker
    #[arg(long, value_name = "NAME", value_parser = ["github", "gitlab"])]
    source: Option<String>,
    /// Fetch again after so long, such as 90s or 5m, until stopped
    #[arg(long, value_name = "SECONDS", value_parser = time::<u64>(TimeUnit::Second, 1))]
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
