//! `read`: lines of a file, with their numbers. The file may be of any size; no more of it is held than one line's part
//! that is shown.

use super::folder::{WorkingFolder, words};
use super::spool::{self, OutputSpool};
use super::{ToolArguments, needed, number};
use crate::tools::ToolAnswer;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use komado_provider::Cancel;
use rustix::fs::{AtFlags, Dir, FileType};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LINES: u64 = 2_000;
/// An answer ends after so many bytes, whatever the limit.
const BYTES: u64 = 1 << 20;
/// A NUL among the first so many bytes makes a file binary.
const LOOKED_AT: usize = 8 << 10;

pub(super) fn read(folder: &WorkingFolder, given: &ToolArguments) -> Result<ToolAnswer, String> {
    let name = needed(given, "path")?;
    let first = number(given, "offset")?.unwrap_or(1).max(1);
    let limit = number(given, "limit")?.unwrap_or(LINES).max(1);
    let file = folder.file(&folder.inside(name)?)?;
    numbered(file, name, first, limit).map_err(|error| format!("{name} cannot be read: {error}"))
}

fn numbered(file: File, name: &str, first: u64, limit: u64) -> io::Result<ToolAnswer> {
    let bytes = file.metadata()?.len();
    let mut from = BufReader::with_capacity(64 << 10, file);
    if is_binary(&mut from)? {
        return Ok(ToolAnswer::wrong(format!(
            "{name} is a binary file of {bytes} bytes, not text; a command such as file, or hexdump -C in the shell, looks into it"
        )));
    }
    let passed = pass(&mut from, first - 1)?;
    if passed < first - 1 {
        return Ok(ToolAnswer::wrong(format!("{name} has {passed} lines; there is no line {first}")));
    }
    let (mut spool, mut held, mut at) = (OutputSpool::new(), Vec::new(), first);
    while at - first < limit && spool.written() < BYTES {
        let Some(length) = spool::next(&mut from, &mut held)? else {
            spool.line(&end(name, at - 1))?;
            return spool.answer(false);
        };
        spool.line(&format!("{at}\t{}", spool::shown(&held, length)))?;
        at += 1;
    }
    let rest = !from.fill_buf()?.is_empty();
    spool.line(&if rest {
        format!("[more follows: read on with offset {at}]")
    } else {
        end(name, at - 1)
    })?;
    spool.answer(false)
}

fn end(name: &str, lines: u64) -> String {
    if lines == 0 { format!("[{name} is empty]") } else { format!("[end of {name}: {lines} lines]") }
}

fn is_binary(from: &mut BufReader<File>) -> io::Result<bool> {
    let beginning = from.fill_buf()?;
    Ok(beginning[..beginning.len().min(LOOKED_AT)].contains(&0))
}

/// Leaves out so many lines; gives how many there were.
fn pass(from: &mut BufReader<File>, lines: u64) -> io::Result<u64> {
    for passed in 0..lines {
        if from.skip_until(b'\n')? == 0 {
            return Ok(passed);
        }
    }
    Ok(lines)
}

// `list`: what is in a folder, as a tree of so many levels.

const DEPTH: u64 = 2;
/// The most entries of an answer.
const MOST: u64 = 2_000;

pub(super) fn list(
    folder: &WorkingFolder,
    given: &ToolArguments,
    cancel: &Cancel,
) -> Result<ToolAnswer, String> {
    let name = given.text("path")?.unwrap_or(".");
    let depth = number(given, "depth")?.unwrap_or(DEPTH).max(1);
    let shown = if given.flag("all")? { ListingScope::All } else { ListingScope::Pruned };
    let walk = FolderWalk { folder, shown, depth: usize::try_from(depth).unwrap_or(usize::MAX) };
    let start = folder.inside(name)?;
    let (mut spool, mut seen, mut ended) = (OutputSpool::new(), 0u64, None);
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
        return Ok(ToolAnswer::text(format!(
            "{name} is empty, or .gitignore names all that is in it (all: true shows it)"
        )));
    }
    if let Some(ended) = ended {
        spool.line(&ended).map_err(|error| error.to_string())?;
    }
    spool.answer(false).map_err(|error| error.to_string())
}

