//! What a task did to the files by which git runs programs: hooks and settings.
//!
//! Inside the sandbox they can do no more than any command. But a person, or another program, may later run git in the
//! folder, outside. So the files are remembered before a task begins, and what differs afterwards is told. Nothing here runs
//! git, and links are not followed.

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Folders that are looked into before giving up.
const MOST_FOLDERS: usize = 200_000;
/// Files that are remembered.
const MOST_FILES: usize = 10_000;
/// Bytes of a file that count.
const MOST_BYTES: u64 = 16 << 20;
/// Files of a repository that are settings.
const SETTINGS: &[&str] = &["config", "config.worktree", "commondir", "gitdir", "info/attributes"];

/// The hooks and settings of all repositories in a folder, as digests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    files: BTreeMap<String, String>,
    /// True when the folder was too large to look at all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_partial: bool,
}

/// What differs between two snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// Paths in the folder, with what happened to each.
    pub files: Vec<(String, &'static str)>,
    /// True when not all of the folder was looked at.
    pub is_partial: bool,
}

impl Snapshot {
    /// Of a folder as it is now.
    pub fn of(folder: &Path) -> Self {
        let mut walk = Walk { root: folder, seen: 0, taken: Self::default() };
        walk.folders(vec![folder.to_owned()]);
        walk.taken
    }

    /// What is different in `later`.
    pub fn changes(&self, later: &Self) -> Changed {
        let new = later.files.iter().filter_map(|(path, digest)| match self.files.get(path) {
            None => Some((path.clone(), "new")),
            Some(before) => (before != digest).then(|| (path.clone(), "changed")),
        });
        let gone = self.files.keys().filter(|path| !later.files.contains_key(*path));
        let mut files: Vec<_> = new.chain(gone.map(|path| (path.clone(), "removed"))).collect();
        files.sort();
        Changed { files, is_partial: self.is_partial || later.is_partial }
    }
}

impl fmt::Display for Changed {
    /// One paragraph for people; nothing when nothing changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        if self.files.is_empty() {
            return Ok(());
        }
        f.write_str(
            "Warning: git runs programs that these files name, and this task changed them. Look at them before you run git in \
             the folder:",
        )?;
        for (path, what) in self.files.iter().take(SHOWN) {
            write!(f, "\n- {} ({what})", path.escape_debug())?;
        }
        if self.files.len() > SHOWN {
            write!(f, "\n- and {} more", self.files.len() - SHOWN)?;
        }
        if self.is_partial {
            f.write_str("\nThe folder is too large to look at all of it.")?;
        }
        Ok(())
    }
}

struct Walk<'a> {
    root: &'a Path,
    seen: usize,
    taken: Snapshot,
}

impl Walk<'_> {
    fn folders(&mut self, mut left: Vec<PathBuf>) {
        while let Some(folder) = left.pop() {
            self.seen += 1;
            if self.seen > MOST_FOLDERS {
                self.taken.is_partial = true;
                return;
            }
            let entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
            let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
            // Git takes a folder with these for a repository, whatever it is called.
            if has("HEAD") && has("objects") && has("refs") {
                self.repository(&folder);
            }
            for entry in &entries {
                let Ok(kind) = entry.file_type() else { continue };
                if entry.file_name() == ".git" && !kind.is_dir() {
                    self.take(&entry.path());
                } else if kind.is_dir() {
                    // Objects are many and run nothing.
                    let is_objects = entry.file_name() == "objects" && has("HEAD") && has("refs");
                    left.extend((!is_objects).then(|| entry.path()));
                }
            }
        }
    }

    fn repository(&mut self, folder: &Path) {
        for name in SETTINGS {
            if folder.join(name).symlink_metadata().is_ok() {
                self.take(&folder.join(name));
            }
        }
        let hooks = folder.join("hooks");
        if hooks.symlink_metadata().is_ok_and(|kind| !kind.is_dir()) {
            return self.take(&hooks);
        }
        for entry in fs::read_dir(hooks).into_iter().flatten().flatten() {
            if !entry.file_name().as_encoded_bytes().ends_with(b".sample") {
                self.take(&entry.path());
            }
        }
    }

    fn take(&mut self, path: &Path) {
        if self.taken.files.len() >= MOST_FILES {
            self.taken.is_partial = true;
            return;
        }
        let name = path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned();
        self.taken.files.insert(name, digest(path));
    }
}

/// What a file is and holds. One that cannot be read is at least there.
fn digest(path: &Path) -> String {
    if let Ok(link) = fs::read_link(path) {
        return format!("link {}", blake3::hash(link.as_os_str().as_encoded_bytes()).to_hex());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()).map(File::from) else {
        return "unreadable".to_owned();
    };
    let Ok(about) = file.metadata() else { return "unreadable".to_owned() };
    if !about.is_file() {
        return "no file".to_owned();
    }
    let mut bytes = Vec::new();
    match file.take(MOST_BYTES).read_to_end(&mut bytes) {
        Ok(_) => {
            use std::os::unix::fs::PermissionsExt;
            let runs = if about.permissions().mode() & 0o111 == 0 { "" } else { " runs" };
            format!("{} {}{runs}", about.len(), blake3::hash(&bytes).to_hex())
        }
        Err(_) => "unreadable".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Snapshot;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn hooks_and_settings_that_changed_are_found_in_every_repository_of_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let repository = |name: &str| {
            for folder in ["objects/aa", "refs/heads", "hooks", "info"] {
                fs::create_dir_all(at(name).join(folder)).unwrap();
            }
            fs::write(at(name).join("HEAD"), "ref: refs/heads/main").unwrap();
            fs::write(at(name).join("config"), "[core]\n").unwrap();
            fs::write(at(name).join("hooks/pre-push.sample"), "x").unwrap();
        };
        repository(".git");
        repository("deep/er/.git");
        fs::write(at(".git/hooks/post-merge"), "x").unwrap();
        fs::write(at(".git/hooks/commit-msg"), "x").unwrap();
        let before = Snapshot::of(dir.path());
        assert!(before.changes(&Snapshot::of(dir.path())).files.is_empty());
        assert_eq!(before.changes(&before).to_string(), "");

        fs::write(at(".git/config"), "[core]\n\tfsmonitor = ./x\n").unwrap();
        fs::write(at("deep/er/.git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(at(".git/hooks/commit-msg"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(at(".git/hooks/post-merge")).unwrap();
        fs::write(at(".git/objects/aa/config"), "x").unwrap();
        fs::write(at(".git/hooks/pre-rebase.sample"), "x").unwrap();
        repository("looks/harmless");
        symlink("/etc", at("link")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/.git"), "gitdir: ../looks/harmless").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at(".git/hooks/pre-push"),
            rustix::fs::FileType::Fifo,
            0o644.into(),
            0,
        )
        .unwrap();
        let changed = before.changes(&Snapshot::of(dir.path()));
        let found: Vec<(&str, &str)> =
            changed.files.iter().map(|(path, what)| (path.as_str(), *what)).collect();
        assert_eq!(
            found,
            [
                (".git/config", "changed"),
                (".git/hooks/commit-msg", "changed"),
                (".git/hooks/post-merge", "removed"),
                (".git/hooks/pre-push", "new"),
                ("deep/er/.git/hooks/pre-commit", "new"),
                ("looks/harmless/config", "new"),
                ("other/.git", "new"),
            ]
        );
        assert!(changed.to_string().contains("\n- .git/hooks/pre-push (new)"));
    }
}
