//! A bound on turns, for those who want one: a chat that is to remember only the last few exchanges.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::Seq;
use komado_core::budget::Budget;
use komado_core::ladder::{self, Step};

/// The rule in the journal.
const RULE: &str = "max_history";

impl Thread<'_> {
    /// Hides what was said before the last `turns` turns of the user. The first request, pins and what stands before the
    /// conversation stay, and so does what is smaller than the marker. Gives the edit, if one was needed.
    pub fn bound_history(&mut self, turns: u32, budget: &Budget) -> Result<Option<Seq>> {
        let step = ladder::bound_turns(self.view(), self.source(), budget, self.meter(), turns)?;
        match step {
            Some(Step::Truncate { hide, marker }) => self.truncate(hide, &marker, RULE).map(Some),
            _ => Ok(None),
        }
    }
}
