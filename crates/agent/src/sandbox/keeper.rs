//! The first process: stays with a command to its end, and then ends all it started.
//!
//! A process can leave its group and its session, but not its descent: one whose parent ends comes to the nearest
//! "subreaper" above it, which is the keeper. So every process that was started here is found among the keeper's
//! descendants, however it hides, and when the keeper has no children it has no descendants. Standard input is the tie to
//! the process that wants the command: when that lets go of it, or is killed, the command ends too. Through the tie it is
//! told how the command ended.

use super::{CommandInput, CommandSpec, Error, INSIDE, proxy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, wait,
};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long those that do not die are tried again: one that hangs in the kernel, or that has become another user.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long a command whose input has ended may take to leave by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How often limits are looked at and orphans that ended are taken leave of.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// What a killed process gets to be gone.
const PAUSE: Duration = Duration::from_millis(1);

/// Starts the command, confined, and keeps it.
pub(super) fn run(launcher: &[OsString], job: &CommandSpec, command: &[OsString]) -> Result<u8, Error> {
    let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let failed = |why: io::Error| Error::Start(name.clone(), why.to_string());
    adopt().map_err(failed)?;
    let (program, first) = launcher.split_first().ok_or(Error::NoLauncher)?;
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut second = Command::new(program);
    second.args(first).arg(INSIDE).args(job.words()).args(command);
    // A group of its own, so that it can signal all of it without signalling us.
    let child = second.stdin(OwnedFd::from(theirs)).process_group(0).spawn().map_err(failed)?;
    drop(second);
    if let Some(hosts) = job.network.hosts() {
        let (from, hosts) = (ours.try_clone().map_err(failed)?, hosts.to_vec());
        std::thread::spawn(move || {
            if let Some(listener) = received(&from) {
                proxy::serve(&listener, hosts);
            }
        });
    }
    keep(&child, job, ours).map_err(failed)
}

/// The socket that the second process made in its own network.
fn received(from: &UnixStream) -> Option<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut with, RecvFlags::CMSG_CLOEXEC).ok()?;
    let handles = with.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    });
    handles.map(TcpListener::from)
}

