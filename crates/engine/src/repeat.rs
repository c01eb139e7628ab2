//! The loop guard: a model that makes a call again because an edit hides what it answered.
//!
//! A model that is not shown the answer to its call makes the call again, and may do so without end. So before a request the
//! newest calls are compared with earlier ones. Where one is the same (tool and arguments) and an edit hides or shortens the
//! earlier answer, the new answer is pinned, as far as there is room: a repetition is the newest there is to know, stands at
//! the end, and so costs the provider's cache nothing, while the edit that hides the earlier one may hide much else. The pins
//! are given back, the oldest first, when they take too much. Pin, unpin and a note about the repetition are entries: a person
//! can read them and undo them, and the count survives a restart.
//!
//! While no edit is in force nothing is looked at. The work for one request is bounded, however long the journal is.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::budget::{Budget, BudgetRule};
use komado_core::journal::Entry;
use komado_core::message::{Call, Message};
use komado_core::raw::RawJson;
use komado_core::view::ViewPiece;
use komado_core::{Kind, Seq, Span};
use serde::{Deserialize, Serialize};

/// What the note is about.
pub const ABOUT: &str = "repeated_call";

/// From so many times on, a repetition is told in the log.
pub const WARN_AT: u32 = 5;

/// Most entries, the newest first, that are looked through for earlier calls and for the note.
const MOST_ENTRIES: usize = 2_048;

/// Most messages with calls that are read.
const MOST_CALLS: usize = 64;

/// The part of what may be used that pinned answers may take, as a divisor.
const SHARE: u64 = 8;

/// A call that the model makes again while an edit hides its answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepeatedCall {
    /// The newest of these calls, with all results of its message, as first and last entry.
    pub unit: [Seq; 2],
    /// The tool.
    pub tool: String,
    /// How often the call was made, this time included.
    pub times: u32,
    /// The edit that hides the answer before, or shows it in part.
    pub hidden_by: Seq,
    /// The units that are pinned because of repetitions, oldest first.
    #[serde(default)]
    pub pins: Vec<[Seq; 2]>,
}

impl RepeatedCall {
    /// What happened, in one sentence.
    pub fn told(&self) -> String {
        let Self { tool, times, hidden_by, .. } = self;
        format!("the model called {tool} {times} times for an answer that edit @{hidden_by} hides from it")
    }
}