/// One line: the path seen from where the list begins, with what it is.
fn entry(folder: &WorkingFolder, start: &Path, found: &FolderEntry) -> String {
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

// `grep`: lines that match, in files of any size and encoding. Each file is searched through a small buffer.

const MATCHES: u64 = 200;
const MOST_MATCHES: u64 = 5_000;
const MOST_CONTEXT: u64 = 100;
/// The buffer of a search; a file with a line longer than this is named, not searched.
const BUFFER: usize = 1 << 20;

pub(super) fn grep(
    folder: &WorkingFolder,
    given: &ToolArguments,
    cancel: &Cancel,
) -> Result<ToolAnswer, String> {
    let name = given.text("path")?.unwrap_or(".");
    let matcher = matcher(given)?;
    let context = number(given, "context")?.unwrap_or(0).min(MOST_CONTEXT) as usize;
    let most = number(given, "max")?.unwrap_or(MATCHES).clamp(1, MOST_MATCHES);
    let mut search = Search { folder, matcher, searcher: searcher(context), hits: Hits::new(most, cancel) };
    let start = folder.inside(name)?;
    let walk = FolderWalk { folder, shown: ListingScope::Pruned, depth: usize::MAX };
    if folder.folder(&start).is_ok() {
        walk.visit(&start, &mut |found| {
            if found.kind == FileType::RegularFile { search.file(&found.path) } else { search.go_on() }
        })?;
    } else {
        folder.file(&start)?;
        let _ = search.file(&start);
    }
    search.hits.answer(name).map_err(|error| format!("{name} cannot be searched: {error}"))
}

fn matcher(given: &ToolArguments) -> Result<RegexMatcher, String> {
    let pattern = needed(given, "pattern")?;
    if pattern.is_empty() {
        return Err("grep: pattern is empty; write what to find".to_owned());
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.fixed_strings(!given.flag("regex")?).case_insensitive(given.flag("ignore_case")?);
    builder.line_terminator(Some(b'\n')).build(pattern).map_err(|error| {
        format!("grep: the pattern cannot be used: {error}; a match is within one line, and regex false takes it as it is")
    })
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(BUFFER))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

struct Search<'a> {
    folder: &'a WorkingFolder,
    matcher: RegexMatcher,
    searcher: Searcher,
    hits: Hits<'a>,
}

impl Search<'_> {
    fn file(&mut self, path: &Path) -> ControlFlow<()> {
        self.hits.path = path.to_string_lossy().replace('\n', "\\n");
        let searched = self.folder.file(path).and_then(|file| {
            self.searcher.search_file(&self.matcher, &file, &mut self.hits).map_err(|error| error.to_string())
        });
        if let Err(why) = searched {
            self.hits.left_out.push(format!("{}: {why}", self.hits.path));
        }
        self.go_on()
    }

    fn go_on(&self) -> ControlFlow<()> {
        let stop = self.hits.is_full() || self.hits.cancel.is_cancelled() || self.hits.left_out.len() >= 50;
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What was found so far.
struct Hits<'a> {
    spool: OutputSpool,
    path: String,
    found: u64,
    most: u64,
    left_out: Vec<String>,
    cancel: &'a Cancel,
}

impl<'a> Hits<'a> {
    fn new(most: u64, cancel: &'a Cancel) -> Self {
        Self { spool: OutputSpool::new(), path: String::new(), found: 0, most, left_out: Vec::new(), cancel }
    }

    /// One match more than is shown tells that there are more.
    fn is_full(&self) -> bool {
        self.found > self.most
    }

    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = spool::shown(bytes, bytes.len() as u64);
        self.spool.line(&format!("{}{mark}{}{mark}{line}", self.path, number.unwrap_or(0)))
    }

    fn answer(mut self, name: &str) -> io::Result<ToolAnswer> {
        if self.found == 0 && self.left_out.is_empty() && !self.cancel.is_cancelled() {
            return Ok(ToolAnswer::text(format!("no line in {name} matches")));
        }
        if self.is_full() {
            let most = self.most;
            self.spool.line(&format!(
                "[more than {most} matches: narrow the pattern or the path, or give a larger max]"
            ))?;
        }
        if self.cancel.is_cancelled() {
            self.spool.line("[ended early: the call was cancelled]")?;
        }
        for left_out in std::mem::take(&mut self.left_out) {
            self.spool.line(&format!("[not searched to its end: {left_out}]"))?;
        }
        self.spool.answer(false)
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        self.found += 1;
        if self.is_full() || self.cancel.is_cancelled() {
            return Ok(false);
        }
        self.line(':', hit.line_number(), hit.bytes())?;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        self.line('-', near.line_number(), near.bytes())?;
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.spool.line("--")?;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        Ok(false)
    }
}

// A folder's tree without what `.gitignore` and `.ignore` name, in the order of names.
//
// Each folder is opened through the working folder's own handle, so a link that is put in place of a folder while we walk
// leads nowhere. Links are shown, never followed. One folder's names at a time are held for each level.

/// Folders deeper than this are left out, so that a tree without end has one.
const DEEPEST: usize = 64;
/// The most lines of an ignore file that are read.
const RULES: usize = 10_000;

/// What is shown of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListingScope {
    /// All but what is ignored, and `.git`.
    Pruned,
    /// Everything.
    All,
}

/// Something in a folder.
pub(super) struct FolderEntry {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
}

pub(super) struct FolderWalk<'a> {
    pub(super) folder: &'a WorkingFolder,
    pub(super) shown: ListingScope,
    /// How many levels down.
    pub(super) depth: usize,
}

impl FolderWalk<'_> {
    /// Visits what is in `start` and below. A folder that cannot be opened is left out, except `start` itself.
    pub(super) fn visit(
        &self,
        start: &Path,
        see: &mut dyn FnMut(&FolderEntry) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let mut rules = Vec::new();
        if self.shown == ListingScope::Pruned {
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
        see: &mut dyn FnMut(&FolderEntry) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.shown == ListingScope::Pruned {
            rules.push(self.rules(folder));
        }
        for (name, kind) in entries {
            let path = if folder == Path::new(".") { PathBuf::from(&name) } else { folder.join(&name) };
            if self.is_left_out(&name, &path, kind, rules) {
                continue;
            }
            let found = FolderEntry { path, kind };
            see(&found)?;
            if kind == FileType::Directory
                && depth < self.depth.min(DEEPEST)
                && let Ok(entries) = self.entries(&found.path)
            {
                self.below(&found.path, entries, depth + 1, rules, see)?;
            }
        }
        if self.shown == ListingScope::Pruned {
            rules.pop();
        }
        ControlFlow::Continue(())
    }

    fn is_left_out(&self, name: &OsStr, path: &Path, kind: FileType, rules: &[Gitignore]) -> bool {
        if self.shown == ListingScope::All {
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
                let Ok(Some(length)) = spool::next(&mut from, &mut held) else { break };
                if length == held.len() as u64 {
                    // A rule that cannot be understood ignores nothing.
                    let _ = builder.add_line(None, String::from_utf8_lossy(&held).trim_end_matches('\r'));
                }
            }
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}
