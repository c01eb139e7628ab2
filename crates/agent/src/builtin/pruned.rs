//! A folder's tree without what `.gitignore` and `.ignore` name, in the order of names.
//!
//! Each folder is opened through the working folder's own door, so a link that is put in place of a folder while we walk
//! leads nowhere. Links are shown, never followed. One folder's names at a time are held for each level.

use super::folder::{Folder, words};
use super::line;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType};
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders deeper than this are left out, so that a tree without end has one.
const DEEPEST: usize = 64;
/// The most lines of an ignore file that are read.
const RULES: usize = 10_000;

/// What is shown of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// All but what is ignored, and `.git`.
    Pruned,
    /// Everything.
    All,
}

/// Something in a folder.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
}

pub(super) struct Walk<'a> {
    pub(super) folder: &'a Folder,
    pub(super) shown: Shown,
    /// How many levels down.
    pub(super) depth: usize,
}

impl Walk<'_> {
    /// Visits what is in `start` and below. A folder that cannot be opened is left out, except `start` itself.
    pub(super) fn visit(
        &self,
        start: &Path,
        see: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let mut rules = Vec::new();
        if self.shown == Shown::Pruned {
            let above: Vec<&Path> = start.ancestors().skip(1).collect();
            rules.extend(above.into_iter().rev().map(|folder| self.rules(folder)));
        }
        let entries = self.entries(start)?;
        let _ = self.below(start, entries, 1, &mut rules, see);
        Ok(())
    }

    fn below(
        &self,
        folder: &Path,
        entries: Vec<(OsString, FileType)>,
        depth: usize,
        rules: &mut Vec<Gitignore>,
        see: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.shown == Shown::Pruned {
            rules.push(self.rules(folder));
        }
        for (name, kind) in entries {
            let path = if folder == Path::new(".") { PathBuf::from(&name) } else { folder.join(&name) };
            if self.is_left_out(&name, &path, kind, rules) {
                continue;
            }
            let found = Found { path, kind };
            see(&found)?;
            if kind == FileType::Directory
                && depth < self.depth.min(DEEPEST)
                && let Ok(entries) = self.entries(&found.path)
            {
                self.below(&found.path, entries, depth + 1, rules, see)?;
            }
        }
        if self.shown == Shown::Pruned {
            rules.pop();
        }
        ControlFlow::Continue(())
    }

    fn is_left_out(&self, name: &OsStr, path: &Path, kind: FileType, rules: &[Gitignore]) -> bool {
        if self.shown == Shown::All {
            return false;
        }
        let is_folder = kind == FileType::Directory;
        let judged =
            rules.iter().rev().map(|rule| rule.matched(path, is_folder)).find(|rule| !rule.is_none());
        name == ".git" || judged.is_some_and(|rule| rule.is_ignore())
    }

    fn entries(&self, folder: &Path) -> Result<Vec<(OsString, FileType)>, String> {
        let handle = self.folder.folder(folder)?;
        let mut all = Vec::new();
        for entry in Dir::read_from(&handle).map_err(|errno| words(folder, errno))?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            all.push((name.to_owned(), kind));
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    /// What a folder's own files say is ignored below it.
    fn rules(&self, folder: &Path) -> Gitignore {
        let base = if folder == Path::new(".") { Path::new("") } else { folder };
        let mut builder = GitignoreBuilder::new(base);
        for name in [".gitignore", ".ignore"] {
            let Ok(file) = self.folder.file(&folder.join(name)) else { continue };
            let (mut from, mut held) = (BufReader::new(file), Vec::new());
            for _ in 0..RULES {
                let Ok(Some(length)) = line::next(&mut from, &mut held) else { break };
                if length == held.len() as u64 {
                    // A rule that cannot be understood ignores nothing.
                    let _ = builder.add_line(None, String::from_utf8_lossy(&held).trim_end_matches('\r'));
                }
            }
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}
