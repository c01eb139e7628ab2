//! What the library promises: durable words, undo for every edit, the same journal from the same clock and ids, errors
//! that say what to do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use komado_sdk::{EditKind, Entry, ErrorKind, Komado, Model, ScriptStep, Session};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in `folder` whose clock and ids count.
fn counted(folder: &Path) -> Komado {
    let (time, id) = (AtomicU64::new(0), AtomicU64::new(0));
    Komado::builder()
        .clock(move || format!("2026-01-01T12:00:{:02}.000000Z", time.fetch_add(1, Ordering::SeqCst) % 60))
        .ids(move || format!("session-{}", id.fetch_add(1, Ordering::SeqCst)))
        .open(folder)
        .unwrap()
}

fn seen(chat: &Session<'_>) -> Vec<String> {
    chat.messages().map(|message| message.unwrap().to_string()).collect()
}

fn said(komado: &Komado) -> Session<'_> {
    let mut chat = komado.session("licences").window(8_000).system("Be brief.").open().unwrap();
    chat.user("Please read both licences and tell me what they ask of us, in full sentences.").unwrap();
    chat.assistant("Both ask us to keep the notices; one of them asks for more than that.").unwrap();
    chat
}

#[test]
fn what_was_said_is_there_when_the_folder_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(said(&Komado::open(folder.path()).unwrap()));
    let komado = Komado::connect(&format!("file:{}", folder.path().display())).unwrap();
    let chat = komado.session("licences").read().unwrap();
    assert_eq!(chat.last(), 3);
    assert_eq!(seen(&chat)[0], "@1 system: Be brief.");
    assert_eq!(komado.sessions().map(|one| one.unwrap().meta.uuid).collect::<Vec<_>>(), ["licences"]);
    assert!(folder.path().join("running/licences/current.jsonl").is_file());
}

#[test]
fn every_edit_is_taken_back_by_revert_and_nothing_is_removed() {
    let komado = Komado::in_memory();
    let mut chat = said(&komado);
    let before = seen(&chat);
    let condense = chat.condense(2..=3, "Both were read.").unwrap();
    assert_eq!(seen(&chat), ["@1 system: Be brief.", "@4 user: Both were read."]);
    chat.revert(condense).unwrap();
    assert_eq!(seen(&chat), before);
    let truncate = chat.truncate(2..).unwrap();
    assert_eq!(seen(&chat)[1], "@6 user: [4 entries not shown: 2..5]");
    chat.revert(truncate).unwrap();
    assert_eq!(seen(&chat), before);
    let trim = chat.trim(3, "[left out]").unwrap();
    assert_eq!(seen(&chat)[2], "@3 assistant: [left out]");
    chat.revert(trim).unwrap();
    assert_eq!(seen(&chat), before);
    let kinds =
        chat.entries().filter(|entry| matches!(entry.as_ref().unwrap().entry, Entry::Edit(_))).count();
    assert_eq!(kinds, 3, "the journal keeps what was taken back");
    assert_eq!(chat.edits().count(), 0, "none is in force");
    chat.revert(condense).unwrap_err();
    chat.trim(2, "[asked]").unwrap();
    let edit = chat.condense(2..=3, "Both were read.").unwrap();
    let edits: Vec<_> = chat.edits().map(Result::unwrap).collect();
    assert_eq!(
        (edits.len(), edits[0].0, edits[0].1.kind),
        (1, edit, EditKind::Condense),
        "the other is under it"
    );
}

#[test]
fn a_child_works_apart_and_one_message_tells_of_it() {
    let komado = Komado::in_memory();
    let mut chat = said(&komado);
    let before = seen(&chat).len();
    let mut child = chat.child("count the licences").unwrap();
    child.user("How many licences are there in this project, and where?").unwrap();
    child.ask(&Model::scripted().says("Two, both at the top."), |_| {}).unwrap();
    let apart = child.cost().unwrap();
    chat.end_child(child, Some("two")).unwrap();
    let told = seen(&chat).pop().unwrap();
    assert!(told.contains("count the licences") && told.contains("- Result: two"), "{told}");
    assert_eq!(seen(&chat).len(), before + 1);
    assert!(apart.requests == 1 && apart.sent >= apart.said && apart.answers > 0, "{apart:?}");
    assert_eq!(chat.cost().unwrap().requests, 0, "what the child sent is its own");
    check(komado.session("new").open().unwrap().child("x"), ErrorKind::Setting, &[".window(tokens)"]);
}

