//! The lines of a timeline, written and read back.
//!
//! `@12 run cargo test ×3 → exit 101: error[E0308]: mismatched types`

use super::tally::{StepCount, StepGroup};
use super::{Step, StepEnd, StepKind};
use crate::Seq;
use crate::digest::scan::clip;
use crate::digest::words::{Language, StepWords, step_words};

/// A line read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::digest) enum TimelineItem {
    Step(Step),
    Group(StepGroup),
}

/// Characters of a call, a change and a note in a line that tells all.
const FULL: [usize; 3] = [220, 110, 130];
/// Characters of a call in a line that tells no more than it.
const BRIEF: usize = 120;

/// A path with `./` in place of the root that is said once.
pub(in crate::digest) fn under(root: &str, path: &str) -> String {
    match path.strip_prefix(root).filter(|_| !root.is_empty()).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => format!("./{rest}"),
        None => path.to_owned(),
    }
}

/// A path that [`under`] wrote.
pub(in crate::digest) fn from_root(root: &str, path: &str) -> String {
    match path.strip_prefix("./").filter(|_| !root.is_empty()) {
        Some(rest) => format!("{root}/{rest}"),
        None => path.to_owned(),
    }
}

/// A target with its path as `told` has it.
fn placed(kind: StepKind, target: &str, told: impl Fn(&str) -> String) -> String {
    match (kind, target.rsplit_once(" in ")) {
        (StepKind::Read | StepKind::Edit, _) => told(target),
        (StepKind::Search, Some((pattern, path))) => format!("{pattern} in {}", told(path)),
        _ => target.to_owned(),
    }
}

impl Step {
    /// All that is known of it.
    pub(super) fn full(&self, language: Language, root: &str) -> String {
        let [call, change, note] = FULL;
        let mut line = self.call(language, root, call);
        if !self.change.is_empty() {
            line.push_str(&format!(" => {}", clip(&self.change, change)));
        }
        self.close(line, language, note)
    }

    /// The call and how it ended.
    pub(super) fn brief(&self, language: Language, root: &str) -> String {
        self.close(self.call(language, root, BRIEF), language, 0)
    }

    fn call(&self, language: Language, root: &str, chars: usize) -> String {
        let target = placed(self.kind, &self.target, |path| under(root, path));
        let words = step_words(self.kind, language);
        format!("- @{} {} {}", self.seq, words.verb, clip(&target, chars)).trim_end().to_owned()
    }

    fn close(&self, mut line: String, language: Language, note: usize) -> String {
        if self.count > 1 {
            line.push_str(&format!(" ×{}", self.count));
        }
        let end = end_words(self.end, language);
        let note = if note == 0 { String::new() } else { clip(&self.note, note) };
        let gap = if end.is_empty() || note.is_empty() { "" } else { ": " };
        if !end.is_empty() || !note.is_empty() {
            line.push_str(&format!(" → {end}{gap}{note}"));
        }
        line
    }
}

fn end_words(end: StepEnd, language: Language) -> String {
    match (end, language) {
        (StepEnd::Done, _) => String::new(),
        (StepEnd::Exit(code), _) => format!("exit {code}"),
        (StepEnd::Failed, Language::English) => "failed".to_owned(),
        (StepEnd::Failed, Language::Japanese) => "失敗".to_owned(),
        (StepEnd::Open, Language::English) => "no answer".to_owned(),
        (StepEnd::Open, Language::Japanese) => "応答なし".to_owned(),
        (StepEnd::Hits(1), Language::English) => "1 hit".to_owned(),
        (StepEnd::Hits(n), Language::English) => format!("{n} hits"),
        (StepEnd::Hits(n), Language::Japanese) => format!("{n} 件"),
    }
}

fn end_of(words: &str) -> Option<StepEnd> {
    match words {
        "failed" | "失敗" => return Some(StepEnd::Failed),
        "no answer" | "応答なし" => return Some(StepEnd::Open),
        _ => {}
    }
    if let Some(code) = words.strip_prefix("exit ") {
        return code.parse().ok().map(StepEnd::Exit);
    }
    let hits = words.strip_suffix(" hits").or_else(|| words.strip_suffix(" hit"));
    hits.or_else(|| words.strip_suffix(" 件"))?.parse().ok().map(StepEnd::Hits)
}

