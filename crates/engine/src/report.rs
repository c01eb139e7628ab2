//! What happened in many sessions: how much was used, what people ask, how well agents do.
//!
//! A report is read from the sessions' rows and journals, on any store, and never kept: what it says can always be said again.
//! It reads each session once and holds none of them. Every table in it is bounded, and says by how much it may be wrong
//! where it had to leave something out; sums are exact. What nobody journaled is absent, not guessed.

mod cluster;
mod performance;
mod questions;
mod range;
mod scan;
mod sketch;
mod table;
mod usage;

pub use performance::{Performance, Performed, ToolUsed};
pub use questions::{Question, Questions};
pub use range::{BadRange, MOST_DAYS, Range};
pub use scan::{Archive, Flow, Progress};
pub use sketch::Spreading;
pub use usage::{Usage, Used};

use crate::error::Result;
use komado_core::session::Session;
use scan::{Counter, Seen, Told, scan};
use serde::Serialize;

/// A part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// How much was used.
    Usage,
    /// What people ask.
    Questions,
    /// How well agents do.
    Performance,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Usage, Self::Questions, Self::Performance];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Questions => "questions",
            Self::Performance => "performance",
        }
    }
}

/// How deep to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Depth {
    /// At every journal.
    #[default]
    Journals,
    /// At the sessions' rows alone: quick, of usage only, and without what journals know. A session's sums then stand on
    /// the day it was made.
    Rows,
}

/// What a report is to be about.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Which time.
    pub range: Range,
    /// Only sessions of this user.
    pub user: Option<String>,
    /// Only what was asked of this model.
    pub model: Option<String>,
    /// Rows of a table that may have many.
    pub top: usize,
    /// Which parts.
    pub parts: Vec<Part>,
    /// How deep to look.
    pub depth: Depth,
}

impl Ask {
    /// True when the report is about this model.
    pub(crate) fn is_about(&self, model: &str) -> bool {
        self.model.as_ref().is_none_or(|wanted| wanted == model)
    }

    /// True when this part is asked for, and can be told: rows know of usage alone.
    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part) && (part == Part::Usage || self.depth == Depth::Journals)
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
    pub usage: Option<Usage>,
    /// What people ask.
    pub questions: Option<Questions>,
    /// How well agents do.
    pub performance: Option<Performance>,
}

/// Makes a report of the sessions that `sees` lets pass; `None` when `tick` told it to stop.
pub fn report(
    archive: &dyn Archive,
    ask: &Ask,
    sees: &dyn Fn(&Session) -> bool,
    tick: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Option<Report>> {
    let mut counts = Counts {
        usage: ask.has(Part::Usage).then(|| usage::Counts::new(ask)),
        questions: ask.has(Part::Questions).then(questions::Counts::default),
        performance: ask.has(Part::Performance).then(performance::Counts::new),
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
    usage: Option<usage::Counts>,
    questions: Option<questions::Counts>,
    performance: Option<performance::Counts>,
}

impl Counts {
    fn each(&mut self, mut tell: impl FnMut(&mut dyn Counter)) {
        self.usage.iter_mut().for_each(|one| tell(one));
        self.questions.iter_mut().for_each(|one| tell(one));
        self.performance.iter_mut().for_each(|one| tell(one));
    }
}

impl Counter for Counts {
    fn begin(&mut self, session: &Session, ask: &Ask) {
        self.each(|one| one.begin(session, ask));
    }

    fn take(&mut self, seen: &Seen<'_>, ask: &Ask) {
        self.each(|one| one.take(seen, ask));
    }

    fn end(&mut self, session: &Session, ask: &Ask, told: Told) {
        self.each(|one| one.end(session, ask, told));
    }
}

#[cfg(test)]
mod tests;
