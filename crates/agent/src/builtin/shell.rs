//! `shell`: runs a command line, confined, and tells what it printed and how it ended.
//!
//! It gets an environment of its own, so that no key of ours is in it, and a home and a place for temporary files that are
//! gone with the task's process (see `home`). A keeper stays with it (see `keeper`): when it ends, prints too much, takes
//! too long, is not wanted any more or we are killed, it and all it started are.

use super::spool::OutputSpool;
use super::{BuiltinConfig, ToolArguments, allow, needed, number};
use crate::sandbox::{self, CommandInput, Environment, PrivateHome, Unlinked, family};
use crate::tools::ToolAnswer;
use komado_provider::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a cancellation is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long what is still in the pipe is waited for once the command has ended.
const GRACE: Duration = Duration::from_millis(300);
/// How long a keeper may take to end all it keeps; it gives up sooner by itself.
const PATIENCE: Duration = sandbox::PATIENCE.saturating_mul(3);

pub(super) struct Shell {
    workshop: BuiltinConfig,
    folder: PathBuf,
    /// Home and temporary files of commands; made for the first one.
    home: Option<PrivateHome>,
    /// What commands have written; counted from the first one.
    disk: Option<DiskUse>,
}

impl Shell {
    pub(super) const fn new(workshop: BuiltinConfig, folder: PathBuf) -> Self {
        Self { workshop, folder, home: None, disk: None }
    }

    pub(super) fn run(&mut self, given: &ToolArguments, cancel: &Cancel) -> Result<ToolAnswer, String> {
        let line = needed(given, "command")?;
        if line.trim().is_empty() {
            return Err("shell: command is empty; write a command line".to_owned());
        }
        allow::check(line, &self.workshop.allow)?;
        let asked = number(given, "timeout_seconds")?.map(Duration::from_secs);
        let timeout = asked.map_or(self.workshop.timeout, |asked| asked.min(self.workshop.timeout));
        let most = self.workshop.most_output;
        let bad = |error: io::Error| format!("shell: the command could not be run: {error}");
        let mut command = self.command(line).map_err(bad)?;
        let tie = self.tie(&mut command).map_err(bad)?;
        let disk = self.disk();
        let running = Running::start(command, tie).map_err(bad)?;
        running.watched(Bounds { timeout, most, cancel, disk }).map_err(bad)
    }

    /// The command, with its environment, its confinement and its keeper.
    fn command(&mut self, line: &str) -> io::Result<Command> {
        let around = Environment::here();
        let shell = [around.shell().into(), OsString::from("-c"), OsString::from(line)];
        let home = self.home.take().map_or_else(PrivateHome::new, Ok)?;
        let home = self.home.insert(home);
        let reach = around.reach(vec![self.folder.clone()], home);
        let words =
            self.workshop.confinement.words(reach, CommandInput::Empty, shell).map_err(io::Error::other)?;
        let (program, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(rest).current_dir(&self.folder).stdin(Stdio::null()).process_group(0).env_clear();
        command.envs(around.variables(home));
        Ok(command)
    }

    fn disk(&mut self) -> &mut DiskUse {
        let home = self.home.as_ref().map(|home| [home.home(), home.temporary()]);
        let folders = std::iter::once(self.folder.clone()).chain(home.into_iter().flatten());
        let most = self.workshop.confinement.limits.disk;
        self.disk.get_or_insert_with(|| DiskUse::new(folders.collect(), most))
    }

    /// What holds the command's keeper, as its input: the kernel lets go of it when we are killed.
    fn tie(&self, command: &mut Command) -> io::Result<Option<UnixStream>> {
        if self.workshop.confinement.launcher.is_empty() {
            return Ok(None);
        }
        let (ours, theirs) = UnixStream::pair()?;
        command.stdin(OwnedFd::from(theirs));
        Ok(Some(ours))
    }
}

/// When a command is ended early.
struct Bounds<'a> {
    timeout: Duration,
    most: u64,
    cancel: &'a Cancel,
    disk: &'a mut DiskUse,
}

/// How a command came to its end.
enum Ended {
    Itself,
    TooMuch(u64),
    TooLong(Duration),
    TooLarge(u64),
    Cancelled,
}

/// A command that runs.
struct Running {
    child: Child,
    /// What holds its keeper, where it has one.
    tie: Option<UnixStream>,
    /// Tells when it ends.
    exit: OwnedFd,
    output: Option<PipeReader>,
    spool: OutputSpool,
    ends_in_line: bool,
}

