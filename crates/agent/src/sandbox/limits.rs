//! What a confined command may take, with all it started: memory, processor time, processes. The keeper looks twice a
//! second; what the kernel can bound by itself is bounded in `enter` as well.

use super::keeper::{family, stat_words};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Pid, getpid};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;

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
