//! What happened in many sessions: how much was used, what people ask, how well agents do.
//!
//! A report is read from the sessions' rows and journals, on any store, and never kept: what it says can always be said again.
//! It reads each session once and holds none of them. Every table in it is bounded, and says by how much it may be wrong
//! where it had to leave something out; sums are exact. What was not journaled is absent, not guessed.

use crate::engine::Engine;
use crate::error::{Error, Result};
use jiff::Timestamp;
use komado_core::head::Kind;
use komado_core::journal::{Entry, Record, decode};
use komado_core::message::Role;
use komado_core::session::Session;
use komado_core::thread::Header;
use komado_core::{Seq, SessionId};
use komado_store::{OpenMode, SessionQuery};
use serde::Serialize;
use std::ops::ControlFlow;

mod performance;
mod questions;
mod range;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod usage;

pub use performance::{ModelPerformance, Performance, ToolUsage};
pub use questions::{Question, Questions};
pub use range::{BadRange, MOST_DAYS, Range};
pub use table::Distribution;
pub use usage::{UsageReport, UsageRow};

/// A part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportPart {
    /// How much was used.
    Usage,
    /// What people ask.
    Questions,
    /// How well agents do.
    Performance,
}

komado_core::names! {
    /// The word for it.
    ReportPart { Usage = "usage", Questions = "questions", Performance = "performance" }
}

/// How deep to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReportDepth {
    /// At every journal.
    #[default]
    Journals,
    /// At the sessions' rows alone: quick, of usage only, and without what journals know. A session's sums then stand on
    /// the day it was made.
    Rows,
}

/// What a report is to be about.
#[derive(Clone, Debug)]
pub struct ReportQuery {
    /// Which time.
    pub range: Range,
    /// Only sessions of this user.
    pub user: Option<String>,
    /// Only requests to this model.
    pub model: Option<String>,
    /// Rows of a table that may have many.
    pub top: usize,
    /// Which parts.
    pub parts: Vec<ReportPart>,
    /// How deep to look.
    pub depth: ReportDepth,
}

impl ReportQuery {
    /// True when the report is about this model.
    pub(crate) fn is_about(&self, model: &str) -> bool {
        self.model.as_ref().is_none_or(|wanted| wanted == model)
    }

    /// True when this part is asked for, and can be told: rows know of usage alone.
    fn has(&self, part: ReportPart) -> bool {
        self.parts.contains(&part) && (part == ReportPart::Usage || self.depth == ReportDepth::Journals)
    }
}

/// A report.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Its first moment.
    pub from: String,
    /// The moment at which its time is over.
    pub to: String,
    /// How far its days are from UTC.
    pub utc_offset: String,
    /// The only user it is about.
    pub user: Option<String>,
    /// The only model it is about.
    pub model: Option<String>,
    /// Sessions looked at.
    pub sessions_read: u64,
    /// Entries read.
    pub entries_read: u64,
    /// Sessions that could not be read to their end; what stands before the damage is counted.
    pub unreadable: u64,
    /// The first of them.
    pub unreadable_sessions: Vec<String>,
    /// How much was used.
    pub usage: Option<UsageReport>,
    /// What people ask.
    pub questions: Option<Questions>,
    /// How well agents do.
    pub performance: Option<Performance>,
}

/// Makes a report of the sessions that `sees` lets pass; `None` when `tick` told it to stop.
pub fn report(
    archive: &dyn Archive,
    ask: &ReportQuery,
    sees: &dyn Fn(&Session) -> bool,
    tick: &mut dyn FnMut(ScanProgress) -> ScanFlow,
) -> Result<Option<Report>> {
    let mut counts = Counts {
        usage: ask.has(ReportPart::Usage).then(|| usage::UsageCounts::new(ask)),
        questions: ask.has(ReportPart::Questions).then(questions::QuestionCounts::default),
        performance: ask.has(ReportPart::Performance).then(performance::PerformanceCounts::new),
    };
    let Some(scanned) = scan(archive, ask, sees, &mut counts, tick)? else { return Ok(None) };
    Ok(Some(Report {
        from: ask.range.from(),
        to: ask.range.to(),
        utc_offset: ask.range.offset(),
        user: ask.user.clone(),
        model: ask.model.clone(),
        sessions_read: scanned.progress.sessions,
        entries_read: scanned.progress.entries,
        unreadable: scanned.unread,
        unreadable_sessions: scanned.named,
        usage: counts.usage.map(|usage| usage.told(ask)),
        questions: counts.questions.map(|questions| questions.told(ask)),
        performance: counts.performance.map(|performance| performance.told(ask)),
    }))
}

