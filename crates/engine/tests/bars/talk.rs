//! Conversations that fill a window, and the request that a view makes.

use crate::bars::room::{Room, call, calls, check, meta, model, result, user};
use komado_core::budget::{Budget, Preset};
use komado_core::grammar::{self, MessageShape};
use komado_core::journal::{Edit, Entry};
use komado_core::message::Message;
use komado_core::openai::{self, BlobReader};
use komado_core::{Meter, Seq, SessionId};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings, Summariser};
use komado_engine::fit::{FitResult, Ladder};
use std::io::{self, Write};

/// The same numbers every time, and no two alike.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

const WORDS: [&str; 24] = [
    "parser", "token", "reads", "the", "buffer", "again", "before", "it", "writes", "a", "line", "and",
    "then", "counts", "every", "open", "file", "under", "lock", "while", "others", "wait", "for", "room",
];

/// So many words, told apart by `n`.
pub(crate) fn prose(n: u64, words: u64) -> String {
    let mut dice = Dice(n);
    let mut text = String::new();
    for i in 0..words {
        let end = if i % 12 == 11 { "\n" } else { " " };
        text.push_str(WORDS[dice.below(WORDS.len() as u64) as usize]);
        text.push_str(end);
    }
    text
}

/// A session counted with `meter`.
pub(crate) fn session(room: &Room, meter: Meter) -> SessionId {
    let mut meta = meta("s", "2024-01-15T10:00:00Z");
    meta.config.meter = meter.name().into();
    room.engine.create(&meta).unwrap()
}

/// A user asks, a model answers.
pub(crate) fn exchange(thread: &mut Thread<'_>, n: u64, words: u64) {
    thread.say(user(&format!("question {n}: {}", prose(n, words)))).unwrap();
    thread.say(model(&format!("answer {n}: {}", prose(n + 1000, words)))).unwrap();
}

/// A model reads a file of its own.
pub(crate) fn read(thread: &mut Thread<'_>, n: u64, words: u64) -> Seq {
    let id = format!("call-{n}");
    let path = format!(r#"{{"path":"src/part_{n}.rs"}}"#);
    thread.say(calls(vec![call(&id, "read_file", &path)])).unwrap();
    thread.say(result(&id, &prose(n, words))).unwrap()
}

pub(crate) fn budget(preset: Preset, window: u64) -> Budget {
    Budget::new(preset.policy(), window, &[])
}

/// Fits with the digest, checks the journal, and gives what was done.
pub(crate) fn fit(thread: &mut Thread<'_>, budget: &Budget) -> FitResult {
    let mut by = ByDigest::new(thread.meter());
    fit_by(thread, budget, &mut by)
}

pub(crate) fn fit_by(thread: &mut Thread<'_>, budget: &Budget, by: &mut dyn Summariser) -> FitResult {
    let mut ladder = Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by };
    let fitted = thread.fit(&mut ladder).unwrap();
    check(thread);
    assert!(thread.view().tokens() <= budget.usable, "{} of {}", thread.view().tokens(), budget.usable);
    fitted
}

/// The request that the view makes: one line for each message, as OpenAI takes it.
pub(crate) fn request(thread: &Thread<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut shapes = Vec::new();
    let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
        let mut line = Vec::new();
        openai::write(message, &mut Named, &mut line).unwrap();
        lines.push(String::from_utf8(line).unwrap());
        shapes.push(MessageShape::of(message));
        Ok(())
    };
    thread.view().pour(thread.source(), &mut pour).unwrap();
    if thread.view().open().calls.is_empty() {
        assert_eq!(grammar::openai(&shapes), Ok(()));
    }
    lines
}

/// Checks what Anthropic asks on top: a user begins.
pub(crate) fn check_order(thread: &Thread<'_>) {
    let mut shapes = Vec::new();
    let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
        shapes.push(MessageShape::of(message));
        Ok(())
    };
    thread.view().pour(thread.source(), &mut pour).unwrap();
    assert_eq!(grammar::anthropic(&shapes), Ok(()));
}

struct Named;

impl BlobReader for Named {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}

/// The edit that entry `seq` is.
pub(crate) fn edit(thread: &Thread<'_>, seq: Seq) -> Edit {
    match thread.record(seq).unwrap().entry {
        Entry::Edit(edit) => edit,
        other => panic!("@{seq} is not an edit: {other:?}"),
    }
}

/// What was said under `seq`, whatever the view shows of it.
pub(crate) fn said(thread: &Thread<'_>, seq: Seq) -> String {
    match thread.record(seq).unwrap().entry {
        Entry::Message(message, _) => message.words(),
        other => panic!("@{seq} is not a message: {other:?}"),
    }
}
