//! The last rungs: what is too large by itself is shown in part.
//!
//! First the outputs that are still shown, the largest most; then, when nothing else is left, the first request and
//! the newest message of the user. What is cut out is named, and can be read under the entry's number.

use super::{Rung, Scene, Step, placeholder};
use crate::budget::share;
use crate::clip::{Limits, clip};
use crate::head::Source;
use crate::journal::{Entry, Replace};
use crate::message::Message;
use crate::view::Item;
use crate::{Meter, Seq};

/// A clipped text shorter than this says nothing; a placeholder says as much.
const SHORTEST: usize = 400;

/// Bytes that a token of words has at the most, on average.
const LONGEST: u64 = 16;

/// Halvings until a text is as long as it can be: the rest is less than a hundredth of it.
const ROUNDS: u32 = 10;

impl<S: Source + ?Sized> Scene<'_, S> {
    /// Recent outputs that take more than a quarter of what is usable by themselves: they are cut first, so that one of them
    /// does not push everything else out.
    pub(super) fn clip_large(&self) -> Result<Option<Step>, S::Error> {
        let cap = share(self.budget.own(), 0.25);
        // Older ones become placeholders, where the policy trims.
        let from = if self.budget.policy.rungs.trim { self.spared() } else { 0 };
        let is_large = |item: &&Item| item.seq >= from && u64::from(item.tokens) > cap;
        let large: Vec<Item> = self.blocks.outputs.iter().filter(is_large).copied().collect();
        self.clip_to(&large, cap)
    }

    /// Outputs that are still shown, each cut to an equal share of the room there is.
    pub(super) fn clip_outputs(&self) -> Result<Option<Step>, S::Error> {
        self.clip_items(&self.blocks.outputs)
    }

    /// The first request and the newest message of the user, cut to the room there is.
    pub(super) fn clip_requests(&self) -> Result<Option<Step>, S::Error> {
        let mut requests: Vec<Item> = self.blocks.first.into_iter().chain(self.blocks.newest).collect();
        requests.dedup();
        self.clip_items(&requests)
    }

    /// Items cut so that all of them fit beside the rest.
    fn clip_items(&self, items: &[Item]) -> Result<Option<Step>, S::Error> {
        let all: u64 = items.iter().map(|item| u64::from(item.tokens)).sum();
        let rest = self.tokens() - all;
        self.clip_to(items, level(items, self.budget.usable.saturating_sub(rest)))
    }

    fn clip_to(&self, items: &[Item], cap: u64) -> Result<Option<Step>, S::Error> {
        let mut replace = Vec::new();
        for item in items.iter().filter(|item| u64::from(item.tokens) > cap) {
            let Entry::Message(message, _) = self.source.record(item.seq)?.entry else { continue };
            let swap = clipped(self.meter, item.seq, &message, cap);
            if swap.tokens < item.tokens {
                replace.push(swap);
            }
        }
        replace.sort_by_key(|replace| replace.seq);
        Ok((!replace.is_empty()).then_some(Step::Replace { rung: Rung::Clip, replace }))
    }
}

/// The most that each may have so that all fit into `room`: the small ones whole, the large ones equally.
fn level(items: &[Item], room: u64) -> u64 {
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
        let limits = Limits { max_message_bytes: bytes, max_line_length: bytes };
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
