//! The last rungs: what is too large is shown in part.
//!
//! First messages of the user that are older than the newest unit, then that unit itself: as much of it as fits, shared
//! fairly, the small ones whole and the large ones equally. Only when nothing else is left, the task and the latest
//! instruction, where they take more than half of what is usable. What is cut out is named, and can be read under the
//! entry's number.

use super::{LadderStep, OriginalsHint, Rung, Scene, placeholder};
use crate::budget::share;
use crate::clip::{ClipLimits, clip, clip_kept};
use crate::head::EntrySource;
use crate::journal::{Entry, Replace};
use crate::message::Message;
use crate::view::ShownItem;
use crate::{Meter, Seq};

/// A text with head and tail that is shorter than this says nothing.
const SHORTEST: usize = 400;

/// Bytes that a token of words has at the most, on average.
const LONGEST: u64 = 16;

/// Halvings until a text is as long as it can be: the rest is less than a hundredth of it.
const ROUNDS: u32 = 10;

/// How often what some texts leave of their part goes to the others.
const RAISES: u32 = 4;

/// Bytes from which on notes are longer, so that a text is not always longer where it may be.
const LONG_NOTES: usize = 1_024;

/// Words of fewer bytes say nothing.
const FEWEST: usize = 16;

/// Tokens to which nothing of the newest unit is cut, nor a message of the user: some words, and what the rest is.
const LEAST: u64 = 64;

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// Where outputs do not become placeholders: those that take more than a quarter of what is usable by themselves are cut
    /// first, so that one of them does not push everything else out.
    pub(super) fn clip_large(&self) -> Result<Option<LadderStep>, S::Error> {
        if self.budget.policy.rungs.trim {
            return Ok(None);
        }
        self.clip_to(&self.blocks.outputs, share(self.movable(), 0.25))
    }

    /// What reaches over the low mark, cut so that the view comes down to it: outputs or a reply, or else messages of the
    /// user that stay. `None` when nothing of worth would be left of them.
    pub(super) fn clip_older(&self) -> Result<Option<LadderStep>, S::Error> {
        let chosen = self.reaching_over().unwrap_or_else(|| self.blocks.recent.clone());
        let cap = self.level(&chosen, self.marks.low);
        if cap < LEAST { Ok(None) } else { self.clip_to(&chosen, cap) }
    }

    /// What the model has not answered yet, cut to the room there is; its own words last. `None` while more than a quarter
    /// of what may move is something older that can still leave, or while parts of it would be cut to nothing.
    pub(super) fn clip_newest(&self) -> Result<Option<LadderStep>, S::Error> {
        let older: u64 = self.blocks.row[..self.blocks.older].iter().map(|block| block.free).sum();
        let newest = &self.blocks.newest;
        if older > 0
            && (older > share(self.movable(), 0.25) || self.level(newest, self.budget.usable) < LEAST)
        {
            return Ok(None);
        }
        self.clip_unanswered()
    }

    /// The same, whatever else there is.
    pub(super) fn clip_unanswered(&self) -> Result<Option<LadderStep>, S::Error> {
        match (self.clip_into(&self.blocks.newest)?, self.blocks.spoken) {
            (None, Some(spoken)) => self.clip_into(&[spoken]),
            (step, _) => Ok(step),
        }
    }

    /// The task and the latest instruction, where they take more than half of what is usable, cut to the room there is.
    pub(super) fn clip_requests(&self) -> Result<Option<LadderStep>, S::Error> {
        self.clip_into(&self.requests().filter(|item| self.is_large(item)).collect::<Vec<_>>())
    }

    /// The task and the latest instruction, once where they are one.
    pub(super) fn requests(&self) -> impl Iterator<Item = ShownItem> + '_ {
        let (task, instruction) = (self.blocks.task, self.blocks.instruction);
        task.into_iter().chain(instruction.filter(|item| Some(*item) != task))
    }

    /// True when half of what is usable cannot hold it.
    pub(super) fn is_large(&self, item: &ShownItem) -> bool {
        u64::from(item.tokens) > self.budget.usable / 2
    }

    /// The most that each of `items` may have so that the view has no more than `most` tokens: the small ones whole, the
    /// large ones equally.
    fn level(&self, items: &[ShownItem], most: u64) -> u64 {
        let all: u64 = items.iter().map(|item| u64::from(item.tokens)).sum();
        level(items, most.saturating_sub(self.tokens() - all))
    }

    /// `items` cut to the room that is left for them. A text that can only be cut at its lines leaves some of its part,
    /// which the others take.
    fn clip_into(&self, items: &[ShownItem]) -> Result<Option<LadderStep>, S::Error> {
        let all: u64 = items.iter().map(|item| u64::from(item.tokens)).sum();
        let room = self.budget.usable.saturating_sub(self.tokens() - all);
        let mut cap = level(items, room).max(LEAST);
        let mut cut = self.cuts(items, cap)?;
        for _ in 0..RAISES {
            let left = room.saturating_sub(all - freed(items, &cut)) / (cut.len() as u64).max(1);
            if left < LEAST / 4 {
                break;
            }
            cap = cap.saturating_add(left);
            let more = self.cuts(items, cap)?;
            if more.is_empty() || all - freed(items, &more) > room {
                break;
            }
            cut = more;
        }
        let left = room.saturating_sub(all - freed(items, &cut));
        Ok(replaced(self.filled(items, cut, left)?))
    }

    /// `cut` with more of one text or another, the smallest first, as long as `left` tokens hold it.
    fn filled(
        &self,
        items: &[ShownItem],
        mut cut: Vec<Replace>,
        mut left: u64,
    ) -> Result<Vec<Replace>, S::Error> {
        let mut row: Vec<ShownItem> = items.to_vec();
        row.sort_by_key(|item| item.tokens);
        for item in row {
            let Some(at) = cut.iter().position(|swap| swap.seq == item.seq) else { continue };
            if left < LEAST / 4 {
                break;
            }
            let now = u64::from(cut[at].tokens);
            match self.cuts(&[item], now + left)?.pop() {
                Some(swap) if u64::from(swap.tokens) > now && u64::from(swap.tokens) <= now + left => {
                    left -= u64::from(swap.tokens) - now;
                    cut[at] = swap;
                }
                None if u64::from(item.tokens) <= now + left => {
                    left -= u64::from(item.tokens) - now;
                    cut.remove(at);
                }
                _ => {}
            }
        }
        Ok(cut)
    }

    fn clip_to(&self, items: &[ShownItem], cap: u64) -> Result<Option<LadderStep>, S::Error> {
        Ok(replaced(self.cuts(items, cap)?))
    }

    /// Those of `items` that take more than `cap` tokens, cut to that.
    fn cuts(&self, items: &[ShownItem], cap: u64) -> Result<Vec<Replace>, S::Error> {
        let mut replace = Vec::new();
        for item in items.iter().filter(|item| u64::from(item.tokens) > cap) {
            let Entry::Message(message, _) = self.source.record(self.view.result(item.seq))?.entry else {
                continue;
            };
            let shown = self.shown(item.seq, &message);
            let pays = |gone: &Replace| self.pays(u64::from(item.tokens), u64::from(gone.tokens));
            let swap = shown.words(cap).or_else(|| Some(shown.gone()).filter(pays));
            replace.extend(swap.filter(|swap| swap.tokens < item.tokens));
        }
        replace.sort_by_key(|replace| replace.seq);
        Ok(replace)
    }

    /// The fewest tokens that an item of the newest unit, or a request that is too large, can be shown in.
    pub(super) fn least(&self, item: &ShownItem) -> Result<u64, S::Error> {
        let Entry::Message(message, _) = self.source.record(self.view.result(item.seq))?.entry else {
            return Ok(u64::from(item.tokens));
        };
        let least = self.shown(item.seq, &message).shortened(LEAST).tokens;
        Ok(u64::from(least.min(item.tokens)))
    }
}

