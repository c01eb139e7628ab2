//! What a scripted server was asked so far, and what of its script is left.

use super::count::{self, Count};
use super::script::{News, Repeat, Script, Step};
use crate::ask::Asked;
use crate::dialect::Dialect;
use komado_core::message::{Message, Part};
use std::collections::{HashSet, VecDeque};
use std::fmt::{self, Write};

/// A request that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Which one, counted from 1.
    pub n: u64,
    /// The dialect it was in.
    pub dialect: Dialect,
    /// Where it went, query included.
    pub path: String,
    /// Its headers, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Its body; empty when it was not kept.
    pub body: Vec<u8>,
    /// Bytes of the body, also when it was not kept.
    pub bytes: u64,
    /// FNV-1a of the body: two requests with the same one are the same.
    pub digest: u64,
    /// Its true size, before anything was dropped; 0 when it could not be read.
    pub tokens: u64,
    /// The status it was answered with.
    pub status: u16,
    /// True when the answer came in pieces.
    pub stream: bool,
    /// Tokens of the longest beginning that an earlier request had, too: what a prompt cache would have spared.
    pub cached: u64,
}

/// What was asked, and what is left to say.
pub(super) struct Ledger {
    count: u64,
    seen: VecDeque<Seen>,
    steps: Vec<Step>,
    /// A fingerprint for each beginning of each request that was answered.
    beginnings: HashSet<u64>,
}

impl Ledger {
    pub(super) fn new(script: Script) -> Self {
        Self { count: 0, seen: VecDeque::new(), steps: script.steps, beginnings: HashSet::new() }
    }

    /// The number of the next request.
    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn record(&mut self, seen: Seen, keep: usize) {
        // Answers overtake each other; the list is in the order of asking.
        let at = self.seen.partition_point(|other| other.n < seen.n);
        self.seen.insert(at, seen);
        if let Some(old) = self.seen.len().checked_sub(keep + 1).and_then(|at| self.seen.get_mut(at)) {
            old.body = Vec::new();
        }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.iter().cloned().collect()
    }

    pub(super) fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(super) fn left(&self) -> usize {
        self.steps.iter().filter(|step| step.repeat != Repeat::Always).count()
    }

    /// The first step that is for this request; used up when that was its last time.
    pub(super) fn step(&mut self, news: &News<'_>) -> Option<Step> {
        let at = self.steps.iter().position(|step| step.when.holds(news))?;
        match &mut self.steps[at].repeat {
            Repeat::Times(times) if *times > 1 => *times -= 1,
            Repeat::Times(_) => return Some(self.steps.remove(at)),
            Repeat::Always => {}
        }
        Some(self.steps[at].clone())
    }

    /// Tokens of the longest beginning that an earlier request had.
    pub(super) fn cached(&self, asked: &Asked, count: &Count) -> u64 {
        let sizes = std::iter::once(count.setup).chain(count.messages.iter().copied());
        let known = beginnings(asked).into_iter().zip(sizes);
        known.take_while(|(mark, _)| self.beginnings.contains(mark)).map(|(_, tokens)| tokens).sum()
    }

    /// Remembers the beginnings of a request that was answered.
    pub(super) fn remember(&mut self, asked: &Asked) {
        self.beginnings.extend(beginnings(asked));
    }
}

/// A fingerprint of the setup, then of everything up to each message.
fn beginnings(asked: &Asked) -> Vec<u64> {
    let mut sum = Fnv::default();
    let setup = (&asked.model, count::system(&asked.setup), count::tools(&asked.setup));
    sum.add(&format_args!("{setup:?}"));
    let mut marks = vec![sum.0];
    for message in &asked.messages {
        said(message, &mut sum);
        marks.push(sum.0);
    }
    marks
}

/// Marks beside a text are left out: a cache mark moves with each request, and the words stay the same.
fn said(message: &Message, sum: &mut Fnv) {
    sum.add(&format_args!("{:?}{:?}", message.role, message.name));
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => sum.add(text),
            other => sum.add(&format_args!("{other:?}")),
        }
    }
}

/// FNV-1a: the same on every machine and in every version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fnv(pub(super) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::default();
        sum.bytes(bytes);
        sum.0
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn add(&mut self, what: &dyn fmt::Display) {
        // Writing to a number cannot fail.
        let _ = write!(self, "{what}\u{1f}");
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
