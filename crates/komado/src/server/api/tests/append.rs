//! Appends: all or none, once under a key, also over a crash.

use super::*;
use crate::server::api::idempotency::IdempotencyTable;
use komado_ops::PlannedEntries;

fn one(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

const ENTRIES: &str = "/sessions/s/threads/root/entries";

async fn last(place: &Place) -> u64 {
    place.get("/sessions/s/threads/root/context").await.ok(200)["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn a_bad_message_among_good_ones_leaves_the_journal_as_it_was() {
    let place = Place::new();
    place.talk("s").await;
    let messages = json!([{ "role": "user", "content": "a" }, { "role": "narrator", "content": "b" }]);
    let why = place.post(ENTRIES, json!({ "messages": messages })).await.problem(422);
    assert!(why.starts_with("messages[1]") && why.contains("narrator"), "{why}");
    assert_eq!(last(&place).await, 3);
    place.post(ENTRIES, json!({ "messages": [] })).await.problem(400);
}

#[tokio::test]
async fn the_same_call_under_a_key_is_done_once_and_answered_the_same() {
    let place = Place::new();
    place.talk("s").await;
    let key = [("idempotency-key", "k-1")];
    let first = place.with("POST", ENTRIES, &key, Some(&one("一度だけ"))).await.ok(201);
    let second = place.with("POST", ENTRIES, &key, Some(&one("一度だけ"))).await.ok(201);
    assert_eq!(first, second);
    assert_eq!(last(&place).await, 4);
    let why = place.with("POST", ENTRIES, &key, Some(&one("別の言葉"))).await.problem(422);
    assert!(why.contains("another body"), "{why}");
    let place = place.again();
    let third = place.with("POST", ENTRIES, &key, Some(&one("一度だけ"))).await.ok(201);
    assert_eq!((first, last(&place).await), (third, 4));
    place.with("POST", ENTRIES, &[("idempotency-key", "")], Some(&one("x"))).await.problem(400);
}

#[tokio::test]
async fn what_was_planned_before_a_crash_is_done_when_it_is_not_in_the_journal() {
    let place = Place::new();
    place.talk("s").await;
    let body = one("crash");
    let name = IdempotencyTable::name(" s/root", b"k").unwrap();
    let digest = blake3::hash(body.to_string().as_bytes()).to_hex().to_string();
    let answers = IdempotencyTable::at(place.folder.path());
    let planned =
        PlannedEntries { seq: 4, line: "no such line".into(), answer: json!({ "seqs": [4] }).to_string() };
    answers.plan(&name, &digest, &planned, "2999-01-01T00:00:00.000000Z").unwrap();
    place.post(ENTRIES, one("someone else was faster")).await.ok(201);
    let done = place.with("POST", ENTRIES, &[("idempotency-key", "k")], Some(&body)).await.ok(201);
    assert_eq!((done["seqs"][0].as_u64(), last(&place).await), (Some(5), 5));
}

#[test]
fn a_key_is_refused_while_its_first_call_runs() {
    let answers = IdempotencyTable::default();
    let running = answers.begin("n").unwrap();
    assert_eq!(answers.begin("n").err().unwrap().status, StatusCode::CONFLICT);
    drop(running);
    assert!(answers.begin("n").is_ok());
}

#[tokio::test]
async fn a_writer_who_has_seen_another_moment_is_refused() {
    let place = Place::new();
    place.talk("s").await;
    let told = place.get("/sessions/s/threads/root/view").await;
    let tag = told.headers["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with("\"root@3-"), "{tag}");
    let seen = [("if-match", tag.as_str())];
    place.with("POST", ENTRIES, &seen, Some(&one("first"))).await.ok(201);
    let why = place.with("POST", ENTRIES, &seen, Some(&one("second"))).await.problem(412);
    assert!(why.contains("root@4"), "{why}");
    place.with("POST", "/sessions/s/threads/root/pin", &seen, Some(&json!({ "seq": 1 }))).await.problem(412);
    place.with("POST", ENTRIES, &[("if-match", "\"root@4\"")], Some(&one("third"))).await.ok(201);
    assert_eq!(last(&place).await, 5);
}
