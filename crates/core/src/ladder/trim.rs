//! Old outputs become placeholders: the cheapest room there is, because every one of them can be read again.
//!
//! What a later call has made stale goes first: an earlier read of a file that was read or written since, an earlier
//! answer to the same question. Then the oldest. Enough at once to come down to the mark, because each edit breaks the
//! prefix that the provider has cached; and none at all when it is not worth that. The last one is shown in part, when
//! not all of it has to go. What the model has not answered yet is never touched.

use super::{LadderStep, Rung, Scene, placeholder};
use crate::Seq;
use crate::head::EntrySource;
use crate::journal::{Entry, Replace};
use crate::message::{Call, Message};
use crate::view::ShownItem;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Outputs smaller than this are left alone.
const SMALL: u32 = 48;

/// Names under which a call's arguments hold a file.
const FILE_KEYS: [&str; 8] =
    ["path", "file_path", "filepath", "filename", "file", "target_file", "absolute_path", "notebook_path"];

/// An output that may become a placeholder.
struct Candidate {
    item: ShownItem,
    replace: Replace,
    stale: bool,
}

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// What must leave when only the outputs take too much: half of what they may have.
    pub(super) fn tool_gain(&self) -> u64 {
        self.budget.tools.map_or(1, |tools| self.verdict.tool_tokens.saturating_sub(tools / 4))
    }

    /// Placeholders for old outputs; `None` when they would free less than `gain`.
    pub(super) fn trim(&self, gain: u64) -> Result<Option<LadderStep>, S::Error> {
        let most: u64 = self.old_outputs().map(|item| u64::from(item.tokens)).sum();
        if most < gain {
            return Ok(None);
        }
        let mut candidates = self.candidates()?;
        candidates.sort_by_key(|candidate| (!candidate.stale, candidate.item.seq));
        let wanted = self.tokens().saturating_sub(self.marks.low).max(gain);
        let (mut freed, mut chosen) = (0, Vec::new());
        for candidate in candidates {
            if freed >= wanted {
                break;
            }
            let replace = self.at_least(&candidate, wanted - freed)?;
            freed += u64::from(candidate.item.tokens - replace.tokens);
            chosen.push(Candidate { replace, ..candidate });
        }
        freed -= self.give_back(&mut chosen, freed, gain);
        let mut replace: Vec<Replace> = chosen.into_iter().map(|candidate| candidate.replace).collect();
        replace.sort_by_key(|replace| replace.seq);
        Ok((freed >= gain && !replace.is_empty())
            .then_some(LadderStep::Replace { rung: Rung::Trim, replace }))
    }

    /// Where what is chosen leads below the low mark, the newest of it stay whole, as long as the view stays under the high
    /// mark and `gain` tokens leave. Gives their tokens.
    fn give_back(&self, chosen: &mut Vec<Candidate>, freed: u64, gain: u64) -> u64 {
        let (mut after, mut given) = (self.tokens().saturating_sub(freed), 0);
        chosen.sort_by_key(|candidate| candidate.item.seq);
        for i in (0..chosen.len()).rev() {
            let more = u64::from(chosen[i].item.tokens - chosen[i].replace.tokens);
            let is_low = self.counts_movable() && after < self.marks.low;
            if is_low && after + more <= self.marks.high && freed - given - more >= gain {
                (after, given) = (after + more, given + more);
                chosen.remove(i);
            }
        }
        given
    }

    /// What is shown of an output that must give `tokens`: a part of it, or the placeholder.
    fn at_least(&self, candidate: &Candidate, tokens: u64) -> Result<Replace, S::Error> {
        let item = candidate.item;
        let Some(cap) = u64::from(item.tokens).checked_sub(tokens) else {
            return Ok(candidate.replace.clone());
        };
        let Entry::Message(message, _) = self.source.record(self.view.result(item.seq))?.entry else {
            return Ok(candidate.replace.clone());
        };
        Ok(self.excerpt(item.seq, &message).part(cap).unwrap_or_else(|| candidate.replace.clone()))
    }

    /// Outputs before the end that is spared.
    fn old_outputs(&self) -> impl Iterator<Item = &ShownItem> {
        let before = self.spared();
        self.blocks.outputs.iter().filter(move |item| item.seq < before && item.tokens >= SMALL)
    }

    /// Where the end begins that a trim spares: as the policy says, at least the newest unit.
    fn spared(&self) -> Seq {
        let from = self.spare().min(self.blocks.older);
        self.blocks.row.get(from).map_or(Seq::MAX, |block| block.extent.from)
    }

    fn candidates(&self) -> Result<Vec<Candidate>, S::Error> {
        let asked = self.asked()?;
        let mut found = Vec::new();
        for item in self.old_outputs() {
            let Entry::Message(message, _) = self.source.record(self.view.result(item.seq))?.entry else {
                continue;
            };
            let Some(outcome) = message.outcome() else { continue };
            let lines = message.words().lines().count() as u64;
            let text = placeholder(item.seq, outcome.output_ref.as_ref(), lines);
            let tokens = self.meter.message(&message.saying(&text));
            if self.pays(u64::from(item.tokens), u64::from(tokens)) {
                let stale = asked.is_stale(self.source.head(item.seq)?.unit, &outcome.call_id);
                found.push(Candidate {
                    item: *item,
                    replace: Replace { seq: item.seq, text, tokens },
                    stale,
                });
            }
        }
        Ok(found)
    }

    /// What the calls asked for whose outputs are shown. Only what made calls is read, and once: the outputs of one
    /// message follow each other.
    fn asked(&self) -> Result<Asked, S::Error> {
        let mut asked = Asked::default();
        let mut heard = 0;
        // Also by calls of the newest unit: its outputs stay, and make others stale.
        for item in self.blocks.outputs.iter().chain(&self.blocks.newest) {
            let unit = self.source.head(item.seq)?.unit;
            if unit != heard
                && let Entry::Message(message, _) = self.source.record(unit)?.entry
            {
                asked.hear(unit, &message);
            }
            heard = unit;
        }
        Ok(asked)
    }
}

/// What was asked for, and by which call last.
#[derive(Default)]
struct Asked {
    subject: HashMap<(Seq, String), Subject>,
    last: HashMap<Subject, (Seq, String)>,
}

/// What a call is about, as a number: a question may be as long as a file, and is not kept.
type Subject = u64;

impl Asked {
    fn hear(&mut self, unit: Seq, message: &Message) {
        for call in message.calls() {
            let subject = subject(call);
            self.subject.insert((unit, call.id.clone()), subject);
            self.last.insert(subject, (unit, call.id.clone()));
        }
    }

    /// True when a later call was about the same thing.
    fn is_stale(&self, unit: Seq, call: &str) -> bool {
        let key = (unit, call.to_owned());
        let last = self.subject.get(&key).and_then(|subject| self.last.get(subject));
        last.is_some_and(|last| *last != key)
    }
}

/// What a call is about: a file, or else exactly this question.
fn subject(call: &Call) -> Subject {
    let arguments: Option<serde_json::Value> = serde_json::from_str(&call.arguments).ok();
    let file = arguments.as_ref().and_then(|arguments| {
        FILE_KEYS.iter().find_map(|key| arguments.get(key).and_then(serde_json::Value::as_str))
    });
    // The same numbers in every run; that two questions meet in one would only make one output leave before another.
    let mut hasher = DefaultHasher::new();
    match file {
        Some(file) => ("file", file.trim_start_matches("./")).hash(&mut hasher),
        None => (call.name.as_str(), call.arguments.as_str()).hash(&mut hasher),
    }
    hasher.finish()
}
