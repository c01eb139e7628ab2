//! What the user wants: requests, and rules to obey.
//!
//! The first request and the newest are kept word for word, others by their first sentence. A sentence with a word of
//! command is a rule, unless its line was pasted. It refuses to soften: rules are kept as they were said.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind, FactTable};
use crate::digest::scan::{fold, head_and_tail, one_line, sentences};
use crate::digest::words::{DECISIONS, NEXT, NO_RULES, STRONG_RULES, WEAK_RULES, cue};
use crate::message::Role;

/// Characters kept of the first request and of the newest.
const VERBATIM: usize = 12_000;
/// Characters kept of every other one.
const SHORT: usize = 240;

#[derive(Clone, Debug, Default)]
pub(in crate::digest) struct Requests {
    pub(in crate::digest) first: Option<Fact>,
    pub(in crate::digest) newest: Option<Fact>,
    /// Those between.
    pub(in crate::digest) others: FactTable<96>,
}

impl Requests {
    /// The user said `text`.
    pub(in crate::digest) fn take(&mut self, seq: Seq, text: &str) {
        let text = verbatim(text);
        if text.is_empty() {
            return;
        }
        let fact = Fact::new(FactKind::Request, text, seq);
        if self.first.is_none() {
            self.first = Some(fact);
        } else if let Some(before) = self.newest.replace(fact) {
            self.set_aside(&before);
        }
    }

    /// A request that an earlier digest told: the oldest is the first, the youngest the newest.
    pub(in crate::digest) fn recall(&mut self, fact: Fact) {
        let mut known: Vec<Fact> =
            [self.first.take(), self.newest.take(), Some(fact)].into_iter().flatten().collect();
        known.sort_by_key(|fact| fact.at);
        known.dedup_by(|a, b| a.at == b.at && a.text == b.text);
        let mut known = known.into_iter();
        self.first = known.next();
        self.newest = known.next_back();
        known.for_each(|between| self.set_aside(&between));
    }

    /// Keeps a request by its first sentence.
    pub(in crate::digest) fn set_aside(&mut self, request: &Fact) {
        let sentence = sentences(&request.text).into_iter().find(|sentence| !sentence.starts_with('<'));
        let text = one_line(&sentence.unwrap_or_else(|| request.text.clone()), SHORT);
        self.others.put(fold(&text), Fact::new(FactKind::Request, text, request.at));
    }
}

/// The text without empty lines, cut in the middle when it is long.
fn verbatim(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    head_and_tail(lines.join("\n").trim(), VERBATIM)
}

/// A user's text without the lines that were pasted: a log, an error, a quotation, a patch. Where one stood the line is empty.
pub(in crate::digest) fn own_lines(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    for line in text.lines() {
        if !is_pasted(line) {
            own.push_str(line);
        }
        own.push('\n');
    }
    own
}

/// True for a line that no one types: it begins like a log's, a compiler's, a patch's, or it quotes another.
fn is_pasted(line: &str) -> bool {
    const MARKS: [&str; 20] = [
        ">",
        "$ ",
        "❯ ",
        "error:",
        "error[",
        "warning:",
        "fatal:",
        "npm ERR!",
        "E   ",
        "+++ ",
        "--- a/",
        "@@ ",
        "Traceback ",
        "panic:",
        "thread '",
        "Caused by:",
        "at java.",
        "File \"",
        "⎿",
        "●",
    ];
    const LEVELS: [&str; 8] = ["INFO", "WARN", "WARNING", "ERROR", "DEBUG", "TRACE", "FATAL", "CRITICAL"];
    let line = line.trim_start();
    let bare = line.trim_start_matches(['[', '(']);
    let level = bare.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    MARKS.iter().any(|mark| line.starts_with(mark))
        || begins_as(bare, "0000-00-00")
        || begins_as(bare, "0000/00/00")
        || begins_as(bare, "00:00:00")
        || is_numbered_change(line)
        || (LEVELS.contains(&level) && bare.len() > level.len())
}

/// `60 -  let x = 1;`: a line of a patch as terminals show it.
fn is_numbered_change(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(' ') && rest.trim_start().starts_with(['+', '-', '│', '|'])
}

/// True when `text` begins like `form`, in which `0` stands for any digit.
fn begins_as(text: &str, form: &str) -> bool {
    let same = |(a, b): (u8, u8)| if b == b'0' { a.is_ascii_digit() } else { a == b };
    text.len() >= form.len() && text.bytes().zip(form.bytes()).all(same)
}

/// The rules of a text, with their weight.
pub(in crate::digest) fn rules(seq: Seq, role: Role, text: &str) -> Vec<Fact> {
    let by_user = role == Role::User;
    let mut found = Vec::new();
    for sentence in sentences(&own_lines(text)) {
        let low = sentence.to_lowercase();
        let weight = if cue(&low, STRONG_RULES).is_some() && cue(&low, NO_RULES).is_none() {
            500
        } else if cue(&low, STRONG_RULES).or_else(|| cue(&low, WEAK_RULES)).is_some() {
            200
        } else {
            continue;
        };
        // A question asks, it does not command.
        if low.ends_with(['?', '？'])
            || low.starts_with('<') && low.ends_with('>')
            || !sentence.chars().any(char::is_alphabetic)
        {
            continue;
        }
        let weight = if by_user { weight + 600 } else { weight };
        found.push(Fact::new(FactKind::Rule, sentence, seq).weighing(weight));
    }
    found
}

// What the model noted in its own words: what it decided and why, and what it found.
//
// A sentence with a word of decision, or with a name or a figure in it, is kept as it stands, unless it only tells what the model
// does next. It refuses to weigh whether the model was right.

/// Sentences of one message that are kept.
const MOST_NOTES: usize = 6;

