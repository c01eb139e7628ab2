//! What people ask most.
//!
//! Only words of people count: a tool's answer, what one thread tells another, a whole log that was pasted, and texts that a
//! program wrote around or instead of a question are none.

use super::table::{DistinctCount, digest, round};
use super::{EntryCounter, ReportQuery, SeenEntry, UNNAMED, is_asked_by_a_person};
use crate::recall::terms;
use crate::recall::terms::TermKind;
use komado_core::journal::Entry;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

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
pub(crate) struct QuestionCounts {
    groups: QuestionGroups,
}

impl QuestionCounts {
    pub(crate) fn told(self, ask: &ReportQuery) -> Questions {
        let (asked, missed_at_most) = (self.groups.taken(), self.groups.missed_at_most());
        let groups = self.groups.largest(ask.top).into_iter().map(|group| told(group, asked)).collect();
        Questions { asked, groups, kept: ROOM as u64, missed_at_most }
    }
}

fn told(group: QuestionGroup, asked: u64) -> Question {
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

impl EntryCounter for QuestionCounts {
    fn take(&mut self, seen: &SeenEntry<'_>, _: &ReportQuery) {
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
        let user = seen.session.meta.user.as_deref().unwrap_or(UNNAMED);
        self.groups.add(&AskedText { text: &text, user, time: &seen.record.timestamp, address: &address });
    }
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

// Texts that ask the same in other words, grouped as they come by, in bounded memory.
//
// A text stands for itself by the least digests of its words (a MinHash sketch). It joins the group whose first text shares
// most words with it, when that is half of them or more; otherwise it begins a group. The groups that are kept are bounded:
// a new one takes the place of the smallest, and its count ("space saving", Metwally et al. 2005), so that a group is never
// counted for less than it is, and for too much by no more than all texts divided by the groups kept. Both ends are told.
// What asks first gives a group its face, so another order may draw another line between neighbours.

/// Groups that are kept.
pub(crate) const ROOM: usize = 2_048;
/// Words by which a text is known.
const WORDS: usize = 24;
/// Examples of a group.
const EXAMPLES: usize = 3;
/// Characters of a text that are kept.
const LONGEST_FACE: usize = 200;

/// Words with which anything is asked, in English as they are stemmed. Sorted.
const ASKING: &[&str] = &[
    "anyon", "ask", "explain", "give", "go", "hello", "help", "hey", "hi", "know", "like", "need", "possibl",
    "question", "show", "someon", "tell", "thank", "tri", "want", "way", "wonder",
];

/// The same in Japanese: what is left of 教えて, 知りたい, お願いします, ください and the like without its kana.
const ASKING_JAPANESE: &[&str] = &[
    "教", "知", "願", "下", "何", "思", "言", "方", "欲", "致", "私", "今", "頂", "方法", "質問", "出来",
    "場合", "可能", "必要", "確認", "手順", "仕方",
];

/// One text, and where it was said.
pub(crate) struct AskedText<'a> {
    pub(crate) text: &'a str,
    pub(crate) user: &'a str,
    pub(crate) time: &'a str,
    /// Its address, such as `session@12`.
    pub(crate) address: &'a dyn Fn() -> String,
}

/// A group of texts.
#[derive(Clone, Debug)]
pub(crate) struct QuestionGroup {
    pub(crate) text: String,
    pub(crate) count: u64,
    /// How many of them may have been another group's.
    pub(crate) error: u64,
    pub(crate) users: DistinctCount,
    pub(crate) last_seen: String,
    pub(crate) examples: Vec<String>,
    words: Vec<u64>,
    touched: u64,
}

/// The groups so far.
#[derive(Default)]
pub(crate) struct QuestionGroups {
    groups: Vec<QuestionGroup>,
    by_word: HashMap<u64, Vec<u32>>,
    /// By size, then by when they last grew: the first is the next to go.
    smallest: BTreeSet<(u64, u64, u32)>,
    taken: u64,
}

impl QuestionGroups {
    /// Takes a text in; one without words is none.
    pub(crate) fn add(&mut self, said: &AskedText<'_>) {
        let words = sketch(said.text);
        if words.is_empty() {
            return;
        }
        self.taken += 1;
        match self.nearest(&words) {
            Some(at) => self.join(at, said),
            None => self.begin(words, said),
        }
    }

    /// Texts taken in.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The most texts that a group may have and not be here.
    pub(crate) fn missed_at_most(&self) -> u64 {
        if self.groups.len() < ROOM { 0 } else { self.smallest.first().map_or(0, |(count, ..)| *count) }
    }

    /// The largest groups, by what is certain of them.
    pub(crate) fn largest(self, most: usize) -> Vec<QuestionGroup> {
        let mut groups = self.groups;
        groups.sort_by(|a, b| {
            let sure = |group: &QuestionGroup| group.count - group.error;
            sure(b).cmp(&sure(a)).then_with(|| b.count.cmp(&a.count)).then_with(|| a.text.cmp(&b.text))
        });
        groups.truncate(most);
        groups
    }

    /// The group whose words are nearest, when half of all are shared; of several, the largest.
    fn nearest(&self, words: &[u64]) -> Option<u32> {
        let mut lists: Vec<&Vec<u32>> = words.iter().filter_map(|word| self.by_word.get(word)).collect();
        lists.sort_by_key(|groups| groups.len());
        // Who shares half of all shares a third of these, so the commonest words need not be looked at to find it.
        let rarest = words.len() + 1 - words.len().div_ceil(3);
        let unknown = words.len() - lists.len();
        let candidates: BTreeSet<u32> =
            lists.into_iter().take(rarest.saturating_sub(unknown)).flatten().copied().collect();
        let near = |at: &u32| {
            let group = &self.groups[*at as usize];
            (likeness(words, &group.words), group.count, *at)
        };
        let nearest = candidates.iter().map(near).filter(|(near, ..)| *near >= 0.5);
        nearest.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2))).map(|(.., at)| at)
    }

    fn join(&mut self, at: u32, said: &AskedText<'_>) {
        let group = &mut self.groups[at as usize];
        self.smallest.remove(&(group.count, group.touched, at));
        group.count += 1;
        group.touched = self.taken;
        group.users.add(digest(said.user));
        if said.time > group.last_seen.as_str() {
            group.last_seen = said.time.to_owned();
        }
        if group.examples.len() < EXAMPLES {
            group.examples.push((said.address)());
        }
        self.smallest.insert((group.count, group.touched, at));
    }

    fn begin(&mut self, words: Vec<u64>, said: &AskedText<'_>) {
        let (at, error) = self.place();
        let mut users = DistinctCount::default();
        users.add(digest(said.user));
        let group = QuestionGroup {
            text: said.text.trim().chars().take(LONGEST_FACE).collect(),
            count: error + 1,
            error,
            users,
            last_seen: said.time.to_owned(),
            examples: vec![(said.address)()],
            words,
            touched: self.taken,
        };
        for word in &group.words {
            self.by_word.entry(*word).or_default().push(at);
        }
        self.smallest.insert((group.count, group.touched, at));
        match self.groups.get_mut(at as usize) {
            Some(place) => *place = group,
            None => self.groups.push(group),
        }
    }

    /// Where a new group goes, and the count it takes over there.
    fn place(&mut self) -> (u32, u64) {
        if self.groups.len() < ROOM {
            return (self.groups.len() as u32, 0);
        }
        let Some((count, _, at)) = self.smallest.pop_first() else { return (0, 0) };
        for word in std::mem::take(&mut self.groups[at as usize].words) {
            if let Some(groups) = self.by_word.get_mut(&word) {
                groups.retain(|group| *group != at);
                if groups.is_empty() {
                    self.by_word.remove(&word);
                }
            }
        }
        (at, count)
    }
}

