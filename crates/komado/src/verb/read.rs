//! Verbs that read a thread: `log`, `show`, `output`, `recall`, `diff`.
//!
//! A journal is read by pages and a view item by item, so that a long one is never held.

use crate::app::App;
use crate::cli_output::{Style, count, number, say};
use crate::pager::PagerOption;
use crate::render;
use crate::render::transcript::{LocalTimes, TranscriptPrinter};
use komado_core::{Address, Seq, ThreadId};
use komado_engine::engine::ResolvedAddress;
use komado_engine::recall::RecallMode;
use komado_ops::address::{AtMoment, AtSession, AtThread};
use komado_ops::journal::{EntriesOf, Log, ShowView, ViewFormat, ViewItem, Viewed};
use komado_ops::output::{ListOutputs, OutputPart, RawOutput, ReadOutput};
use komado_ops::recall::{Recall, RecallSearch, RecallSession, Recalled};
use komado_ops::stream::{StreamBytes, StreamSink};
use komado_ops::window::Diff;
use komado_ops::{OpFault, OpResult, ResultPage};
use std::io::Write;

/// Columns of a time and what sets it off.
const TIME: usize = 10;
/// Entries read at a time.
const PAGE: u32 = 500;

#[derive(clap::Args, Debug)]
pub(crate) struct LogArgs {
    /// The session, SESSION/THREAD, or SESSION@SEQ for everything up to there
    address: Address,
    /// Begin at this entry
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: Seq,
    /// Only the last N entries
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<u32>,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
    /// Show digests, ids that only programs compare, and the numbers of requests and edits, too
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pager: PagerOption,
}

impl LogArgs {
    /// The last entries of a thread.
    pub(super) fn last(found: &ResolvedAddress, last: u32) -> Self {
        let (session, thread) = (found.session.clone(), Some(found.thread.clone()));
        let (address, pager) = (Address { session, thread, seq: None }, PagerOption { no_pager: true });
        Self { address, from: 1, last: Some(last), full: false, verbose: false, pager }
    }
}

pub(crate) fn log(app: &mut App, args: LogArgs) -> OpResult {
    let found = app.find(&args.address)?;
    let (session, thread) = (Some(found.session.to_string()), Some(found.thread.to_string()));
    // Each line begins with its time.
    let width = u32::try_from(app.paper.width.saturating_sub(TIME)).ok();
    app.paper.page(args.pager);
    let at = AtMoment { session: session.clone(), thread: thread.clone(), seq: found.seq };
    // The first page only says where the journal ends.
    let begin = Some(args.from).filter(|_| args.last.is_none());
    let page = Log { at, from: begin, limit: Some(1), full: args.full, width, verbose: args.verbose };
    let end = app.context.run(page.clone())?.end;
    let from = args.last.map_or(args.from, |n| end.saturating_sub(n) + 1).max(1);
    if app.paper.json {
        return lines(
            app,
            EntriesOf {
                at: AtThread { session, thread },
                from: Some(from),
                to: Some(end),
                ..EntriesOf::default()
            },
        );
    }
    let at = AtMoment { seq: Some(end), ..page.at.clone() };
    let mut next = Some(from).filter(|from| *from <= end);
    let mut times = LocalTimes::default();
    while let Some(from) = next {
        let at = at.clone();
        let page = app.context.run(Log { at, from: Some(from), limit: Some(PAGE), ..page.clone() })?;
        for (line, stamp) in page.text.lines().zip(&page.times) {
            let (day, time) = times.tell(stamp, "%H:%M:%S");
            if let Some(day) = day {
                app.paper.line(app.paper.ink(Style::Dim, &format!("── {day} ──")))?;
            }
            // What a rewind left behind is set off as a comment of the notation.
            let line = if line.starts_with("# ") { app.paper.ink(Style::Dim, line) } else { line.to_owned() };
            let time = app.paper.ink(Style::Dim, &format!("{time:<8}"));
            app.paper.line(format!("{time}  {line}"))?;
        }
        next = page.next;
    }
    Ok(())
}

