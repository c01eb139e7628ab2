//! Stays with a command to its end, and then ends all it started.
//!
//! A process can leave its group and its session, but not its descent: one whose parent ends comes to the nearest
//! "subreaper" above it, which is us. So whoever was started here is found in our line, however it hides, and who has no
//! children has no descendants. Our input is the tie to whoever wants the command: when they let go of it, or are killed,
//! it is over too. Through the tie they are told how the command ended.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, wait,
};
use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

/// How long those that do not die are tried again: one that hangs in the kernel, or that has become another user.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often the last words of orphans are taken while the command runs, so that none of them piles up.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// What a killed process gets to be gone.
const PAUSE: Duration = Duration::from_millis(1);

/// From here on, orphans come to this process.
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits for the command's end, ends all that is left, tells whoever holds the tie, and gives the code to end with. This
/// process has no other children.
pub(super) fn keep(command: &Child) -> io::Result<u8> {
    let mut keeper = Keeper { command: Pid::from_child(command), ended: None };
    let waited = keeper.wait();
    keeper.end_all();
    waited?;
    let Some(status) = keeper.ended else { return Err(io::Error::other("it does not end")) };
    // Nobody may be there any more to be told.
    let _ = rustix::io::write(io::stdin().as_fd(), &status.as_raw().to_ne_bytes());
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

struct Keeper {
    command: Pid,
    ended: Option<WaitStatus>,
}

impl Keeper {
    /// Until the command has ended, or the tie has.
    fn wait(&mut self) -> io::Result<()> {
        let (exit, tie) = (pidfd_open(self.command, PidfdFlags::empty())?, io::stdin());
        while self.ended.is_none() {
            let mut watched = [PollFd::new(&exit, PollFlags::IN), PollFd::new(&tie, PollFlags::IN)];
            match poll(&mut watched, Some(&LOOK)) {
                Ok(_) if !watched[1].revents().is_empty() => return Ok(()),
                Ok(_) | Err(rustix::io::Errno::INTR) => self.take_last_words(),
                Err(errno) => return Err(errno.into()),
            };
        }
        Ok(())
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

    /// Kills until nobody is left. While new ones are found no last words are taken: the dead keep their numbers, so that
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

/// Kills everybody of our line at the moment they are seen; true when one of them was not known. Children have higher
/// numbers than their parents, and `/proc` is in their order. Where numbers have begun anew, the next look finds them: by
/// then they are orphans.
fn kill_descendants(known: &mut HashSet<Pid>) -> bool {
    let (mut family, mut is_new) = (HashSet::from([getpid()]), false);
    for pid in processes() {
        if parent(pid).is_some_and(|parent| family.contains(&parent)) && family.insert(pid) {
            is_new |= kill_process(pid, Signal::KILL).is_ok() && known.insert(pid);
        }
    }
    is_new
}

/// Kills those the kernel names as our children, the youngest first: the others are mostly dead. That takes so little time
/// that even one who is always about to start another and end is met. A kernel that does not name them leaves it to the longer look.
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

/// The second word after the name, which stands in brackets and may be any bytes.
fn parent(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let behind = stat.iter().rposition(|byte| *byte == b')')?;
    let words = std::str::from_utf8(&stat[behind + 1..]).ok()?;
    Pid::from_raw(words.split_whitespace().nth(1)?.parse().ok()?)
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