/// Whatever of it is asked for.
struct Counts {
    usage: Option<usage::UsageCounts>,
    questions: Option<questions::QuestionCounts>,
    performance: Option<performance::PerformanceCounts>,
}

impl Counts {
    fn each(&mut self, mut tell: impl FnMut(&mut dyn EntryCounter)) {
        self.usage.iter_mut().for_each(|one| tell(one));
        self.questions.iter_mut().for_each(|one| tell(one));
        self.performance.iter_mut().for_each(|one| tell(one));
    }
}

impl EntryCounter for Counts {
    fn begin(&mut self, session: &Session, ask: &ReportQuery) {
        self.each(|one| one.begin(session, ask));
    }

    fn take(&mut self, seen: &SeenEntry<'_>, ask: &ReportQuery) {
        self.each(|one| one.take(seen, ask));
    }

    fn end(&mut self, session: &Session, ask: &ReportQuery, told: SessionCoverage) {
        self.each(|one| one.end(session, ask, told));
    }
}

// Reading every session once, a page at a time, and each journal a line at a time.
//
// Nothing is kept of a session when the next one comes but what the counters keep. A journal that is damaged or was removed
// meanwhile is named in the report and passed over; a store that is away ends it.

/// Sessions that are read at a time.
const PAGE: usize = 500;
/// Journals that could not be read and are named.
const NAMED: usize = 20;
/// Lines between two looks at whether anyone still waits.
const LINES: u64 = 512;

/// Whether to go on.
pub type ScanFlow = ControlFlow<()>;

/// Where sessions and their journals are read.
pub trait Archive {
    /// A page of sessions, in the order they were made.
    fn page(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// Every entry of a session with the bytes of its line, thread by thread, each once.
    fn read(
        &self,
        id: &SessionId,
        each: &mut dyn FnMut(&Header, &Record, u64) -> ScanFlow,
    ) -> Result<ScanFlow>;
}

impl Archive for Engine {
    fn page(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        Ok(self.store().sessions(query)?)
    }

    fn read(
        &self,
        id: &SessionId,
        each: &mut dyn FnMut(&Header, &Record, u64) -> ScanFlow,
    ) -> Result<ScanFlow> {
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            for seq in header.base_seq() + 1..=journal.last() {
                let line = journal.line(seq)?;
                let damaged = |why: String| {
                    let place = format!("{id}/{}@{seq}", header.thread);
                    Error::Store(komado_store::Error::Damaged { place, why })
                };
                let text = std::str::from_utf8(&line).map_err(|e| damaged(e.to_string()))?;
                let record = decode(text).map_err(|e| damaged(e.to_string()))?;
                if each(&header, &record, line.len() as u64).is_break() {
                    return Ok(ScanFlow::Break(()));
                }
            }
        }
        Ok(ScanFlow::Continue(()))
    }
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanProgress {
    /// Sessions looked at.
    pub sessions: u64,
    /// Entries read.
    pub entries: u64,
}

/// One entry, and what is known where it stands.
pub(crate) struct SeenEntry<'a> {
    pub(crate) session: &'a Session,
    pub(crate) header: &'a Header,
    pub(crate) record: &'a Record,
    /// When it was written; nothing for a time that is none.
    pub(crate) time: Option<Timestamp>,
    /// True when it lies in the report's time.
    pub(crate) counts: bool,
    /// Bytes of its line.
    pub(crate) bytes: u64,
    /// The model that was asked last, or that the session was made for.
    pub(crate) model: &'a str,
    /// Tokens of the request that this answers, as we counted them.
    pub(crate) asked: Option<u64>,
    /// True for words of a person that begin a turn.
    pub(crate) opens_turn: bool,
}

/// How much of a session was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionCoverage {
    /// Everything.
    Whole,
    /// What stands before a place that cannot be read.
    Part,
}

/// Who counts.
pub(crate) trait EntryCounter {
    /// A session begins.
    fn begin(&mut self, _session: &Session, _ask: &ReportQuery) {}

    /// One of its entries.
    fn take(&mut self, seen: &SeenEntry<'_>, ask: &ReportQuery);

    /// All its entries were told, or all that could be read.
    fn end(&mut self, _session: &Session, _ask: &ReportQuery, _told: SessionCoverage) {}
}

/// What a scan found out on its way.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) progress: ScanProgress,
    pub(crate) unread: u64,
    pub(crate) named: Vec<String>,
}

