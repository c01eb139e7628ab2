//! A server's process: confined like a command of the shell, listened to, and gone when it should be.
//!
//! It starts in a private folder, so that nothing in a repository is taken for the server (`python -m`, `npx` and `uvx` look
//! in the current folder first), with an environment of its own. Its standard error is read all the time and only its end is
//! kept: it is what explains a failure, and unread it would stop the server.

use super::McpTransport;
use crate::sandbox::{self, CommandInput, Environment, PrivateHome, Sandbox};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a server that was told to leave may take. Its standard input is closed then, which is how it is told.
const GRACE: Duration = Duration::from_secs(2);
/// How long is waited for the last words of one that ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Bytes of the last words that are kept, and lines that are shown.
const KEPT: usize = 4096;
const LINES: usize = 8;

/// What stands in arguments and variables for the working folder of the task.
const FOLDER: &str = "{folder}";
/// How files end that are programs with modules beside them.
const SCRIPTS: &[&str] = &["py", "js", "mjs", "cjs", "ts", "mts", "rb", "php", "pl", "jar", "sh"];

/// A server's process. It is ended when this is dropped; who wants to know how it ended asks for [`fate`](Self::fate).
pub(super) struct McpProcess {
    leave: oneshot::Sender<()>,
    watch: JoinHandle<String>,
    heard: Arc<Mutex<VecDeque<u8>>>,
}

impl McpProcess {
    /// Starts it: with its standard output and input, to be spoken to.
    pub(super) fn start(how: &McpTransport) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let McpTransport::Command { program, confinement, .. } = how else {
            return Err("it is not started here".to_owned());
        };
        let does_not = |why: &dyn std::fmt::Display| {
            format!("{program:?} does not start: {why}; is it installed, and in the PATH of the worker?")
        };
        let home = PrivateHome::new().map_err(|why| does_not(&why))?;
        let mut command = command(how, &home)?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| does_not(&why))?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(format!("{program:?} was started without pipes"));
        };
        let heard = Arc::default();
        let listener = tokio::spawn(listen(errors, Arc::clone(&heard)));
        let (leave, left) = oneshot::channel();
        // A keeper gives the server its time, and needs some itself to end all that is left.
        let grace = if confinement.launcher.is_empty() { GRACE } else { GRACE * 2 + sandbox::PATIENCE };
        let watch = tokio::spawn(watch(child, home, left, listener, grace));
        Ok((Self { leave, watch, heard }, output, input))
    }

    /// How it ended, with its last words. One that still runs after `patience` is ended first.
    pub(super) async fn fate(mut self, patience: Duration) -> String {
        let fate = match timeout(patience, &mut self.watch).await {
            Ok(fate) => fate.map_or_else(|why| why.to_string(), |fate| format!("it ended ({fate})")),
            Err(_) => {
                drop(self.leave);
                self.watch.await.map_or_else(|why| why.to_string(), |_| "it was ended".to_owned())
            }
        };
        match last_lines(&self.heard) {
            words if words.is_empty() => fate,
            words => format!("{fate}; its last words: {words}"),
        }
    }
}

/// All processes of a group are gone when this is dropped. Only made while the leader has not been waited for, or just now:
/// its number cannot belong to others yet.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It fails when no process is left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Waits for the end of a process, or brings it about; says how it ended.
async fn watch(
    mut child: Child,
    home: PrivateHome,
    left: oneshot::Receiver<()>,
    listener: JoinHandle<()>,
    grace: Duration,
) -> String {
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        _ = left => timeout(grace, child.wait()).await.ok(),
    };
    drop(group);
    let status = match ended {
        Some(status) => status,
        None => child.wait().await,
    };
    drop(home);
    // A process that left the group may still hold the pipe: its words are not waited for.
    let _ = timeout(LAST_WORDS, listener).await;
    status.map_or_else(|why| why.to_string(), told)
}

fn told(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Reads to the end, and keeps the end.
async fn listen(mut errors: impl AsyncRead + Unpin, heard: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut kept = heard.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..read]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
}

fn last_lines(heard: &Mutex<VecDeque<u8>>) -> String {
    let mut kept = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(kept.make_contiguous());
    let mut lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    lines.reverse();
    lines.join("\n")
}

