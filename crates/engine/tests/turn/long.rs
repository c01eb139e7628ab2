//! Two hundred turns in a window of four thousand tokens, in every dialect.
//!
//! The caller never meets an overflow, the journal holds every word, the bytes of a request are an extension of those of
//! the one before unless an edit came between; and what the model saw at each edit stands in `snapshots/`.

use super::kit::{Talk, journaled, result, setup};
use komado_core::journal::Entry;
use komado_core::message::{Message, MessagePart, Role};
use komado_core::{Kind, Seq};
use komado_engine::Thread;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer, SeenRequest};
use std::fmt::Write;
use std::path::Path;

const TURNS: usize = 200;
const WINDOW: u64 = 4_096;

/// What a tool prints in turn `n`: a log with its own path, numbers and an error now and then.
fn output(n: usize) -> String {
    let mut text = format!("$ cargo test -p part{n}\n");
    for line in 0..(n % 7) * 12 {
        let _ = writeln!(text, "test part{n}::case_{line} ... ok ({} ms)", (n * 37 + line * 11) % 900);
    }
    if n.is_multiple_of(5) {
        let _ = writeln!(text, "error[E0308]: mismatched types --> src/part{n}/lib.rs:{}:9", n * 3);
    }
    text
}

fn question(n: usize) -> String {
    match n % 3 {
        0 => format!("Run the tests of part{n} and tell me what fails. Keep issue #{} in mind.", 100 + n),
        1 => format!(
            "part{n} の設定ファイル config/part{n}.yaml を確認して、待ち時間を {n} 秒にしてください。"
        ),
        _ => format!("Why does part{n} need {} MB of memory? Answer in two sentences.", n * 8),
    }
}

fn answer(n: usize) -> String {
    match n % 3 {
        1 => format!("config/part{n}.yaml の待ち時間を {n} 秒に変更しました。再起動は不要です。"),
        _ => format!("part{n} is done: src/part{n}/lib.rs has one change, and {} tests pass.", n * 2),
    }
}

/// True when the model calls a tool in turn `n`.
fn calls(n: usize) -> bool {
    n.is_multiple_of(3)
}

fn script(server: &ScriptedServer) {
    for n in 1..=TURNS {
        if calls(n) {
            server.add(ScriptStep::call("read", format!("{{\"path\":\"target/part{n}.log\"}}")));
        }
        server.add(ScriptStep::say(answer(n)));
    }
}

fn converse(talk: &Talk, thread: &mut Thread<'_>) -> String {
    let mut shown = String::new();
    thread.set_up(setup()).unwrap();
    script(&talk.server);
    for n in 1..=TURNS {
        let (mut turned, told) = talk.ask(thread, &question(n));
        let mut edits = told.edits;
        assert!(told.too_large.is_empty(), "turn {n}: {told:?}");
        assert_eq!(turned.message.calls().count(), usize::from(calls(n)), "turn {n}");
        for call in turned.message.calls().map(|call| call.id.clone()).collect::<Vec<_>>() {
            thread.say(result(&call, &output(n))).unwrap();
            let (again, told) = talk.turn(thread);
            turned = again.unwrap();
            edits += told.edits;
        }
        assert_eq!(turned.message.words(), answer(n), "turn {n}");
        assert!(!turned.is_ours);
        if edits > 0 {
            snapshot(&mut shown, n, talk, thread);
        }
    }
    shown
}

/// What the model saw in the last request, one line a message.
fn snapshot(shown: &mut String, n: usize, talk: &Talk, thread: &Thread<'_>) {
    let seen = talk.server.seen().pop().unwrap();
    let body = String::from_utf8(seen.body.clone()).unwrap();
    let asked = talk.asking.provider.dialect.read(&body).unwrap();
    let edit = thread.view().edits().last().unwrap();
    let Entry::Edit(edit) = thread.record(edit).unwrap().entry else { unreachable!() };
    let (kind, cause) = (edit.kind.name(), edit.cause);
    let _ = writeln!(
        shown,
        "== turn {n}: {kind} by {}, {} to {} tokens; the server counted {}",
        cause.rule, cause.before, cause.after, seen.tokens
    );
    if let Some(system) = &asked.setup.system {
        let _ = writeln!(shown, "  system     {}", short(system));
    }
    for message in &asked.messages {
        let _ = writeln!(shown, "  {:<10} {}", message.role.name(), short(&told(message)));
    }
}

pub(super) fn told(message: &Message) -> String {
    let calls = message.calls().map(|call| format!("{}({})", call.name, call.arguments));
    let words = message.words();
    words.lines().map(str::to_owned).chain(calls).collect::<Vec<_>>().join(" ⏎ ")
}

pub(super) fn short(text: &str) -> String {
    let head: String = text.chars().take(96).collect();
    let rest = text.chars().count().saturating_sub(96);
    if rest == 0 { head } else { format!("{head}… (+{rest})") }
}

pub(super) fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turn/snapshots").join(name);
    if std::env::var_os("KOMADO_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == found, "what the model saw is not what {name} says; look, then KOMADO_BLESS=1");
}

/// Where the messages of a request end, the closing brackets of the last one left out.
fn end_of_messages(dialect: Dialect, body: &str) -> usize {
    let asked = dialect.read(body).unwrap();
    let last = asked.messages.last().unwrap();
    let text = last.words();
    let tail: String = text.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    let json = serde_json::to_string(&tail).unwrap();
    body.rfind(&json[1..json.len() - 1]).unwrap() + json.len() - 2
}