/// Prints the lines of a journal as they stand there.
fn lines(app: &mut App, mut request: EntriesOf) -> OpResult {
    if request.from > request.to {
        return Ok(());
    }
    loop {
        let page = app.context.run(request.clone())?;
        page.items.iter().try_for_each(|entry| app.paper.json(entry))?;
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => return Ok(()),
        }
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// The session, SESSION/THREAD, or a moment SESSION@SEQ
    #[arg(value_name = "ADDRESS")]
    pub(super) at: AtMoment,
    /// Do not shorten long texts
    #[arg(long)]
    pub(super) full: bool,
    /// One line for each message
    #[arg(long)]
    pub(super) brief: bool,
    #[command(flatten)]
    pub(super) pager: PagerOption,
}

pub(crate) fn show(app: &mut App, args: ShowArgs) -> OpResult {
    let format = match (app.paper.json, args.brief) {
        (true, _) => ViewFormat::Messages,
        (false, true) => ViewFormat::Lines,
        (false, false) => ViewFormat::Transcript,
    };
    let width = u32::try_from(app.paper.width).ok();
    let show = ShowView { at: args.at, format: Some(format), full: args.full, width };
    app.paper.page(args.pager);
    let (paper, times) = (&mut app.paper, LocalTimes::default());
    let printer = TranscriptPrinter { paper, name: String::new(), full: args.full, times };
    app.context.stream(show, &mut ViewPrinter { printer, has_heading: format == ViewFormat::Transcript })
}

/// Prints each item when it comes.
struct ViewPrinter<'a> {
    printer: TranscriptPrinter<'a>,
    /// True where it is said first what is shown.
    has_heading: bool,
}

impl StreamSink<ShowView> for ViewPrinter<'_> {
    fn begin(&mut self, view: Viewed) -> OpResult {
        let Viewed { session, thread, seq, tokens } = view;
        let is_root = thread == ThreadId::root().as_str();
        let name = if is_root { session } else { format!("{session}/{thread}") };
        if self.has_heading {
            let paper = &mut self.printer.paper;
            let about = format!("what the model sees: {} tokens", number(tokens));
            let heading = paper.ink(Style::Bold, &format!("{name}@{seq}"));
            paper.prose(&format!("{heading}  {}", paper.ink(Style::Dim, &about)))?;
        }
        self.printer.name = name;
        Ok(())
    }

    fn item(&mut self, item: ViewItem) -> OpResult {
        match item {
            ViewItem::Line { text } => self.printer.paper.line(text),
            ViewItem::Told(item) => self.printer.print(&item),
            other => self.printer.paper.json(&other),
        }
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct OutputArgs {
    /// The session, or SESSION/THREAD
    address: AtMoment,
    /// The output: its id or a beginning of it, or @SEQ for an entry; a list of the outputs when left out
    #[arg(value_name = "REF")]
    reference: Option<String>,
    #[command(flatten)]
    part: OutputPart,
    /// Copy the bytes to standard output
    #[arg(long, conflicts_with_all = ["offset", "limit", "grep", "line", "char_offset"])]
    raw: bool,
}

pub(crate) fn output(app: &mut App, args: OutputArgs) -> OpResult {
    let Some(ref_id) = args.reference else {
        if args.raw || args.part != OutputPart::default() {
            return Err(OpFault::usage("which output? `komado session output SESSION` lists them"));
        }
        return app.show(ListOutputs { at: args.address });
    };
    let at = AtThread { session: args.address.session, thread: args.address.thread };
    if !args.raw {
        return app.show(ReadOutput { at, ref_id, part: args.part });
    }
    if app.paper.json {
        return Err(OpFault::usage("--raw copies bytes, which are no JSON; leave out one of the two"));
    }
    app.context.stream(RawOutput { at, ref_id }, &mut CopySink(app.paper.raw()))
}

/// Copies what comes.
struct CopySink<'a>(&'a mut dyn Write);

impl StreamSink<RawOutput> for CopySink<'_> {
    fn begin(&mut self, (): ()) -> OpResult {
        Ok(())
    }

    fn item(&mut self, StreamBytes(bytes): StreamBytes) -> OpResult {
        Ok(self.0.write_all(&bytes)?)
    }
}

