//! How much room a request gets, and how much its answer: what changes from try to try.

use super::Asking;
use super::listen::TooLarge;
use crate::error::Result;
use crate::lesson::Lesson;
use crate::thread::Thread;
use komado_core::budget::Budget;
use komado_core::raw::Object;
use komado_provider::Dialect;

/// The shortest answer that is of use; below it the view has to give way instead.
const SHORTEST: u64 = 256;
/// The longest answer asked for where one must be named and nobody names it.
const USUAL: u64 = 8_192;
/// The names of the longest answer among parameters.
const NAMES: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// What the next request may take.
pub(crate) struct Room {
    pub(crate) budget: Budget,
    /// The longest answer the provider has room for, as it said.
    lowered: Option<u64>,
    /// What it said it takes, for this request: a lesson it becomes only where it is believed.
    named: Option<u64>,
}

impl Room {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, lowered: None, named: None }
    }

    /// The longest answer to ask for: as wished here or in the parameters in force, as far as there is room.
    pub(crate) fn max_tokens(
        &self,
        thread: &Thread<'_>,
        asking: &Asking,
        lesson: &Lesson,
    ) -> Result<Option<u64>> {
        let wished = match asking.max_tokens {
            Some(wished) => Some(wished),
            None => wished(thread)?,
        };
        Ok(self.most(wished, thread, asking, lesson))
    }

    /// The longest answer to ask for: as `wished`, as far as there is room. `None` leaves it to the provider.
    pub(crate) fn most(
        &self,
        wished: Option<u64>,
        thread: &Thread<'_>,
        asking: &Asking,
        lesson: &Lesson,
    ) -> Option<u64> {
        let must = asking.provider.dialect == Dialect::Messages;
        if wished.is_none() && self.lowered.is_none() && !must {
            return None;
        }
        let learned = lesson.window.filter(|_| !asking.is_given).unwrap_or(u64::MAX);
        let window = asking.window.min(learned).min(self.named.unwrap_or(u64::MAX));
        // Where they count less than we do, that may be over with the next text: room for an answer is not worth a refusal.
        let ours = thread.view().tokens();
        let left = window.saturating_sub(lesson.theirs(ours).max(ours) + window / 50);
        // Where there is hardly room, the provider is to say so: an answer of a few words would be no answer.
        let most = self.lowered.unwrap_or(u64::MAX).min(left.max(SHORTEST));
        Some(wished.unwrap_or(USUAL).min(most))
    }

    /// Makes the next request smaller: first the room for the answer, where that was the complaint.
    pub(crate) fn shrink(
        &mut self,
        why: &TooLarge,
        asking: &Asking,
        (tokens, max_tokens): (u64, Option<u64>),
        lesson: &Lesson,
    ) {
        self.named = why.limit.filter(|limit| *limit > 0).or(self.named);
        if let (None, None, Some(asked)) =
            (why.limit, self.lowered, max_tokens.filter(|asked| *asked > SHORTEST))
        {
            // Nobody said which of the two was too much.
            self.lowered = Some((asked / 4).max(SHORTEST));
            return;
        }
        if let (true, Some(limit), Some(actual)) = (why.lower, why.limit, why.actual) {
            let left = limit.saturating_sub(actual + limit / 100 + 1);
            if left >= SHORTEST && self.lowered.is_none_or(|lowered| left < lowered) {
                self.lowered = Some(left);
                return;
            }
        }
        let usable = self.budget.usable.max(1) as f64;
        // At most this share of what was refused; less where the provider said what it takes.
        let mut to = (tokens as f64 * asking.shrink) / usable;
        if let Some(limit) = why.limit {
            to = to.min(lesson.ours(limit) as f64 / self.budget.window.max(1) as f64);
        }
        self.budget = self.budget.shrunk(to.min(asking.shrink));
    }
}

/// The longest answer that the parameters name.
fn wished(thread: &Thread<'_>) -> Result<Option<u64>> {
    let setup = thread.setup()?;
    let Some(object) = setup.params.as_ref().and_then(|params| Object::parse(params.get()).ok()) else {
        return Ok(None);
    };
    let named = |key: &&str| object.read::<u64>(key).ok().flatten();
    let nested = || {
        let options = object.get("options")?;
        Object::parse(options.get()).ok()?.read::<u64>("num_predict").ok().flatten()
    };
    Ok(NAMES.iter().find_map(named).or_else(nested))
}
