//! The summary of a span without a model, and the check of a summary that a model wrote.
//!
//! A [`Digest`] looks once at each message of a span, in order, and keeps findings instead of words: requests, rules,
//! files, commands, errors, ids, what is open. From these it writes a bounded text whose every line cites an entry,
//! or says which of them another summary left out. The same span always gives the same text.
//!
//! It refuses to invent: a line is something that stood in the span. It refuses to grow: a span of a million messages
//! leaves as many findings as its lists have room for.

mod audit;
mod fact;
mod gather;
mod parse;
mod scan;
mod timeline;
mod words;
mod write;

#[cfg(test)]
mod tests;

pub use audit::Audit;
pub use fact::{Fact, FactKind};
pub use parse::quoted;
pub(crate) use scan::{end, start};

use crate::harness::is_continued;
use crate::message::{Message, MessagePart, Role};
use crate::meter::Meter;
use crate::{Seq, Span};
use fact::DigestSection;
use gather::{Gathered, Touch};
use std::collections::BTreeMap;
use words::Language;

/// What the outcome of a child thread weighs: more than any sentence with a word of decision.
const CHILD: u32 = 600;
/// Tokens of a digest in which a root of paths is worth its place.
const ROOTED: u64 = 200;
/// Paths that are looked at for their root.
const ROOTS: usize = 200;
/// Characters of earlier prose that are kept.
const PROSE: usize = 24_000;

/// Findings of a span, gathered while it is streamed through.
#[derive(Clone, Debug)]
pub struct Digest {
    meter: Meter,
    gathered: Gathered,
    /// Earlier summaries that are not digests of ours, oldest first, each with the entry it was met at.
    earlier: Vec<Fact>,
    span: Option<Span>,
    messages: u64,
}

impl Digest {
    /// An empty digest whose text will be counted by `meter`.
    pub fn new(meter: Meter) -> Self {
        Self { meter, gathered: Gathered::default(), earlier: Vec::new(), span: None, messages: 0 }
    }

    /// What the conversation is about, as the user says it in messages that stay: lines of outputs that name the same are kept.
    pub fn about(&mut self, request: &str) {
        self.gathered.asked.extend(gather::user::names(request));
    }

    /// A text that stood in the view for entries before these: a summary, a retained text, a marker. A digest or a
    /// ledger of ours is taken apart and its findings join the new ones; anything else is kept as it is.
    pub fn earlier(&mut self, text: &str) {
        let parsed = parse::parse(text);
        if let Some(language) = parsed.language {
            self.gathered.speech.recall(language);
        }
        if let Some(span) = parsed.span {
            self.cover(span.from, span.to);
        }
        self.messages += parsed.messages;
        self.told(0, &parsed.prose);
        for (section, fact) in parsed.facts {
            self.recall(section, fact);
        }
        parsed.steps.into_iter().for_each(|item| self.gathered.recall_step(item));
    }

    /// The next message of the span.
    pub fn take(&mut self, seq: Seq, message: &Message) {
        self.cover(seq, seq);
        self.messages += 1;
        for part in &message.parts {
            // An agent's own summary of what was before its conversation.
            if let MessagePart::Text { text, .. } = part
                && message.role == Role::User
                && is_continued(text)
            {
                self.told(seq, text);
            }
        }
        self.gathered.take(seq, message);
    }

    /// A summary that is no digest of ours, as it was met at `seq`.
    fn told(&mut self, seq: Seq, prose: &str) {
        let prose = prose.trim();
        if !prose.is_empty() {
            self.gathered.told(seq, prose);
            self.keep_prose(Fact::new(FactKind::Decision, scan::head_and_tail(prose, PROSE), seq));
        }
    }

    /// What came of a thread that was spawned from this one: told in few words by the caller.
    pub fn child(&mut self, seq: Seq, told: &str) {
        let fact = Fact::new(FactKind::Decision, told, seq).weighing(CHILD);
        self.gathered.decisions.put(scan::fold(told), fact);
    }

    /// The digest, at most `limit` tokens long. Empty only when nothing was taken; no limit below 64 is promised
    /// to leave anything worth reading.
    pub fn text(&self, limit: u64) -> String {
        if self.is_empty() {
            return String::new();
        }
        let sections = self.sections();
        let is_short = limit < ROOTED;
        let root = if is_short { String::new() } else { root_of(&sections) };
        let title = words::title(words::DIGEST, self.span, self.messages, (&root, is_short), self.language());
        let pen = write::Pen { language: self.language(), meter: self.meter, root: &root };
        write::lay_out(&title, sections, &self.gathered.timeline, pen, limit)
    }