impl Running {
    fn start(mut command: Command, tie: Option<UnixStream>) -> io::Result<Self> {
        let (output, input) = io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn()?;
        drop(command);
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(exit) => {
                let (output, spool) = (Some(output), OutputSpool::new());
                Ok(Self { child, tie, exit, output, spool, ends_in_line: true })
            }
            Err(errno) => {
                drop(tie);
                child.kill()?;
                child.wait()?;
                Err(errno.into())
            }
        }
    }

    /// Spools its output until it ends or has to, and says how.
    fn watched(mut self, mut bounds: Bounds<'_>) -> io::Result<ToolAnswer> {
        let ended = self.followed(&mut bounds);
        let status = self.end()?;
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

    fn followed(&mut self, bounds: &mut Bounds<'_>) -> io::Result<Ended> {
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
            if let Some(grown) = bounds.disk.too_much(Pid::from_child(&self.child)) {
                return Ok(Ended::TooLarge(grown));
            }
            self.read(bounds.most)?;
        }
    }

    /// Waits until there is output or the command has ended; true for the latter.
    fn wait(&self, most: Duration) -> io::Result<bool> {
        let mut watched = vec![PollFd::new(&self.exit, PollFlags::IN)];
        watched.extend(self.output.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        Ok(ready(&mut watched, most)? > 0 && !watched[0].revents().is_empty())
    }

    /// Reads what there is, if there is any. False at the end of the output.
    fn read(&mut self, most: u64) -> io::Result<bool> {
        let Some(output) = &mut self.output else { return Ok(false) };
        if ready(&mut [PollFd::new(&*output, PollFlags::IN)], Duration::ZERO)? == 0 {
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
            ready(&mut [PollFd::new(output, PollFlags::IN)], GRACE.saturating_sub(began.elapsed()))?;
            if !self.read(most)? {
                break;
            }
        }
        Ok(self.spool.written() >= most)
    }

    /// Ends the command with all it started, and takes its last word. Without a keeper that is its group, which goes
    /// first: as long as its leader is not taken leave of, no other process can have its number.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(tie) = &self.tie {
            // It fails when the keeper has ended, which is what is wanted.
            let _ = tie.shutdown(Shutdown::Write);
            self.await_keeper()?;
        }
        // An empty group is not a fault: then all of it has ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let own = self.child.wait()?;
        Ok(self.told().unwrap_or(own))
    }

    fn await_keeper(&self) -> io::Result<()> {
        let began = Instant::now();
        let mut exit = [PollFd::new(&self.exit, PollFlags::IN)];
        while began.elapsed() < PATIENCE && ready(&mut exit, PATIENCE.saturating_sub(began.elapsed()))? == 0 {
        }
        Ok(())
    }

    /// How the command ended, from its keeper; `None` where there is none, or it could not start the command.
    fn told(&self) -> Option<ExitStatus> {
        let (mut tie, mut status) = (self.tie.as_ref()?, [0; size_of::<i32>()]);
        tie.set_nonblocking(true).ok()?;
        tie.read_exact(&mut status).ok()?;
        Some(ExitStatus::from_raw(i32::from_ne_bytes(status)))
    }
}