/// Requests between which no edit came share every byte up to the end of the messages.
pub(super) fn check_prefixes(dialect: Dialect, seen: &[SeenRequest], breaks: &[usize]) -> usize {
    let mut held = 0;
    for i in 1..seen.len() {
        let before = std::str::from_utf8(&seen[i - 1].body).unwrap();
        let after = std::str::from_utf8(&seen[i].body).unwrap();
        if breaks.contains(&i) {
            continue;
        }
        let shared = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        let end = end_of_messages(dialect, before);
        assert!(shared >= end, "request {i}: {shared} bytes shared, the messages end at {end}");
        held += 1;
    }
    held
}

/// Requests that were sent right after an edit, by their place in the order.
pub(super) fn breaks(thread: &Thread<'_>) -> Vec<usize> {
    let (mut sent, mut edited, mut breaks) = (0, false, Vec::new());
    for seq in 1..=thread.last() {
        match thread.source().head(seq).unwrap().kind {
            kind if kind.is_edit() => edited = true,
            Kind::Sent => {
                if std::mem::take(&mut edited) {
                    breaks.push(sent);
                }
                sent += 1;
            }
            _ => {}
        }
    }
    breaks
}

fn two_hundred_turns(dialect: Dialect) {
    let options = ScriptedOptions { window: Some(WINDOW), keep: 1_000, ..ScriptedOptions::default() };
    let talk = Talk::new(dialect, WINDOW, options);
    let mut thread = talk.thread();
    let shown = converse(&talk, &mut thread);
    let seen = talk.server.seen();
    let tools = (1..=TURNS).filter(|n| calls(*n)).count();
    assert_eq!(seen.len(), TURNS + tools);
    assert!(seen.iter().all(|seen| seen.status == 200 && seen.tokens <= WINDOW));
    // Every word is in the journal.
    let journal = journaled(&thread);
    assert_eq!(journal.len(), 2 * TURNS + 2 * tools);
    let mut users = journal.iter().filter(|message| message.role == Role::User);
    assert!((1..=TURNS).all(|n| users.next().unwrap().words() == question(n)));
    let outputs = journal.iter().filter_map(Message::outcome);
    for (outcome, n) in outputs.zip((1..=TURNS).filter(|n| calls(*n))) {
        assert!(whole(&thread, outcome, n), "output {n}");
    }
    let breaks = breaks(&thread);
    let held = check_prefixes(dialect, &seen, &breaks);
    assert!(
        breaks.len() >= 5 && held + breaks.len() + 1 >= seen.len(),
        "{} edits, {held} held",
        breaks.len()
    );
    // Both ends can be reached again, and the first request still stands.
    let asked = dialect.read(std::str::from_utf8(&seen.last().unwrap().body).unwrap()).unwrap();
    assert!(asked.messages.iter().any(|message| message.words().contains(&question(1))));
    assert_eq!(talk.server.left(), 0);
    compare(&format!("{}.txt", dialect.name()), &shown);
}

/// True when all that the tool printed in turn `n` is kept: in the message, or in the blob it names.
fn whole(thread: &Thread<'_>, outcome: &komado_core::message::ToolOutcome, n: usize) -> bool {
    let said = match outcome.content.as_slice() {
        [MessagePart::Text { text, .. }] => text.clone(),
        _ => String::new(),
    };
    match &outcome.output_ref {
        None => said == output(n),
        Some(kept) => {
            let mut bytes = String::new();
            std::io::Read::read_to_string(&mut thread.blob(&kept.id).unwrap(), &mut bytes).unwrap();
            bytes == output(n)
        }
    }
}

#[test]
fn two_hundred_turns_of_chat_completions_fit_into_four_thousand_tokens() {
    two_hundred_turns(Dialect::Chat);
}

#[test]
fn two_hundred_turns_of_responses_fit_into_four_thousand_tokens() {
    two_hundred_turns(Dialect::Responses);
}

#[test]
fn two_hundred_turns_of_anthropic_messages_fit_into_four_thousand_tokens() {
    two_hundred_turns(Dialect::Messages);
}

#[test]
fn two_hundred_turns_of_ollama_fit_into_four_thousand_tokens() {
    two_hundred_turns(Dialect::Ollama);
}

#[test]
fn a_bound_on_turns_holds_beside_the_window() {
    let mut talk = Talk::new(
        Dialect::Chat,
        WINDOW,
        ScriptedOptions { window: Some(WINDOW), ..ScriptedOptions::default() },
    );
    (talk.asking.history, talk.asking.provider.joins) = (Some(3), false);
    let mut thread = talk.thread();
    for n in 1..=12 {
        talk.server.add(ScriptStep::say(answer(n)));
        talk.ask(&mut thread, &question(n));
    }
    let body = talk.server.seen().pop().unwrap().body;
    let asked = Dialect::Chat.read(std::str::from_utf8(&body).unwrap()).unwrap();
    let users: Vec<String> =
        asked.messages.iter().filter(|m| m.role == Role::User).map(Message::words).collect();
    let told: Vec<Seq> = thread.view().edits().collect();
    assert_eq!(users.iter().filter(|words| words.contains("part")).count(), 4, "{users:#?} {told:?}");
    assert!(users.iter().any(|words| *words == question(1)) && users.contains(&question(12)));
    assert!(!users.contains(&question(9)), "{users:#?}");
    assert_eq!(journaled(&thread).len(), 24);
}
