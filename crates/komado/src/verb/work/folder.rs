//! The folder a task works in: the one it names, or one of its own that is made and prepared once.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_provider::Cancel;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a command that prepares is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of what a command that fails says.
const SHOWN: u64 = 2_000;

/// The folder of a task. One of its own gets its name when it is ready: a process that ended on the way leaves none.
pub(super) fn of(app: &App, task: &Task, session: &SessionId, cancel: &Cancel) -> Outcome<PathBuf> {
    if let Some(folder) = &task.folder {
        return Ok(folder.clone());
    }
    let all = app.config.agent.tools.work_dir.clone().unwrap_or_else(|| app.config.base_dir.join("work"));
    let folder = all.join(session.as_str());
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&all).map_err(|why| at(&all, &why))?;
    let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&all).map_err(|why| at(&all, &why))?;
    if let Some(command) = &app.config.agent.tools.prepare {
        prepare(command, new.path(), task, cancel)?;
    }
    fs::rename(new.path(), &folder).map_err(|why| at(&folder, &why))?;
    drop(new.keep());
    Ok(folder)
}

/// Runs the command of the settings in a new folder. It is the user's own, so it is not confined.
fn prepare(command: &str, folder: &Path, task: &Task, cancel: &Cancel) -> Outcome {
    let failed = |why: String| Fault::new(Exit::Failed, format!("tools.prepare: `{command}`: {why}"));
    let said = tempfile::tempfile()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(folder).stdin(Stdio::null());
    shell.stdout(said.try_clone()?).stderr(said.try_clone()?);
    shell.env("KOMADO_TASK", &task.name).env("KOMADO_URL", task.url.as_deref().unwrap_or_default());
    shell.env("KOMADO_CLONE_URL", task.clone_url.as_deref().unwrap_or_default());
    let mut child = shell.spawn().map_err(|why| failed(why.to_string()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if cancel.is_cancelled() {
            child.kill()?;
            child.wait()?;
            return Err(failed("it was broken off".to_owned()));
        }
        std::thread::sleep(LOOK);
    };
    if status.success() { Ok(()) } else { Err(failed(format!("{status}: {}", last_words(said)))) }
}

fn last_words(mut said: fs::File) -> String {
    use std::io::{Seek, SeekFrom};
    let length = said.metadata().map_or(0, |about| about.len());
    let mut bytes = Vec::new();
    let read = said
        .seek(SeekFrom::Start(length.saturating_sub(SHOWN)))
        .and_then(|_| said.by_ref().take(SHOWN).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(why) => why.to_string(),
    }
}

fn at(folder: &Path, why: &std::io::Error) -> Fault {
    Fault::new(Exit::Failed, format!("the working folder {}: {why}; set tools.work_dir", folder.display()))
}
