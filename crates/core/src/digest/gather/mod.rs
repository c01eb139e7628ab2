//! Gathering: each message is looked at once, and what is found goes into its list.
//!
//! One file per kind of finding; this one only sends each part of a message to those who can read it. It refuses to
//! keep a message: what stays is findings, and their number is bounded.

mod background;
pub(super) mod calls;
mod commands;
mod git;
pub(super) mod ids;
mod output;
pub(super) mod paths;
mod steps;
mod todos;
pub(super) mod user;

pub(super) use commands::program;
pub(super) use paths::Touch;

use super::fact::{Fact, FactKind, FactTable};
use super::scan;
use super::timeline::{Step, StepKind, Timeline, TimelineItem};
use super::words::LanguageCount;
use crate::Seq;
use crate::harness::user_text;
use crate::message::{Message, MessagePart, Role};
use background::Background;
use calls::OpenDigestCall;
use git::GitState;
use std::collections::BTreeMap;
use todos::ToDos;
use user::Requests;

/// Bytes at each end of a text that are searched for words.
const ENDS: usize = 128 << 10;

/// Who wrote a text: the same word weighs more from the user than from a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FactOrigin {
    User,
    Assistant,
    /// A call's arguments.
    Arguments,
    /// What a command printed.
    Output,
    /// What was merely shown: a file, a listing, what an agent wrote around its user's words.
    Shown,
    /// One of many alike in an output: the hundredth id of a list.
    Sibling,
    /// An earlier summary.
    Told,
    /// The user, as an earlier digest tells it; whatever counts was counted then.
    Heard,
}

impl FactOrigin {
    /// What a finding of `kind` weighs when this voice says it; `None` when it is not worth keeping.
    const fn weight(self, kind: FactKind) -> Option<u32> {
        match (self, kind) {
            (Self::User, FactKind::Number) => Some(350),
            (Self::User, _) => Some(500),
            (Self::Told | Self::Heard, FactKind::Symbol | FactKind::Number) => Some(260),
            (Self::Told | Self::Heard, _) => Some(500),
            (Self::Assistant | Self::Arguments, FactKind::Number) => Some(150),
            (Self::Assistant | Self::Arguments, _) => Some(260),
            (Self::Output | Self::Shown | Self::Sibling, FactKind::Symbol)
            | (Self::Shown | Self::Sibling, FactKind::Number) => None,
            (Self::Output, FactKind::Number) | (Self::Sibling, _) => Some(0),
            (Self::Output, _) => Some(80),
            (Self::Shown, _) => Some(20),
        }
    }
}

/// All lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    pub(super) speech: LanguageCount,
    pub(super) requests: Requests,
    pub(super) rules: FactTable<192>,
    pub(super) decisions: FactTable<96>,
    /// Names that the task and the latest instruction use: lines of outputs that hold one are kept.
    pub(super) asked: Vec<String>,
    pub(super) errors: FactTable<128>,
    pub(super) commands: FactTable<256>,
    pub(super) results: FactTable<48>,
    pub(super) paths: FactTable<768>,
    pub(super) ids: FactTable<768>,
    pub(super) symbols: FactTable<384>,
    pub(super) outputs: FactTable<64>,
    pub(super) todos: ToDos,
    pub(super) git: GitState,
    /// What goes on after its call was answered.
    pub(super) background: Background,
    pub(super) timeline: Timeline,
    /// Calls without a result, by id.
    pub(super) open: BTreeMap<String, OpenDigestCall>,
}

impl Gathered {
    pub(super) fn take(&mut self, seq: Seq, message: &Message) {
        // After the next message no call waits for an answer any more.
        if message.outcome().is_none() && message.role != Role::Tool {
            self.open.clear();
        }
        for part in &message.parts {
            match part {
                MessagePart::Text { text, .. } => self.text(seq, message.role, text),
                MessagePart::Call(call) => self.call(seq, call),
                MessagePart::Result(outcome) => self.result(seq, outcome),
                MessagePart::Image { .. } | MessagePart::Reasoning { .. } | MessagePart::Opaque(_) => {}
            }
        }
    }

    fn text(&mut self, seq: Seq, role: Role, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match role {
            Role::User => self.user(seq, text),
            Role::System | Role::Developer => {
                user_text(text).for_each(|words| self.rules(seq, role, words));
                self.words(seq, FactOrigin::Shown, text);
            }
            Role::Assistant => {
                for fact in user::notes(seq, text) {
                    self.decisions.put(scan::fold(&fact.text), fact);
                }
                self.todos.prose(seq, text);
                self.words(seq, FactOrigin::Assistant, text);
            }
            // A tool's words outside a result: older dialects.
            Role::Tool => self.words(seq, FactOrigin::Output, text),
        }
    }

