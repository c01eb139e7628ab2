//! What was done, from the calls alone: the text that stands for what is hidden.
//!
//! It is told in a fixed order and within a fixed length, whatever it stands for, and needs no model.

use super::script::Act;
use komado_core::{Seq, Span};
use std::collections::BTreeMap;

/// Wishes told in full; earlier ones are counted.
const WISHES: usize = 5;
/// Changes told one by one; earlier ones are counted.
const CHANGES: usize = 8;
/// Characters of a wish.
const LONGEST: usize = 90;

/// One thing worth remembering.
#[derive(Clone, Debug)]
enum Note {
    Asked(String),
    Did(Act, bool),
}

/// Everything worth remembering, by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Vec<(Seq, Note)>);

impl Ledger {
    pub(super) fn asked(&mut self, seq: Seq, text: &str) {
        self.0.push((seq, Note::Asked(text.to_owned())));
    }

    pub(super) fn did(&mut self, seq: Seq, act: &Act, failed: bool) {
        self.0.push((seq, Note::Did(act.clone(), failed)));
    }

    /// Forgets what came after `seq`.
    pub(super) fn rewind(&mut self, seq: Seq) {
        self.0.retain(|(at, _)| *at <= seq);
    }

    /// What happened in `span`, in short.
    pub(super) fn tell(&self, span: Span) -> String {
        let notes = || self.0.iter().filter(|(seq, _)| span.holds(*seq));
        let mut text = format!("Entries {span} in short, from the calls made there:\n");
        let asked: Vec<&str> = notes()
            .filter_map(|(_, note)| if let Note::Asked(text) = note { Some(&**text) } else { None })
            .collect();
        let wishes = asked.iter().map(|wish| format!("\n  - {}", shorten(wish))).collect();
        text.push_str(&list("asked", wishes, WISHES));
        let mut read: BTreeMap<&str, usize> = BTreeMap::new();
        let mut changed = Vec::new();
        let mut tested = None;
        for (seq, note) in notes() {
            match note {
                Note::Did(Act::Read { path, .. }, false) => *read.entry(path).or_default() += 1,
                Note::Did(Act::Edit { text, line, .. }, _) => changed.push(format!(" {}:{line}", text.path)),
                Note::Did(Act::Test { filter, .. }, failed) => tested = Some((*seq, *filter, *failed)),
                _ => {}
            }
        }
        text.push_str(&list("changed", changed, CHANGES));
        text.push_str(&list(
            "read",
            read.iter().map(|(path, n)| format!(" {path} (×{n})")).collect(),
            usize::MAX,
        ));
        if let Some((seq, filter, failed)) = tested {
            let verdict = if failed { "failed" } else { "passed" };
            text.push_str(&format!("- tests: `{filter}` {verdict} at @{seq}, the last run\n"));
        }
        text
    }
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A line for `things`, the last `most` of them told.
fn list(what: &str, things: Vec<String>, most: usize) -> String {
    if things.is_empty() {
        return String::new();
    }
    let earlier = things.len().saturating_sub(most);
    let before = if earlier > 0 { format!(" {earlier} earlier, then") } else { String::new() };
    format!("- {what}:{before}{}\n", things[earlier..].join(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_tells_what_was_done_in_the_span_and_stays_short() {
        let mut ledger = Ledger::default();
        for n in 0..300 {
            ledger.asked(3 * n + 1, &format!("wish {n} {}", "窓".repeat(200)));
            ledger.did(3 * n + 2, &Act::Read { path: "a.rs".into(), from: 1, to: 2 }, false);
            ledger.did(3 * n + 3, &Act::Test { filter: "view", fails: n % 2 == 0 }, n % 2 == 0);
        }
        let text = ledger.tell(Span::new(1, 600));
        assert!(text.contains("wish 199") && !text.contains("wish 200 "), "{text}");
        assert!(
            text.contains("195 earlier") && text.contains("a.rs (×200)") && text.contains("passed at @600"),
            "{text}"
        );
        assert!(text.len() < 4000, "{}", text.len());
        ledger.rewind(10);
        assert!(!ledger.tell(Span::new(1, 600)).contains("wish 5"));
    }
}
