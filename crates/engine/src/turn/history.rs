//! A bound on turns, for those who want one: a chat that is to remember only the last few exchanges.

use crate::error::Result;
use crate::fit::{Done, Fitted};
use crate::thread::Thread;
use komado_core::budget::Budget;
use komado_core::journal::Entry;
use komado_core::ladder::{self, Rung, Step};

/// The rule in the journal.
const RULE: &str = "max_history";

impl Thread<'_> {
    /// Hides what was said before the last `turns` turns of the user. The first request, pins and what stands before the
    /// conversation stay, and so does what is smaller than the marker. Gives what was done, if anything was needed.
    pub fn bound_history(&mut self, turns: u32, budget: &Budget) -> Result<Option<Fitted>> {
        let verdict = self.will_manage(budget);
        let step = ladder::bound_turns(self.view(), self.source(), budget, self.meter(), turns)?;
        let Some(Step::Truncate { hide, marker }) = step else { return Ok(None) };
        let seq = self.truncate(hide, &marker, RULE)?;
        let Entry::Edit(edit) = self.record(seq)?.entry else { return Err(self.no_moment(seq)) };
        let done = vec![Done { seq, rung: Rung::Truncate, edit }];
        let after = self.view().tokens();
        Ok(Some(Fitted { verdict, done, declined: Vec::new(), share: None, after }))
    }
}
