//! What an anchor says of a child: in full to its parent, in brief to itself and to those below it.
//!
//! The text follows from the child's journal at a change of its state and from nothing else, so it stays the same in
//! between, whatever the child does. It has a cap in tokens: what the child did and said last is cut to it, the lines
//! that say which thread it is and how it stands never are.

use super::ANCHOR_CAP;
use crate::condense::{PromptLanguage, cut_prefix, cut_split};
use crate::error::Result;
use komado_core::head::EntrySource;
use komado_core::journal::{Anchor, Close, Ending, Entry, Share};
use komado_core::message::Role;
use komado_core::notation::tamed;
use komado_core::thread::Header;
use komado_core::{Kind, Meter, ThreadId, View};
use komado_store::Journal;

/// How many of the last messages are told.
const LAST: usize = 3;
/// Characters of a label that are shown.
const LABEL: usize = 80;
/// Characters of one of the last messages, or of a result, that are looked at.
const LINE: usize = 300;

/// What is told of a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AnchorFacts {
    pub(super) thread: ThreadId,
    pub(super) label: Option<String>,
    pub(super) started: String,
    pub(super) close: Option<(Close, String)>,
    pub(super) messages: u64,
    /// What was done, and whether it ended before all of it was.
    pub(super) chronicle: Option<(String, bool)>,
    pub(super) last: Vec<(Role, String)>,
    /// Most tokens of the anchor.
    pub(super) cap: u64,
}

/// Most tokens of the anchor of a thread with this share.
pub(super) fn cap(share: Option<&Share>) -> u64 {
    share.and_then(|share| share.anchor_tokens).map_or(ANCHOR_CAP, u64::from)
}

impl AnchorFacts {
    /// Of a child that is about to begin.
    pub(super) fn begun(header: &Header) -> Self {
        Self {
            thread: header.thread.clone(),
            label: header.label.clone(),
            started: header.timestamp.clone(),
            close: None,
            messages: 0,
            chronicle: None,
            last: Vec::new(),
            cap: ANCHOR_CAP,
        }
    }

    /// Of a child, as its journal tells it.
    pub(super) fn of(journal: &dyn Journal) -> Result<Self> {
        let view = View::fold(journal, journal.last())?;
        let mut tale = Self::begun(journal.header());
        tale.cap = cap(view.share_in(journal)?.as_ref());
        if let Some(seq) = view.closed() {
            let record = EntrySource::record(journal, seq)?;
            if let Entry::Close(close) = record.entry {
                tale.close = Some((close, record.timestamp));
            }
        }
        if let Some(seq) = view.chronicle()
            && let Entry::Chronicle(chronicle) = EntrySource::record(journal, seq)?.entry
        {
            tale.chronicle = Some((chronicle.text, chronicle.partial));
        }
        // While it works, the parent is told neither how much was said nor what: its prefix would change with every word.
        if tale.close.is_some() {
            tale.messages = count(journal, &view)?;
            tale.last = last_words(journal, &view)?;
        }
        Ok(tale)
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.close.as_ref().map(|(close, _)| close.ending)
    }

    /// What the child itself and those below it are shown.
    pub(super) fn brief(&self, language: PromptLanguage) -> String {
        let id = &self.thread;
        match (self.shown_label(), language) {
            (Some(label), PromptLanguage::English) => format!("[Stelis thread {label} ({id}) has started]"),
            (None, PromptLanguage::English) => format!("[Stelis thread {id} has started]"),
            (Some(label), PromptLanguage::Japanese) => {
                format!("[Stelisスレッド {label} ({id}) が開始しました]")
            }
            (None, PromptLanguage::Japanese) => format!("[Stelisスレッド {id} が開始しました]"),
        }
    }

    /// What everyone else is shown: at most `cap` tokens, unless the first lines alone take more.
    pub(super) fn full(&self, language: PromptLanguage, meter: Meter, cap: u64) -> String {
        let words = Words::of(language);
        let head = self.head(words, language, meter, cap / 8);
        let fits = |text: &str| u64::from(meter.said(text)) <= cap;
        let mut room = cap.saturating_sub(u64::from(meter.said(&head)));
        while room > 0 {
            let text = format!("{head}{}", self.body(words, meter, room));
            if fits(&text) {
                return text;
            }
            // Texts side by side took more than each alone.
            room -= room.div_ceil(16);
        }
        head
    }

    /// Tokens of the lines that are never cut, at their longest.
    pub(super) fn least(&self, language: PromptLanguage, meter: Meter) -> u64 {
        let close = Close { ending: Ending::Aborted, result: None };
        let chronicle = Some(("@1".to_owned(), true));
        let close = Some((close, self.started.clone()));
        let ended = Self { close, messages: u64::MAX, chronicle, ..self.clone() };
        u64::from(meter.said(&ended.head(Words::of(language), language, meter, 0)))
    }

