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
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders that are looked into before giving up.
const MOST_FOLDERS: usize = 200_000;
/// Files that are remembered.
const MOST_FILES: usize = 10_000;
/// Bytes of all of them that are read.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes of settings that are looked through.
const MOST_SETTINGS: u64 = 1 << 20;
/// Settings included by settings, at most.
const MOST_INCLUDES: usize = 10;
/// Settings that name a program, a folder of hooks or other settings.
const NAMING: &[&str] = &[
    "hookspath",
    "path",
    "fsmonitor",
    "sshcommand",
    "editor",
    "pager",
    "askpass",
    "program",
    "helper",
    "textconv",
    "external",
    "command",
    "clean",
    "smudge",
    "process",
    "cmd",
    "driver",
    "packobjectshook",
    "uploadpack",
    "receivepack",
    "attributesfile",
];
const PARTIAL: &str = "The folder is too large to look at all hooks and settings of git in it: look at them before you run git there.";
/// What stands for what cannot be read.
const UNREADABLE: &str = "unreadable";
/// Files of a repository that are settings.
const SETTINGS: &[&str] = &["config", "config.worktree", "commondir", "gitdir", "info/attributes"];

/// The hooks and settings of all repositories in a folder, as digests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GitSnapshot {
    files: BTreeMap<String, String>,
    /// True when the folder was too large to look at all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_partial: bool,
}

/// What differs between two snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GitChanges {
    /// Paths in the folder, with what happened to each.
    pub files: Vec<(String, &'static str)>,
    /// True when not all of the folder was looked at.
    pub is_partial: bool,
}

impl GitSnapshot {
    /// Of a folder as it is now.
    pub fn of(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mut walk = Walk { root: &folder, seen: 0, bytes: 0, taken: Self::default() };
        walk.folders(vec![folder.clone()]);
        walk.taken
    }

    /// What is different in `later`.
    pub fn changes(&self, later: &Self) -> GitChanges {
        let new = later.files.iter().filter_map(|(path, digest)| match self.files.get(path) {
            None => Some((path.clone(), "new")),
            Some(before) => (before != digest).then(|| (path.clone(), "changed")),
        });
        let gone = self.files.keys().filter(|path| !later.files.contains_key(*path));
        let mut files: Vec<_> = new.chain(gone.map(|path| (path.clone(), "removed"))).collect();
        // The repository of the folder itself first: names are cheap, and only some are shown.
        files.sort_by_key(|(path, what)| (!path.starts_with(".git/"), path.clone(), *what));
        GitChanges { files, is_partial: self.is_partial || later.is_partial }
    }
}

impl fmt::Display for GitChanges {
    /// One paragraph for people; nothing when all was looked at and nothing changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        const LONGEST: usize = 200;
        match (self.files.is_empty(), self.is_partial) {
            (true, false) => return Ok(()),
            (true, true) => return f.write_str(PARTIAL),
            (false, _) => {}
        }
        f.write_str(
            "Warning: git runs programs that these files name, and this task changed them. Look at them before you run git in \
             the folder:",
        )?;
        for (path, what) in self.files.iter().take(SHOWN) {
            let cut: String = path.trim_start_matches('\0').chars().take(LONGEST).collect();
            write!(f, "\n- {} ({what})", cut.escape_debug())?;
        }
        if self.files.len() > SHOWN {
            write!(f, "\n- and {} more", self.files.len() - SHOWN)?;
        }
        if self.is_partial {
            write!(f, "\n{PARTIAL}")?;
        }
        Ok(())
    }
}

struct Walk<'a> {
    root: &'a Path,
    seen: usize,
    bytes: u64,
    taken: GitSnapshot,
}