/// From here on, orphans come to this process.
fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits for the command's end, ends all that is left, tells the process at the other end of the tie, and gives the code to
/// end with. This process has no other children.
fn keep(command: &Child, job: &CommandSpec, input: UnixStream) -> io::Result<u8> {
    let mut keeper = Keeper { command: Pid::from_child(command), ended: None };
    let waited = match job.input {
        CommandInput::Empty => keeper.wait(PollFlags::IN, job.limits),
        CommandInput::Relayed => {
            std::thread::spawn(move || {
                // It ends with either side, and then closes the command's input.
                let _ = io::copy(&mut io::stdin(), &mut &input);
            });
            // What is left in the tie when it closes is still the relay's to read.
            keeper.wait(PollFlags::empty(), job.limits)
        }
    };
    keeper.end_all();
    if let Some(why) = waited? {
        tell(&format!("[killed: {why}]\n"));
    }
    let Some(status) = keeper.ended else { return Err(io::Error::other("it does not end")) };
    // The process that wanted the command may be gone.
    let _ = rustix::io::write(io::stdin().as_fd(), &status.as_raw().to_ne_bytes());
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

struct Keeper {
    command: Pid,
    ended: Option<WaitStatus>,
}

impl Keeper {
    /// Until the command has ended, or the tie has, or a limit is passed, which is told then.
    fn wait(&mut self, tied: PollFlags, limits: ProcessLimits) -> io::Result<Option<String>> {
        let (exit, tie) = (pidfd_open(self.command, PidfdFlags::empty())?, io::stdin());
        let (mut looked, mut let_go) = (Instant::now(), None::<Instant>);
        while self.ended.is_none() {
            let mut watched = vec![PollFd::new(&exit, PollFlags::IN)];
            if let_go.is_none() {
                watched.push(PollFd::new(&tie, tied));
            }
            match poll(&mut watched, Some(&LOOK)) {
                Ok(_) if watched.get(1).is_some_and(|tie| !tie.revents().is_empty()) => {
                    if tied == PollFlags::IN {
                        return Ok(None);
                    }
                    let_go = Some(Instant::now());
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => _ = self.take_last_words(),
                Err(errno) => return Err(errno.into()),
            };
            if let_go.is_some_and(|when| when.elapsed() >= GRACE) {
                return Ok(None);
            }
            if self.ended.is_none() && looked.elapsed() >= LOOK.try_into().unwrap_or(GRACE) {
                looked = Instant::now();
                if let Some(why) = limits.passed() {
                    return Ok(Some(why));
                }
            }
        }
        Ok(None)
    }

    /// The one that is known without asking the system, with its group.
    fn kill_command(&self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.command, Signal::KILL);
            let _ = kill_process(self.command, Signal::KILL);
        }
    }

    /// Of all children that have ended. False when there are no others.
    fn take_last_words(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => _ = self.ended.get_or_insert(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Kills until none is left. While new ones are found no last words are taken: the dead keep their numbers, so that
    /// a command that starts itself again and again runs out of them.
    fn end_all(&mut self) {
        let (began, mut known) = (Instant::now(), HashSet::new());
        while began.elapsed() < PATIENCE {
            self.kill_command();
            kill_children();
            if kill_descendants(&mut known) {
                continue;
            }
            if !self.take_last_words() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Kills all descendants at the moment they are seen; true when one of them was not known. Where numbers of processes have
/// begun anew, the next look finds them: by then they are orphans.
fn kill_descendants(known: &mut HashSet<Pid>) -> bool {
    let mut is_new = false;
    each_descendant(getpid(), |pid| is_new |= kill_process(pid, Signal::KILL).is_ok() && known.insert(pid));
    is_new
}

/// All descendants of a process that run.
pub(crate) fn family(of: Pid) -> Vec<Pid> {
    let mut all = Vec::new();
    each_descendant(of, |pid| all.push(pid));
    all
}

/// Shows each descendant as it is seen. Most children have higher numbers than their parents, and `/proc` is in the order of
/// numbers; those that have not are found in a second pass over what was seen.
fn each_descendant(of: Pid, mut show: impl FnMut(Pid)) {
    let mut family = HashSet::from([of]);
    let mut others: Vec<(Pid, Pid)> = Vec::new();
    for pid in processes() {
        match parent(pid) {
            Some(parent) if family.contains(&parent) => {
                family.insert(pid);
                show(pid);
            }
            Some(parent) => others.push((pid, parent)),
            None => {}
        }
    }
    loop {
        let before = others.len();
        others.retain(|(pid, parent)| {
            let is_ours = family.contains(parent);
            if is_ours {
                family.insert(*pid);
                show(*pid);
            }
            !is_ours
        });
        if others.len() == before {
            return;
        }
    }
}

/// Writes to where the command's errors go, unless the reader has stopped reading. The command has the
/// same pipe and may have changed how it is written to.
pub(super) fn tell(words: &str) {
    let errors = io::stderr();
    let mut ready = [PollFd::new(&errors, PollFlags::OUT)];
    if poll(&mut ready, Some(&LOOK)).is_ok_and(|ready| ready > 0) {
        let _ = rustix::io::write(&errors, words.as_bytes());
    }
}

/// Kills those the kernel names as our children, the youngest first: the others are mostly dead. That takes so little time
/// that even a process that is always about to start another and end is met. A kernel that does not name them leaves it to
/// the longer look.
fn kill_children() {
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace().rev().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(stat_words(pid)?.get(1)?.parse().ok()?)
}

/// What `/proc` says of a process, from the third word on: the second is its name, which stands in brackets and may be any
/// bytes.
pub(super) fn stat_words(pid: Pid) -> Option<Vec<String>> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let behind = stat.iter().rposition(|byte| *byte == b')')?;
    let words = std::str::from_utf8(&stat[behind + 1..]).ok()?;
    Some(words.split_whitespace().map(str::to_owned).collect())
}

// What a confined command may take, with all it started: memory, processor time, processes. The keeper looks twice a
// second; what the kernel can bound by itself is bounded in `enter` as well.

/// Bounds of one command; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessLimits {
    /// Bytes of memory, of all its processes together.
    pub memory: u64,
    /// Seconds of processor time, of all its processes together.
    pub cpu: u64,
    /// Processes at a time.
    pub processes: u64,
    /// Bytes by which the folder and the temporary files of a task may grow.
    pub disk: u64,
}

impl ProcessLimits {
    /// As arguments. The disk is not the keeper's: it is of a task, not of a command.
    pub(super) fn words(self) -> Vec<OsString> {
        let all = [("--memory", self.memory), ("--cpu", self.cpu), ("--processes", self.processes)];
        let set = all.into_iter().filter(|(_, most)| *most > 0);
        set.flat_map(|(name, most)| [name.into(), most.to_string().into()]).collect()
    }

    pub(super) fn take(&mut self, name: &str, value: &str) -> Option<()> {
        let most = value.parse().ok()?;
        match name {
            "--memory" => self.memory = most,
            "--cpu" => self.cpu = most,
            "--processes" => self.processes = most,
            _ => return None,
        }
        Some(())
    }

    /// The bound that those below the keeper have passed, in words.
    pub(super) fn passed(self) -> Option<String> {
        let family = family(getpid());
        let processes = family.len() as u64;
        if over(processes, self.processes) {
            return Some(format!(
                "it had {processes} processes, and {} are the most (tools.max_processes)",
                self.processes
            ));
        }
        let ticks = family.iter().map(|pid| cpu(*pid, 0..4)).sum::<u64>() + cpu(getpid(), 2..4);
        let cpu = ticks / clock_ticks_per_second();
        if over(cpu, self.cpu) {
            return Some(format!(
                "it took more than {} s of processor time (tools.max_cpu_seconds)",
                self.cpu
            ));
        }
        if self.memory == 0 {
            return None;
        }
        let unlinked = Unlinked::of(&family);
        if unlinked.is_hidden {
            return Some(
                "it runs a program that cannot be read, which hides what it holds (tools.max_memory_mb)"
                    .to_owned(),
            );
        }
        let in_files = unlinked.memory;
        let memory = || family.iter().map(|pid| resident(*pid)).sum::<u64>();
        // Shared pages are in the first sum once for each process; the second is dearer and right.
        let shared_out = || family.iter().map(|pid| proportional(*pid)).sum::<u64>();
        if over(memory() + in_files, self.memory) && over(shared_out() + in_files, self.memory) {
            let most = self.memory >> 20;
            return Some(format!("it held more than {most} MB of memory (tools.max_memory_mb)"));
        }
        None
    }
}

/// Files without a name that processes hold open: no folder shows them.
pub(crate) struct Unlinked {
    /// Bytes of those that are in memory.
    pub(crate) memory: u64,
    /// Bytes of those that are on a disk.
    pub(crate) disk: u64,
    /// True when a process does not show what it holds.
    pub(crate) is_hidden: bool,
}

impl Unlinked {
    pub(crate) fn of(family: &[Pid]) -> Self {
        let (mut seen, mut sum) = (HashSet::new(), Self { memory: 0, disk: 0, is_hidden: false });
        for pid in family {
            let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_pid()));
            sum.is_hidden |=
                open.as_ref().is_err_and(|why| why.kind() == std::io::ErrorKind::PermissionDenied);
            for entry in open.into_iter().flatten().flatten() {
                let Ok(about) = fs::metadata(entry.path()) else { continue };
                if !about.is_file() || about.nlink() > 0 || !seen.insert((about.dev(), about.ino())) {
                    continue;
                }
                let is_memory = fs::read_link(entry.path())
                    .is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
                let bytes = about.blocks().saturating_mul(512);
                if is_memory { sum.memory += bytes } else { sum.disk += bytes }
            }
        }
        sum
    }
}

const fn over(taken: u64, most: u64) -> bool {
    most > 0 && taken > most
}

/// Ticks of processor time of a process: its own in two words, then those of its children that ended.
fn cpu(pid: Pid, words: std::ops::Range<usize>) -> u64 {
    // The first of them is the 14th word of all, and the third of all is the first that is given.
    let all = stat_words(pid).unwrap_or_default();
    all.iter().skip(11 + words.start).take(words.len()).filter_map(|word| word.parse::<u64>().ok()).sum()
}

fn resident(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_pid())).unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * page_size() as u64
}

fn proportional(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_pid())).unwrap_or_default();
    let of = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = of.and_then(|of| of.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    // A process that does not say, or has just ended, is counted as the cheaper sum has it.
    kib.map_or_else(|| resident(pid), |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::{parent, processes};
    use rustix::process::{getpid, getppid};

    #[test]
    fn processes_are_seen_with_their_parents() {
        assert!(processes().any(|pid| pid == getpid()));
        assert_eq!(parent(getpid()), getppid());
    }
}