#[test]
fn a_long_output_is_shown_in_part_and_kept_whole() {
    let komado = Komado::in_memory();
    let session = komado.session("long-output").window(4_000).task("github:ann/tool/issue/27");
    let mut chat = session.open().unwrap();
    let model = Model::scripted().calls("read", "{}").says("Long.");
    chat.user("Read it.").unwrap();
    let reply = chat.ask(&model, |_| {}).unwrap();
    let output = "a line of the ledger of the harbour\n".repeat(500);
    let seq = chat.tool_result(&reply.calls[0].id, &output).unwrap();
    assert_eq!(chat.text(seq).unwrap(), output);
    assert!(seen(&chat).pop().unwrap().len() < output.len() / 2);
    chat.ask(&model, |_| {}).unwrap();
    let cost = chat.cost().unwrap();
    assert!(cost.requests == 2 && cost.whole > 2 * cost.sent && cost.largest < 4_000, "{cost:?}");
    assert_eq!(chat.entries().nth(seq as usize - 1).unwrap().unwrap().seq, seq);
    assert_eq!(komado.sessions().next().unwrap().unwrap().meta.task_key.repo, "tool");
    check(komado.session("y").task("issue 27").open(), ErrorKind::Input, &["issue 27", "github:ann/tool"]);
    check(chat.text(99), ErrorKind::NotFound, &["@99"]);
}

#[test]
fn a_pin_stays_and_a_rewind_and_a_fork_go_back() {
    let komado = Komado::in_memory();
    let mut chat = said(&komado);
    chat.pin(2).unwrap();
    let edit = chat.condense(2..=3, "Read.").unwrap();
    assert_eq!((seen(&chat)[1].starts_with("@2 user: Please"), seen(&chat).len()), (true, 3));
    assert_eq!(seen(&chat)[2], format!("@{edit} user: Read."));
    chat.revert(edit).unwrap();
    chat.unpin(2).unwrap();
    chat.rewind(2).unwrap();
    assert_eq!(seen(&chat).len(), 2);
    let mut fork = chat.fork(2, "other").unwrap();
    fork.user("And the third one?").unwrap();
    assert_eq!((seen(&fork).len(), seen(&chat).len()), (3, 2));
    drop(fork);
    assert_eq!(komado.session("licences").thread("other").read().unwrap().last(), 3);
    assert_eq!(chat.messages_at(3).unwrap().count(), 3);
}

