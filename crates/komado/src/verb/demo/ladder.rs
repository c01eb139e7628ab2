//! Making room, as it is made for every session: by the ladder, before each request.

use super::hand::{Hand, Trim};
use super::screen::Screen;
use crate::fault::Outcome;
use crate::paper::{Ink, number};
use komado_core::ladder::Rung;
use komado_engine::condense::{ByDigest, Settings};
use komado_engine::fit::{Done, Ladder};

impl Hand<'_> {
    /// Makes the view fit, and tells what was done.
    pub(super) fn make_room(&mut self, screen: &mut Screen<'_>) -> Outcome {
        let mut by = ByDigest::new(self.thread.meter());
        let mut ladder = Ladder { budget: self.budget.clone(), settings: Settings::default(), by: &mut by };
        let fitted = self.thread.fit(&mut ladder)?;
        for done in &fitted.done {
            self.note(done, screen)?;
        }
        if !fitted.done.is_empty() {
            // The prefix has changed: nothing behind the setup is in the provider's cache.
            self.cached = self.view().weight().setup;
        }
        self.look()
    }

    fn note(&mut self, done: &Done, screen: &mut Screen<'_>) -> Outcome {
        let (seq, cause) = (done.seq, &done.edit.cause);
        let tokens = format!("{} → {} tokens", number(cause.before), number(cause.after));
        let count = done.edit.replace.len();
        match done.rung {
            Rung::Trim => {
                self.trimmed = Some(Trim { seq, freed: cause.before - cause.after });
                self.done.trims += 1;
                screen.tell(Ink::Cyan, "trim", &format!("@{seq}: {count} old outputs left out: {tokens}"))
            }
            Rung::Condense => {
                self.trimmed = None;
                self.condensed.push(seq);
                self.done.condenses += 1;
                let hull = done.edit.hull().map(|span| span.to_string()).unwrap_or_default();
                screen.tell(Ink::Bold, "condense", &format!("@{seq}: entries {hull} in short: {tokens}"))
            }
            rung => screen.tell(Ink::Yellow, rung.name(), &format!("@{seq}: {tokens}")),
        }
    }
}
