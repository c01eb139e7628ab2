//! `komado task add`: put a task into the queue by hand, given, piped in or from a file.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::verb::append::read_stdin;
use clap::Args as ClapArgs;
use komado_ops::task::{AddTask, AddTasks};
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
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

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let Args { text, file, title, folder, playbook, user, key } = args;
    if let Some(file) = file {
        if key.is_some() || title.is_some() {
            return Err(Fault::usage("--key and --title are for one task; a file says them itself"));
        }
        return app.show(AddTasks { file, user, folder, playbook });
    }
    let text = match text {
        Some(text) if text != "-" => text,
        _ => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(Fault::usage("nothing is to be done: write the task, or pipe it in with `-`"));
    }
    app.show(AddTask { text, title, key, user, folder, playbook })
}
