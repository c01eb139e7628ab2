//! A change of what the model sees: what was done, the window before and after, and how to undo it.

use super::Render;
use crate::fault::Outcome;
use crate::paper::{Paper, number, say};
use komado_ops::Changed;

impl Render for Changed {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!("@{} {}", self.seq, self.what))?;
        say(format!("window: {} → {} tokens", number(self.tokens_before), number(self.tokens_after)));
        if let Some(undo) = &self.undo {
            say(format!("undo: {undo}"));
        }
        Ok(())
    }
}