fn replaced(replace: Vec<Replace>) -> Option<LadderStep> {
    (!replace.is_empty()).then_some(LadderStep::Replace { rung: Rung::Clip, replace })
}

/// Tokens that `replace` frees of `items`.
fn freed(items: &[ShownItem], replace: &[Replace]) -> u64 {
    let was = |seq| items.iter().find(|item| item.seq == seq).map_or(0, |item| u64::from(item.tokens));
    replace.iter().map(|swap| was(swap.seq).saturating_sub(u64::from(swap.tokens))).sum()
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
    ShownText { meter, seq, message, reach: OriginalsHint::Tools }.clipped(cap)
}

/// A message that is to be shown in part.
pub(super) struct ShownText<'m> {
    meter: Meter,
    seq: Seq,
    message: &'m Message,
    reach: OriginalsHint,
}

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// The message of entry `seq`, to be shown in part.
    pub(super) fn shown<'m>(&self, seq: Seq, message: &'m Message) -> ShownText<'m> {
        ShownText { meter: self.meter, seq, message, reach: self.reach }
    }
}

impl ShownText<'_> {
    /// As much of its words as `cap` tokens hold, or a placeholder when that is nothing.
    fn clipped(&self, cap: u64) -> Replace {
        self.part(cap).unwrap_or_else(|| self.gone())
    }

    /// The same with a few words, at least, where there is room for any.
    fn shortened(&self, cap: u64) -> Replace {
        self.words(cap).unwrap_or_else(|| self.gone())
    }

    /// As many of its words as `cap` tokens hold, be they few.
    fn words(&self, cap: u64) -> Option<Replace> {
        self.part(cap).or_else(|| self.few_words(cap))
    }

    /// Head and tail of the message, as much as `cap` tokens hold.
    pub(super) fn part(&self, cap: u64) -> Option<Replace> {
        let (words, name) = (self.message.words(), self.name());
        longest(&words, SHORTEST, cap, |bytes| {
            let limits = ClipLimits { max_message_bytes: bytes, max_line_length: bytes };
            let text = match self.reach {
                OriginalsHint::Tools => clip(&words, &limits, &name),
                OriginalsHint::Kept => clip_kept(&words, &limits),
            };
            text.map(|text| self.saying(text))
        })
    }

    /// Its first words, and how many there are.
    fn few_words(&self, cap: u64) -> Option<Replace> {
        let (words, name) = (self.message.words(), self.name());
        longest(&words, FEWEST, cap, |bytes| {
            let text =
                (0..=bytes).rev().find_map(|end| words.get(..end)).filter(|text| !text.trim().is_empty())?;
            Some(self.saying(format!("{text}\n[cut: {} bytes in all; ref={name}]", words.len())))
        })
    }

    /// What says that it was there.
    fn gone(&self) -> Replace {
        let words = self.message.words();
        let (seq, bytes) = (self.seq, words.len());
        self.saying(match (self.message.outcome(), self.reach) {
            (Some(outcome), _) => placeholder(seq, outcome.output_ref.as_ref(), words.lines().count() as u64),
            (None, OriginalsHint::Kept) => format!("[a message of {bytes} bytes; it is kept]"),
            (None, OriginalsHint::Tools) => {
                format!(
                    "[a message of {bytes} bytes; read it with tool_output_cache({{\"ref_id\":\"@{seq}\"}})]"
                )
            }
        })
    }

    fn saying(&self, text: String) -> Replace {
        let tokens = self.meter.message(&self.message.saying(&text));
        Replace { seq: self.seq, text, tokens }
    }

    /// Under which name the whole is kept.
    fn name(&self) -> String {
        let output = self.message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
        output.map_or_else(|| format!("@{}", self.seq), |output| output.id.clone())
    }
}