    /// The hard facts of the span, most important first.
    pub fn facts(&self) -> Vec<Fact> {
        self.hard().into_iter().map(|(_, fact)| fact).collect()
    }

    /// Which hard facts `summary` does not contain, with a ledger of them that takes at most `limit` tokens.
    pub fn audit(&self, summary: &str, limit: u64) -> Audit {
        audit::audit(self, summary, limit)
    }

    fn is_empty(&self) -> bool {
        self.span.is_none() && self.earlier.is_empty()
    }

    fn language(&self) -> Language {
        self.gathered.speech.language()
    }

    fn last(&self) -> Seq {
        self.span.map_or(1, |span| span.to.max(1))
    }

    fn cover(&mut self, from: Seq, to: Seq) {
        let span = self.span.unwrap_or(Span::new(from, to));
        self.span = Some(Span::new(span.from.min(from), span.to.max(to)));
    }

    fn keep_prose(&mut self, fact: Fact) {
        if self.earlier.iter().all(|known| known.text != fact.text) {
            self.earlier.push(fact);
        }
        // The oldest give way first.
        let mut room = PROSE;
        for fact in self.earlier.iter_mut().rev() {
            fact.text = if room == 0 { String::new() } else { scan::head_and_tail(&fact.text, room) };
            room = room.saturating_sub(fact.text.chars().count());
        }
        self.earlier.retain(|fact| !fact.text.is_empty());
    }

    /// Every section that has something to say, with its findings in order.
    fn sections(&self) -> Vec<(DigestSection, Vec<Fact>)> {
        let last = self.last();
        let found = &self.gathered;
        let paths = gather::paths::joined(&found.paths.ranked(last));
        let touched = |touch| paths.iter().filter(|path| path.touch == touch).cloned().collect::<Vec<_>>();
        let open_call =
            |w: &gather::calls::OpenDigestCall| Fact::new(FactKind::OpenCall, w.text.clone(), w.seq);
        let (mut open, finished) = found.todos.told(last);
        open.extend(found.open.values().map(open_call));
        open.extend(found.background.values().cloned());
        open.extend(finished);
        let mut ids = soft_last(found.ids.ranked(last), 200);
        // A figure that a command printed once is noise.
        ids.retain(|fact| fact.kind != FactKind::Number || !fact.soft || fact.weight >= 150);
        let symbols = soft_last(found.symbols.ranked(last), 300);
        let seen = soft_last(touched(Touch::Seen), 200);
        let mut sections = vec![
            (DigestSection::Newest, found.requests.newest.iter().cloned().collect()),
            (DigestSection::First, found.requests.first.iter().cloned().collect()),
            (DigestSection::Rules, found.rules.ranked(last)),
            (DigestSection::Open, open),
            (DigestSection::Earlier, self.earlier.clone()),
            (DigestSection::Decisions, found.decisions.ranked(last)),
            (DigestSection::Errors, found.errors.ranked(last)),
            (DigestSection::Changed, touched(Touch::Changed)),
            (DigestSection::Commands, found.commands.ranked(last)),
            (DigestSection::Git, found.git.told()),
            (DigestSection::Results, found.results.ranked(last)),
            (DigestSection::Read, touched(Touch::Read)),
            (DigestSection::Ids, ids),
            (DigestSection::Symbols, symbols),
            (DigestSection::Outputs, found.outputs.ranked(last)),
            (DigestSection::Seen, seen),
            (DigestSection::Requests, found.requests.others.ranked(last)),
        ];
        sections.retain(|(_, facts)| !facts.is_empty());
        for fact in sections.iter_mut().flat_map(|(_, facts)| facts) {
            fact.count = fact.count.max(1);
        }
        sections
    }

    /// The hard facts with their sections.
    fn hard(&self) -> Vec<(DigestSection, Fact)> {
        let sections = self.sections().into_iter();
        sections
            .flat_map(|(section, facts)| facts.into_iter().map(move |fact| (section, fact)))
            .filter(|(section, fact)| is_hard(*section, fact))
            .collect()
    }