    /// A message of the user: what the agent put around the user's own words is a text like any that was shown.
    fn user(&mut self, seq: Seq, text: &str) {
        let said = user_text(text).collect::<Vec<_>>().join("\n");
        if said.len() < text.trim().len() {
            self.words(seq, FactOrigin::Shown, text);
            self.background.noticed(text);
        }
        if said.is_empty() {
            return;
        }
        self.speech.hear(&user::own_lines(&said));
        self.requests.take(seq, &said);
        self.rules(seq, Role::User, &said);
        self.todos.prose(seq, &said);
        self.words(seq, FactOrigin::User, &said);
        self.pasted_errors(seq, &said);
    }

    fn rules(&mut self, seq: Seq, role: Role, text: &str) {
        for fact in user::rules(seq, role, text) {
            self.rules.put(scan::fold(&fact.text), fact);
        }
    }

    /// What the user said, as an earlier digest tells it: what stood in it was not told again elsewhere.
    pub(super) fn heard(&mut self, seq: Seq, text: &str) {
        for mut fact in user::rules(seq, Role::User, text) {
            fact.count = 0;
            // Where the text was cut there is half a sentence.
            if !fact.text.contains('…') {
                self.rules.put(scan::fold(&fact.text), fact);
            }
        }
        self.words(seq, FactOrigin::Heard, text);
    }

    /// An earlier summary that is not a digest of ours: its words are facts, too, at the entry where
    /// it was met, or at none.
    /// Its commands are no rules: who wrote it had read outputs, and may have been told what to write by one.
    pub(super) fn told(&mut self, seq: Seq, text: &str) {
        for fact in user::rules(seq, Role::User, text) {
            let kind = FactKind::Decision;
            self.decisions.put(scan::fold(&fact.text), Fact { kind, told: true, weight: 300, ..fact });
        }
        self.words(seq, FactOrigin::Told, text);
    }

    /// Errors that a person pasted; only what no prose looks like.
    fn pasted_errors(&mut self, seq: Seq, text: &str) {
        for line in text.lines().filter(|line| commands::is_certain(line)).take(12) {
            if let Some(text) = commands::error(line) {
                self.errors.put(scan::shape(&text), Fact::new(FactKind::Error, text, seq).weighing(200));
            }
        }
    }

    /// A line of an earlier digest's timeline: its command and its file are not told again elsewhere.
    pub(super) fn recall_step(&mut self, item: TimelineItem) {
        if let TimelineItem::Step(Step { kind, seq, target, end, count, .. }) = &item {
            let cut = target.ends_with('…');
            match kind {
                StepKind::Run if !cut => self.recall_command(calls::ran_before(*seq, target, *end, *count)),
                StepKind::Read | StepKind::Edit if !cut => {
                    let (path, touch) = (
                        steps::file(target),
                        if *kind == StepKind::Read { Touch::Read } else { Touch::Changed },
                    );
                    let weight = if touch == Touch::Read { 400 } else { 800 };
                    let fact = Fact::new(FactKind::Path, path, *seq).weighing(weight).touching(touch);
                    if !end.is_bad() && !path.is_empty() {
                        self.paths.put(path.to_owned(), Fact { count: 0, ..fact });
                    }
                }
                _ => {}
            }
        }
        self.timeline.recall(item);
    }

    /// Every word of a text that is a finding. The middle of a very long text is left out.
    pub(super) fn words(&mut self, seq: Seq, voice: FactOrigin, text: &str) {
        if text.len() <= 2 * ENDS {
            return self.some_words(seq, voice, text);
        }
        self.some_words(seq, voice, scan::start(text, ENDS));
        self.some_words(seq, voice, scan::end(text, ENDS));
    }

    fn some_words(&mut self, seq: Seq, voice: FactOrigin, text: &str) {
        if matches!(voice, FactOrigin::Output | FactOrigin::Shown) {
            for fact in user::answers(seq, &self.asked, text) {
                self.decisions.put(scan::fold(&fact.text), fact);
            }
        }
        ids::words(text, |kind, word| self.word(seq, voice, kind, word));
    }

    fn word(&mut self, seq: Seq, voice: FactOrigin, kind: FactKind, word: &str) {
        let Some(weight) = voice.weight(kind) else { return };
        // How long a run took and how large a file is: no one looks that up again.
        if voice == FactOrigin::Output && kind == FactKind::Number && ids::has_unit(word) {
            return;
        }
        let word = if kind == FactKind::Path { paths::tidy(word) } else { word };
        let mut fact = Fact::new(kind, word, seq).weighing(weight);
        fact.told = voice == FactOrigin::Told;
        fact.count = u32::from(!matches!(voice, FactOrigin::Heard | FactOrigin::Sibling));
        match kind {
            FactKind::Path => self.paths.put(word.to_owned(), fact),
            FactKind::Symbol => self.symbols.put(word.to_owned(), fact),
            _ => self.ids.put(word.to_owned(), fact),
        }
    }
}
