//! What a summary left out: every hard fact of the span is looked for in it.
//!
//! Short facts must stand there to the letter, save for width, case, quotes and spaces; sentences may be told in other
//! words as long as most of their own are on one line. It refuses to praise: a fact that is not found is lost.

use super::fact::{DigestSection, Fact, FactKind};
use super::scan::{fold, is_japanese};
use super::timeline::Timeline;
use super::{Digest, words, write};
use std::collections::BTreeSet;

/// What became of the hard facts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// Hard facts of the span.
    pub total: usize,
    /// Those that the summary contains.
    pub kept: usize,
    /// Those that it does not, most important first.
    pub lost: Vec<Fact>,
    /// The lost ones as text, to stand after the summary; the least important are left out when room is short.
    pub ledger: Option<String>,
}

pub(super) fn audit(digest: &Digest, summary: &str, limit: u64) -> Audit {
    let hard = digest.hard();
    let total = hard.len();
    let page = Page::new(summary);
    let lost: Vec<(DigestSection, Fact)> = hard.into_iter().filter(|(_, fact)| !page.holds(fact)).collect();
    let ledger = (!lost.is_empty()).then(|| {
        let title = words::title(words::LEDGER, digest.span, digest.messages, ("", false), digest.language());
        let pen = write::Pen { language: digest.language(), meter: digest.meter, root: "" };
        write::lay_out(&title, by_section(&lost), &Timeline::default(), pen, limit)
    });
    let lost: Vec<Fact> = lost.into_iter().map(|(_, fact)| fact).collect();
    Audit { total, kept: total - lost.len(), lost, ledger }
}

/// The facts under their sections, in the order they come.
fn by_section(facts: &[(DigestSection, Fact)]) -> Vec<(DigestSection, Vec<Fact>)> {
    let mut sections: Vec<(DigestSection, Vec<Fact>)> = Vec::new();
    for (section, fact) in facts {
        match sections.last_mut() {
            Some((last, facts)) if last == section => facts.push(fact.clone()),
            _ => sections.push((*section, vec![fact.clone()])),
        }
    }
    sections
}

/// A summary made ready to be searched.
struct Page {
    text: String,
    lines: Vec<BTreeSet<String>>,
    all: BTreeSet<String>,
}

impl Page {
    fn new(summary: &str) -> Self {
        let lines: Vec<BTreeSet<String>> = summary.lines().map(|line| terms(&fold(line))).collect();
        let all = lines.iter().flatten().cloned().collect();
        Self { text: fold(summary), lines, all }
    }

    fn holds(&self, fact: &Fact) -> bool {
        let text = fold(fact.text.trim_end_matches('…'));
        if text.is_empty() {
            return true;
        }
        match fact.kind {
            FactKind::Path => self.has_path(&text),
            FactKind::Symbol | FactKind::Url | FactKind::Id | FactKind::Number if text.len() < 60 => {
                self.has(&text)
            }
            FactKind::Command { .. } => self.has(&text) || self.tells(&text, 85),
            FactKind::Rule => self.has(&text) || self.tells(&text, 80),
            FactKind::Request => self.has(&text) || self.covers(&text, 60),
            _ => self.has(&text) || self.tells(&text, 70),
        }
    }

    /// The text stands there, and is not a piece of something longer.
    fn has(&self, text: &str) -> bool {
        let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let guard = |edge: Option<char>, beside: Option<char>| part(edge) && part(beside);
        self.text.match_indices(text).any(|(at, _)| {
            let (before, after) =
                (self.text[..at].chars().next_back(), self.text[at + text.len()..].chars().next());
            !guard(text.chars().next(), before) && !guard(text.chars().next_back(), after)
        })
    }

    /// The path, or its last components when these are two or more: a summary may leave the root out.
    fn has_path(&self, path: &str) -> bool {
        if self.has(path) {
            return true;
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        (1..parts.len().saturating_sub(1)).any(|from| self.has(&parts[from..].join("/")))
    }

    /// One line holds at least `percent` of the text's own words.
    fn tells(&self, text: &str, percent: usize) -> bool {
        let wanted = terms(text);
        !wanted.is_empty()
            && self.lines.iter().any(|line| shared(&wanted, line) * 100 >= wanted.len() * percent)
    }

    /// The whole summary holds at least `percent` of the text's own words.
    fn covers(&self, text: &str, percent: usize) -> bool {
        let wanted = terms(text);
        !wanted.is_empty() && shared(&wanted, &self.all) * 100 >= wanted.len() * percent
    }
}

fn shared(wanted: &BTreeSet<String>, there: &BTreeSet<String>) -> usize {
    wanted.iter().filter(|term| there.contains(*term)).count()
}

/// The words of a folded text: runs of letters and digits, and pairs of Japanese characters.
fn terms(folded: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for c in folded.chars().chain([' ']) {
        if is_japanese(c) {
            if let Some(before) = before {
                terms.insert([before, c].iter().collect());
            }
            before = Some(c);
        } else {
            before = None;
        }
        if c.is_alphanumeric() && !is_japanese(c) || c == '_' {
            word.push(c);
        } else if !word.is_empty() {
            if word.len() > 2 || word.bytes().all(|b| b.is_ascii_digit()) {
                terms.insert(std::mem::take(&mut word));
            }
            word.clear();
        }
    }
    terms
}
