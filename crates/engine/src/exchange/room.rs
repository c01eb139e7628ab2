//! How much room a request gets, and how much its answer: what changes from try to try.

use super::request::OutgoingRequest;
use super::response::TooLarge;
use crate::lesson::Lesson;
use crate::turn::Asking;
use komado_core::budget::{Budget, Policy};
use komado_provider::Dialect;

/// The shortest answer that is of use; below it the view has to give way instead.
const SHORTEST: u64 = 256;
/// The longest answer asked for where one must be named and none is wished.
const USUAL: u64 = 8_192;
/// A window that never fills, while its size is unknown.
const ENDLESS: u64 = u64::MAX / 8;

/// The window by all that is known, in the provider's tokens; 0 when nothing is.
pub(crate) fn window(asking: &Asking, lesson: &Lesson) -> u64 {
    let learned = lesson.window.filter(|_| !asking.is_given);
    match (asking.window, learned) {
        (0, learned) => learned.unwrap_or(0),
        (window, learned) => window.min(learned.unwrap_or(u64::MAX)),
    }
}

/// What the next request may take.
pub(crate) struct Room {
    /// The budget of the view; `None` while the window is unknown.
    pub(crate) budget: Option<Budget>,
    policy: Policy,
    /// Tokens of ours that are kept free for our own tools.
    reserved: u64,
    /// The longest answer the provider has room for, as it said.
    lowered: Option<u64>,
    /// What it said it takes, for this request: a lesson it becomes only where it is believed.
    named: Option<u64>,
}

impl Room {
    /// Room in a budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget: Some(budget.clone()), ..Self::endless(budget.policy) }
    }

    /// Room without a bound, until the provider names one.
    pub(crate) fn endless(policy: Policy) -> Self {
        Self { budget: None, policy, reserved: 0, lowered: None, named: None }
    }

    /// Room in the window by all that is known, with `reserved` tokens kept free.
    pub(crate) fn known(policy: Policy, reserved: u64, asking: &Asking, lesson: &Lesson) -> Self {
        let mut room = Self { reserved, ..Self::endless(policy) };
        match window(asking, lesson) {
            0 => {}
            window => room.budget = Some(room.within(window, asking, lesson)),
        }
        room
    }

    /// The budget in a window of so many tokens of the provider's.
    pub(crate) fn within(&self, window: u64, asking: &Asking, lesson: &Lesson) -> Budget {
        let window = lesson.ours(window).saturating_sub(self.reserved);
        Budget::new(self.policy.clone(), window, &[asking.model.as_str()])
    }

    /// The longest answer to ask for: as `wished`, as far as there is room beside `tokens`. `None` leaves it to the
    /// provider.
    pub(crate) fn longest_answer(
        &self,
        wished: Option<u64>,
        tokens: u64,
        asking: &Asking,
        lesson: &Lesson,
    ) -> Option<u64> {
        self.budget.as_ref()?;
        let must = asking.provider.dialect == Dialect::Messages;
        if wished.is_none() && self.lowered.is_none() && !must {
            return None;
        }
        let window = match window(asking, lesson) {
            0 => ENDLESS,
            window => window.saturating_sub(lesson.theirs(self.reserved)),
        };
        let window = window.min(self.named.unwrap_or(u64::MAX));
        // Where they count less than we do, that may be over with the next text: room for an answer is not worth a refusal.
        let left = window.saturating_sub(lesson.theirs(tokens).max(tokens) + window / 50);
        // Where there is hardly room, the provider is to say so: an answer of a few words would be no answer.
        let most = self.lowered.unwrap_or(u64::MAX).min(left.max(SHORTEST));
        Some(wished.unwrap_or(USUAL).min(most))
    }

    /// Makes the next request smaller: first the room for the answer, where that was the complaint.
    pub(crate) fn shrink(
        &mut self,
        why: &TooLarge,
        request: &OutgoingRequest,
        asking: &Asking,
        lesson: &Lesson,
    ) {
        let OutgoingRequest { tokens, max_tokens, .. } = *request;
        // An unknown window is what was learned or named, or at most what was refused.
        let budget = self.budget.take().unwrap_or_else(|| {
            let refused = || why.limit.unwrap_or_else(|| lesson.theirs(tokens + self.reserved)).max(1);
            self.within(
                Some(window(asking, lesson)).filter(|window| *window > 0).unwrap_or_else(refused),
                asking,
                lesson,
            )
        });
        self.named = why.limit.filter(|limit| *limit > 0).or(self.named);
        if self.lower_answer(why, max_tokens) {
            self.budget = Some(budget);
            return;
        }
        let usable = budget.usable.max(1) as f64;
        // At most this share of what was refused; less where the provider said what it takes.
        let mut to = (tokens as f64 * asking.shrink) / usable;
        if let Some(limit) = why.limit {
            to = to.min(lesson.ours(limit) as f64 / budget.window.max(1) as f64);
        }
        self.budget = Some(budget.shrunk(to.min(asking.shrink)));
    }

    /// True when a shorter answer may do.
    fn lower_answer(&mut self, why: &TooLarge, max_tokens: Option<u64>) -> bool {
        let asked = max_tokens.filter(|asked| *asked > SHORTEST);
        if let (None, None, Some(asked)) = (why.limit, self.lowered, asked) {
            // The provider did not say which of the two was too much.
            self.lowered = Some((asked / 4).max(SHORTEST));
            return true;
        }
        let (true, Some(limit), Some(actual)) = (why.lower, why.limit, why.actual) else { return false };
        let left = limit.saturating_sub(actual + limit / 100 + 1);
        let helps = left >= SHORTEST && self.lowered.is_none_or(|lowered| left < lowered);
        if helps {
            self.lowered = Some(left);
        }
        helps
    }
}
