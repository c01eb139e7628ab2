//! One finding: what it is, where it was last seen, and how much it matters.
//!
//! A fact is text that can be looked for again. It refuses to be an opinion: what a model thought of the span is not
//! kept here, only what stood in it.

use super::gather::Touch;
use crate::Seq;

/// What sort of finding it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FactKind {
    /// What the user asked for.
    Request,
    /// What the user or the system prompt wants obeyed.
    Rule,
    /// Something still to be done.
    ToDo,
    /// A call whose result is not in the span.
    OpenCall,
    /// Something that went wrong.
    Error,
    /// A file or a folder.
    Path,
    /// What was decided, and why.
    Decision,
    /// A command or another tool's action.
    Command {
        /// Its exit code, when the result told one.
        exit: Option<i32>,
    },
    /// A name of the code.
    Symbol,
    /// An address on the net.
    Url,
    /// A hash, an issue, a version, a booking: a name nobody can guess again.
    Id,
    /// A figure: a count of tests, an amount, a date.
    Number,
}

impl FactKind {
    /// Its name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Rule => "rule",
            Self::ToDo => "to-do",
            Self::OpenCall => "open call",
            Self::Error => "error",
            Self::Path => "path",
            Self::Decision => "decision",
            Self::Command { .. } => "command",
            Self::Symbol => "symbol",
            Self::Url => "url",
            Self::Id => "id",
            Self::Number => "number",
        }
    }
}

/// Where a finding stands in the digest; the order is the order of importance when room is short.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Section {
    Newest,
    First,
    Rules,
    Open,
    Earlier,
    Errors,
    Changed,
    Decisions,
    Commands,
    Results,
    Read,
    Ids,
    Symbols,
    Outputs,
    Seen,
    Requests,
}

impl Section {
    /// True where short findings share a line.
    pub(super) const fn is_list(self) -> bool {
        matches!(self, Self::Changed | Self::Read | Self::Ids | Self::Symbols | Self::Seen)
    }

    /// True where a text is cut to fit instead of being left out.
    pub(super) const fn is_verbatim(self) -> bool {
        matches!(self, Self::Newest | Self::First | Self::Earlier)
    }
}

/// One finding of the span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// What sort.
    pub kind: FactKind,
    /// The finding itself, as it stood in the span; long ones end in `…`.
    pub text: String,
    /// The entry where it was last seen; 0 when an earlier summary told it without a place.
    pub at: Seq,
    /// In how many entries it was seen, at least.
    pub count: u32,
    /// The whole output it belongs to, where that is kept in a blob.
    pub output: Option<String>,
    /// How much it matters among its kind.
    pub(super) weight: u32,
    /// The most that happened to a file.
    pub(super) touch: Touch,
    /// The tool said that it failed, without a code.
    pub(super) failed: bool,
    /// The entry by which an error had gone away.
    pub(super) resolved: Option<Seq>,
    /// The command that brought an error.
    pub(super) cause: Option<String>,
    /// Worth a line only when room is left over.
    pub(super) soft: bool,
    /// Known only from an earlier summary's prose.
    pub(super) told: bool,
}

impl Fact {
    pub(super) fn new(kind: FactKind, text: impl Into<String>, at: Seq) -> Self {
        Self {
            kind,
            text: text.into(),
            at,
            count: 1,
            output: None,
            weight: 0,
            touch: Touch::Seen,
            failed: false,
            resolved: None,
            cause: None,
            soft: false,
            told: false,
        }
    }

    pub(super) fn touching(mut self, touch: Touch) -> Self {
        self.touch = touch;
        self
    }

    pub(super) fn weighing(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// How much it matters in a span that ends at `last`: what it is, how often it came up, how fresh it is.
    pub(super) fn score(&self, last: Seq) -> u64 {
        let fresh = u64::from(self.at) * 600 / u64::from(last.max(1));
        let often = u64::from(self.count.max(1).ilog2().min(6)) * 150;
        let settled = if self.resolved.is_some() { 500 } else { 0 };
        (u64::from(self.weight) + fresh + often + 500).saturating_sub(settled)
    }

    /// Takes in another sighting of the same finding.
    pub(super) fn join(&mut self, other: Self) {
        if other.at != self.at || other.at == 0 {
            self.count = self.count.saturating_add(other.count);
        }
        self.touch = self.touch.max(other.touch);
        self.weight = self.weight.max(other.weight);
        self.told &= other.told;
        if other.at >= self.at {
            self.at = other.at;
            self.text = other.text;
            self.kind = other.kind;
            self.failed = other.failed;
            self.resolved = other.resolved;
            self.output = other.output.or_else(|| self.output.take());
            self.cause = other.cause.or_else(|| self.cause.take());
        }
    }
}