#[derive(clap::Args, Debug)]
#[command(
    override_usage = "komado recall [OPTIONS] ADDRESS QUERY...\n       komado recall [OPTIONS] (--user NAME | --all) QUERY..."
)]
pub(crate) struct RecallArgs {
    /// The session, SESSION/THREAD or SESSION@SEQ, and what to look for; with --user or --all only that
    #[arg(required = true, num_args = 1.., value_names = ["ADDRESS", "QUERY"])]
    words: Vec<String>,
    #[command(flatten)]
    search: RecallSearch,
    /// Look for the text as it stands, the last entry first
    #[arg(long, conflicts_with = "regex")]
    exact: bool,
    /// Look for a regular expression, the last entry first
    #[arg(long)]
    regex: bool,
    /// Search all sessions of this user
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    user: Option<String>,
    /// Search every session
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pager: PagerOption,
}

pub(crate) fn recall(app: &mut App, mut args: RecallArgs) -> OpResult {
    let is_wide = args.all || args.user.is_some();
    let address = (!is_wide).then(|| args.words.remove(0));
    if args.words.is_empty() {
        return Err(OpFault::usage("say where to look and what for: komado recall SESSION QUERY"));
    }
    let mode = match (args.exact, args.regex) {
        (true, _) => RecallMode::Exact,
        (_, true) => RecallMode::Regex,
        _ => RecallMode::Ranked,
    };
    let search = RecallSearch { query: args.words.join(" "), mode: Some(mode), ..args.search };
    app.paper.page(args.pager);
    match address {
        Some(address) => in_session(app, address.parse().map_err(OpFault::input)?, search),
        None => {
            let found = app.run(Recall { search, user: args.user, ..Recall::default() })?;
            print(app, &found, mode == RecallMode::Ranked)?;
            if !app.paper.json {
                say(format!("searched {}", count(app.progress.searched(), "session")));
            }
            Ok(())
        }
    }
}

/// Searches one session.
pub(super) fn in_session(app: &mut App, at: AtMoment, search: RecallSearch) -> OpResult {
    let is_ranked = search.mode.is_none_or(|mode| mode == RecallMode::Ranked);
    let found = app.run(RecallSession { at, search })?;
    print(app, &found, is_ranked)
}

fn print(app: &mut App, found: &ResultPage<Recalled>, is_ranked: bool) -> OpResult {
    render::journal::print(&mut app.paper, found)?;
    app.paper.finish()?;
    match found.items.first() {
        _ if app.paper.json => {}
        Some(best) => say(format!("read one in full: komado log {} -n 1 --full", best.address)),
        None if is_ranked => say("nothing was found; try other words, or fewer filters"),
        None => say("nothing was found as it stands; without --exact or --regex words are enough"),
    }
    Ok(())
}

#[derive(clap::Args, Debug)]
pub(crate) struct DiffArgs {
    /// The earlier moment, SESSION@SEQ
    before: Address,
    /// The later moment; now when left out
    after: Option<Address>,
    #[command(flatten)]
    pager: PagerOption,
}

pub(crate) fn diff(app: &mut App, args: DiffArgs) -> OpResult {
    let before = app.find(&args.before)?;
    let after = args.after.as_ref().map(|address| app.find(address)).transpose()?;
    if after.as_ref().is_some_and(|after| after.session != before.session) {
        return Err(OpFault::usage("two sessions share nothing to compare; name two moments of one"));
    }
    let columns = app.paper.width.saturating_sub(2);
    app.paper.page(args.pager);
    app.show(Diff {
        at: AtSession { session: Some(before.session.to_string()) },
        from: moment(&before),
        to: after.as_ref().map(moment),
        columns: (!app.paper.json).then(|| u32::try_from(columns).unwrap_or(u32::MAX)),
    })
}

fn moment(found: &ResolvedAddress) -> String {
    let at = found.seq.map(|seq| format!("@{seq}")).unwrap_or_default();
    format!("{}{at}", found.thread)
}
