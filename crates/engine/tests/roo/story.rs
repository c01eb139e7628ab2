//! Plays a story in a real session, and tells what is seen in the same words.

use crate::roo::room::{Room, call, calls, check, meta, model, result, user};
use komado_core::message::{Message, MessagePart};
use komado_core::{Meter, Seq, SessionId, Span};
use komado_engine::Thread;
use std::collections::BTreeMap;

/// Tokens of each message, as a quarter of its bytes.
pub(crate) const EACH: u64 = 120;

/// A session in which a story happened, and the entry of each name in it.
pub(crate) struct Told {
    pub(crate) session: SessionId,
    pub(crate) at: BTreeMap<String, Seq>,
}

pub(crate) fn play(room: &Room, story: &str) -> Told {
    let mut meta = meta("s", "2024-01-15T10:00:00Z");
    meta.config.meter = Meter::Bytes4.name().into();
    let session = room.engine.create(&meta).unwrap();
    let mut told = Told { session, at: BTreeMap::new() };
    let mut root = room.root(&told.session);
    for word in story.split_whitespace() {
        let seq = step(&mut root, word, &told.at);
        let name = word.split(['+', '[', '(']).next().unwrap();
        told.at.insert(name.to_owned(), seq);
    }
    check(&root);
    root.settle().unwrap();
    drop(root);
    told
}

fn step(root: &mut Thread<'_>, word: &str, at: &BTreeMap<String, Seq>) -> Seq {
    if let Some(name) = word.strip_prefix('<') {
        return root.rewind(at[name] - 1).unwrap();
    }
    if let Some((name, span)) = word.split_once('[') {
        return root
            .condense(vec![self::span(span.trim_end_matches(']'), at)], &said(name), "by_hand")
            .unwrap();
    }
    if let Some((name, span)) = word.split_once('(') {
        return root
            .truncate(vec![self::span(span.trim_end_matches(')'), at)], &said(name), "by_hand")
            .unwrap();
    }
    match word.split_once('+') {
        Some((name, id)) => {
            let parts = vec![MessagePart::text(said(name)), call(id, "read_file", r#"{"path":"a.txt"}"#)];
            root.say(calls(parts)).unwrap()
        }
        None if word.starts_with('u') => root.say(user(&said(word))).unwrap(),
        None if word.starts_with('a') => root.say(model(&said(word))).unwrap(),
        None => root.say(result(word, &said(word))).unwrap(),
    }
}

fn span(text: &str, at: &BTreeMap<String, Seq>) -> Span {
    let (from, to) = text.split_once("..").unwrap();
    Span::new(at[from], at[to])
}

/// What `name` says: its name, and enough words to be worth a summary.
pub(crate) fn said(name: &str) -> String {
    let mut text = format!("this is {name}:");
    while text.len() < EACH as usize * 4 {
        text.push_str(" and it says so");
    }
    text.truncate(EACH as usize * 4);
    text
}

/// Who says that, if it is one of a story.
fn name(text: &str) -> Option<&str> {
    text.strip_prefix("this is ")?.split_once(':').map(|(name, _)| name)
}

/// What the model sees, in the words of a story; texts that no story has are called `S`.
pub(crate) fn seen(thread: &Thread<'_>) -> String {
    let mut names = Vec::new();
    let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
        names.push(name(&message.words()).unwrap_or("S").to_owned());
        Ok(())
    };
    thread.view().pour(thread.source(), &mut pour).unwrap();
    names.join(" ")
}
