//! `shell`: runs a command line, confined, and tells what it printed and how it ended.
//!
//! It gets an environment of its own, so that no key of ours is in it, and a home and a place for temporary files that are
//! gone when the task's process ends. It and all it started in its group are killed when it ends, prints too much, takes
//! too long or is not wanted any more. Who left the group can hold the pipe open, but nobody waits for that.

use super::arguments::Arguments;
use super::confine::Reach;
use super::spool::Spool;
use super::{Sandbox, Workshop, allow, identity};
use crate::tools::Answer;
use komado_provider::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often a cancellation is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long what is still in the pipe is waited for once the command has ended.
const GRACE: Duration = Duration::from_millis(300);
/// What commands may know of our environment. No key is ever in these.
const KNOWN: &[&str] = &["LANG", "LC_ALL", "TZ", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT"];

pub(super) struct Shell {
    workshop: Workshop,
    folder: PathBuf,
    /// Home and temporary files of commands; made for the first one.
    scratch: Option<TempDir>,
}

impl Shell {
    pub(super) const fn new(workshop: Workshop, folder: PathBuf) -> Self {
        Self { workshop, folder, scratch: None }
    }

    pub(super) fn run(&mut self, given: &Arguments, cancel: &Cancel) -> Result<Answer, String> {
        let line = given.needed("command")?;
        if line.trim().is_empty() {
            return Err("shell: command is empty; write a command line".to_owned());
        }
        allow::check(line, &self.workshop.allow)?;
        let asked = given.number("timeout_seconds")?.map(Duration::from_secs);
        let timeout = asked.map_or(self.workshop.timeout, |asked| asked.min(self.workshop.timeout));
        let most = self.workshop.most_output;
        let bad = |error: io::Error| format!("shell: the command could not be run: {error}");
        let command = self.command(line).map_err(bad)?;
        let running = Running::start(command).map_err(bad)?;
        running.watched(Bounds { timeout, most, cancel }).map_err(bad)
    }

    /// The command, with its environment and its walls.
    fn command(&mut self, line: &str) -> io::Result<Command> {
        let around = Around::here();
        let shell = [around.shell().into(), OsString::from("-c"), OsString::from(line)];
        let scratch = self.scratch()?;
        let (home, temporary) = (scratch.join("home"), scratch.join("tmp"));
        let words: Vec<OsString> = match self.workshop.sandbox {
            Sandbox::Off => shell.into(),
            Sandbox::Required if self.workshop.jailer.is_empty() => {
                return Err(io::Error::other(
                    "nothing is there to keep it inside the folder; set `tools.sandbox: off` to run it without",
                ));
            }
            Sandbox::Required => {
                let reach = around.reach(vec![self.folder.clone(), scratch]);
                self.workshop.jailer.iter().cloned().chain(reach.words()).chain(shell).collect()
            }
        };
        let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(rest).current_dir(&self.folder).stdin(Stdio::null()).process_group(0).env_clear();
        command.envs(around.known).env("PATH", around.path).env("TERM", "dumb");
        command.env("HOME", home).env("TMPDIR", temporary);
        if let Some(rustup) = around.rustup {
            command.env("RUSTUP_HOME", rustup);
        }
        Ok(command)
    }

    fn scratch(&mut self) -> io::Result<PathBuf> {
        if let Some(scratch) = &self.scratch {
            return scratch.path().canonicalize();
        }
        let scratch = tempfile::Builder::new().prefix("komado-shell-").tempdir()?;
        let home = scratch.path().join("home");
        std::fs::create_dir(&home)?;
        std::fs::create_dir(scratch.path().join("tmp"))?;
        identity::write(&home)?;
        self.scratch.insert(scratch).path().canonicalize()
    }
}

/// What of our own surroundings a command may know.
struct Around {
    path: OsString,
    home: Option<PathBuf>,
    rustup: Option<PathBuf>,
    known: Vec<(&'static str, OsString)>,
}

impl Around {
    fn here() -> Self {
        let var = |name: &'static str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = var("HOME").map(PathBuf::from);
        let rustup = var("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".rustup")));
        let mut known: Vec<_> = KNOWN.iter().filter_map(|name| Some((*name, var(name)?))).collect();
        if !known.iter().any(|(name, _)| *name == "LANG") {
            known.push(("LANG", "C.UTF-8".into()));
        }
        Self {
            path: var("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            rustup: rustup.filter(|folder| folder.is_dir()),
            home,
            known,
        }
    }

    fn shell(&self) -> &'static str {
        if std::env::split_paths(&self.path).any(|folder| folder.join("bash").is_file()) {
            "bash"
        } else {
            "sh"
        }
    }

    fn reach(&self, write: Vec<PathBuf>) -> Reach {
        let told = |name: &str| self.known.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let tools = ["JAVA_HOME", "GOROOT"].iter().filter_map(|name| told(name)).map(PathBuf::from);
        Reach {
            write,
            programs: std::env::split_paths(&self.path).filter(|folder| folder.is_absolute()).collect(),
            read: self
                .rustup
                .iter()
                .cloned()
                .chain(tools)
                .filter(|folder: &PathBuf| Path::is_dir(folder))
                .collect(),
            hide: Vec::new(),
            home: self.home.clone(),
        }
    }
}

/// When a command is ended early.
struct Bounds<'a> {
    timeout: Duration,
    most: u64,
    cancel: &'a Cancel,
}

/// How a command came to its end.
enum Ended {
    Itself,
    TooMuch(u64),
    TooLong(Duration),
    Cancelled,
}

/// A command that runs.
struct Running {
    child: Child,
    /// Tells when it ends.
    exit: OwnedFd,
    output: Option<PipeReader>,
    spool: Spool,
    ends_in_line: bool,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Self> {
        let (output, input) = io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn()?;
        drop(command);
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(exit) => {
                Ok(Self { child, exit, output: Some(output), spool: Spool::new(), ends_in_line: true })
            }
            Err(errno) => {
                end(&mut child)?;
                Err(errno.into())
            }
        }
    }

    /// Spools its output until it ends or has to, and says how.
    fn watched(mut self, bounds: Bounds<'_>) -> io::Result<Answer> {
        let ended = self.followed(&bounds);
        let status = end(&mut self.child)?;
        let mut ended = ended?;
        if matches!(ended, Ended::Itself) && self.drained(bounds.most)? {
            ended = Ended::TooMuch(bounds.most);
        }
        if !self.ends_in_line {
            self.spool.bytes(b"\n")?;
        }
        let is_error = !(matches!(ended, Ended::Itself) && status.success());
        self.spool.line(&last_words(&ended, status))?;
        self.spool.answer(is_error)
    }

    fn followed(&mut self, bounds: &Bounds<'_>) -> io::Result<Ended> {
        let began = Instant::now();
        loop {
            let has_ended = self.wait(LOOK.min(bounds.timeout))?;
            if self.spool.written() >= bounds.most {
                return Ok(Ended::TooMuch(bounds.most));
            }
            if has_ended {
                return Ok(Ended::Itself);
            }
            if bounds.cancel.is_cancelled() {
                return Ok(Ended::Cancelled);
            }
            if began.elapsed() >= bounds.timeout {
                return Ok(Ended::TooLong(bounds.timeout));
            }
            self.read(bounds.most)?;
        }
    }

    /// Waits until there is output or the command has ended; true for the latter.
    fn wait(&self, most: Duration) -> io::Result<bool> {
        let mut watched = vec![PollFd::new(&self.exit, PollFlags::IN)];
        watched.extend(self.output.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        match poll(&mut watched, Some(&time(most))) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads what there is, if there is any. False at the end of the output.
    fn read(&mut self, most: u64) -> io::Result<bool> {
        let Some(output) = &mut self.output else { return Ok(false) };
        let mut ready = [PollFd::new(&*output, PollFlags::IN)];
        if poll(&mut ready, Some(&time(Duration::ZERO)))? == 0 {
            return Ok(true);
        }
        let mut buffer = [0; 16 << 10];
        let length = output.read(&mut buffer)?;
        if length == 0 {
            self.output = None;
            return Ok(false);
        }
        let left = usize::try_from(most.saturating_sub(self.spool.written())).unwrap_or(usize::MAX);
        let kept = &buffer[..length.min(left)];
        self.spool.bytes(kept)?;
        self.ends_in_line = kept.last().is_none_or(|last| *last == b'\n');
        Ok(true)
    }

    /// Reads what was printed before the end and not read yet; true when that is too much.
    fn drained(&mut self, most: u64) -> io::Result<bool> {
        let began = Instant::now();
        while began.elapsed() < GRACE && self.spool.written() < most {
            let Some(output) = &self.output else { break };
            let mut ready = [PollFd::new(output, PollFlags::IN)];
            poll(&mut ready, Some(&time(GRACE.saturating_sub(began.elapsed()))))?;
            if !self.read(most)? {
                break;
            }
        }
        Ok(self.spool.written() >= most)
    }
}

/// Kills the command and its group, and takes its last word. The group goes first: as long as its leader is not taken
/// leave of, nobody else can have its number.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    // An empty group is no fault: then all of it has ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()
}

fn time(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
}

fn last_words(ended: &Ended, status: ExitStatus) -> String {
    match ended {
        Ended::TooMuch(most) => {
            format!("[killed: it printed more than {most} bytes; narrow it down, or write to a file]")
        }
        Ended::TooLong(timeout) => format!("[killed: it took longer than {} s]", timeout.as_secs_f32()),
        Ended::Cancelled => "[killed: the call was cancelled]".to_owned(),
        Ended::Itself => match (status.code(), status.signal()) {
            (Some(code), _) => format!("[exit code {code}]"),
            (None, Some(signal)) => format!("[ended by signal {signal}]"),
            (None, None) => format!("[{status}]"),
        },
    }
}
