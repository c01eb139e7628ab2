//! What must stay, when that is more than what is usable: named, with numbers, and with what to do about it.

use super::{Scene, clip};
use crate::Span;
use crate::head::Source;
use crate::journal::Entry;
use crate::view::Item;
use serde::Serialize;

/// The least that a view can be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Floor {
    /// Most tokens a request may have, were nothing but a twentieth of the window left for the answer.
    pub most: u64,
    /// Tokens of what must stay.
    pub floor: u64,
    /// Tokens of the view as it is.
    pub tokens: u64,
    /// System prompt and tool definitions.
    pub setup: u64,
    /// What is seen of the threads above.
    pub above: u64,
    /// System messages at the beginning.
    pub system: u64,
    /// Anchors of child threads that are at work or wait.
    pub anchors: u64,
    /// Pinned entries.
    pub pinned: u64,
    /// The first request and the newest message of the user, as short as they can be shown.
    pub requests: u64,
    /// The marker for everything else.
    pub marker: u64,
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the window holds {} tokens at most, and what must stay takes {}: system prompt and tools {}",
            self.most, self.floor, self.setup
        )?;
        if self.above > 0 {
            write!(f, ", what is seen of the threads above {}", self.above)?;
        }
        write!(f, ", system messages {}", self.system)?;
        if self.anchors > 0 {
            write!(f, ", anchors of threads that have not ended {}", self.anchors)?;
        }
        write!(
            f,
            ", pins {}, requests {}, marker {}; use a larger window, ",
            self.pinned, self.requests, self.marker
        )?;
        if self.above > 0 {
            f.write_str("balance the shares of the threads, ")?;
        }
        if self.anchors > 0 {
            f.write_str("end a child thread, ")?;
        }
        f.write_str("unpin something, or shorten the setup")
    }
}

impl<S: Source + ?Sized> Scene<'_, S> {
    /// What must stay, when that alone is more than a request may have: then nothing is done at all.
    pub(super) fn hopeless(&self) -> Result<Option<Floor>, S::Error> {
        if self.tokens() <= self.budget.most() {
            return Ok(None);
        }
        let floor = self.floor()?;
        Ok((floor.floor - floor.marker > floor.most).then_some(floor))
    }

    /// What takes how much when nothing more can leave.
    pub(super) fn floor(&self) -> Result<Floor, S::Error> {
        let mut requests = 0;
        let newest = self.blocks.newest.filter(|newest| Some(*newest) != self.blocks.first);
        for item in self.blocks.first.iter().chain(&newest) {
            requests += self.least(item)?;
        }
        let last = self.view.last();
        let marker = u64::from(self.meter.said(&self.marker(&[Span::new(last, last)])?));
        let (weight, blocks) = (self.view.weight(), &self.blocks);
        let mut floor = Floor {
            most: self.budget.most(),
            floor: 0,
            tokens: self.tokens(),
            setup: weight.setup,
            above: weight.above,
            system: blocks.system,
            anchors: blocks.anchors,
            pinned: blocks.pinned,
            requests,
            marker,
        };
        floor.floor =
            floor.setup + floor.above + floor.system + floor.anchors + floor.pinned + requests + marker;
        Ok(floor)
    }

    fn least(&self, item: &Item) -> Result<u64, S::Error> {
        let Entry::Message(message, _) = self.source.record(item.seq)?.entry else {
            return Ok(u64::from(item.tokens));
        };
        let least = clip::clipped(self.meter, item.seq, &message, 0).tokens;
        Ok(u64::from(least.min(item.tokens)))
    }
}
