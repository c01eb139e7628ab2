//! `komado explain-error` as a person and a program meet it.
use crate::run;

use run::Place;
use serde_json::{Value, json};

fn explain(place: &Place, status: &str, body: &[u8]) -> Value {
    let said = place.feed(&["explain-error", "--status", status, "--json"], body);
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn programs_get_exactly_the_fields_that_are_promised() {
    let place = Place::new();
    let body = br#"{"error":{"message":"prompt (9,100 tokens) exceeds the context window of 8,192 tokens"}}"#;
    let found = explain(&place, "400", body);
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["actual", "limit", "output", "overflow", "remedy", "why"]);
    let why = found["why"].as_str().unwrap();
    assert!(why.contains("9,100") && why.contains("context window"), "{why}");
    let mut rest = found.clone();
    rest.as_object_mut().unwrap().remove("why");
    assert_eq!(rest, json!({"overflow":true,"limit":8192,"actual":9100,"output":null,"remedy":"shrink"}));
}

#[test]
fn a_shorter_answer_is_advised_where_that_is_enough() {
    let place = Place::new();
    let body = b"input length and `max_tokens` exceed context limit: 7000 + 2000 > 8192";
    let found = explain(&place, "400", body);
    assert_eq!((&found["remedy"], &found["output"]), (&json!("lower_max_tokens"), &json!(2000)));
    let text = place.feed(&["explain-error", "--status", "400"], body).out;
    for word in ["overflow of the window", "8,192 tokens", "7,000 tokens", "shorter answer"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_is_no_overflow_is_an_answer_too() {
    let place = Place::new();
    let found = explain(&place, "429", "トークンのレート制限を超えました".as_bytes());
    let expected =
        json!({"overflow":false,"limit":null,"actual":null,"output":null,"remedy":"none","why":found["why"]});
    assert_eq!(found, expected);
    assert!(place.feed(&["explain-error", "--status", "500"], b"").out.starts_with("no overflow"));
}

#[test]
fn any_bytes_are_judged_and_nothing_is_kept() {
    let place = Place::new();
    assert_eq!(explain(&place, "413", b"")["overflow"], true);
    assert_eq!(explain(&place, "400", b"\xff\xfe prompt is too long \xf0")["overflow"], true);
    assert_eq!(explain(&place, "400", &vec![b'['; 1 << 20])["overflow"], false);
    assert!(!place.base().exists(), "judging an error makes no store");
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let place = Place::new();
    assert_eq!(place.run(&["explain-error"]).code, 2);
    for status in ["99", "600", "x", "-1"] {
        assert_eq!(place.run(&["explain-error", "--status", status]).code, 2, "{status}");
    }
    let said = place.feed(&["explain-error", "--status", "400"], &vec![b'x'; (16 << 20) + 1]);
    assert_eq!(said.code, 6, "{}", said.err);
    assert!(said.err.contains("16 MB"), "{}", said.err);
}