    fn shown_label(&self) -> Option<String> {
        let label = one_line(&tamed(self.label.as_deref()?), LABEL);
        (!label.is_empty()).then_some(label)
    }

    fn head(&self, words: &Words, language: PromptLanguage, meter: Meter, result: u64) -> String {
        let name = self.shown_label().unwrap_or_else(|| self.thread.to_string());
        let mut lines = vec![
            format!("[{}: {name}]", words.thread),
            format!("- ID: {}{}", self.thread, self.whose(language)),
            format!("- {}: {}", words.start, time(&self.started)),
            format!("- {}: {}", words.end, self.end(words, language)),
        ];
        if let Some((close, _)) = &self.close {
            lines.push(format!("- {}: {}", words.count, self.messages));
            let title = if close.ending == Ending::Completed { words.result } else { words.reason };
            let said = one_line(close.result.as_deref().unwrap_or_default(), LINE);
            let said = clip(meter, &said, result);
            if !said.is_empty() {
                lines.push(format!("- {title}: {said}"));
            }
        }
        lines.join("\n")
    }

    /// Whose entries are meant where numbers of entries stand in what the child did or said.
    fn whose(&self, language: PromptLanguage) -> String {
        let mut told =
            self.chronicle.iter().map(|(text, _)| text).chain(self.last.iter().map(|(_, said)| said));
        let id = &self.thread;
        match language {
            _ if !told.any(|text| has_number(text)) => String::new(),
            PromptLanguage::English => format!(" (an @N below is {id}@N)"),
            PromptLanguage::Japanese => format!("（以下の @N は {id}@N）"),
        }
    }

    fn end(&self, words: &Words, language: PromptLanguage) -> String {
        let Some((close, at)) = &self.close else { return words.running.into() };
        let how = match close.ending {
            Ending::Completed => return time(at),
            Ending::Paused => return words.paused.into(),
            Ending::Failed => words.failed,
            Ending::Stopped => words.stopped,
            Ending::Aborted => words.aborted,
        };
        match language {
            PromptLanguage::English => format!("{} ({how})", time(at)),
            PromptLanguage::Japanese => format!("{}（{how}）", time(at)),
        }
    }

    /// What was done and said last, in about `room` tokens.
    fn body(&self, words: &Words, meter: Meter, room: u64) -> String {
        let third = if self.chronicle.is_some() { room / 3 } else { room };
        let last = self.exchanges(words, meter, third);
        let Some((text, partial)) = &self.chronicle else { return last };
        let title = if *partial { words.partial } else { CHRONICLE };
        let title = format!("\n\n{title}\n");
        let taken = meter.text(&title) + meter.text(&last);
        let told = clip_lines(meter, text.trim(), room.saturating_sub(taken));
        if told.is_empty() { last } else { format!("{title}{told}{last}") }
    }

    fn exchanges(&self, words: &Words, meter: Meter, room: u64) -> String {
        let title = format!("\n\n{}", words.last);
        let taken = meter.text(&title);
        let each = room.saturating_sub(taken) / LAST as u64;
        let lines: Vec<String> = self
            .last
            .iter()
            .map(|(role, said)| {
                let who = format!("\n[{}]: ", role.name());
                let said = clip(meter, said, each.saturating_sub(meter.text(&who)));
                (who, said)
            })
            .filter(|(_, said)| !said.is_empty())
            .map(|(who, said)| who + &said)
            .collect();
        if lines.is_empty() { String::new() } else { title + &lines.concat() }
    }
}

/// The language that an anchor was written in.
pub(super) fn language(text: &str) -> PromptLanguage {
    if text.trim_start_matches('[').starts_with(JAPANESE.thread) {
        PromptLanguage::Japanese
    } else {
        PromptLanguage::English
    }
}

