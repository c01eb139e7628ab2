//! From the words of a summary to the texts that are shown: headed, cut to the limit, and with what they forgot.
//!
//! The limit holds for all texts together. A quarter of it is set aside for the ledger of lost facts before anybody is
//! asked. A summary that is cut says so; one of which too little would be left is refused instead.

use super::chunk::Written;
use super::retain::Retained;
use super::{Composed, Declined, Language, Settings, cut, prompt};
use komado_core::Meter;
use komado_core::digest::Digest;
use komado_core::journal::{Show, ShowKind, Usage};

/// The fewest tokens of a summary that are of use.
const FEWEST: u64 = 16;

/// Tokens for the words of a summary.
pub(super) struct Room {
    /// As many as there may be.
    pub(super) most: u64,
    /// As many as there should be: at most half of what they stand for, or little is won.
    pub(super) aim: u64,
}

/// What the texts have to fit into.
pub(super) struct Frame {
    pub(super) meter: Meter,
    /// Tokens allowed.
    pub(super) limit: u64,
    /// Tokens that leave.
    pub(super) hidden: u64,
    /// Of marks.
    pub(super) language: Language,
    /// First lines: of what is kept word for word, of the summary.
    pub(super) heads: [String; 2],
}

impl Frame {
    /// What is left for the words of a summary when `ledger` tokens are set aside.
    pub(super) fn room(
        &self,
        retained: &Retained,
        settings: &Settings,
        ledger: u64,
    ) -> Result<Room, Declined> {
        let kept = match (retained.is_empty(), prompt::keeps(settings)) {
            (true, false) => 0,
            _ => self.said(0, &retained.text()),
        };
        // One for the line break after the heading, whatever the meter makes of it.
        let fixed = self.said(1, "") + kept + 1;
        let needed = fixed + FEWEST + ledger;
        let (limit, hidden) = (self.limit, self.hidden);
        if fixed >= hidden {
            return Err(Declined::Larger { hidden, shown: fixed, limit, usage: None });
        }
        if needed > limit {
            // The ledger's share grows with the limit.
            return Err(Declined::NoRoom { limit, needed: (fixed + FEWEST) * 4 / 3 + 1 });
        }
        let most = (limit - fixed - ledger).min(hidden);
        Ok(Room { most, aim: most.min((hidden - fixed) / 2).max(1) })
    }

    /// Tokens of a text under heading `head`.
    fn said(&self, head: usize, body: &str) -> u64 {
        u64::from(self.meter.said(&self.headed(head, body)))
    }

    fn headed(&self, head: usize, body: &str) -> String {
        format!("{}\n{}", self.heads[head], body)
    }

    /// Puts the texts together.
    pub(super) fn show(
        &self,
        written: Written,
        mut retained: Retained,
        digest: &Digest,
        ledger: u64,
    ) -> Result<Composed, Declined> {
        let Written { mut summary, model, usage, parts } = written;
        let overflow = retained.shed();
        if !overflow.is_empty() {
            summary = format!("{}\n{overflow}", summary.trim_end());
        }
        let kept = retained.text();
        let kept_tokens = if kept.is_empty() { 0 } else { self.said(0, &kept) };
        let budget = self.limit.saturating_sub(kept_tokens + ledger);
        let body = self.fit(summary.trim(), budget, kept_tokens, usage)?;
        let shown = kept_tokens + self.said(1, &body);
        // A ledger may not eat up what was won.
        let most = ledger.min(self.hidden.saturating_sub(shown) / 2);
        let audit = digest.audit(&format!("{kept}\n{body}"), most);
        let missing = audit.ledger.filter(|ledger| most > 0 && !ledger.trim().is_empty());
        let text = self.with_ledger(body, missing.as_deref(), self.limit.saturating_sub(kept_tokens));
        let mut show = Vec::new();
        if !kept.is_empty() {
            show.push(self.shown(ShowKind::Retain, self.headed(0, &kept)));
        }
        show.push(self.shown(ShowKind::Summary, text));
        let parts_note = if parts > 1 { format!("; read in {parts} parts") } else { String::new() };
        let (total, kept, lost) = (audit.total, audit.kept, audit.lost);
        let note = Some(format!("{kept} of {total} facts told, {} not{parts_note}", lost.len()));
        let hidden = self.hidden;
        let composed = Composed { show, model: Some(model), usage, note, chunks: parts, hidden, lost };
        if composed.tokens() >= self.hidden || composed.tokens() > self.limit {
            let shown = composed.tokens();
            return Err(Declined::Larger { hidden, shown, limit: self.limit, usage });
        }
        Ok(composed)
    }

    fn shown(&self, kind: ShowKind, text: String) -> Show {
        Show { kind, tokens: self.meter.said(&text), text }
    }

    /// The summary, cut with a mark when it is longer than `budget`, as long as what is left of it is of use.
    fn fit(&self, summary: &str, budget: u64, kept: u64, usage: Option<Usage>) -> Result<String, Declined> {
        let whole = self.said(1, summary);
        if whole <= budget {
            return Ok(summary.to_owned());
        }
        let mark = match self.language {
            Language::English => "\n[… cut here to fit; the originals are kept]",
            Language::Japanese => "\n[…ここで切りました。原文は保存されています]",
        };
        let mut room = budget.saturating_sub(self.said(1, mark));
        loop {
            let head = cut::split(self.meter, summary, room).0.trim_end();
            let left = self.meter.text(head);
            if left < FEWEST || left * 4 < self.meter.text(summary) {
                let (hidden, shown) = (self.hidden, kept + whole);
                return Err(Declined::Larger { hidden, shown, limit: self.limit, usage });
            }
            let text = format!("{head}{mark}");
            if self.said(1, &text) <= budget {
                return Ok(text);
            }
            // Texts side by side took more than each alone.
            room = room.saturating_sub(1);
        }
    }

    /// The headed summary with as many lines of the ledger as fit into `budget`.
    fn with_ledger(&self, body: String, ledger: Option<&str>, budget: u64) -> String {
        let mut lines: Vec<&str> =
            ledger.map(|ledger| ledger.trim_end().lines().collect()).unwrap_or_default();
        while !lines.is_empty() {
            let text = format!("{body}\n\n{}", lines.join("\n"));
            if self.said(1, &text) <= budget {
                return self.headed(1, &text);
            }
            lines.pop();
        }
        self.headed(1, &body)
    }
}