/// Shows every entry of every session that the ask is about to the counter; `None` when it was told to stop.
pub(crate) fn scan(
    archive: &dyn Archive,
    ask: &ReportQuery,
    sees: &dyn Fn(&Session) -> bool,
    counter: &mut dyn EntryCounter,
    tick: &mut dyn FnMut(ScanProgress) -> ScanFlow,
) -> Result<Option<Scanned>> {
    let mut query = SessionQuery {
        user: ask.user.clone(),
        changed_from: Some(ask.range.from()),
        made_before: Some(ask.range.to()),
        limit: PAGE,
        ..SessionQuery::default()
    };
    let mut scanned = Scanned::default();
    loop {
        let page = archive.page(&query)?;
        if tick(scanned.progress).is_break() {
            return Ok(None);
        }
        for session in page.iter().filter(|session| sees(session)) {
            scanned.progress.sessions += 1;
            if tick(scanned.progress).is_break() {
                return Ok(None);
            }
            counter.begin(session, ask);
            let id = SessionId::new(session.meta.uuid.as_str())?;
            let (mut walk, mut told) = (Walk::default(), SessionCoverage::Whole);
            // Where the rows are all that is asked for, no journal is read.
            let read = match ask.depth {
                ReportDepth::Rows => Ok(ScanFlow::Continue(())),
                ReportDepth::Journals => archive.read(&id, &mut |header, record, bytes| {
                    scanned.progress.entries += 1;
                    walk.step(ask, session, header, record, bytes, counter);
                    match scanned.progress.entries.is_multiple_of(LINES) {
                        true => tick(scanned.progress),
                        false => ScanFlow::Continue(()),
                    }
                }),
            };
            match read {
                Err(Error::Store(error)) if is_passed_over(&error) => {
                    told = SessionCoverage::Part;
                    scanned.unread += 1;
                    scanned.named.extend((scanned.named.len() < NAMED).then(|| id.to_string()));
                }
                read => {
                    if read?.is_break() {
                        return Ok(None);
                    }
                }
            }
            counter.end(session, ask, told);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => {
                let id = SessionId::new(last.meta.uuid.as_str())?;
                query.after = Some((last.meta.created_at.clone(), id));
            }
            _ => return Ok(Some(scanned)),
        }
    }
}

/// True for what is wrong with one session and with no other.
fn is_passed_over(error: &komado_store::Error) -> bool {
    use komado_store::Error::{Damaged, Header, NoSession, NoThread};
    matches!(error, Damaged { .. } | Header { .. } | NoSession(_) | NoThread(..))
}

/// Where one is in a session's threads.
#[derive(Default)]
struct Walk {
    thread: Option<Header>,
    /// The model asked last.
    model: Option<String>,
    /// The last request of the conversation, and its tokens.
    sent: Option<(Seq, u64)>,
    /// Who said something last.
    last: Option<Kind>,
}

impl Walk {
    fn step(
        &mut self,
        ask: &ReportQuery,
        session: &Session,
        header: &Header,
        record: &Record,
        bytes: u64,
        counter: &mut dyn EntryCounter,
    ) {
        if self.thread.as_ref().is_none_or(|thread| thread.thread != header.thread) {
            *self = Self { thread: Some(header.clone()), ..Self::default() };
        }
        if let Entry::Sent(sent) = &record.entry
            && sent.purpose.is_none()
        {
            self.sent = Some((record.seq, sent.context_tokens));
            if self.model.as_ref() != Some(&sent.model) {
                self.model = Some(sent.model.clone());
            }
        }
        let time = record.timestamp.parse().ok();
        let model = self.model.as_deref().or(session.meta.config.model.as_deref()).unwrap_or(UNNAMED);
        let seen = SeenEntry {
            session,
            header,
            record,
            time,
            counts: time.is_some_and(|time| ask.range.holds(time)) && ask.is_about(model),
            bytes,
            model,
            asked: self.asked(&record.entry),
            opens_turn: is_asked_by_a_person(header, &record.entry) && self.last != Some(Kind::User),
        };
        counter.take(&seen, ask);
        let kind = Kind::of(&record.entry);
        if matches!(kind, Kind::User | Kind::Assistant | Kind::Tool) {
            self.last = Some(kind);
        }
    }

    fn asked(&self, entry: &Entry) -> Option<u64> {
        let (Entry::Message(_, Some(reply)), Some((seq, tokens))) = (entry, self.sent) else { return None };
        (reply.to == Some(seq)).then_some(tokens)
    }
}

/// What stands where no user or model is named.
pub(crate) const UNNAMED: &str = "-";

/// True for words of a person: what a spawned thread is told comes from the thread above it, and a tool's answer is not a person's
/// question.
pub(crate) fn is_asked_by_a_person(header: &Header, entry: &Entry) -> bool {
    match entry {
        Entry::Message(message, _) => {
            message.role == Role::User && message.outcome().is_none() && header.parent.is_none()
        }
        _ => false,
    }
}
