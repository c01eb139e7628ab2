//! Old outputs become placeholders: the cheapest room there is, because every one of them can be read again.
//!
//! What a later call has made stale goes first: an earlier read of a file that was read or written since, an earlier
//! answer to the same question. Then the oldest. Enough at once to come down to the mark, because each edit breaks the
//! prefix that the provider has cached; and none at all when it is not worth that.

use super::{LadderStep, Rung, Scene, placeholder};
use crate::budget::share;
use crate::clip::{ClipLimits, clip};
use crate::head::EntrySource;
use crate::journal::{Entry, Replace};
use crate::message::{Call, Message};
use crate::view::ShownItem;
use crate::{Meter, Seq};
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
        let wanted = self.tokens().saturating_sub(self.budget.low).max(gain);
        let (mut freed, mut replace) = (0, Vec::new());
        for candidate in candidates {
            if freed >= wanted {
                break;
            }
            freed += u64::from(candidate.item.tokens - candidate.replace.tokens);
            replace.push(candidate.replace);
        }
        replace.sort_by_key(|replace| replace.seq);
        Ok((freed >= gain && !replace.is_empty())
            .then_some(LadderStep::Replace { rung: Rung::Trim, replace }))
    }

    /// Outputs before the end that is spared.
    fn old_outputs(&self) -> impl Iterator<Item = &ShownItem> {
        let before = self.spared();
        self.blocks.outputs.iter().filter(move |item| item.seq < before && item.tokens >= SMALL)
    }

    /// Where the end begins that a trim spares: as the policy says, at least the last block.
    pub(super) fn spared(&self) -> Seq {
        let row = &self.blocks.row;
        let from = self.spare().min(row.len().saturating_sub(1));
        row.get(from).map_or(0, |block| block.extent.from)
    }

    fn candidates(&self) -> Result<Vec<Candidate>, S::Error> {
        let asked = self.asked()?;
        let mut found = Vec::new();
        for item in self.old_outputs() {
            let Entry::Message(message, _) = self.source.record(item.seq)?.entry else { continue };
            let Some(outcome) = message.outcome() else { continue };
            let lines = message.words().lines().count() as u64;
            let text = placeholder(item.seq, outcome.output_ref.as_ref(), lines);
            let tokens = self.meter.message(&message.saying(&text));
            if tokens < item.tokens {
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
        for item in &self.blocks.outputs {
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

// The last rungs: what is too large by itself is shown in part.
//
// First the outputs that are still shown, the largest most; then, when nothing else is left, the first request and
// the newest message of the user. What is cut out is named, and can be read under the entry's number.

/// A clipped text shorter than this says nothing; a placeholder says as much.
const SHORTEST: usize = 400;

/// Bytes that a token of words has at the most, on average.
const LONGEST: u64 = 16;

/// Halvings until a text is as long as it can be: the rest is less than a hundredth of it.
const ROUNDS: u32 = 10;

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// Recent outputs that take more than a quarter of what is usable by themselves: they are cut first, so that one of them
    /// does not push everything else out.
    pub(super) fn clip_large(&self) -> Result<Option<LadderStep>, S::Error> {
        let cap = share(self.budget.own(), 0.25);
        // Older ones become placeholders, where the policy trims.
        let from = if self.budget.policy.rungs.trim { self.spared() } else { 0 };
        let is_large = |item: &&ShownItem| item.seq >= from && u64::from(item.tokens) > cap;
        let large: Vec<ShownItem> = self.blocks.outputs.iter().filter(is_large).copied().collect();
        self.clip_to(&large, cap)
    }

    /// Outputs that are still shown, each cut to an equal share of the room there is.
    pub(super) fn clip_outputs(&self) -> Result<Option<LadderStep>, S::Error> {
        self.clip_items(&self.blocks.outputs)
    }

    /// The first request and the newest message of the user, cut to the room there is.
    pub(super) fn clip_requests(&self) -> Result<Option<LadderStep>, S::Error> {
        let mut requests: Vec<ShownItem> = self.blocks.first.into_iter().chain(self.blocks.newest).collect();
        requests.dedup();
        self.clip_items(&requests)
    }

    /// Items cut so that all of them fit beside the rest.
    fn clip_items(&self, items: &[ShownItem]) -> Result<Option<LadderStep>, S::Error> {
        let all: u64 = items.iter().map(|item| u64::from(item.tokens)).sum();
        let rest = self.tokens() - all;
        self.clip_to(items, level(items, self.budget.usable.saturating_sub(rest)))
    }

    fn clip_to(&self, items: &[ShownItem], cap: u64) -> Result<Option<LadderStep>, S::Error> {
        let mut replace = Vec::new();
        for item in items.iter().filter(|item| u64::from(item.tokens) > cap) {
            let Entry::Message(message, _) = self.source.record(item.seq)?.entry else { continue };
            let swap = clipped(self.meter, item.seq, &message, cap);
            if swap.tokens < item.tokens {
                replace.push(swap);
            }
        }
        replace.sort_by_key(|replace| replace.seq);
        Ok((!replace.is_empty()).then_some(LadderStep::Replace { rung: Rung::Clip, replace }))
    }
}

/// The most that each may have so that all fit into `room`: the small ones whole, the large ones equally.
fn level(items: &[ShownItem], room: u64) -> u64 {
    let mut sizes: Vec<u64> = items.iter().map(|item| u64::from(item.tokens)).collect();
    sizes.sort_unstable();
    let mut room = room;
    for (i, size) in sizes.iter().enumerate() {
        let each = room / (sizes.len() - i) as u64;
        if *size > each {
            return each;
        }
        room -= size;
    }
    u64::MAX
}

/// The message with as much of its words as `cap` tokens hold, or with a placeholder when that is nothing.
pub(crate) fn clipped(meter: Meter, seq: Seq, message: &Message, cap: u64) -> Replace {
    let words = message.words();
    let output = message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
    let own = format!("@{seq}");
    let name = output.map_or(own.as_str(), |output| output.id.as_str());
    let mut best = None;
    // More bytes than these hold more tokens than `cap` in anything but blanks; to try them would only take long.
    let longest = usize::try_from(cap.saturating_mul(LONGEST)).unwrap_or(usize::MAX).max(2 * SHORTEST);
    let (mut least, mut most) = (SHORTEST, words.len().min(longest));
    for _ in 0..ROUNDS {
        if least >= most || cap == 0 {
            break;
        }
        let bytes = least.midpoint(most);
        let limits = ClipLimits { max_message_bytes: bytes, max_line_length: bytes };
        let fits = clip(&words, &limits, name).and_then(|text| {
            let tokens = meter.message(&message.saying(&text));
            (u64::from(tokens) <= cap).then_some(Replace { seq, text, tokens })
        });
        match fits {
            Some(fit) => (best, least) = (Some(fit), bytes + 1),
            None => most = bytes,
        }
    }
    if let Some(best) = best {
        return best;
    }
    let text = match message.outcome() {
        Some(_) => placeholder(seq, output, words.lines().count() as u64),
        None => format!(
            "[a message of {} bytes; read it with tool_output_cache({{\"ref_id\":\"@{seq}\"}})]",
            words.len()
        ),
    };
    let tokens = meter.message(&message.saying(&text));
    Replace { seq, text, tokens }
}
