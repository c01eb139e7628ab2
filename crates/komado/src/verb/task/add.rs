//! `komado task add`: put a task into the queue by hand.

use super::put::{Put, bare, fresh, local, put, why_known};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::kit;
use crate::paper::say;
use crate::verb::append::read_stdin;
use crate::verb::playbook;
use clap::Args as ClapArgs;
use komado_agent::source;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::TaskKey;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Characters of a text that become its title.
const TITLE: usize = 80;
/// Characters of a key that is refused that are shown.
const SHOWN: usize = 40;
/// The longest name that a key gives, in characters.
const MOST_KEY: usize = 200;

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
    let Some(path) = &args.file else { return one(app, &args) };
    if args.key.is_some() || args.title.is_some() {
        return Err(Fault::usage("--key and --title are for one task; a file says them itself"));
    }
    // All of it is looked at before any of it is queued.
    let tasks = from_file(path)?;
    let tasks = tasks.into_iter().map(|task| settled(app, &args, task)).collect::<Outcome<Vec<_>>>()?;
    let mut queued = 0;
    for task in &tasks {
        match add(app, fresh()?, task.clone())? {
            Put::Queued(_) => queued += 1,
            Put::Known => say(format!("komado: {}", why_known(app, &task.name)?)),
        }
    }
    match queued {
        0 => Err(Fault::new(Exit::Refused, format!("{}: all of it is in the queue already", path.display()))),
        _ => Ok(()),
    }
}

fn one(app: &mut App, args: &Args) -> Outcome {
    let text = match args.text.as_deref() {
        Some("-") | None => read_stdin()?,
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Fault::usage("nothing is to be done: write the task, or pipe it in with `-`"));
    }
    let session = fresh()?;
    let key = key(args.key.as_deref(), &session)?;
    let title = args.title.clone().unwrap_or_else(|| first_line(&text));
    let task = settled(app, args, Task { title, text, ..bare(key) })?;
    let name = task.name.clone();
    match add(app, session, task)? {
        Put::Queued(_) => Ok(()),
        Put::Known => Err(Fault::new(Exit::Refused, why_known(app, &name)?)),
    }
}

/// With what the command line says, and paths that the worker finds. What would fail when it begins is refused now.
fn settled(app: &App, args: &Args, task: Task) -> Outcome<Task> {
    let path = |given: &Option<PathBuf>, own: Option<PathBuf>, what| {
        given.clone().or(own).map(|path| there(&path, what)).transpose()
    };
    let folder = path(&args.folder, task.folder, "folder")?;
    let playbook = path(&args.playbook, task.playbook, "playbook")?;
    if let Some(folder) = &folder {
        kit::folder::check_named(app, folder)?;
    }
    if let Some(path) = &playbook {
        playbook::right(Some(path), playbook::most_depth(app))?;
    }
    Ok(Task { user: args.user.clone().or(task.user), folder, playbook, ..task })
}

/// Queues it, and says so.
fn add(app: &mut App, session: SessionId, task: Task) -> Outcome<Put> {
    let name = task.name.clone();
    let put_in = put(app, session, task)?;
    if let Put::Queued(session) = &put_in {
        let undo = format!("komado task stop {session}");
        if app.paper.json {
            let row = json!({ "session": session.as_str(), "task": name, "state": "queued", "undo": undo });
            app.paper.json(&row)?;
        } else {
            app.paper.line(session.as_str())?;
            say(format!("undo: {undo}"));
        }
    }
    Ok(put_in)
}

fn from_file(path: &Path) -> Outcome<Vec<Task>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|why| {
        let exit = if why.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::BadInput };
        Fault::new(exit, format!("{name}: {why}"))
    })?;
    let tasks = source::read(&name, &text).map_err(|why| super::fault(why.into()))?;
    if tasks.is_empty() {
        return Err(Fault::input(format!("{name}: there is no task in it")));
    }
    Ok(tasks)
}

/// The key as it was given: an issue's, or a name; the session's own when there is none.
fn key(given: Option<&str>, session: &SessionId) -> Outcome<TaskKey> {
    match given {
        None => Ok(local(session.as_str())),
        Some(text) if text.starts_with("github:") || text.starts_with("gitlab:") => {
            TaskKey::parse(text).map_err(Fault::usage)
        }
        Some(text) => {
            let name = text.strip_prefix("local:").unwrap_or(text).trim();
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(Fault::usage(format!(
                    "not a task key: {text:?}: write a name, such as fix-login"
                )));
            }
            let length = name.chars().count();
            if length > MOST_KEY {
                return Err(Fault::usage(format!(
                    "the task key {:?}… has {length} characters: write at most {MOST_KEY}",
                    name.chars().take(SHOWN).collect::<String>()
                )));
            }
            Ok(local(name))
        }
    }
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let cut: String = line.chars().take(TITLE).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

/// A path that the worker finds, wherever it runs.
fn there(path: &Path, what: &str) -> Outcome<PathBuf> {
    path.canonicalize()
        .map_err(|why| Fault::new(Exit::NotFound, format!("the {what} {}: {why}", path.display())))
}
