//! What is said through the gateway is kept, and what is too much leaves the window.

use crate::gateway::stage::{Fake, Gateway, Heard};
use serde_json::{Value, json};

fn ask(gateway: &Gateway, messages: &[Value], headers: &[(&str, &str)]) -> Heard {
    let body = json!({ "model": "m", "messages": messages }).to_string();
    gateway.ask("POST /v1/chat/completions", headers, body.as_bytes())
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

#[test]
fn a_conversation_goes_on_in_its_session_and_is_in_the_journal() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let mut talk = vec![said("user", "小窓を開けて")];
    let first = ask(&gateway, &talk, &[]);
    let session = first.header("x-komado-session").to_owned();
    assert_eq!((first.header("x-komado-placed"), session.is_empty()), ("new", false), "{first:?}");
    talk.extend([said("assistant", "はい"), said("user", "閉めて")]);
    let second = ask(&gateway, &talk, &[]);
    assert_eq!(
        (second.header("x-komado-placed"), second.header("x-komado-session")),
        ("extends", session.as_str())
    );
    let named = ask(&gateway, &[said("user", "別")], &[("x-komado-session", "my-session")]);
    assert_eq!(named.header("x-komado-session"), "my-session");
    assert_eq!(ask(&gateway, &talk, &[("x-komado-session", "a/b")]).status(), 400);
    let log = gateway.place.ok(&["log", &session]);
    for words in ["小窓を開けて", "はい", "閉めて"] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[test]
fn what_is_over_budget_leaves_with_edits_and_the_client_hears_only_the_answer() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=4000"]);
    let mut talk = vec![said("user", "数えて")];
    let mut edits = 0;
    for turn in 0..30 {
        let answer = ask(&gateway, &talk, &[]);
        assert_eq!(
            (answer.status(), answer.header("x-komado-fault")),
            (200, ""),
            "{turn}: {}",
            gateway.log()
        );
        edits += answer.header("x-komado-edits").parse::<u32>().unwrap();
        talk.extend([
            said("assistant", "はい"),
            said("user", &format!("{turn} {}", "窓の外を見る。".repeat(40))),
        ]);
    }
    assert!(edits > 0, "{}", gateway.log());
    let (sent, whole) = (fake.seen().last().unwrap().body.len(), json!(talk).to_string().len());
    assert!(sent * 2 < whole, "{sent} of {whole}");
    assert!(gateway.get("/metrics").text().contains("komado_edits_total"));
}

#[test]
fn the_doctor_finds_nothing_in_what_was_imported_and_a_copy_takes_no_conversation_over() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let mut talk = vec![said("user", "小窓を開けて")];
    let session = ask(&gateway, &talk, &[]).header("x-komado-session").to_owned();
    gateway.place.ok(&["export", &session, "-o", "talk.jsonl"]);
    gateway.place.ok(&["import", "talk.jsonl", "--as", "copy"]);
    talk.extend([said("assistant", "はい"), said("user", "閉めて")]);
    assert_eq!(ask(&gateway, &talk, &[]).header("x-komado-session"), session);
    // Where the original is not, the conversation goes on in what was brought.
    let there = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let export = std::fs::read(gateway.place.path().join("talk.jsonl")).unwrap();
    std::fs::write(there.place.path().join("talk.jsonl"), export).unwrap();
    there.place.ok(&["import", "talk.jsonl"]);
    let doctor = there.place.run(&["admin", "doctor"]);
    assert!(doctor.code == 0 && !doctor.err.contains("lacked"), "{}", doctor.err);
    let answer = ask(&there, &talk, &[]);
    assert_eq!((answer.header("x-komado-placed"), answer.header("x-komado-session")), ("extends", &*session));
}

#[test]
fn a_request_in_which_nothing_is_said_leaves_no_session() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let answer = ask(&gateway, &[], &[]);
    assert_eq!((answer.status(), answer.header("x-komado-fault")), (200, ""), "{}", gateway.log());
    assert_eq!(fake.seen()[0].json(), json!({ "model": "m", "messages": [] }));
    gateway.ask("POST /v1/chat/completions", &[], b"no JSON");
    assert!(gateway.place.json_lines(&["sessions"]).is_empty());
    assert_eq!(ask(&gateway, &[said("user", "小窓")], &[]).status(), 200);
    assert_eq!(gateway.place.json_lines(&["sessions"]).len(), 1);
}
