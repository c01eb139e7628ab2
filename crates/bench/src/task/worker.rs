//! A task in the queue, and `komado task work` to work on it.

use super::super::place::BenchFolder;
use super::course::TaskCourse;
use super::ruler::{Looks, Memory, Ruler, Whose, ended};
use crate::context::BenchEngine;
use crate::error::{Error, Result};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{State, TaskKey};
use komado_store::SessionQuery;
use komado_store::queue::{Job, Queue};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A window that nothing here fills.
const NO_WINDOW: u32 = 1_000_000_000;

/// What a task took.
pub(super) struct Worked {
    /// The worker beside it, which has loaded the same program and counts nothing.
    pub(super) worker: Memory,
    /// The task's process, whenever the model was asked.
    pub(super) seen: Vec<Memory>,
    /// Bytes of the largest request.
    pub(super) request: u64,
    pub(super) seconds: f64,
}

/// Has a worker work on a task of this course.
pub(super) fn work(
    komado: &BenchEngine,
    place: &BenchFolder,
    course: &TaskCourse,
    name: &str,
) -> Result<Worked> {
    let ruler = Ruler::default();
    let server = course.model(&ruler, Whose::Child)?;
    let session = enqueue(place, course, name)?;
    let settings = place.path(&format!("{name}.yaml"));
    std::fs::write(&settings, yaml(place.base(), course, server.url()))?;
    let start = Instant::now();
    ended(command(komado, &settings, place.base()), &ruler, "komado task work")?;
    let seconds = start.elapsed().as_secs_f64();
    check(place, &session)?;
    let request = course.check(&server)?;
    let Looks { seen, parent } = ruler.looks();
    Ok(Worked { worker: parent, seen, request, seconds })
}

fn enqueue(place: &BenchFolder, course: &TaskCourse, name: &str) -> Result<SessionId> {
    let session = SessionId::new(name)?;
    let task = Task {
        key: TaskKey::local(&session),
        name: format!("local:{name}"),
        title: "Read every file".into(),
        text: "Read the files one after the other. 順番に読んでください。".into(),
        user: None,
        url: None,
        clone_url: None,
        folder: Some(course.folder.clone()),
        playbook: None,
        last_comment: None,
    };
    let (body, at) = (serde_json::to_string(&task)?, place.engine.now());
    let job = Job { session: session.clone(), key: task.name, user: None, body, at };
    place.store.enqueue(&job)?;
    Ok(session)
}

/// Everything is said in a file: nothing of the user's settings is measured.
fn yaml(base: &Path, course: &TaskCourse, url: &str) -> String {
    let window = course.window.unwrap_or(NO_WINDOW);
    let whole = match course.window {
        Some(_) => "",
        None => "tool_output_cache: {enabled: false, context_budget_tokens: 1000000000}\n",
    };
    let base = serde_json::Value::from(base.display().to_string());
    format!(
        "context_storage: {{base_dir: {base}}}\nllm:\n  provider: bench\n  bench: {{dialect: openai, base_url: {url}/v1, \
         model: bench, context_length: {window}}}\nagent: {{max_turns: 0}}\n{whole}"
    )
}

fn command(komado: &BenchEngine, settings: &Path, base: &Path) -> Command {
    let mut command = komado.command();
    command.args(["task", "work", "--once", "--config"]).arg(settings);
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("KOMADO_")) {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "127.0.0.1").current_dir(base.parent().unwrap_or(base));
    command
}

/// That the task is done is what its row says.
fn check(place: &BenchFolder, session: &SessionId) -> Result {
    let mut state = None;
    place.engine.each_session(SessionQuery::default(), |row| {
        if row.meta.uuid == session.as_str() {
            state = Some(row.status);
        }
        Ok(())
    })?;
    match state {
        Some(State::Completed) => Ok(()),
        other => Err(Error::failed(format!("the measured task did not end well: {other:?}"))),
    }
}
