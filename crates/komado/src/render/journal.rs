//! What was said: messages that were appended, and secrets that were taken out.

use super::Render;
use crate::fault::Outcome;
use crate::gauge;
use crate::paper::{Paper, count, number, say};
use komado_ops::journal::{Appended, Redacted};

impl Render for Appended {
    fn text(&self, paper: &mut Paper) -> Outcome {
        self.seqs.iter().try_for_each(|seq| paper.line(seq.to_string()))?;
        paper.flush()?;
        let gauge = gauge::line(paper, &(&self.weight).into(), self.window, 24);
        let role = self.role.map(|role| format!(" {}", role.name())).unwrap_or_default();
        say(format!("@{}{role}: {} tokens  {gauge}", self.seq, number(self.tokens)));
        say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for Redacted {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let (lines, outputs) = (count(self.entries, "line"), count(self.blobs, "output"));
        paper.line(format!("changed {lines} of the journal and {outputs}"))?;
        say("undo: none; the entries say when and why");
        Ok(())
    }
}
