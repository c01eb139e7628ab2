//! Reading a digest or a ledger back, so that a summary of summaries loses nothing and doubles nothing.
//!
//! The mirror of the writer: title, headings, lines. What it cannot place is prose and is kept as prose. It refuses to
//! take findings from a text that has no title of ours.

use super::fact::{DigestSection, Fact, FactKind, ToDoStatus};
use super::gather::ids;
use super::timeline::{self, TimelineItem, from_root};
use super::words::{DIGEST, EARLIER, LEDGER, Language, root_of, section};
use crate::{Seq, Span};

/// What an earlier text held.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) prose: String,
    pub(super) span: Option<Span>,
    pub(super) messages: u64,
    pub(super) language: Option<Language>,
    pub(super) facts: Vec<(DigestSection, Fact)>,
    /// What was done, in order.
    pub(super) steps: Vec<TimelineItem>,
    /// What `./` stands for.
    root: String,
}

/// Takes an earlier text apart.
pub(super) fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut current: Option<DigestSection> = None;
    let mut item = String::new();
    let mut ours = false;
    for line in text.lines() {
        let more = line.strip_prefix("  ").filter(|_| !item.is_empty());
        if let Some(more) = more {
            item.push('\n');
            item.push_str(more);
            continue;
        }
        parsed.take(current, &mut item);
        if let Some((span, messages)) = title(line) {
            (ours, current) = (true, None);
            parsed.root = root_of(line).to_owned();
            parsed.messages += messages;
            let known = parsed.span.unwrap_or(span);
            parsed.span = Some(Span::new(known.from.min(span.from), known.to.max(span.to)));
        } else if let Some((found, language)) = line.strip_prefix("## ").filter(|_| ours).and_then(section) {
            current = Some(found);
            parsed.language.get_or_insert(language);
        } else if let Some(rest) = line.strip_prefix("- ").filter(|_| current.is_some()) {
            item.push_str(rest);
        } else if !line.trim().is_empty() || !ours {
            parsed.prose.push_str(line);
            parsed.prose.push('\n');
        }
    }
    parsed.take(current, &mut item);
    parsed
}

impl Parsed {
    fn take(&mut self, section: Option<DigestSection>, item: &mut String) {
        let text = std::mem::take(item);
        let Some(section) = section.filter(|_| !text.is_empty()) else { return };
        if section == DigestSection::Timeline {
            match timeline::parse(&text, &self.root) {
                Some(item) => self.steps.push(item),
                None => self.prose.push_str(&format!("{text}\n")),
            }
            return;
        }
        let mut facts = Vec::new();
        match cited(section, &text) {
            Some(fact) => facts.push(fact),
            None if section.is_list() => {
                facts.extend(text.split(", ").filter_map(|item| short(section, item)))
            }
            None => {}
        }
        if facts.is_empty() {
            self.prose.push_str(&text);
            self.prose.push('\n');
        }
        for fact in facts.iter_mut().filter(|fact| fact.kind == FactKind::Path) {
            fact.text = from_root(&self.root, &fact.text);
        }
        self.facts.extend(facts.into_iter().map(|fact| (section, fact)));
    }
}

/// A text of another writer, in which no line reads as a title of ours any more: what follows such a line would be taken for
/// findings, also for rules.
pub fn quoted(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let is_ours = line.starts_with(DIGEST) || line.starts_with(LEDGER);
        if is_ours { format!("> {line}") } else { line.to_owned() }
    });
    lines.collect()
}

/// The span and the number of messages of a title.
fn title(line: &str) -> Option<(Span, u64)> {
    let rest = line.strip_prefix(DIGEST).or_else(|| line.strip_prefix(LEDGER))?;
    let (from, rest) = number(rest)?;
    let (to, rest) = number(rest.strip_prefix("..@")?)?;
    let messages = rest.strip_prefix(": ").and_then(number).map_or(0, |(n, _)| n);
    let seq = |n: u64| Seq::try_from(n).ok();
    Some((Span::new(seq(from)?, seq(to)?), messages))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// `text → exit 1 ×3 [resolved @9] (@12, ref=x)`
fn cited(section: DigestSection, text: &str) -> Option<Fact> {
    let (body, cite) = text.strip_suffix(')')?.rsplit_once(" (@")?;
    let (place, output) = parted(cite.split_once(", ref="), cite);
    let at = place_of(place)?;
    let (body, resolved) = match body.strip_suffix(']').and_then(|body| body.rsplit_once(" [resolved @")) {
        Some((body, seq)) if section == DigestSection::Errors => (body, Some(seq.parse().ok()?)),
        _ => (body, None),
    };
    let (body, count) = counted(body);
    Some(Fact { count, output, resolved, ..fact_of(section, body, at) })
}

/// `text ×3 @12 ref=x`
fn short(section: DigestSection, item: &str) -> Option<Fact> {
    let (item, output) = parted(item.rsplit_once(" ref="), item);
    let (body, place) = item.rsplit_once(" @")?;
    let (body, count) = counted(body);
    Some(Fact { count, output, ..fact_of(section, body, place_of(place)?) })
}

/// What stands before a reference, and the reference; all of `text` when it was not `split` from one.
fn parted<'a>(split: Option<(&'a str, &str)>, text: &'a str) -> (&'a str, Option<String>) {
    split.map_or((text, None), |(before, output)| (before, Some(output.to_owned())))
}

fn place_of(place: &str) -> Option<Seq> {
    if EARLIER.contains(&place) { Some(0) } else { place.parse().ok() }
}

fn counted(body: &str) -> (&str, u32) {
    match body.rsplit_once(" ×") {
        Some((rest, count)) => count.parse().map_or((body, 1), |count| (rest, count)),
        None => (body, 1),
    }
}

/// A finding with the kind its section and its look give it.
fn fact_of(section: DigestSection, body: &str, at: Seq) -> Fact {
    let (kind, body) = match section {
        DigestSection::Newest | DigestSection::First | DigestSection::Requests => (FactKind::Request, body),
        DigestSection::Rules => (FactKind::Rule, body),
        DigestSection::Open => match ToDoStatus::marked(body) {
            Some((status, todo)) => return Fact { status, ..Fact::new(FactKind::ToDo, todo, at) },
            None => (FactKind::OpenCall, body),
        },
        DigestSection::Errors => (FactKind::Error, body),
        DigestSection::Earlier | DigestSection::Decisions | DigestSection::Git | DigestSection::Timeline => {
            (FactKind::Decision, body)
        }
        DigestSection::Changed | DigestSection::Read | DigestSection::Seen => (FactKind::Path, body),
        DigestSection::Results => (FactKind::Number, body),
        DigestSection::Symbols => (FactKind::Symbol, body),
        DigestSection::Outputs => (FactKind::Id, body),
        DigestSection::Ids => (ids::classify(body).map_or(FactKind::Id, |(kind, _)| kind), body),
        DigestSection::Commands => return command(body, at),
    };
    Fact::new(kind, body, at)
}

fn command(body: &str, at: Seq) -> Fact {
    if let Some(body) = body.strip_suffix(" → failed") {
        return Fact { failed: true, ..Fact::new(FactKind::Command { exit: None }, body, at) };
    }
    let told = body.rsplit_once(" → exit ").map(|(body, code)| (body, code.parse().ok()));
    let (body, exit) = told.filter(|(_, exit)| exit.is_some()).unwrap_or((body, None));
    Fact::new(FactKind::Command { exit }, body, at)
}
