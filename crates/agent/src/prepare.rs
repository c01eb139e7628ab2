//! Fills the new folder of a task: a command of the settings, which may clone a repository.

use crate::task::Task;
use crate::{Error, Result};
use komado_provider::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of what a command that fails says.
const SHOWN: u64 = 2_000;

/// Runs the command of the settings in a new folder. It is the user's own: it is not confined, and has the whole
/// environment, since to clone may need keys. It leads a group, so that all of it goes when it is ended early.
pub fn prepare(command: &str, folder: &Path, task: &Task, patience: Duration, cancel: &Cancel) -> Result<()> {
    let failed = |why: String| Error::Surroundings { what: format!("tools.prepare: `{command}`"), why };
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
    // It fails when no process is left, which is what is wanted.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()?;
    Ok(ended)
}

fn last_words(mut said: File) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(command: &str, patience: u64, cancel: &Cancel) -> (Result<()>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (
            prepare(command, dir.path(), &Task::of(Task::local("a")), Duration::from_secs(patience), cancel),
            dir,
        )
    }

    fn is_gone(pid: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        let has_ended = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
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
        let why = ended.unwrap_err().to_string();
        assert!(why.contains("longer than 2 s (tools.timeout_seconds)"), "{why}");
        let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap_or_default();
        assert!(is_gone(&pid), "{pid} still runs");
    }

    #[test]
    fn a_command_that_is_no_longer_wanted_is_broken_off() {
        let cancel = Cancel::default();
        cancel.cancel();
        let why = prepared("sleep 600", 600, &cancel).0.unwrap_err().to_string();
        assert!(why.ends_with("it was broken off"), "{why}");
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_last_words_and_one_that_does_not_fills_the_folder() {
        let none = Cancel::default();
        let why = prepared("echo だめ; exit 3", 60, &none).0.unwrap_err().to_string();
        assert!(why.contains("`echo だめ; exit 3`") && why.ends_with("だめ"), "{why}");
        let (ended, dir) = prepared("echo $KOMADO_TASK > name", 60, &none);
        assert!(ended.is_ok());
        assert_eq!(std::fs::read_to_string(dir.path().join("name")).unwrap(), "local:a\n");
    }
}