/// The longest text found that takes no more than `cap` tokens, of those that `text` gives for a number of bytes.
fn longest(
    words: &str,
    shortest: usize,
    cap: u64,
    text: impl Fn(usize) -> Option<Replace>,
) -> Option<Replace> {
    if cap == 0 {
        return None;
    }
    let fitting = |bytes| text(bytes).filter(|replace| u64::from(replace.tokens) <= cap);
    let mut best: Option<Replace> = None;
    let mut take = |fit: Replace| {
        if best.as_ref().is_none_or(|best| best.tokens < fit.tokens) {
            best = Some(fit);
        }
    };
    // More bytes than these hold more tokens than `cap` in anything but blanks; to try them would only take long.
    let most = usize::try_from(cap.saturating_mul(LONGEST)).unwrap_or(usize::MAX).max(2 * shortest);
    let most = words.len().min(most);
    for (mut least, mut most) in [(shortest, most.min(LONG_NOTES)), (LONG_NOTES, most)] {
        for _ in 0..ROUNDS {
            if least >= most {
                break;
            }
            let bytes = least.midpoint(most);
            match fitting(bytes) {
                Some(fit) => {
                    take(fit);
                    least = bytes + 1;
                }
                None => most = bytes,
            }
        }
    }
    // Whole lines go at a time: where that leaves more than a tenth, a longer text may be one that fits.
    let mut bytes = best.as_ref().map_or(shortest, |best| best.text.len()).max(shortest);
    while bytes < most && best.as_ref().is_none_or(|best| 10 * u64::from(best.tokens) < 9 * cap) {
        let Some(found) = text(bytes).filter(|found| u64::from(found.tokens) <= 2 * cap) else { break };
        if u64::from(found.tokens) <= cap && best.as_ref().is_none_or(|best| best.tokens < found.tokens) {
            best = Some(found);
        }
        bytes += bytes / 40 + 1;
    }
    best
}
