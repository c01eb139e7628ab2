//! The folder a task works in: the one it names, or one of its own that is made and prepared once.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use komado_agent::sandbox::Sandbox;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_provider::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a command that prepares is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of what a command that fails says.
const SHOWN: u64 = 2_000;

/// Refuses a folder that holds the sessions: commands could not be kept from them, and neither could `read` and `edit`.
fn check(folder: &Path, sessions: &Path) -> Outcome {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !real(sessions).starts_with(real(folder)) {
        return Ok(());
    }
    Err(Fault::input(format!(
        "the sessions in {} lie in the working folder {}, where a task could read and change them: set \
         context_storage.base_dir to a folder elsewhere, or `tools.sandbox: off` and `tools.network: open` to let it",
        sessions.display(),
        folder.display()
    )))
}

/// Refuses a folder that a task may not work in, by the settings of this place.
pub(crate) fn check_named(app: &App, folder: &Path) -> Outcome {
    if app.config.agent.tools.sandbox != Sandbox::Required {
        return Ok(());
    }
    // A command starts in its folder: from there, a path that is not absolute would be another one.
    check(folder, &std::path::absolute(&app.config.base_dir)?)
}

/// The folder that a task names, or the one of its own where that was made.
pub(crate) fn there(app: &App, named: Option<PathBuf>, session: &SessionId) -> Option<PathBuf> {
    named.or_else(|| Some(all(app).join(session.as_str())).filter(|own| own.is_dir()))
}

/// Where folders are made.
fn all(app: &App) -> PathBuf {
    app.config.agent.tools.work_dir.clone().unwrap_or_else(|| app.config.base_dir.join("work"))
}

/// The folder of a task. One of its own gets its name when it is ready: a process that ended on the way leaves none.
pub(crate) fn of(app: &App, task: &Task, session: &SessionId, cancel: &Cancel) -> Outcome<PathBuf> {
    if let Some(folder) = &task.folder {
        return Ok(folder.clone());
    }
    own(app, session, |new| match &app.config.agent.tools.prepare {
        Some(command) => prepare(command, new, task, app.config.agent.tools.timeout, cancel),
        None => Ok(()),
    })
}

/// The folder of a session, made and filled by `fill` when it is not there.
pub(crate) fn own(app: &App, session: &SessionId, fill: impl FnOnce(&Path) -> Outcome) -> Outcome<PathBuf> {
    let all = all(app);
    let folder = all.join(session.as_str());
    if folder.is_dir() {
        return Ok(folder);
    }
    if all.starts_with(&app.config.base_dir) {
        app.claim()?;
    }
    komado_ops::private::folder(&all).map_err(|why| at(&all, &why))?;
    let new = komado_ops::private::temporary(".new-", &all).map_err(|why| at(&all, &why))?;
    fill(new.path())?;
    fs::rename(new.path(), &folder).map_err(|why| at(&folder, &why))?;
    drop(new.keep());
    Ok(folder)
}

/// Runs the command of the settings in a new folder. It is the user's own: it is not confined, and has the whole
/// environment, since to clone may need keys. It leads a group, so that all of it goes when it is ended early.
fn prepare(command: &str, folder: &Path, task: &Task, patience: Duration, cancel: &Cancel) -> Outcome {
    let failed = |why: String| Fault::new(Exit::Failed, format!("tools.prepare: `{command}`: {why}"));
    let said = tempfile::tempfile()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(folder).stdin(Stdio::null()).process_group(0);
    shell.stdout(said.try_clone()?).stderr(said.try_clone()?);
    shell.env("KOMADO_TASK", &task.name).env("KOMADO_URL", task.url.as_deref().unwrap_or_default());
    shell.env("KOMADO_CLONE_URL", task.clone_url.as_deref().unwrap_or_default());
    let mut child = shell.spawn().map_err(|why| failed(why.to_string()))?;
    let ended = awaited(&mut child, patience, cancel)?;
    match ended {
        Ended::Itself(status) if status.success() => Ok(()),
        Ended::Itself(status) => Err(failed(format!("{status}: {}", last_words(said)))),
        Ended::Cancelled => Err(failed("it was broken off".to_owned())),
        Ended::TooLong => Err(failed(format!(
            "it took longer than {} s (tools.timeout_seconds): {}",
            patience.as_secs(),
            last_words(said)
        ))),
    }
}

/// How a command that prepares came to its end.
enum Ended {
    Itself(ExitStatus),
    Cancelled,
    TooLong,
}

/// Waits for the end of a command, or brings it about. Nothing of its group is left then.
fn awaited(child: &mut Child, patience: Duration, cancel: &Cancel) -> io::Result<Ended> {
    let began = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Itself(status));
        }
        if cancel.is_cancelled() {
            break Ended::Cancelled;
        }
        if began.elapsed() >= patience {
            break Ended::TooLong;
        }
        std::thread::sleep(LOOK);
    };
    // It fails when nobody is left, which is what is wanted.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()?;
    Ok(ended)
}

fn last_words(mut said: fs::File) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        serde_json::from_value(serde_json::json!({
            "task_source": "local", "owner": "", "repo": "", "task_type": "task", "task_id": "a",
            "name": "local:a", "title": "t",
        }))
        .unwrap()
    }

    fn prepared(command: &str, patience: u64, cancel: &Cancel) -> (Outcome, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (prepare(command, dir.path(), &task(), Duration::from_secs(patience), cancel), dir)
    }

    fn is_gone(pid: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        let has_ended = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
        };
        while !has_ended() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        has_ended()
    }

    #[test]
    fn a_command_that_prepares_too_long_is_ended_with_all_it_started() {
        let (ended, dir) = prepared("sleep 600 & echo $! > pid; echo よし; wait", 2, &Cancel::default());
        let why = ended.unwrap_err().message().to_owned();
        assert!(why.contains("longer than 2 s (tools.timeout_seconds)"), "{why}");
        let pid = fs::read_to_string(dir.path().join("pid")).unwrap_or_default();
        assert!(is_gone(&pid), "{pid} still runs");
    }

    #[test]
    fn a_command_that_is_no_longer_wanted_is_broken_off() {
        let cancel = Cancel::default();
        cancel.cancel();
        let why = prepared("sleep 600", 600, &cancel).0.unwrap_err().message().to_owned();
        assert!(why.ends_with("it was broken off"), "{why}");
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_last_words_and_one_that_does_not_fills_the_folder() {
        let none = Cancel::default();
        let why = prepared("echo だめ; exit 3", 60, &none).0.unwrap_err().message().to_owned();
        assert!(why.contains("`echo だめ; exit 3`") && why.ends_with("だめ"), "{why}");
        let (ended, dir) = prepared("echo $KOMADO_TASK > name", 60, &none);
        assert!(ended.is_ok());
        assert_eq!(fs::read_to_string(dir.path().join("name")).unwrap(), "local:a\n");
    }

    #[test]
    fn a_folder_that_holds_the_sessions_is_refused_and_one_among_them_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (base, own) = (dir.path().join("contexts"), dir.path().join("contexts/work/s1"));
        fs::create_dir_all(&own).unwrap();
        assert!(check(&own, &base).is_ok());
        for folder in [dir.path(), &base] {
            let why = check(folder, &base).unwrap_err().message().to_owned();
            assert!(why.contains("context_storage.base_dir"), "{why}");
        }
    }
}
