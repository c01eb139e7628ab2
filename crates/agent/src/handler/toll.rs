//! What a task took before the worker that has it now.

use super::mark::Mark;
use crate::error::Result;
use crate::limits::{Limits, Toll};
use komado_core::journal::Entry;
use komado_core::{Kind, SessionId};
use komado_engine::{Engine, Error};
use komado_store::Mode;
use std::time::Duration;

/// Requests of a task that the model answered, and what they took. Not those that the row of its session counts beside
/// them: answers that were lost, and summaries. What a task may take is the same whether or not it was killed on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Answered {
    pub(super) turns: u64,
    pub(super) tokens: u64,
    /// Calls that were answered.
    pub(super) calls: u64,
}

impl Answered {
    /// As the journals of a session say, one entry at a time.
    pub(super) fn of_session(engine: &Engine, session: &SessionId) -> Result<Self> {
        let mut sum = Self::default();
        for header in engine.store().threads(session)? {
            let thread = engine.open(session, &header.thread, Mode::Read)?;
            for seq in header.base_seq() + 1..=thread.last() {
                match thread.source().head(seq).map_err(Error::from)?.kind {
                    Kind::Tool => sum.calls += 1,
                    Kind::Assistant => sum.add(&thread.record(seq)?.entry),
                    _ => {}
                }
            }
        }
        Ok(sum)
    }

    /// A call of a playbook's own is nobody's reply.
    fn add(&mut self, entry: &Entry) {
        if let Entry::Message(_, Some(reply)) = entry {
            self.turns += 1;
            self.tokens += reply.usage.map_or(0, |usage| usage.total());
        }
    }
}

impl Toll {
    /// What was taken before counts, less what was before a retry.
    pub(super) fn after(limits: Limits, mark: &Mark, before: &Answered) -> Self {
        let mut toll = Self::new(limits);
        toll.spent = Duration::from_millis(mark.spent_ms);
        toll.turns = before.turns.saturating_sub(mark.turns_from);
        toll.tokens = before.tokens.saturating_sub(mark.tokens_from);
        toll.calls = before.calls;
        toll
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Reached;

    fn toll(limits: Limits) -> Toll {
        Toll::after(limits, &Mark::default(), &Answered::default())
    }

    #[test]
    fn errors_count_only_in_a_row() {
        let mut toll = toll(Limits { errors: 2, ..Limits::default() });
        toll.call(Some("first".into()));
        toll.call(None);
        toll.call(Some("second".into()));
        assert_eq!(toll.reached(), None);
        toll.call(Some("third".into()));
        assert_eq!(toll.reached(), Some(Reached::Errors(2, "third".into())));
    }

    #[test]
    fn what_others_took_counts_and_what_was_before_a_retry_does_not() {
        let limits = Limits { turns: Some(5), tokens: Some(100), ..Limits::default() };
        let before = Answered { turns: 9, tokens: 150, calls: 0 };
        let toll = Toll::after(limits, &Mark::default(), &before);
        assert_eq!(toll.reached(), Some(Reached::Turns(5)));
        let mark = Mark { turns_from: 9, tokens_from: 150, ..Mark::default() };
        let mut toll = Toll::after(limits, &mark, &before);
        assert_eq!(toll.reached(), None);
        toll.turn(100);
        assert_eq!(toll.reached(), Some(Reached::Tokens(100)));
    }

    #[test]
    fn time_counts_from_the_first_worker_on() {
        let limits = Limits { time: Some(Duration::from_secs(60)), ..Limits::default() };
        let mark = Mark { spent_ms: 60_000, ..Mark::default() };
        assert_eq!(toll(limits).reached(), None);
        let toll = Toll::after(limits, &mark, &Answered::default());
        assert_eq!(toll.reached(), Some(Reached::Time(Duration::from_secs(60))));
    }
}