/// Characters of a sentence that is a note; a longer one is a report.
const LONGEST_NOTE: usize = 300;

/// What a line of an output weighs that holds a name the task uses: less than what the model says of it.
const ANSWER: u32 = 120;

pub(in crate::digest) fn notes(seq: Seq, text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    for sentence in sentences(text) {
        let low = sentence.to_lowercase();
        if sentence.chars().count() < 8 || low.ends_with(['?', '？', ':', '：']) {
            continue;
        }
        if cue(&low, DECISIONS).is_some() || is_finding(&sentence, &low) {
            let weight = note_weight(&low);
            found.push(Fact::new(FactKind::Decision, sentence, seq).weighing(weight));
        }
    }
    found.truncate(MOST_NOTES);
    found
}

/// How much a note weighs that is `low` in lower case.
pub(in crate::digest) fn note_weight(low: &str) -> u32 {
    match cue(low, DECISIONS) {
        Some("because" | "instead of" | "choose") => 100,
        Some(_) => 300,
        None => 200,
    }
}

/// True for a sentence that names something by a figure, a path or a name as programs have them, and does not tell what
/// comes next.
fn is_finding(sentence: &str, low: &str) -> bool {
    sentence.chars().count() <= LONGEST_NOTE
        && !PLANS.iter().any(|plan| low.starts_with(plan))
        && cue(low, NEXT).is_none()
        && sentence.split_whitespace().skip(1).any(is_name)
}

/// How a sentence begins in which the model tells what it does now.
const PLANS: [&str; 14] = [
    "let me",
    "let's",
    "let us",
    "i'll",
    "i will",
    "i'm going",
    "i am going",
    "i need to",
    "i should",
    "now ",
    "next",
    "first",
    "then ",
    "まず",
];

/// True for a word that no prose has: with a figure, a path, or parts joined by `_`, `-`, `.` or `::`.
fn is_name(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '`');
    let joined = |mark: &str| word.split(mark).filter(|part| !part.is_empty()).count() > 1;
    word.len() > 1
        && (word.contains(|c: char| c.is_ascii_digit())
            || word.starts_with('`')
            || ["/", "_", "-", ".", "::"].into_iter().any(joined))
}

/// Names of a request that are looked for in outputs.
const MOST_NAMES: usize = 48;

/// Lines of one output that are kept for one name.
const MOST_ANSWERS: usize = 2;

/// The names in a request: what it asks for stands beside them.
pub(in crate::digest) fn names(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace().filter(|word| is_name(word)) {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
        if (5..=80).contains(&name.len()) && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found.truncate(MOST_NAMES);
    found
}

/// The lines of an output that hold one of `names`, where they are short enough to be an answer.
pub(in crate::digest) fn answers(seq: Seq, names: &[String], text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    for name in names {
        let lines = text.match_indices(name.as_str()).take(8 * MOST_ANSWERS).filter_map(|(at, _)| {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let line = text[start..].lines().next().unwrap_or_default().trim();
            (line.len() > name.len() && line.chars().count() <= LONGEST_NOTE).then_some(line)
        });
        for line in lines.take(MOST_ANSWERS) {
            found.push(Fact::new(FactKind::Decision, line, seq).weighing(ANSWER));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_both_languages_are_kept_word_for_word() {
        let text = "Fix the bug. You must never push to main. Did you always know?\n\
                    必ずテストを書くこと。mainには絶対にpushしないでください。直して。";
        let rules: Vec<String> = rules(3, Role::User, text).into_iter().map(|rule| rule.text).collect();
        assert_eq!(
            rules,
            [
                "You must never push to main.",
                "必ずテストを書くこと。",
                "mainには絶対にpushしないでください。"
            ]
        );
    }

    #[test]
    fn first_and_newest_stay_whole_and_the_rest_is_shortened() {
        let mut requests = Requests::default();
        for (seq, text) in [(1, "One. More of one."), (2, "Two words. More of two."), (3, "Three.\n\nMore.")]
        {
            requests.take(seq, text);
        }
        assert_eq!(requests.first.as_ref().unwrap().text, "One. More of one.");
        assert_eq!(requests.newest.as_ref().unwrap().text, "Three.\nMore.");
        assert_eq!(requests.others.ranked(3)[0].text, "Two words.");
    }

    #[test]
    fn decisions_of_both_languages_are_found() {
        let text = "Let me look.\nThe root cause is a stale cache. Shall we go with it?\n方針は単純にすることです。読みます。";
        let found: Vec<String> = super::notes(4, text).into_iter().map(|fact| fact.text).collect();
        assert_eq!(found, ["The root cause is a stale cache.", "方針は単純にすることです。"]);
    }

    #[test]
    fn lines_that_hold_a_name_of_the_request_answer_it() {
        let names =
            super::names("Find ember-shoal, see store/box-06.txt. Then, if well, set `max_age` to 30.");
        assert_eq!(names, ["ember-shoal", "store/box-06.txt", "max_age"]);
        let text = format!("one\n  ember-shoal = 7\nmax_age\n{}max_age\n", "x".repeat(400));
        let found: Vec<String> = answers(3, &names, &text).into_iter().map(|fact| fact.text).collect();
        assert_eq!(found, ["ember-shoal = 7"], "a name alone answers nothing, a long line is no answer");
    }

    #[test]
    fn what_the_model_found_is_noted_and_what_it_does_next_is_not() {
        let text = "Let me read src/a.rs now. The parser of src/a.rs begins at line 42. Noted: the key is 7f-22.\n\
                    I'll run cargo test -p core next. That looks good. Should it be 8?";
        let found: Vec<String> = super::notes(4, text).into_iter().map(|fact| fact.text).collect();
        assert_eq!(found, ["The parser of src/a.rs begins at line 42.", "Noted: the key is 7f-22."]);
    }
}