/// The program with its arguments, environment and confinement.
fn command(how: &McpTransport, home: &PrivateHome) -> Result<Command, String> {
    let McpTransport::Command { program, args, env, folder, work, confinement } = how else {
        return Err("it is not started here".to_owned());
    };
    let work = work.as_ref().map(|work| work.canonicalize().unwrap_or_else(|_| work.clone()));
    let filled = |text: &str| match &work {
        Some(work) => text.replace(FOLDER, &work.to_string_lossy()),
        None => text.to_owned(),
    };
    let around = Environment::here();
    let place = match folder {
        Some(folder) => folder.clone(),
        None => private(home).map_err(|why| format!("its private folder cannot be made: {why}"))?,
    };
    let words = std::iter::once(program.clone()).chain(args.iter().map(|arg| filled(arg)));
    let words: Vec<String> = words.map(straight).collect();
    let mut reach = around.reach(std::iter::once(&place).chain(&work).cloned().collect(), home);
    reach.programs.extend(around.programs_of(program));
    reach.read.extend(words.iter().skip(1).filter_map(|word| named(word, around.home())));
    let words = words.into_iter().map(OsString::from);
    let words = confinement.words(reach, CommandInput::Relayed, words).map_err(|why| why.to_string())?;
    let (first, rest) = words.split_first().ok_or("it has no program")?;
    let mut command = Command::new(first);
    command.args(rest).current_dir(&place).env_clear();
    let own = around.home().map(Path::to_owned).filter(|_| confinement.sandbox == Sandbox::Off);
    command.envs(around.variables(home));
    // One that is not confined has its caches and settings where its user has them.
    command.envs(own.map(|home| ("HOME", home)));
    command.envs(env.iter().map(|(name, value)| (name, filled(value))));
    Ok(command)
}

/// A folder to start in that holds nothing. Programs of Node look for packages in the folders above, up to the first that
/// has some of its own.
fn private(home: &PrivateHome) -> io::Result<PathBuf> {
    let place = home.home().join("server");
    std::fs::create_dir_all(place.join("node_modules"))?;
    Ok(place)
}

/// An absolute path of something that is there, without links and `..` on the way: those are not there inside. A link at its
/// end stays: an interpreter knows its packages by it.
fn straight(word: String) -> String {
    let path = Path::new(&word);
    let parts = path.parent().zip(path.file_name()).filter(|_| path.is_absolute() && path.exists());
    let real = parts.and_then(|(folder, name)| Some(folder.canonicalize().ok()?.join(name)));
    real.and_then(|real| real.to_str().map(str::to_owned)).unwrap_or(word)
}

/// What an argument that is an absolute path lets a server read: a folder, a file, or a program with the folder it lies in,
/// where its modules are, but never the user's home as a whole.
fn named(word: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = Path::new(word);
    if !path.is_absolute() || !path.exists() {
        return None;
    }
    let is_program =
        path.extension().and_then(|kind| kind.to_str()).is_some_and(|kind| SCRIPTS.contains(&kind));
    let beside = path.parent().filter(|place| is_program && path.is_file() && *place != Path::new("/etc"));
    let holds_home =
        |place: &Path| place.parent().is_none() || home.is_some_and(|home| home.starts_with(place));
    Some(beside.filter(|place| !holds_home(place)).unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_reads_the_files_that_its_arguments_name_and_never_a_whole_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        std::fs::create_dir_all(home.join("servers")).unwrap();
        for file in ["home/servers/a.py", "home/servers/a.json", "home/b.py"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let read = |path: &Path| named(path.to_str().unwrap(), Some(&home));
        assert_eq!(read(&home.join("servers/a.py")), Some(home.join("servers")));
        assert_eq!(read(&home.join("servers")), Some(home.join("servers")));
        assert_eq!(read(&home.join("servers/a.json")), Some(home.join("servers/a.json")));
        assert_eq!(read(&home.join("b.py")), Some(home.join("b.py")));
        assert_eq!(read(&home.join("gone.py")), None);
        assert_eq!(named("servers/a.py", Some(&home)), None);
    }

    #[test]
    fn a_path_is_handed_on_without_links_on_the_way_and_with_one_at_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("venv/bin")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/env", root.join("venv/bin/python")).unwrap();
        std::os::unix::fs::symlink("venv", root.join("link")).unwrap();
        let word = |text: &str| straight(format!("{}/{text}", root.display()));
        let real = root.join("venv/bin/python").display().to_string();
        assert_eq!([word("link/bin/python"), word("venv/../link/bin/python")], [real.clone(), real]);
        assert_eq!(straight("../x".to_owned()), "../x");
        assert_eq!(straight("/gone/../x".to_owned()), "/gone/../x");
    }

    #[test]
    fn only_the_end_of_what_a_server_complains_about_is_kept() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let heard = Arc::default();
        let mut text = "はじめ\n".repeat(10_000);
        text.push_str("\n\nlast but one\n終わり\n");
        runtime.block_on(listen(text.as_bytes(), Arc::clone(&heard)));
        assert_eq!(heard.lock().unwrap().len(), KEPT);
        let shown = last_lines(&heard);
        assert!(shown.ends_with("last but one\n終わり") && shown.lines().count() == LINES, "{shown}");
    }
}
