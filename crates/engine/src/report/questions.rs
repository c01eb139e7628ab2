//! What people ask most.
//!
//! Only words of people count: a tool's answer, what one thread tells another, a whole log that was pasted, and texts that a
//! program wrote around or instead of a question are none.

use super::Ask;
use super::cluster::{Group, Groups, ROOM, Said};
use super::scan::{Counter, NOBODY, Seen, Told, is_asked_by_a_person};
use super::sketch::round;
use komado_core::journal::Entry;
use komado_core::session::Session;
use serde::Serialize;

/// Bytes of a question; what is longer is something that was pasted.
const LONGEST: usize = 4_000;
/// Lines of a question.
const LINES: usize = 30;

/// A common question.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// As it was first asked.
    pub question: String,
    /// How often it was asked, at least.
    pub count: u64,
    /// How often at most.
    pub at_most: u64,
    /// By how many users; above 64 an estimate.
    pub users: u64,
    /// Its share of all questions.
    pub share: f64,
    /// When it was asked last.
    pub last_seen: String,
    /// Where it was asked.
    pub examples: Vec<String>,
}

/// The part of a report about questions.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Questions {
    /// Questions in all.
    pub asked: u64,
    /// The most common.
    pub groups: Vec<Question>,
    /// How many groups were kept at a time.
    pub kept: u64,
    /// A group that is not here was asked at most so often.
    pub missed_at_most: u64,
}

/// Counts questions.
#[derive(Default)]
pub(crate) struct Counts {
    groups: Groups,
}

impl Counts {
    pub(crate) fn told(self, ask: &Ask) -> Questions {
        let (asked, missed_at_most) = (self.groups.taken(), self.groups.missed_at_most());
        let groups = self.groups.largest(ask.top).into_iter().map(|group| told(group, asked)).collect();
        Questions { asked, groups, kept: ROOM as u64, missed_at_most }
    }
}

fn told(group: Group, asked: u64) -> Question {
    let count = group.count - group.error;
    Question {
        question: group.text,
        count,
        at_most: group.count,
        users: group.users.count().min(group.count),
        share: round(count as f64 / asked.max(1) as f64),
        last_seen: group.last_seen,
        examples: group.examples,
    }
}

impl Counter for Counts {
    fn begin(&mut self, _: &Session, _: &Ask) {}

    fn take(&mut self, seen: &Seen<'_>, _: &Ask) {
        if !seen.counts || !is_asked_by_a_person(seen.header, &seen.record.entry) {
            return;
        }
        let Entry::Message(message, _) = &seen.record.entry else { return };
        let text = message.words();
        if is_a_machines(&text) {
            return;
        }
        let address = || match seen.header.thread.is_root() {
            true => format!("{}@{}", seen.header.session, seen.record.seq),
            false => format!("{}/{}@{}", seen.header.session, seen.header.thread, seen.record.seq),
        };
        let user = seen.session.meta.user.as_deref().unwrap_or(NOBODY);
        self.groups.add(&Said { text: &text, user, time: &seen.record.timestamp, address: &address });
    }

    fn end(&mut self, _: &Session, _: &Ask, _: Told) {}
}

/// True for what no person typed as a question: long, of many lines, JSON, markup, or hardly a letter in it.
fn is_a_machines(text: &str) -> bool {
    let text = text.trim();
    let Some(first) = text.chars().next() else { return true };
    if text.len() > LONGEST || text.lines().nth(LINES).is_some() {
        return true;
    }
    let is_json = matches!(first, '{' | '[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let is_markup = first == '<' && text.ends_with('>');
    let (letters, all) = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .fold((0, 0), |(letters, all), c| (letters + usize::from(c.is_alphabetic()), all + 1));
    is_json || is_markup || letters * 3 < all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_wrote_is_no_question() {
        for text in
            ["返品したい", "how?", "<div> が中央に来ないのはなぜ？", "[1] とは何ですか", "fix main.py:12"]
        {
            assert!(!is_a_machines(text), "{text}");
        }
        let log = "ERROR at line 1\n".repeat(40);
        let long = "あ".repeat(2_000);
        for text in
            ["", "  \n", "{\"a\": 1}", "<note>\nbe kind\n</note>", "12:00:01 ---- 404 0x00", &log, &long]
        {
            assert!(is_a_machines(text), "{text}");
        }
    }
}
