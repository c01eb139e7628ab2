//! `list`: what is in a folder, as a tree of so many levels.

use super::arguments::Arguments;
use super::folder::Folder;
use super::pruned::{Found, Shown, Walk};
use super::spool::Spool;
use crate::tools::Answer;
use komado_provider::Cancel;
use rustix::fs::FileType;
use std::ops::ControlFlow;
use std::path::Path;

const DEPTH: u64 = 2;
/// The most entries of an answer.
const MOST: u64 = 2_000;

pub(super) fn list(folder: &Folder, given: &Arguments, cancel: &Cancel) -> Result<Answer, String> {
    let name = given.text("path")?.unwrap_or(".");
    let depth = given.number("depth")?.unwrap_or(DEPTH).max(1);
    let shown = if given.flag("all")? { Shown::All } else { Shown::Pruned };
    let walk = Walk { folder, shown, depth: usize::try_from(depth).unwrap_or(usize::MAX) };
    let start = folder.inside(name)?;
    let (mut spool, mut seen, mut ended) = (Spool::new(), 0u64, None);
    walk.visit(&start, &mut |found| {
        if cancel.is_cancelled() {
            ended = Some("[ended early: the call was cancelled]".to_owned());
        } else if seen == MOST {
            ended = Some(format!("[more than {MOST} entries: name a folder in path, or a smaller depth]"));
        } else if let Err(error) = spool.line(&entry(folder, &start, found)) {
            ended = Some(format!("[ended early: {error}]"));
        }
        seen += 1;
        if ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if seen == 0 {
        return Ok(Answer::text(format!(
            "{name} is empty, or .gitignore names all that is in it (all: true shows it)"
        )));
    }
    if let Some(ended) = ended {
        spool.line(&ended).map_err(|error| error.to_string())?;
    }
    spool.answer(false).map_err(|error| error.to_string())
}

/// One line: the path seen from where the list begins, with what it is.
fn entry(folder: &Folder, start: &Path, found: &Found) -> String {
    let path = found.path.strip_prefix(start).unwrap_or(&found.path).to_string_lossy().replace('\n', "\\n");
    match found.kind {
        FileType::Directory => format!("{path}/"),
        FileType::Symlink => format!("{path} (a link)"),
        FileType::RegularFile => match folder.file(&found.path).and_then(|file| size(&file)) {
            Ok(size) => format!("{path} ({size} bytes)"),
            Err(_) => path,
        },
        _ => format!("{path} (no regular file)"),
    }
}

fn size(file: &std::fs::File) -> Result<u64, String> {
    file.metadata().map(|kind| kind.len()).map_err(|error| error.to_string())
}