/// The share of all words that two texts share (Dice); both are in order.
fn likeness(one: &[u64], other: &[u64]) -> f64 {
    let shared = one.iter().filter(|word| other.binary_search(word).is_ok()).count();
    2.0 * shared as f64 / (one.len() + other.len()).max(1) as f64
}

/// The least digests of a text's words.
fn sketch(text: &str) -> Vec<u64> {
    let mut words: Vec<u64> = words(text).iter().map(|word| digest(word)).collect();
    words.sort_unstable();
    words.dedup();
    words.truncate(WORDS);
    words
}

/// The words that say what a text is about; where there are none, whatever there is.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut run = Run::default();
    terms::each(text, &mut |term| match term.kind {
        TermKind::Word | TermKind::Part => all.push((term.text.into_owned(), Worth::Word)),
        TermKind::Single | TermKind::Alone => run.push(&term.text, term.span, &mut all),
        TermKind::Pair | TermKind::Whole => {}
    });
    run.end(&mut all);
    let of = |least: Worth| -> Vec<String> {
        all.iter().filter(|(_, worth)| *worth >= least).map(|(word, _)| word.clone()).collect()
    };
    let said: Vec<String> = of(Worth::Word).into_iter().filter(|word| !is_asking(word)).collect();
    if !said.is_empty() {
        return said;
    }
    let asking = of(Worth::Word);
    if asking.is_empty() { of(Worth::Kana) } else { asking }
}