/// Waits until one of some handles is ready; gives how many are, none when it was interrupted.
fn ready(handles: &mut [PollFd<'_>], most: Duration) -> io::Result<usize> {
    let most = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    match poll(handles, Some(&most)) {
        Err(Errno::INTR) => Ok(0),
        done => Ok(done?),
    }
}

fn last_words(ended: &Ended, status: ExitStatus) -> String {
    match ended {
        Ended::TooMuch(most) => {
            format!("[killed: it printed more than {most} bytes; narrow it down, or write to a file]")
        }
        Ended::TooLong(timeout) => format!("[killed: it took longer than {} s]", timeout.as_secs_f32()),
        Ended::TooLarge(grown) => format!(
            "[killed: the commands of this task have written {} MB, more than they may (tools.max_disk_mb); remove what is \
             not needed]",
            grown >> 20
        ),
        Ended::Cancelled => "[killed: the call was cancelled]".to_owned(),
        Ended::Itself => match (status.code(), status.signal()) {
            (Some(code), _) => format!("[exit code {code}]"),
            (None, Some(signal)) => format!("[ended by signal {signal}]"),
            (None, None) => format!("[{status}]"),
        },
    }
}

// How much the commands of a task have written: the growth of the folders they can write to.
//
// To add up a folder takes a look at each of its files. So that is done once in the beginning, and again only when the
// file system has lost a good part of what is allowed since the last time.

/// How often the file system is asked.
const DISK_LOOK: Duration = Duration::from_secs(1);
/// Of what is allowed: the part that must be gone before the folders are added up.
const PART: u64 = 8;

/// The folders of a task, and what they held.
pub(super) struct DiskUse {
    folders: Vec<PathBuf>,
    most: u64,
    /// Bytes in the beginning.
    begun: u64,
    /// Bytes that were free when the folders were last added up.
    free: u64,
    looked: Instant,
}

impl DiskUse {
    /// From now on; `most` is 0 for no bound.
    pub(super) fn new(folders: Vec<PathBuf>, most: u64) -> Self {
        let begun = if most == 0 { 0 } else { held(&folders) };
        Self { free: free(&folders), folders, most, begun, looked: Instant::now() }
    }

    /// By how many bytes the folders have grown, when that is too much. What has been too much is so again only when more
    /// is written: a command that clears up must be able to run.
    pub(super) fn too_much(&mut self, keeper: Pid) -> Option<u64> {
        if self.most == 0 || self.looked.elapsed() < DISK_LOOK {
            return None;
        }
        self.looked = Instant::now();
        let free = free(&self.folders);
        if self.free.saturating_sub(free) < self.most / PART {
            // What was cleared up may be written again before it is looked at.
            self.free = self.free.max(free);
            return None;
        }
        self.free = free;
        let held = held(&self.folders).saturating_add(Unlinked::of(&family(keeper)).disk);
        let grown = held.saturating_sub(self.begun);
        (grown > self.most).then_some(grown)
    }
}

/// Bytes that are free where the folders are: of the one that has the least.
fn free(folders: &[PathBuf]) -> u64 {
    let of = |folder: &PathBuf| {
        let about = rustix::fs::statvfs(folder.as_path()).ok()?;
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    };
    folders.iter().filter_map(of).min().unwrap_or(u64::MAX)
}

/// Bytes on disk, each file once, without following links.
fn held(folders: &[PathBuf]) -> u64 {
    let (mut bytes, mut left, mut linked) = (0u64, folders.to_vec(), HashSet::new());
    while let Some(folder) = left.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // No path that long is made but to hide something.
            Err(why) if why.raw_os_error() == Some(libc::ENAMETOOLONG) => return u64::MAX,
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                left.push(entry.path());
            } else if about.nlink() == 1 || linked.insert((about.dev(), about.ino())) {
                bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_of_all_folders_and_links_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let folders = vec![dir.path().join("a"), dir.path().join("b")];
        for folder in &folders {
            fs::create_dir_all(folder.join("deep")).unwrap();
        }
        fs::write(folders[0].join("old"), vec![1; 1 << 20]).unwrap();
        let before = held(&folders);
        fs::write(folders[0].join("deep/x"), vec![1; 1 << 20]).unwrap();
        fs::write(folders[1].join("deep/y"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(folders[0].join("deep/x"), folders[1].join("x")).unwrap();
        std::os::unix::fs::symlink("/", folders[1].join("root")).unwrap();
        let grown = held(&folders) - before;
        assert!((2 << 20..3 << 20).contains(&grown), "{grown}");
    }

    #[test]
    fn the_folders_are_added_up_only_when_the_file_system_lost_enough() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = DiskUse::new(vec![dir.path().to_owned()], 1 << 20);
        fs::write(dir.path().join("x"), vec![1; 2 << 20]).unwrap();
        let looked = Instant::now().checked_sub(DISK_LOOK).unwrap();
        // What other processes do to the file system must not matter here.
        (disk.looked, disk.free) = (looked, 0);
        assert_eq!(disk.too_much(rustix::process::getpid()), None);
        (disk.looked, disk.free) = (looked, u64::MAX);
        assert!(disk.too_much(rustix::process::getpid()).is_some_and(|grown| grown >= 2 << 20));
        fs::remove_file(dir.path().join("x")).unwrap();
        (disk.looked, disk.free) = (looked, u64::MAX);
        assert_eq!(disk.too_much(rustix::process::getpid()), None);
    }
}