impl Thread<'_> {
    /// The last note about a repetition, among the newest entries.
    pub fn repeated(&self) -> Result<Option<RepeatedCall>> {
        for found in self.back().take(MOST_ENTRIES) {
            let (seq, head) = found?;
            if head.kind == Kind::Note
                && let Entry::Note { about, value } = self.record(seq)?.entry
                && about == ABOUT
            {
                return Ok(serde_json::from_str(value.get()).ok());
            }
        }
        Ok(None)
    }

    /// Looks whether the newest calls are repetitions, keeps their answers in view as far as `budget` has room, and notes
    /// it. Gives the repetition, as often as it is asked before the next call.
    pub(crate) fn guard(&mut self, budget: &Budget) -> Result<Option<RepeatedCall>> {
        if self.view().edits().next().is_none() {
            return Ok(None);
        }
        let before = if self.view().pins().is_empty() { None } else { self.repeated()? };
        let pinned = before.as_ref().map_or_else(Vec::new, |before| before.pins.clone());
        let Some(mut found) = self.find_repetition()? else {
            return self.give_back(budget, before).map(|()| None);
        };
        if let Some(known) = self.repeated()?.filter(|known| known.unit == found.unit) {
            return Ok(Some(known));
        }
        let most = self.most_pinned(budget);
        let mut pins: Vec<Span> = pinned.iter().map(|[from, to]| Span::new(*from, *to)).collect();
        let own = Span::new(found.unit[0], found.unit[1]);
        if !self.view().is_pinned(own.from) && self.tokens_of(own)? <= most {
            pins.push(own);
        }
        let kept = self.newest_within(&pins, most)?;
        found.pins = kept.iter().map(|span| [span.from, span.to]).collect();
        let in_force = self.view().pins().to_vec();
        let mut batch = self.batch();
        for &span in pins.iter().filter(|span| !kept.contains(span) && in_force.contains(span)) {
            batch.enter(Entry::Unpin { span })?;
        }
        if kept.contains(&own) && !in_force.contains(&own) {
            batch.enter(Entry::Pin { span: own })?;
        }
        batch.enter(note(&found)?)?;
        let (_, work) = batch.finish();
        self.commit(work)?;
        if found.times >= WARN_AT {
            tracing::warn!(session = %self.session(), thread = %self.id(), times = found.times, "{}", found.told());
        }
        Ok(Some(found))
    }

    /// Units whose repeated answers are to be hidden last: what is pinned because of repetitions.
    pub fn spared(&self) -> Result<Vec<Span>> {
        let pins = self.repeated()?.map_or_else(Vec::new, |repeated| repeated.pins);
        let spans = pins.into_iter().map(|[from, to]| Span::new(from, to));
        Ok(spans.filter(|span| self.view().pins().contains(span)).collect())
    }

    /// Takes the oldest pins back where they take more than their part: the window may have become smaller.
    fn give_back(&mut self, budget: &Budget, before: Option<RepeatedCall>) -> Result<()> {
        let Some(mut before) = before else { return Ok(()) };
        let pins = self.spared()?;
        let oldest = self.last().saturating_sub(u32::try_from(MOST_ENTRIES / 2).unwrap_or(Seq::MAX));
        // A note that is no longer found could not give its pins back.
        let young: Vec<Span> = pins.iter().copied().filter(|span| span.to >= oldest).collect();
        let kept = self.newest_within(&young, self.most_pinned(budget))?;
        if kept.len() == pins.len() {
            return Ok(());
        }
        before.pins = kept.iter().map(|span| [span.from, span.to]).collect();
        let mut batch = self.batch();
        for span in pins.into_iter().filter(|span| !kept.contains(span)) {
            batch.enter(Entry::Unpin { span })?;
        }
        batch.enter(note(&before)?)?;
        let (_, work) = batch.finish();
        self.commit(work)
    }

    /// Tokens that pinned answers may take together.
    fn most_pinned(&self, budget: &Budget) -> u64 {
        let weight = self.view().weight();
        budget.usable.saturating_sub(weight.instructions() + weight.above) / SHARE
    }

    /// The newest of some units that together take no more than so many tokens, oldest first.
    fn newest_within(&self, units: &[Span], most: u64) -> Result<Vec<Span>> {
        let (mut tokens, mut kept) = (0, Vec::new());
        for unit in units.iter().rev() {
            tokens += self.tokens_of(*unit)?;
            if tokens > most {
                break;
            }
            kept.push(*unit);
        }
        kept.reverse();
        Ok(kept)
    }

    /// Tokens of what was said in a span.
    fn tokens_of(&self, span: Span) -> Result<u64> {
        let sum = |seq: Seq| -> Result<u64> { Ok(self.source().head(seq)?.sums.iter().sum()) };
        Ok(sum(span.to)? - sum(span.from - 1)?)
    }

    /// The repetition among the newest calls, if their results were the last that was said.
    fn find_repetition(&self) -> Result<Option<RepeatedCall>> {
        let Some((unit, calls)) = self.newest_calls()? else { return Ok(None) };
        let mut earlier: Vec<(usize, Seq)> = Vec::new();
        let mut read = 0;
        for found in self.view().back(self.source(), unit.from - 1).take(MOST_ENTRIES) {
            let (seq, head) = found?;
            if head.kind != Kind::Assistant {
                continue;
            }
            let Entry::Message(message, _) = self.record(seq)?.entry else { continue };
            for (i, call) in calls.iter().enumerate() {
                if let Some(same) = message.calls().find(|other| is_same(call, other))
                    && let Some(result) = self.result_of(seq, &same.id)?
                {
                    earlier.push((i, result));
                }
            }
            read += 1;
            if read == MOST_CALLS {
                break;
            }
        }
        let mut repeated: Option<RepeatedCall> = None;
        for (i, call) in calls.iter().enumerate() {
            let mut times = 1;
            let mut hidden_by = None;
            for (_, result) in earlier.iter().filter(|(of, _)| *of == i) {
                let Some(edit) = self.hidden_by_ladder(*result)? else { break };
                hidden_by.get_or_insert(edit);
                times += 1;
            }
            if let Some(hidden_by) = hidden_by
                && repeated.as_ref().is_none_or(|repeated| repeated.times < times)
            {
                let (unit, tool) = ([unit.from, unit.to], call.name.clone());
                repeated = Some(RepeatedCall { unit, tool, times, hidden_by, pins: Vec::new() });
            }
        }
        Ok(repeated)
    }

    /// The calls whose results were the last that was said, and their unit.
    fn newest_calls(&self) -> Result<Option<(Span, Vec<Call>)>> {
        for found in self.back().take(MOST_ENTRIES) {
            let (seq, head) = found?;
            if !head.kind.is_item() {
                continue;
            }
            if head.kind != Kind::Tool {
                break;
            }
            let Entry::Message(message, _) = self.record(head.unit)?.entry else { break };
            return Ok(Some((Span::new(head.unit, seq), message.calls().cloned().collect())));
        }
        Ok(None)
    }

    /// The result of a call of the message at `unit`.
    fn result_of(&self, unit: Seq, id: &str) -> Result<Option<Seq>> {
        let answers = |message: &Message| message.outcome().is_some_and(|outcome| outcome.call_id == id);
        for found in self.view().forth(self.source(), unit + 1) {
            let (seq, head) = found?;
            if !head.kind.is_item() {
                continue;
            }
            if head.unit != unit {
                break;
            }
            if let Entry::Message(message, _) = self.record(seq)?.entry
                && answers(&message)
            {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }

    /// The edit, unless a person made it, that hides a result or shows something else in its place.
    fn hidden_by_ladder(&self, result: Seq) -> Result<Option<Seq>> {
        let view = self.view();
        let hiding = match view.shows(result) {
            false => {
                view.edits().rev().find(|edit| view.hidden_by(*edit).iter().any(|span| span.holds(result)))
            }
            true => view.pieces().iter().find_map(|piece| match *piece {
                ViewPiece::Replaced { seq, by, .. } if seq == result => Some(by),
                _ => None,
            }),
        };
        let Some(edit) = hiding else { return Ok(None) };
        Ok(match self.record(edit)?.entry {
            Entry::Edit(by) if by.cause.rule != BudgetRule::ByHand.name() => Some(edit),
            _ => None,
        })
    }
}

fn note(repeated: &RepeatedCall) -> Result<Entry> {
    let value = serde_json::to_string(repeated).map_err(std::io::Error::other)?;
    let value = RawJson::parse(value).map_err(std::io::Error::other)?;
    Ok(Entry::Note { about: ABOUT.to_owned(), value })
}

/// True for the same tool with the same arguments, however they are written.
fn is_same(one: &Call, other: &Call) -> bool {
    let json = |call: &Call| serde_json::from_str::<serde_json::Value>(&call.arguments).ok();
    one.name == other.name
        && (one.arguments.trim() == other.arguments.trim()
            || json(one).is_some_and(|one| json(other).is_some_and(|other| one == other)))
}
