//! The window as people see it: a gauge and what fills it, edits that were made, and what two moments differ in.

use super::Render;
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, count, number, say};
use crate::{gauge, share};
use komado_core::Span;
use komado_core::budget::Rule;
use komado_engine::fit::Resliced;
use komado_ops::window::{Condensed, ContextUse, Differences, Fitted, MadeEdit, Written};

impl Render for ContextUse {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let name = format!("{}/{}@{}", self.session, self.thread, self.seq);
        paper.line(format!("{}  {}", paper.ink(Ink::Bold, &name), self.status))?;
        let cells = paper.width.saturating_sub(40).clamp(10, 60);
        paper.line(gauge::line(paper, &self.parts, self.window, cells))?;
        for line in gauge::legend(paper, &self.parts) {
            paper.line(line)?;
        }
        if let Some(share) = &self.share {
            paper.fit(&format!("  share: {}", share::line(share)))?;
            paper.fit(&format!("  seen of the threads above: {}", share::seen(share)))?;
        }
        self.details().iter().try_for_each(|line| paper.fit(line))
    }
}

impl Render for Fitted {
    fn text(&self, paper: &mut Paper) -> Outcome {
        if !self.reverted.is_empty() {
            let edits: Vec<String> = self.reverted.iter().map(|seq| format!("@{seq}")).collect();
            paper.line(format!("taken back, since there is room again: {}", edits.join(", ")))?;
            if !self.dry_run {
                say(format!("undo: komado fit {}", super::address(&self.session, &self.thread)));
            }
        }
        paper.line(format!("{}: {}", self.verdict.rule.name(), self.verdict.numbers()))?;
        self.declined.iter().for_each(|why| say(format!("komado: no summary: {why}")));
        self.slices.iter().for_each(|cut| say(slices_line(cut)));
        for edit in &self.edits {
            paper.line(edit_line(edit))?;
        }
        if !self.dry_run {
            // The newest first: one that lies under a later edit cannot be taken back alone.
            self.edits.iter().rev().for_each(|edit| say(format!("undo: {}", edit.undo)));
        }
        if self.edits.is_empty() && self.slices.is_empty() {
            let nothing = match self.verdict.rule {
                Rule::Fits => "there is room",
                Rule::HardGate => "nothing more can leave; the answer has less room than it should",
                _ => "nothing is worth an edit yet",
            };
            let tense = if self.dry_run { "would be" } else { "was" };
            paper.line(format!("{nothing}; nothing {tense} changed"))?;
        } else if self.dry_run {
            say("this is a dry run: nothing was changed");
        }
        Ok(())
    }
}

impl Render for Condensed {
    fn text(&self, paper: &mut Paper) -> Outcome {
        match self {
            Self::Given(changed) => changed.text(paper),
            Self::Written(Written { fitted, .. }) => fitted.text(paper),
        }
    }
}

/// Slices that were cut anew, in one line.
pub(crate) fn slices_line(cut: &Resliced) -> String {
    let (before, after) = (number(u64::from(cut.before)), number(u64::from(cut.after)));
    let window = number(cut.window);
    format!("slices of the threads above: {before} → {after} tokens for a window of {window} (@{})", cut.seq)
}

/// One edit, in one line.
pub(crate) fn edit_line(edit: &MadeEdit) -> String {
    let (before, after) = (number(edit.tokens_before), number(edit.tokens_after));
    format!("@{} {:<8} {}: {before} → {after} tokens", edit.seq, edit.rung, what(edit))
}

fn what(edit: &MadeEdit) -> String {
    let n = edit.spans.len() as u64;
    match (edit.rung, &edit.spans[..]) {
        ("trim", _) => format!("{} left out", count(n, "old output")),
        ("clip", _) => format!("{} shown in part", count(n, "message")),
        (_, [[from, to]]) => format!("entries {}", Span::new(*from, *to)),
        (_, [[from, _], .., [_, to]]) => format!("entries {from}..{to} in {n} spans"),
        (_, []) => String::new(),
    }
}

impl Render for Differences {
    fn text(&self, paper: &mut Paper) -> Outcome {
        for one in &self.items {
            let (sign, ink) = if one.change == "gone" { ("-", Ink::Red) } else { ("+", Ink::Green) };
            paper.line(paper.ink(ink, &format!("{sign} {}", one.text)))?;
        }
        say(format!("{} → {} tokens", number(self.tokens_before), number(self.tokens_after)));
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        super::each(paper, &self.items)
    }
}