/// An anchor in one line, for who keeps facts: which thread, its result, and how its chronicle begins.
pub(crate) fn gist(anchor: &Anchor) -> String {
    let words = Words::of(language(&anchor.text));
    let name = anchor.label.as_deref().map(|label| one_line(label, LABEL)).filter(|label| !label.is_empty());
    let mut told = match name {
        Some(name) => format!("{} {name} ({})", words.thread, anchor.thread),
        None => format!("{} {}", words.thread, anchor.thread),
    };
    let said = |line: &str| {
        let line = line.strip_prefix("- ")?;
        let mut titles = [words.result, words.reason].into_iter();
        titles.find_map(|title| line.strip_prefix(title)?.strip_prefix(": ")).map(str::to_owned)
    };
    let result = anchor.text.lines().take_while(|line| !line.starts_with("## ")).find_map(said);
    let chronicle = anchor.text.split_once(CHRONICLE).map_or("", |(_, told)| told);
    let mut chronicle = chronicle.lines().skip(1).take_while(|line| *line != words.last);
    // What a digest says of itself, and its headings, tell nothing.
    let first = chronicle.find(|line| !line.trim().is_empty() && !line.starts_with(['#', '[']));
    let first = first.map(|line| one_line(line.trim_start_matches("- "), GIST));
    for part in result.map(|result| one_line(&result, GIST)).into_iter().chain(first) {
        told = format!("{told}: {part}");
    }
    told
}

/// Characters of a result, or of the first line of a chronicle, that are kept as a fact.
const GIST: usize = 160;

/// The heading of what was done, in both languages.
const CHRONICLE: &str = "## Chronicle";

/// The fixed words of an anchor.
struct Words {
    thread: &'static str,
    start: &'static str,
    end: &'static str,
    running: &'static str,
    paused: &'static str,
    failed: &'static str,
    stopped: &'static str,
    aborted: &'static str,
    count: &'static str,
    result: &'static str,
    reason: &'static str,
    partial: &'static str,
    last: &'static str,
}

const ENGLISH: Words = Words {
    thread: "Stelis thread",
    start: "Start",
    end: "End",
    running: "in progress",
    paused: "paused",
    failed: "failed",
    stopped: "stopped",
    aborted: "aborted",
    count: "Messages",
    result: "Result",
    reason: "Reason",
    partial: "## Chronicle (partial)",
    last: "## Latest exchanges",
};

const JAPANESE: Words = Words {
    thread: "Stelisスレッド",
    start: "開始",
    end: "終了",
    running: "進行中",
    paused: "一時停止中",
    failed: "失敗",
    stopped: "停止",
    aborted: "中断",
    count: "メッセージ数",
    result: "結果",
    reason: "理由",
    partial: "## Chronicle（途中まで）",
    last: "## 最新のやり取り",
};

impl Words {
    const fn of(language: PromptLanguage) -> &'static Self {
        match language {
            PromptLanguage::English => &ENGLISH,
            PromptLanguage::Japanese => &JAPANESE,
        }
    }
}

/// A journal's time as people read it.
fn time(stamp: &str) -> String {
    stamp.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// True for a text with an entry's number: an `@` before a digit, and no name of a thread before that.
fn has_number(text: &str) -> bool {
    let chars = || text.chars();
    let before = std::iter::once(' ').chain(chars());
    let mut places = before.zip(chars()).zip(chars().skip(1));
    places.any(|((before, at), digit)| {
        at == '@'
            && digit.is_ascii_digit()
            && !(before.is_ascii_alphanumeric() || matches!(before, '_' | '-'))
    })
}

/// The first characters of a text, on one line and without control characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// At most so many tokens of a text, between characters.
fn clip(meter: Meter, text: &str, tokens: u64) -> String {
    if meter.text(text) <= tokens {
        return text.to_owned();
    }
    let kept = cut_prefix(meter, text, tokens.saturating_sub(1)).trim_end();
    if kept.is_empty() { String::new() } else { format!("{kept}…") }
}

/// The same, better between lines or sentences.
fn clip_lines(meter: Meter, text: &str, tokens: u64) -> String {
    if meter.text(text) <= tokens {
        return text.to_owned();
    }
    let kept = cut_split(meter, text, tokens.saturating_sub(1)).0.trim_end();
    if kept.is_empty() { String::new() } else { format!("{kept}…") }
}

/// Messages of a thread: everything said on its path.
pub(super) fn count(journal: &dyn Journal, view: &View) -> Result<u64> {
    let mut count = 0;
    for entry in view.forth(journal, 1) {
        let kind = entry?.1.kind;
        count += u64::from(kind.is_item() && kind != Kind::Anchor);
    }
    Ok(count)
}

/// The last messages with words of people and models, oldest first.
fn last_words(journal: &dyn Journal, view: &View) -> Result<Vec<(Role, String)>> {
    let mut last: Vec<(Role, String)> = Vec::new();
    for entry in view.back(journal, view.last()) {
        let (seq, head) = entry?;
        if last.len() == LAST {
            break;
        }
        if matches!(head.kind, Kind::User | Kind::Assistant)
            && let Entry::Message(message, _) = EntrySource::record(journal, seq)?.entry
        {
            let line = one_line(&message.words(), LINE);
            if !line.is_empty() {
                last.push((message.role, line));
            }
        }
    }
    last.reverse();
    Ok(last)
}
