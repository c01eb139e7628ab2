//! One finding: what it is, where it was last seen, and how much it matters.
//!
//! A fact is text that can be looked for again. It refuses to be an opinion: what a model thought of the span is not
//! kept here, only what stood in it.

use super::gather::Touch;
use crate::Seq;
use std::collections::BTreeMap;

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
    /// A hash, an issue, a version, a booking: a name that cannot be guessed again.
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
pub(super) enum DigestSection {
    Newest,
    First,
    Rules,
    Open,
    Earlier,
    Timeline,
    Errors,
    Changed,
    Commands,
    Git,
    /// What the model noted: decisions and findings.
    Decisions,
    Results,
    Read,
    Ids,
    Symbols,
    Outputs,
    Seen,
    Requests,
}

impl DigestSection {
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
    /// How far something to be done is.
    pub(super) status: ToDoStatus,
}

/// How far something to be done is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum ToDoStatus {
    #[default]
    Pending,
    Doing,
    Done,
    Dropped,
}

impl ToDoStatus {
    /// Its box.
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ] ",
            Self::Doing => "[~] ",
            Self::Done => "[x] ",
            Self::Dropped => "[-] ",
        }
    }

    /// A box that [`Self::mark`] wrote, and what is behind it.
    pub(super) fn marked(text: &str) -> Option<(Self, &str)> {
        let all = [Self::Pending, Self::Doing, Self::Done, Self::Dropped];
        all.into_iter().find_map(|status| Some((status, text.strip_prefix(status.mark())?)))
    }

    /// True for what is still to be done.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Doing)
    }
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
            status: ToDoStatus::Pending,
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
            self.status = other.status;
            self.resolved = other.resolved;
            self.output = other.output.or_else(|| self.output.take());
            self.cause = other.cause.or_else(|| self.cause.take());
        }
    }
}

// Findings of one kind, each once, in bounded memory.
//
// When the list is over-full the least important findings go. It refuses to depend on anything but what was put
// into it and in which order, so the same span always leaves the same list.

/// A list for `ROOM` findings; it may hold twice as many between two clearings.
#[derive(Clone, Debug, Default)]
pub(super) struct FactTable<const ROOM: usize> {
    facts: BTreeMap<String, Fact>,
    last: Seq,
}

impl<const ROOM: usize> FactTable<ROOM> {
    /// Puts a finding on; one that is there under the same key is joined with it.
    pub(super) fn put(&mut self, key: String, fact: Fact) {
        self.last = self.last.max(fact.at);
        match self.facts.get_mut(&key) {
            Some(known) => known.join(fact),
            None => {
                self.facts.insert(key, fact);
                if self.facts.len() > 2 * ROOM {
                    self.clear_out();
                }
            }
        }
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Fact> {
        self.facts.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.facts.remove(key);
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Fact> {
        self.facts.values_mut()
    }

    /// The findings, most important first.
    pub(super) fn ranked(&self, last: Seq) -> Vec<Fact> {
        let mut facts: Vec<(&String, &Fact)> = self.facts.iter().collect();
        facts.sort_by(|(a_key, a), (b_key, b)| {
            (b.score(last), b.at, *a_key).cmp(&(a.score(last), a.at, *b_key))
        });
        facts.into_iter().map(|(_, fact)| fact.clone()).take(ROOM).collect()
    }

    fn clear_out(&mut self) {
        let mut keys: Vec<(u64, Seq, &String)> =
            self.facts.iter().map(|(key, fact)| (fact.score(self.last), fact.at, key)).collect();
        keys.sort_unstable();
        let out: Vec<String> =
            keys.iter().take(self.facts.len() - ROOM).map(|(_, _, key)| (*key).clone()).collect();
        for key in out {
            self.facts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::fact::FactKind;

    #[test]
    fn a_full_shelf_lets_the_oldest_and_rarest_go() {
        let mut shelf = FactTable::<10>::default();
        for seq in 1..=1000 {
            shelf.put("often".into(), Fact::new(FactKind::Id, "often", seq));
            shelf.put(format!("once {seq}"), Fact::new(FactKind::Id, format!("once {seq}"), seq));
            assert!(shelf.facts.len() <= 20);
        }
        let ranked = shelf.ranked(1000);
        assert_eq!((ranked[0].text.as_str(), ranked[0].count), ("often", 1000));
        assert_eq!(ranked[1].text, "once 1000");
        assert_eq!(ranked.len(), 10);
    }
}