impl Walk<'_> {
    fn folders(&mut self, mut left: Vec<PathBuf>) {
        while let Some(folder) = left.pop() {
            self.seen += 1;
            if self.seen > MOST_FOLDERS {
                self.taken.is_partial = true;
                return;
            }
            let Ok(entries) = fs::read_dir(&folder) else {
                // What is in it may be a repository all the same.
                self.note(&folder, UNREADABLE.to_owned());
                continue;
            };
            let entries: Vec<_> = entries.flatten().collect();
            let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
            // Git takes a folder with these for a repository, or for a part of one, whatever it is called.
            if (has("objects") && has("refs")) || (has("HEAD") && has("commondir")) {
                self.repository(&folder);
            }
            for entry in &entries {
                let Ok(kind) = entry.file_type() else { continue };
                if entry.file_name() == ".git" && !kind.is_dir() {
                    self.take(&entry.path());
                } else if kind.is_dir() {
                    left.push(entry.path());
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
        self.hooks(&folder.join("hooks"));
        for name in ["config", "config.worktree"] {
            self.settings(folder, &folder.join(name), MOST_INCLUDES);
        }
    }

    /// What the settings in a file lead to: folders of hooks, programs, and other settings.
    fn settings(&mut self, repository: &Path, file: &Path, depth: usize) {
        // Hooks and programs are seen from the work tree, which is above a folder called `.git`.
        let is_inside = repository.file_name().is_some_and(|name| name == ".git");
        let tree = repository.parent().filter(|_| is_inside).unwrap_or(repository);
        for (key, value) in pairs(file) {
            let is_include = key == "path";
            let base = if is_include { file.parent().unwrap_or(tree) } else { tree };
            let words = value.split_whitespace().map(|word| word.trim_start_matches('!'));
            for word in std::iter::once(value.as_str()).chain(words) {
                // What lies elsewhere is not the task's to change.
                let path = base.join(word).canonicalize().ok().filter(|path| path.starts_with(self.root));
                match path {
                    Some(folder) if folder.is_dir() && key == "hookspath" => {
                        self.hooks(&folder);
                        // Husky's own scripts call those in the folder above.
                        if folder.file_name().is_some_and(|name| name == "_") {
                            folder.parent().into_iter().for_each(|above| self.hooks(above));
                        }
                    }
                    Some(file) if file.is_file() => {
                        self.take(&file);
                        if is_include && depth > 0 {
                            self.settings(repository, &file, depth - 1);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Programs that are run by their name.
    fn hooks(&mut self, folder: &Path) {
        match folder.symlink_metadata() {
            Err(_) => return,
            Ok(about) if !about.is_dir() => self.take(folder),
            Ok(_) => {}
        }
        let Ok(entries) = fs::read_dir(folder) else { return self.note(folder, UNREADABLE.to_owned()) };
        for entry in entries.flatten() {
            if !entry.file_name().as_encoded_bytes().ends_with(b".sample") {
                self.take(&entry.path());
            }
        }
    }

    fn take(&mut self, path: &Path) {
        let link = fs::read_link(path).ok();
        let shown = link.as_ref().map(|link| blake3::hash(link.as_os_str().as_encoded_bytes()).to_hex());
        // Where a link leads counts, too, as far as a task can have changed it.
        let inside = || path.canonicalize().ok().filter(|real| real.starts_with(self.root));
        let real = if link.is_some() { inside() } else { Some(path.to_owned()) };
        let held = real.map(|real| digest(&real, MOST_BYTES.saturating_sub(self.bytes)));
        if let Some((_, bytes, is_whole)) = &held {
            self.bytes += bytes;
            self.taken.is_partial |= !is_whole;
        }
        let held = held.map_or(String::new(), |(digest, ..)| digest);
        self.note(path, shown.map_or(held.clone(), |link| format!("link {link} {held}")));
    }

    fn note(&mut self, path: &Path, what: String) {
        if self.taken.files.len() >= MOST_FILES {
            self.taken.is_partial = true;
            return;
        }
        let path = path.strip_prefix(self.root).unwrap_or(path);
        // Two names that are not text must not become one.
        let bytes = || format!("\0{}", path.as_os_str().as_encoded_bytes().escape_ascii());
        self.taken.files.insert(path.to_str().map_or_else(bytes, str::to_owned), what);
    }
}

/// The settings in a file that name programs or other files, as git reads them: keys in lower case, values without quotes and
/// comments, lines that end in a backslash joined.
fn pairs(file: &Path) -> Vec<(String, String)> {
    let Some(file) = regular(file) else { return Vec::new() };
    let mut bytes = Vec::new();
    if file.take(MOST_SETTINGS).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace("\\\n", "");
    let pairs = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.rsplit([' ', '\t', ']']).find(|word| !word.is_empty())?.to_ascii_lowercase();
        NAMING.contains(&key.as_str()).then(|| (key, plain(value)))
    });
    let aliases = text.lines().filter_map(|line| Some(("alias".to_owned(), plain(line.split_once('=')?.1))));
    pairs.chain(aliases.filter(|(_, value)| value.starts_with('!'))).collect()
}

/// A value without quotes, escapes and what is behind a comment's sign.
fn plain(value: &str) -> String {
    let (mut plain, mut is_quoted, mut letters) = (String::new(), false, value.trim().chars());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => plain.extend(letters.next()),
            '#' | ';' if !is_quoted => break,
            letter => plain.push(letter),
        }
    }
    plain.trim().to_owned()
}

/// A file to be read, if that is what it is.
fn regular(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).map(File::from).ok()?;
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

/// What a file is and holds, how many bytes of it were read, and whether that was all. One that cannot be read is at least
/// there.
fn digest(path: &Path, most: u64) -> (String, u64, bool) {
    let Some(file) = regular(path) else { return (UNREADABLE.to_owned(), 0, true) };
    let Ok(about) = file.metadata() else { return (UNREADABLE.to_owned(), 0, true) };
    let mut hasher = blake3::Hasher::new();
    let Ok(read) = std::io::copy(&mut file.take(most), &mut hasher) else {
        return (UNREADABLE.to_owned(), 0, true);
    };
    let runs = if about.permissions().mode() & 0o111 == 0 { "" } else { " runs" };
    (format!("{} {}{runs}", about.len(), hasher.finalize().to_hex()), read, read == about.len())
}

#[cfg(test)]
mod tests {
    use super::GitSnapshot;
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
        fs::create_dir(at("husky")).unwrap();
        fs::write(at("husky/pre-push"), "x").unwrap();
        fs::write(
            at("deep/er/.git/config"),
            "[core] hooksPath = \"../../husky/_\" ; ours\n[include]\n\tpath = mo\\\nre # x\n",
        )
        .unwrap();
        fs::write(at("deep/er/.git/more"), "[core]\n\tfsmonitor = ./monitor --fast\n").unwrap();
        fs::create_dir(at("husky/_")).unwrap();
        fs::write(at("deep/er/monitor"), "x").unwrap();
        let before = GitSnapshot::of(dir.path());
        assert!(before.changes(&GitSnapshot::of(dir.path())).files.is_empty());
        assert_eq!(before.changes(&before).to_string(), "");

        fs::write(at(".git/config"), "[core]\n\tfsmonitor = ./x\n").unwrap();
        fs::write(at("deep/er/.git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(at(".git/hooks/commit-msg"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(at(".git/hooks/post-merge")).unwrap();
        fs::write(at("deep/er/monitor"), "changed").unwrap();
        fs::write(at(".git/hooks/pre-rebase.sample"), "x").unwrap();
        repository("looks/harmless");
        // A repository in parts, one that hides among objects, and hooks elsewhere that settings name.
        fs::create_dir_all(at("sub/.git")).unwrap();
        fs::write(at("sub/.git/HEAD"), "x").unwrap();
        fs::write(at("sub/.git/commondir"), "../../store").unwrap();
        for folder in ["store/objects", "store/refs"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("store/config"), "x").unwrap();
        repository(".git/objects/ab/repo");
        fs::write(at("husky/pre-push"), "changed").unwrap();
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
        let changed = before.changes(&GitSnapshot::of(dir.path()));
        let found: Vec<(&str, &str)> =
            changed.files.iter().map(|(path, what)| (path.as_str(), *what)).collect();
        assert_eq!(
            found,
            [
                (".git/config", "changed"),
                (".git/hooks/commit-msg", "changed"),
                (".git/hooks/post-merge", "removed"),
                (".git/hooks/pre-push", "new"),
                (".git/objects/ab/repo/config", "new"),
                ("deep/er/.git/hooks/pre-commit", "new"),
                ("deep/er/monitor", "changed"),
                ("husky/pre-push", "changed"),
                ("looks/harmless/config", "new"),
                ("other/.git", "new"),
                ("store/config", "new"),
                ("sub/.git/commondir", "new"),
            ]
        );
        assert!(changed.to_string().contains("\n- .git/hooks/pre-push (new)"));
    }
}