    /// Puts a finding of an earlier digest back into its list.
    fn recall(&mut self, section: DigestSection, fact: Fact) {
        let found = &mut self.gathered;
        let key = fact.text.clone();
        match section {
            DigestSection::Newest | DigestSection::First => {
                found.heard(fact.at, &key);
                found.requests.recall(fact);
            }
            DigestSection::Requests => found.requests.others.put(scan::fold(&key), fact),
            DigestSection::Rules => {
                found.words(fact.at, gather::FactOrigin::Heard, &key);
                found.rules.put(scan::fold(&key), fact.weighing(900));
            }
            DigestSection::Timeline => {}
            DigestSection::Git => found.git.recall(fact),
            DigestSection::Open if fact.kind == FactKind::OpenCall => found.recall_open(fact),
            DigestSection::Open => found.todos.recall(fact),
            DigestSection::Earlier => self.keep_prose(fact),
            DigestSection::Errors => found.errors.put(scan::shape(&key), fact.weighing(200)),
            DigestSection::Decisions => {
                let weight = gather::user::note_weight(&key.to_lowercase());
                found.decisions.put(scan::fold(&key), fact.weighing(weight));
            }
            DigestSection::Commands => found.recall_command(fact),
            DigestSection::Results => found.results.put(scan::shape(&key), fact.weighing(400)),
            DigestSection::Changed => found.paths.put(key, fact.weighing(800).touching(Touch::Changed)),
            DigestSection::Read => found.paths.put(key, fact.weighing(400).touching(Touch::Read)),
            DigestSection::Seen => found.paths.put(key, fact.weighing(260)),
            DigestSection::Ids => found.ids.put(key, fact.weighing(400)),
            DigestSection::Symbols => found.symbols.put(key, fact.weighing(300)),
            DigestSection::Outputs => {
                let id = fact.output.clone().unwrap_or(key);
                found.outputs.put(id, fact.weighing(300));
            }
        }
    }
}

/// The folder that saves the most when it is told once: most files are below it, and its path is long.
fn root_of(sections: &[(DigestSection, Vec<Fact>)]) -> String {
    let paths = sections.iter().flat_map(|(_, facts)| facts).filter(|fact| fact.kind == FactKind::Path);
    let mut below: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths.take(ROOTS).map(|fact| fact.text.as_str()).filter(|path| path.starts_with('/')) {
        for (at, _) in path.match_indices('/').skip(2) {
            *below.entry(&path[..at]).or_default() += 1;
        }
    }
    let saved =
        |(root, paths): &(&str, usize)| ((paths - 1) * (root.len() - 1), std::cmp::Reverse(root.len()));
    let plain = |root: &str| root.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+@".contains(&b));
    let roots = below.into_iter().filter(|(root, paths)| *paths >= 3 && plain(root));
    roots.max_by_key(saved).map_or_else(String::new, |(root, _)| root.to_owned())
}

/// What came up once and weighs less than `least` goes to the end.
fn soft_last(facts: Vec<Fact>, least: u32) -> Vec<Fact> {
    let (mut firm, mut soft): (Vec<Fact>, Vec<Fact>) =
        facts.into_iter().partition(|fact| fact.weight >= least || fact.count >= 2);
    soft.iter_mut().for_each(|fact| fact.soft = true);
    firm.append(&mut soft);
    firm
}

/// True for what a summary must not drop.
fn is_hard(section: DigestSection, fact: &Fact) -> bool {
    match section {
        DigestSection::Open => fact.kind != FactKind::ToDo || fact.status.is_open(),
        DigestSection::Newest
        | DigestSection::First
        | DigestSection::Git
        | DigestSection::Changed
        | DigestSection::Read => true,
        DigestSection::Results | DigestSection::Outputs => true,
        DigestSection::Earlier | DigestSection::Timeline | DigestSection::Requests => false,
        DigestSection::Rules => fact.weight >= 500,
        DigestSection::Errors => fact.resolved.is_none(),
        DigestSection::Decisions => fact.weight >= 300,
        DigestSection::Commands => match fact.kind {
            FactKind::Command { exit: Some(code) } if code != 0 => true,
            _ => fact.weight >= 300 || fact.failed,
        },
        DigestSection::Ids if fact.kind == FactKind::Number => fact.weight >= 350 || fact.count >= 3,
        DigestSection::Ids => fact.weight >= 400 || (fact.count >= 2 && fact.weight >= 80),
        DigestSection::Symbols => fact.count >= 3 || (fact.count >= 2 && fact.weight >= 300),
        DigestSection::Seen => fact.weight >= 500 || (fact.count >= 3 && fact.weight >= 200),
    }
}
