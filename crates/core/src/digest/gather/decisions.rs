//! What the model decided, and the reasons it gave.
//!
//! A sentence with a word of decision is kept as it stands. It refuses to weigh whether the decision was wise.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind};
use crate::digest::scan::sentences;
use crate::digest::words::{DECISIONS, cue};

/// Sentences of one message that are kept.
const MOST: usize = 6;

pub(in crate::digest) fn decisions(seq: Seq, text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    for sentence in sentences(text) {
        let low = sentence.to_lowercase();
        let Some(cue) = cue(&low, DECISIONS) else { continue };
        if sentence.chars().count() < 8 || low.ends_with(['?', '？', ':', '：']) {
            continue;
        }
        let weight = if matches!(cue, "because" | "instead of" | "choose") { 100 } else { 300 };
        found.push(Fact::new(FactKind::Decision, sentence, seq).weighing(weight));
    }
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn decisions_of_both_languages_are_found() {
        let text = "Let me look.\nThe root cause is a stale cache. Shall we go with it?\n方針は単純にすることです。読みます。";
        let found: Vec<String> = super::decisions(4, text).into_iter().map(|fact| fact.text).collect();
        assert_eq!(found, ["The root cause is a stale cache.", "方針は単純にすることです。"]);
    }
}