fn is_asking(word: &str) -> bool {
    ASKING.binary_search(&word).is_ok() || ASKING_JAPANESE.contains(&word)
}

/// How much a word says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Kana: mostly endings and particles.
    Kana,
    Word,
}

/// What a character of a script without spaces is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Kana,
    /// Katakana and the long mark: a word is written whole in it.
    Whole,
    /// Anything else: two neighbours are a word.
    Pairs,
}

fn class(c: char) -> Class {
    match c {
        '\u{3041}'..='\u{309f}' => Class::Kana,
        '\u{30a0}'..='\u{30ff}' => Class::Whole,
        _ => Class::Pairs,
    }
}

/// Neighbours of one class.
#[derive(Default)]
struct Run {
    text: String,
    class: Option<Class>,
    end: usize,
}

impl Run {
    fn push(&mut self, cluster: &str, span: std::ops::Range<usize>, all: &mut Vec<(String, Worth)>) {
        let kind = cluster.chars().next().map(class);
        if self.class != kind || self.end != span.start {
            self.end(all);
            self.class = kind;
        }
        self.text.push_str(cluster);
        self.end = span.end;
    }

    fn end(&mut self, all: &mut Vec<(String, Worth)>) {
        let text = std::mem::take(&mut self.text);
        let worth = if self.class == Some(Class::Kana) { Worth::Kana } else { Worth::Word };
        if self.class == Some(Class::Whole) || text.chars().nth(1).is_none() {
            all.extend((!text.is_empty()).then_some((text, worth)));
            return;
        }
        let chars: Vec<char> = text.chars().collect();
        all.extend(chars.windows(2).map(|pair| (pair.iter().collect(), worth)));
    }
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

#[cfg(test)]
mod cluster_tests {
    use super::*;

    fn grouped(texts: &[&str]) -> Vec<(String, u64)> {
        let mut groups = QuestionGroups::default();
        for (n, text) in texts.iter().enumerate() {
            let address = || format!("s@{n}");
            groups.add(&AskedText { text, user: "u", time: "t", address: &address });
        }
        groups.largest(10).into_iter().map(|group| (group.text, group.count)).collect()
    }

    #[test]
    fn both_lists_are_as_they_are_looked_up() {
        assert!(ASKING.is_sorted());
    }

    #[test]
    fn the_same_question_in_other_words_is_one_group() {
        let groups = grouped(&[
            "How do I return an item?",
            "I want to return my item",
            "returning items: how?",
            "Can I return an item I bought last week?",
            "What are your opening hours?",
            "when are the opening hours",
        ]);
        assert_eq!(
            groups,
            [("How do I return an item?".into(), 4), ("What are your opening hours?".into(), 2)]
        );
    }

    #[test]
    fn japanese_questions_are_grouped_by_what_they_are_about() {
        let groups = grouped(&[
            "返品したい",
            "返品の方法を教えて",
            "返品できますか？",
            "ﾊﾟｽﾜｰﾄﾞを忘れました",
            "パスワードを忘れた場合はどうすればいいですか",
            "営業時間は何時からですか",
            "返品について質問があります",
        ]);
        assert_eq!(groups[0], ("返品したい".into(), 4), "{groups:?}");
        assert_eq!(groups[1].1, 2, "{groups:?}");
        assert_eq!(groups.len(), 3, "{groups:?}");
    }

    #[test]
    fn what_has_nothing_but_kana_is_still_told_apart() {
        let groups = grouped(&["ありがとう", "ありがとう！", "おはよう", "???", "🪟"]);
        assert_eq!(groups, [("ありがとう".into(), 2), ("おはよう".into(), 1)]);
    }

    #[test]
    fn a_hundred_thousand_different_ones_take_no_more_room_and_the_common_one_is_found() {
        let mut groups = QuestionGroups::default();
        let mut common = 0;
        for n in 0..100_000u32 {
            let address = || format!("s@{n}");
            let odd = format!("zq{n} xk{} vw{}", n.wrapping_mul(2_654_435_761), n ^ 0x5bd1);
            let text = if n.is_multiple_of(50) { "返品の方法を教えて" } else { &odd };
            common += u64::from(n.is_multiple_of(50));
            groups.add(&AskedText { text, user: "u", time: "t", address: &address });
            assert!(groups.groups.len() <= ROOM && groups.by_word.len() <= ROOM * WORDS);
        }
        assert_eq!(groups.smallest.len(), ROOM);
        let missed = groups.missed_at_most();
        assert!(missed <= 100_000 / ROOM as u64, "{missed}");
        let first = groups.largest(1).remove(0);
        assert_eq!(first.text, "返品の方法を教えて");
        assert!(first.count >= common && first.count - first.error <= common, "{first:?}");
    }
}
