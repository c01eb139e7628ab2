//! `grep`: lines that match, in files of any size and encoding. Each file is searched through a small buffer.

use super::arguments::Arguments;
use super::folder::Folder;
use super::line;
use super::pruned::{Shown, Walk};
use super::spool::Spool;
use crate::tools::Answer;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use komado_provider::Cancel;
use rustix::fs::FileType;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

const MATCHES: u64 = 200;
const MOST_MATCHES: u64 = 5_000;
const MOST_CONTEXT: u64 = 100;
/// The buffer of a search; a file with a line longer than this is named, not searched.
const BUFFER: usize = 1 << 20;

pub(super) fn grep(folder: &Folder, given: &Arguments, cancel: &Cancel) -> Result<Answer, String> {
    let name = given.text("path")?.unwrap_or(".");
    let matcher = matcher(given)?;
    let context = given.number("context")?.unwrap_or(0).min(MOST_CONTEXT) as usize;
    let most = given.number("max")?.unwrap_or(MATCHES).clamp(1, MOST_MATCHES);
    let mut search = Search { folder, matcher, searcher: searcher(context), hits: Hits::new(most, cancel) };
    let start = folder.inside(name)?;
    let walk = Walk { folder, shown: Shown::Pruned, depth: usize::MAX };
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

fn matcher(given: &Arguments) -> Result<RegexMatcher, String> {
    let pattern = given.needed("pattern")?;
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
    folder: &'a Folder,
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
    spool: Spool,
    path: String,
    found: u64,
    most: u64,
    left_out: Vec<String>,
    cancel: &'a Cancel,
}

impl<'a> Hits<'a> {
    fn new(most: u64, cancel: &'a Cancel) -> Self {
        Self { spool: Spool::new(), path: String::new(), found: 0, most, left_out: Vec::new(), cancel }
    }

    /// One match more than is shown tells that there are more.
    fn is_full(&self) -> bool {
        self.found > self.most
    }

    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line::shown(bytes, bytes.len() as u64);
        self.spool.line(&format!("{}{mark}{}{mark}{line}", self.path, number.unwrap_or(0)))
    }

    fn answer(mut self, name: &str) -> io::Result<Answer> {
        if self.found == 0 && self.left_out.is_empty() && !self.cancel.is_cancelled() {
            return Ok(Answer::text(format!("no line in {name} matches")));
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
