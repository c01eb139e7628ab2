//! What is kept word for word through any number of summaries, line by line and without doubles.
//!
//! It may not grow for ever: there is a cap in tokens. What leaves for it is handed back, never dropped here.

use super::leaving::{Item, Leaving};
use super::{cut, marker};
use komado_core::Meter;
use komado_core::head::Source;
use komado_core::journal::ShowKind;
use std::collections::{HashSet, VecDeque};

/// Lines kept word for word, oldest first.
#[derive(Debug)]
pub(super) struct Retained {
    lines: VecDeque<String>,
    known: HashSet<String>,
    meter: Meter,
    cap: u64,
}

impl Retained {
    pub(super) fn new(meter: Meter, cap: u64) -> Self {
        Self { lines: VecDeque::new(), known: HashSet::new(), meter, cap }
    }

    /// What edits that leave have kept so far.
    pub(super) fn carry<S: Source + ?Sized>(
        &mut self,
        source: &S,
        leaving: &Leaving,
    ) -> Result<String, S::Error> {
        let mut items = leaving.items();
        while let Some(item) = items.next_where(source, |kind| kind.is_edit())? {
            let Item::Earlier { show } = item else { continue };
            for show in show.iter().filter(|show| show.kind == ShowKind::Retain) {
                self.add(marker::strip(&show.text));
            }
        }
        Ok(self.shed())
    }

    /// Adds the lines of `text` that are not there yet.
    pub(super) fn add(&mut self, text: &str) {
        for line in text.lines().map(str::trim_end) {
            if !is_blank(line) && self.known.insert(plain(line)) {
                self.lines.push_back(line.to_owned());
            }
        }
    }

    /// Lets the oldest lines go until the rest fits the cap; gives them back.
    pub(super) fn shed(&mut self) -> String {
        let mut gone = Vec::new();
        // Line by line first, so that many lines are not counted again for each that goes.
        let cost = |line: &String| self.meter.text(line) + 1;
        let mut total: u64 = self.lines.iter().map(cost).sum();
        while self.lines.len() > 1 && total > self.cap.saturating_add(1) {
            let Some(line) = self.lines.pop_front() else { break };
            total -= self.meter.text(&line) + 1;
            self.known.remove(&plain(&line));
            gone.push(line);
        }
        // A single line larger than all there is room for keeps its beginning.
        if self.meter.text(&self.text()) > self.cap
            && let Some(line) = self.lines.pop_front()
        {
            let (head, tail) = cut::split(self.meter, &line, self.cap);
            gone.push(tail.to_owned());
            self.add(head);
        }
        gone.join("\n")
    }

    /// All lines.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A line without what may differ between two spellings of it: bullets and space around it.
fn plain(line: &str) -> String {
    line.trim().trim_start_matches(['-', '*', '•', '・']).trim().to_owned()
}

fn is_blank(line: &str) -> bool {
    plain(line).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_once_and_in_order() {
        let mut retained = Retained::new(Meter::Chars4, 100);
        retained.add("- port 8080\n\n* 合言葉は「山」\n");
        retained.add("  port 8080\n- use tabs\n-\n合言葉は「山」");
        assert_eq!(retained.text(), "- port 8080\n* 合言葉は「山」\n- use tabs");
        assert_eq!(retained.shed(), "");
    }

    #[test]
    fn over_the_cap_the_oldest_lines_are_handed_back() {
        let mut retained = Retained::new(Meter::Chars4, 5);
        retained.add("- the first\n- the second\n- the third");
        assert_eq!(retained.shed(), "- the first\n- the second");
        assert_eq!(retained.text(), "- the third");
        let mut long = Retained::new(Meter::Chars4, 2);
        long.add("one line that is far too long");
        let gone = long.shed();
        assert_eq!((long.text(), gone), ("one line".into(), "that is far too long".into()));
        let mut none = Retained::new(Meter::Chars4, 0);
        none.add("anything at all");
        assert_eq!((none.shed().len(), none.is_empty()), (15 - 3, false));
    }
}
