//! Making room, as it is made for every session: by the ladder, before each request.

use super::hand::{Hand, Trim};
use super::screen::Screen;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, number};
use komado_core::ladder::Rung;
use komado_engine::condense::{ByDigest, Settings};
use komado_engine::fit::{Done, Ladder};
use komado_engine::turn::{News, Turned};

impl Hand<'_> {
    /// Makes the view fit, and tells what was done.
    pub(super) fn make_room(&mut self, screen: &mut Screen<'_>) -> Outcome {
        let mut by = ByDigest::new(self.thread.meter());
        let mut ladder = Ladder { budget: self.budget.clone(), settings: Settings::default(), by: &mut by };
        let fitted = self.thread.fit(&mut ladder)?;
        fitted.done.iter().try_for_each(|done| self.note(done, screen))?;
        self.look()
    }

    /// Asks the model, and tells what was done to the view before. A request that is refused as too large is a fault of
    /// ours here: the window is known.
    pub(super) fn ask(&mut self, screen: &mut Screen<'_>) -> Outcome<Turned> {
        let mut by = ByDigest::new(self.thread.meter());
        let mut ladder = Ladder { budget: self.budget.clone(), settings: Settings::default(), by: &mut by };
        let (mut edits, mut refused) = (Vec::new(), None);
        let turned = self.thread.turn(&self.wire.asking, &mut ladder, &mut |news| match news {
            News::Fitted(fitted) => edits.extend(fitted.done.iter().cloned()),
            News::TooLarge { why, .. } => refused = Some(why.to_owned()),
            _ => {}
        })?;
        edits.iter().try_for_each(|done| self.note(done, screen))?;
        self.look()?;
        match refused {
            None => Ok(turned),
            Some(why) => {
                Err(Fault::new(Exit::Failed, format!("a request was refused: {why}; this is a bug")))
            }
        }
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
