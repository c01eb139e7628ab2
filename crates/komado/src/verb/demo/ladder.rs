//! Making room: first what can be read again, then what can be told in short.

use super::hand::{Hand, Trim};
use super::screen::Screen;
use crate::fault::Outcome;
use crate::paper::{Ink, number};
use komado_core::head::Kind;
use komado_core::view::{Item, What};
use komado_core::{Seq, Span};

/// Outputs that are never trimmed: the newest.
const KEPT: usize = 4;

impl Hand<'_> {
    /// Does nothing below the mark. Above it, old outputs are left out when that is enough, and else everything but
    /// the beginning and the last turns is condensed.
    pub(super) fn make_room(&mut self, screen: &mut Screen<'_>) -> Outcome {
        if self.view().tokens() < self.marks.soft {
            return Ok(());
        }
        let items = self.view().items(self.thread.source())?;
        if !self.trim(&items, screen)? {
            self.condense(&items, screen)?;
        }
        // The prefix has changed: nothing behind the setup is in the provider's cache.
        self.cached = self.view().weight().setup;
        self.look()
    }

    /// Leaves out old outputs, oldest first, down to the low mark; not at all when that cannot be reached.
    fn trim(&mut self, items: &[Item], screen: &mut Screen<'_>) -> Outcome<bool> {
        let outputs: Vec<&Item> = items.iter().filter(|item| item.what == What::Said(Kind::Tool)).collect();
        let before = self.view().tokens();
        let (mut after, mut places) = (before, Vec::new());
        for item in outputs.iter().take(outputs.len().saturating_sub(KEPT)) {
            let about = self.outputs.get(&item.seq).map_or("an output", String::as_str);
            let text = format!("[left out: {about}; entry @{} keeps it]", item.seq);
            // The message around the text stays: a little more than the text alone.
            let gain = u64::from(item.tokens).saturating_sub(u64::from(self.thread.meter().said(&text)) + 16);
            if gain > 40 && after > self.marks.low && !self.wanted.contains(&item.seq) {
                after -= gain;
                places.push((item.seq, text));
            }
        }
        if after > self.marks.low {
            return Ok(false);
        }
        let outputs: Vec<Seq> = places.iter().map(|(seq, _)| *seq).collect();
        let count = outputs.len();
        let seq = self.thread.trim(places, "soft_mark")?;
        let now = self.view().tokens();
        self.trimmed = Some(Trim { seq, outputs, freed: before - now });
        self.done.trims += 1;
        let detail =
            format!("@{seq}: {count} old outputs left out: {} → {} tokens", number(before), number(now));
        screen.tell(Ink::Cyan, "trim", &detail)?;
        Ok(true)
    }

    /// A short text in place of everything between the issue and the last turns; the newest wish stays as it is.
    fn condense(&mut self, items: &[Item], screen: &mut Screen<'_>) -> Outcome {
        let Some(cut) = self.cut(items)? else { return Ok(()) };
        let span = Span::new(self.first, cut - 1);
        let wish = items.iter().rev().find(|item| item.what == What::Said(Kind::User)).map(|item| item.seq);
        let hide = match wish.filter(|seq| span.holds(*seq)) {
            Some(seq) => [Span::new(span.from, seq - 1), Span::new(seq + 1, span.to)]
                .into_iter()
                .filter(|span| span.from <= span.to)
                .collect(),
            None => vec![span],
        };
        let before = self.view().tokens();
        let seq = self.thread.condense(hide, &self.ledger.tell(span), "soft_mark")?;
        self.trimmed = None;
        self.condensed.push(seq);
        self.done.condenses += 1;
        let now = self.view().tokens();
        let detail = format!("@{seq}: entries {span} in short: {} → {} tokens", number(before), number(now));
        screen.tell(Ink::Bold, "condense", &detail)
    }

    /// Where the last turns begin: as many whole units as a fifth of the window holds.
    fn cut(&self, items: &[Item]) -> Outcome<Option<Seq>> {
        let mut tokens = 0;
        let mut cut = None;
        for item in items.iter().rev().take_while(|item| item.what != What::Shown && item.seq > self.first) {
            tokens += u64::from(item.tokens);
            if tokens > self.marks.window / 5 && cut.is_some() {
                break;
            }
            if self.thread.source().head(item.seq)?.unit == item.seq {
                cut = Some(item.seq);
            }
        }
        Ok(cut)
    }
}