/// `3 edits of ./src/a.rs`, `2 runs of cargo test (1 failed)`, `./src/a.rs の編集 3 回`
pub(super) fn noun(kind: StepKind, place: &str, count: StepCount, language: Language) -> String {
    let StepWords { one, many, .. } = step_words(kind, language);
    let StepCount { times, failed } = count;
    match language {
        Language::English => {
            let what = if times == 1 { one } else { many };
            let place = match place {
                "" => String::new(),
                folder if folder.ends_with('/') => format!(" in {folder}"),
                place => format!(" of {place}"),
            };
            let failed = if failed == 0 { String::new() } else { format!(" ({failed} failed)") };
            format!("{times} {what}{place}{failed}")
        }
        Language::Japanese => {
            let place = if place.is_empty() { String::new() } else { format!("{place} の") };
            let failed = if failed == 0 { String::new() } else { format!("（{failed} 回失敗）") };
            format!("{place}{one} {times} 回{failed}")
        }
    }
}

/// A count that [`noun`] wrote.
fn counted(told: &str) -> Option<(StepKind, &str, StepCount)> {
    if let Some(told) = told.strip_suffix("回）").or_else(|| told.strip_suffix("回失敗）")) {
        let (told, failed) = told.trim_end().rsplit_once('（')?;
        let (kind, place, count) = counted(told)?;
        return Some((kind, place, StepCount { failed: failed.trim().parse().ok()?, ..count }));
    }
    if let Some(told) = told.strip_suffix(" 回") {
        let (what, times) = told.rsplit_once(' ')?;
        let times = times.parse().ok()?;
        return StepKind::ALL.into_iter().find_map(|kind| {
            let place = what.strip_suffix(step_words(kind, Language::Japanese).one)?;
            let place = if place.is_empty() { place } else { place.strip_suffix(" の")? };
            Some((kind, place, StepCount { times, failed: 0 }))
        });
    }
    let (told, failed) = match told.strip_suffix(" failed)").and_then(|told| told.rsplit_once(" (")) {
        Some((told, failed)) => (told, failed.parse().ok()?),
        None => (told, 0),
    };
    let (times, what) = told.split_once(' ')?;
    let (word, place) = what.split_once(' ').unwrap_or((what, ""));
    let place = place.strip_prefix("in ").or_else(|| place.strip_prefix("of ")).unwrap_or(place);
    let kind = StepKind::ALL.into_iter().find(|kind| {
        let words = step_words(*kind, Language::English);
        word == words.one || word == words.many
    })?;
    Some((kind, place, StepCount { times: times.parse().ok()?, failed }))
}

/// Reads a line without its dash back.
pub(in crate::digest) fn parse(line: &str, root: &str) -> Option<TimelineItem> {
    let (from, rest) = seq(line)?;
    let to = rest.strip_prefix('-').and_then(seq);
    let (to, rest) = to.unwrap_or((from, rest));
    if let Some(counts) = rest.strip_prefix(": ") {
        let mut group = StepGroup { from, to, counts: Default::default() };
        for told in counts.split(", ") {
            let (kind, place, count) = counted(told)?;
            group.add(kind, from_root(root, place), count);
        }
        return Some(TimelineItem::Group(group));
    }
    let rest = rest.strip_prefix(' ')?;
    let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let kind = StepKind::ALL.into_iter().find(|kind| {
        [Language::English, Language::Japanese]
            .iter()
            .any(|language| step_words(*kind, *language).verb == verb)
    })?;
    let (call, answer) = rest.split_once(" → ").unwrap_or((rest, ""));
    let (call, count) = match call.rsplit_once(" ×") {
        Some((before, count)) => (before, count.parse().ok()?),
        None => (call, 1),
    };
    let (target, change) = call.split_once(" => ").unwrap_or((call, ""));
    let target = placed(kind, target, |path| from_root(root, path));
    let (end, note) = match answer.split_once(": ") {
        Some((end, note)) if end_of(end).is_some() => (end, note),
        _ if end_of(answer).is_some() => (answer, ""),
        _ => ("", answer),
    };
    let end = end_of(end).unwrap_or(StepEnd::Done);
    let step = Step { end, note: note.to_owned(), count, ..Step::new(kind, from, &target).changing(change) };
    Some(TimelineItem::Step(step))
}

/// `@12` and what is behind it.
fn seq(text: &str) -> Option<(Seq, &str)> {
    let rest = text.strip_prefix('@')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((rest[..end].parse().ok()?, &rest[end..]))
}
