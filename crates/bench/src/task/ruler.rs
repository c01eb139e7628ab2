//! What the kernel says of another process.

use crate::error::Result;
use serde::Serialize;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Sets the most memory there ever was to what there is now.
const FORGET_PEAK: &str = "5";

/// Bytes of memory of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Memory {
    /// In use.
    pub(super) rss: u64,
    /// The most there were.
    pub(super) peak: u64,
    /// Of those in use: written by the process and shared with no other.
    pub(super) private: u64,
}

impl Memory {
    /// Of a process that may have gone.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let maps = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        Some(Self {
            rss: bytes(&status, "VmRSS:")?,
            peak: bytes(&status, "VmHWM:")?,
            private: bytes(&maps, "Private_Dirty:").unwrap_or_default(),
        })
    }
}

fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Whose memory is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    /// The process itself.
    Own,
    /// That of the process it started.
    Child,
}

/// A look at the process whenever the model is asked.
#[derive(Clone, Default)]
pub(super) struct Ruler {
    pid: Arc<AtomicU32>,
    looks: Arc<Mutex<Looks>>,
}

/// What was seen.
#[derive(Clone, Default)]
pub(super) struct Looks {
    /// One look for each request.
    pub(super) seen: Vec<Memory>,
    /// The process that started it, at the last one.
    pub(super) parent: Memory,
}

impl Ruler {
    /// From now on, it is about this process.
    pub(super) fn point_at(&self, pid: u32) {
        self.pid.store(pid, SeqCst);
    }

    /// Looks. Where the kernel lets us, the peak is counted from the first look on: unpacking the token tables takes more
    /// than having them, and so do a Python's imports.
    pub(super) fn look(&self, whose: Whose) {
        let parent = self.pid.load(SeqCst);
        let pid = if whose == Whose::Own { Some(parent) } else { child_of(parent) };
        let Some((pid, memory)) = pid.and_then(|pid| Some((pid, Memory::of(pid)?))) else { return };
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.seen.is_empty() {
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), FORGET_PEAK);
        }
        looks.seen.push(memory);
        looks.parent = Memory::of(parent).unwrap_or_default();
    }

    /// What was seen.
    pub(super) fn looks(&self) -> Looks {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A process that `parent` started.
fn child_of(parent: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| parent_of(*pid) == Some(parent))
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits for a process; an error in its own words when it fails.
pub(super) fn ended(mut command: std::process::Command, ruler: &Ruler, name: &str) -> Result<Vec<u8>> {
    use crate::error::Error;
    use std::process::Stdio;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    ruler.point_at(child.id());
    let out = child.wait_with_output()?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let told = String::from_utf8_lossy(&out.stderr);
    let why = told.trim().lines().last().unwrap_or("it did not say why").to_owned();
    Err(Error::failed(format!("{name} failed ({}): {why}", out.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_parent_and_its_memory_is_read() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ruler = Ruler::default();
        ruler.point_at(child.id());
        ruler.look(Whose::Own);
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        ruler.look(Whose::Own);
        let seen = ruler.looks().seen;
        assert_eq!(seen.len(), 1, "a process that has gone is not looked at");
        assert!(seen[0].rss > 0 && seen[0].peak > 0, "{:?}", seen[0]);
    }
}
