//! How much the commands of a task have written: the growth of the folders they can write to.
//!
//! To add up a folder takes a look at each of its files. So that is done once in the beginning, and again only when the
//! file system has lost a good part of what is allowed since the last time.

use crate::sandbox::{Unlinked, family};
use rustix::process::Pid;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the file system is asked.
const LOOK: Duration = Duration::from_secs(1);
/// Of what is allowed: the part that must be gone before the folders are added up.
const PART: u64 = 8;

/// The folders of a task, and what they held.
pub(super) struct Disk {
    folders: Vec<PathBuf>,
    most: u64,
    /// Bytes in the beginning.
    begun: u64,
    /// Bytes that were free when the folders were last added up.
    free: u64,
    looked: Instant,
}

impl Disk {
    /// From now on; `most` is 0 for no bound.
    pub(super) fn new(folders: Vec<PathBuf>, most: u64) -> Self {
        let begun = if most == 0 { 0 } else { held(&folders) };
        Self { free: free(&folders), folders, most, begun, looked: Instant::now() }
    }

    /// By how many bytes the folders have grown, when that is too much. What has been too much is so again only when more
    /// is written: a command that clears up must be able to run.
    pub(super) fn too_much(&mut self, keeper: Pid) -> Option<u64> {
        if self.most == 0 || self.looked.elapsed() < LOOK {
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
        let mut disk = Disk::new(vec![dir.path().to_owned()], 1 << 20);
        fs::write(dir.path().join("x"), vec![1; 2 << 20]).unwrap();
        let looked = Instant::now().checked_sub(LOOK).unwrap();
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
