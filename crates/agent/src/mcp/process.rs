//! A server's process: started with little of our environment, listened to, and gone when it should be.
//!
//! It leads a group of its own, so that what it started (`npx` and `uvx` start the real one) goes with it. Its standard error
//! is read all the time and only its end is kept: it is what explains a failure, and what nobody reads would stop the server.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::path::Path;
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

/// Variables of ours that a server gets: what a program needs to run, find its files and reach the network. Keys are not
/// among them: what a server needs of those is named in its settings.
const GIVEN: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Beginnings of names of such variables, and what in a name says that it is a key after all.
const GIVEN_GROUPS: &[&str] = &["LC_", "XDG_", "NODE_", "NPM_", "npm_", "PYTHON", "UV_"];
const KEYS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "AUTH", "KEY", "CREDENTIAL"];

/// A server's process. It is ended when this is dropped; who wants to know how it ended asks for [`fate`](Self::fate).
pub(super) struct Process {
    leave: oneshot::Sender<()>,
    watch: JoinHandle<String>,
    heard: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    /// Starts it: with its standard output and input, to be spoken to.
    pub(super) fn start(
        program: &str,
        args: &[String],
        env: &[(String, String)],
        folder: Option<&Path>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(std::env::vars_os().filter(|(name, _)| is_given(name.to_str())));
        command.envs(env.iter().map(|(name, value)| (name, value))).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(|why| {
            format!("{program:?} does not start: {why}; is it installed, and in the PATH of the worker?")
        })?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(format!("{program:?} was started without pipes"));
        };
        let heard = Arc::default();
        let listener = tokio::spawn(listen(errors, Arc::clone(&heard)));
        let (leave, left) = oneshot::channel();
        let watch = tokio::spawn(watch(child, left, listener));
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
            // It fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Waits for the end of a process, or brings it about; says how it ended.
async fn watch(mut child: Child, left: oneshot::Receiver<()>, listener: JoinHandle<()>) -> String {
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        _ = left => timeout(GRACE, child.wait()).await.ok(),
    };
    drop(group);
    let status = match ended {
        Some(status) => status,
        None => child.wait().await,
    };
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

fn is_given(name: Option<&str>) -> bool {
    name.is_some_and(|name| {
        let of_group = GIVEN_GROUPS.iter().any(|group| name.starts_with(group));
        let is_key = KEYS.iter().any(|key| name.to_ascii_uppercase().contains(key));
        GIVEN.contains(&name) || (of_group && !is_key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_what_programs_need_and_no_keys() {
        for name in
            ["PATH", "HOME", "https_proxy", "XDG_CACHE_HOME", "NODE_PATH", "PYTHONUTF8", "UV_INDEX", "LC_ALL"]
        {
            assert!(is_given(Some(name)), "{name}");
        }
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "npm_config__auth",
            "UV_PUBLISH_PASSWORD",
            "PGPASSWORD",
        ] {
            assert!(!is_given(Some(name)), "{name}");
        }
        assert!(!is_given(None), "a name that is no text");
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