#[test]
fn the_model_is_asked_word_by_word_and_its_calls_are_answered() {
    let komado = Komado::in_memory();
    let mut chat = komado.new_session().window(8_000).open().unwrap();
    let model = Model::scripted().calls("weather", r#"{"city":"小樽"}"#).says("It snows.");
    chat.user("What is the weather?").unwrap();
    let reply = chat.ask(&model, |_| {}).unwrap();
    assert_eq!((reply.calls.len(), reply.calls[0].name.as_str()), (1, "weather"));
    chat.tool_result(&reply.calls[0].id, "snow").unwrap();
    let mut words = String::new();
    let reply = chat.ask(&model, |text| words.push_str(text)).unwrap();
    assert_eq!((words.as_str(), reply.text.as_str(), reply.seq), ("It snows.", "It snows.", chat.last()));
    assert!(reply.usage.is_some_and(|usage| usage.output_tokens > 0));
    assert!(chat.recall("snow").unwrap().next().is_some());
}

#[test]
fn a_long_conversation_stays_inside_a_small_window() {
    let komado = Komado::in_memory();
    let mut chat = komado.session("long").window(2_000).open().unwrap();
    let model = Model::scripted().step(ScriptStep::say("Noted.").always());
    for n in 0..40 {
        chat.user(&format!("Note {n}: {}", "the ledger of the harbour says more than it should. ".repeat(8)))
            .unwrap();
        chat.ask(&model, |_| {}).unwrap();
    }
    assert!(chat.tokens() < 2_000, "{}", chat.tokens());
    assert!(chat.entries().any(|entry| matches!(entry.unwrap().entry, Entry::Edit(_))));
    chat.fit().unwrap();
    chat.complete(Some("done")).unwrap();
    assert_eq!(komado.sessions().next().unwrap().unwrap().status.name(), "completed");
}

#[test]
fn the_same_clock_and_ids_give_the_same_journal_byte_for_byte() {
    let run = || {
        let folder = tempfile::tempdir().unwrap();
        let komado = counted(folder.path());
        let mut chat = komado.new_session().window(8_000).open().unwrap();
        chat.user("Which licence is it?").unwrap();
        let reply = chat.ask(&Model::scripted().says("MIT, as far as I can see from here."), |_| {}).unwrap();
        chat.condense(1..=reply.seq, "It is MIT.").unwrap();
        drop(chat);
        std::fs::read(folder.path().join("running/session-0/messages.jsonl")).unwrap()
    };
    let (one, other) = (run(), run());
    assert!(!one.is_empty());
    assert_eq!(String::from_utf8(one), String::from_utf8(other));
}

/// A failure has a kind, and its text names the value and what to do.
fn check<T>(result: komado_sdk::Result<T>, kind: ErrorKind, holds: &[&str]) {
    let Err(error) = result else { panic!("it should fail with {holds:?}") };
    assert_eq!(error.kind(), kind, "{error}");
    for text in holds {
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn errors_name_the_value_the_place_and_what_to_do() {
    let komado = Komado::in_memory();
    check(
        komado.session("../etc").open(),
        ErrorKind::Input,
        &["../etc", "must begin with a letter or digit"],
    );
    check(komado.session("gone").read(), ErrorKind::NotFound, &["gone"]);
    check(komado.session("x").tools("[{").open(), ErrorKind::Input, &["tool definitions", "a JSON array"]);
    check(Komado::connect("mysql://db"), ErrorKind::Setting, &["mysql", "file:, memory:"]);
    check(Komado::connect("file:"), ErrorKind::Setting, &["names no folder"]);
    check(Model::from_env("gpt-4o"), ErrorKind::Setting, &["\"gpt-4o\"", "openai/gpt-4o"]);
    check(Model::new("opnai/gpt-4o"), ErrorKind::Setting, &["opnai", "did you mean openai?", "Model::at"]);
    check(Model::from_env("sakura/m"), ErrorKind::Setting, &["sakura"]);
    let mut chat = komado.session("empty").open().unwrap();
    check(chat.ask(&Model::scripted(), |_| {}), ErrorKind::Refused, &["nothing was said yet"]);
    check(chat.fit(), ErrorKind::Setting, &["session empty", ".window(tokens)"]);
    let backwards = std::ops::RangeInclusive::new(3, 2);
    check(chat.condense(backwards, "x"), ErrorKind::Input, &["3..=2"]);
    chat.user("Hello?").unwrap();
    check(chat.ask(&Model::at("ftp://h", "m").window(4_000), |_| {}), ErrorKind::Setting, &["ftp"]);
    check(
        chat.ask(&Model::new("openai/some-new-one").unwrap().key("k"), |_| {}),
        ErrorKind::Setting,
        &["some-new-one", "Model::window"],
    );
}

#[test]
fn asynchronous_programs_use_the_same_session() {
    use komado_sdk::asynchronous::Session;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let komado = Komado::in_memory();
        let chat = Session::open(&komado, |komado| komado.session("a").window(8_000)).await.unwrap();
        chat.user("Hello?").await.unwrap();
        let reply = chat.ask(&Model::scripted().says("Hello!"), |_| {}).await.unwrap();
        assert_eq!(reply.text, "Hello!");
        assert!(chat.with(|_| -> komado_sdk::Result<()> { panic!("on purpose") }).await.is_err());
        let error = chat.user("still there?").await.unwrap_err();
        assert!(error.to_string().contains("open the session again"), "{error}");
        let bad = Session::open(&komado, |komado| komado.session("")).await;
        assert_eq!(bad.err().unwrap().kind(), ErrorKind::Input);
    });
}
