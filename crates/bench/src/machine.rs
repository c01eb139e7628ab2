//! Where a figure was got, and what the kernel says of this process.

use crate::error::{Error, Result};
use crate::output::number;
use rustix::fs::statfs;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::process::Child;

/// The machine, as far as it bears on figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    memory_mb: u64,
    filesystem: &'static str,
}

impl Machine {
    /// This one, with the file system of `folder`.
    pub(super) fn here(folder: &Path) -> Result<Self> {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let uname = rustix::system::uname();
        Ok(Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown processor").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            memory_mb: field(&meminfo, "MemTotal").and_then(kilobytes).unwrap_or(0) / 1024,
            filesystem: filesystem(folder)?,
        })
    }

    /// True when a sync costs nothing here, and so says nothing.
    pub(super) fn is_memory(&self) -> bool {
        self.filesystem == "tmpfs"
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, memory_mb, filesystem } = self;
        write!(f, "{cpu}, {cores} cores, {} MB, {kernel}, {filesystem}", number(*memory_mb))
    }
}

fn filesystem(folder: &Path) -> Result<&'static str> {
    let kind = statfs(folder).map_err(std::io::Error::from)?.f_type as u32;
    Ok(match kind {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0x6969 => "nfs",
        0x794c_7630 => "overlayfs",
        0x0102_1994 => "tmpfs",
        _ => "another file system",
    })
}

/// The value of `name: value` in what /proc tells.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, v)| v.trim())
}

fn kilobytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Memory and input of a process, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct ProcessFigures {
    /// Bytes of memory in use.
    pub(super) rss: u64,
    /// The most there ever were.
    pub(super) peak: u64,
    /// Bytes asked for by reading calls.
    pub(super) read: u64,
    /// Reading calls.
    pub(super) reads: u64,
    /// Bytes that had to come from the disk.
    pub(super) from_disk: u64,
    /// Bytes handed to writing calls.
    pub(super) written: u64,
    /// Writing calls.
    pub(super) writes: u64,
}

impl ProcessFigures {
    /// Now.
    pub(super) fn now() -> Result<Self> {
        // Reading these files is reading, too: input is looked at first.
        let io = proc("self/io")?;
        let status = proc("self/status")?;
        let bytes = |name: &str| field(&status, name).and_then(kilobytes).unwrap_or(0) * 1024;
        Ok(Self { rss: bytes("VmRSS"), peak: bytes("VmHWM"), ..Self::transfers(&io) })
    }

    /// Waits until `child` has ended and gives what it read and wrote. Its memory is no longer known then.
    pub(super) fn ended(child: &Child) -> Result<Self> {
        // It is left to be waited for: what the kernel counted goes with that.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(child)), options).map_err(std::io::Error::from)?;
        Ok(Self::transfers(&proc(&format!("{}/io", child.id()))?))
    }

    fn transfers(io: &str) -> Self {
        let count = |name: &str| field(io, name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            read: count("rchar"),
            reads: count("syscr"),
            from_disk: count("read_bytes"),
            written: count("wchar"),
            writes: count("syscw"),
            ..Self::default()
        }
    }
}

fn proc(name: &str) -> Result<String> {
    let path = format!("/proc/{name}");
    std::fs::read_to_string(&path)
        .map_err(|e| Error::failed(format!("the figures come from {path}, which cannot be read: {e}")))
}

/// Bytes that can still be written where `folder` is.
pub(super) fn free_bytes(folder: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(folder).map_err(std::io::Error::from)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_tells_is_read() {
        let text = "processor\t: 0\nmodel name\t: A: fast one\nVmRSS:\t  1234 kB\n";
        assert_eq!(field(text, "model name"), Some("A: fast one"));
        assert_eq!(field(text, "VmRSS").and_then(kilobytes), Some(1234));
        assert_eq!(field(text, "model"), None);
    }

    #[test]
    fn this_process_has_memory_and_has_read_something() {
        let now = ProcessFigures::now().unwrap();
        assert!(now.peak >= now.rss && now.rss > 0 && now.read > 0);
        assert!(Machine::here(Path::new(".")).unwrap().cores > 0);
    }
}
