//! `komado admin key`: what is printed, what is kept, and what is refused.
use crate::run;

use run::Place;

#[test]
fn a_key_is_shown_once_and_listed_without_its_secret() {
    let place = Place::new();
    let made = place.json(&[
        "admin",
        "key",
        "add",
        "太郎",
        "--rate",
        "5/s",
        "--sessions",
        "a,b",
        "--expires",
        "2999-01-31",
    ]);
    let secret = made["key"].as_str().unwrap();
    assert!(secret.starts_with("kmd_") && secret.len() == 68, "{secret}");
    assert_eq!(made["undo"], "komado admin key revoke 太郎");
    let listed = place.json_lines(&["admin", "key", "list"]);
    assert_eq!((&listed[0]["user"], &listed[0]["sees"]), (&"太郎".into(), &"own".into()));
    assert_eq!(listed[0]["sessions"], serde_json::json!(["a", "b"]));
    let text = place.ok(&["admin", "key", "list"])
        + &std::fs::read_to_string(place.base().join("keys.json")).unwrap();
    assert!(!text.contains(&secret[4..]), "{text}");
    place.ok(&["admin", "key", "revoke", "太郎"]);
    assert!(place.json_lines(&["admin", "key", "list"]).is_empty());
}

#[test]
fn what_is_wrong_with_a_key_is_named() {
    let place = Place::new();
    place.ok(&["admin", "key", "add", "one"]);
    for (args, code, word) in [
        (&["admin", "key", "add", "one"][..], 5, "already"),
        (&["admin", "key", "add", "a b"], 2, "a b"),
        (&["admin", "key", "add", "x", "--rate", "fast"], 2, "10/s"),
        (&["admin", "key", "add", "x", "--expires", "soon"], 2, "2027-01-31"),
        (&["admin", "key", "add", "x", "--sessions", "../etc"], 6, "session id"),
        (&["admin", "key", "revoke", "two"], 3, "two"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(word), "{args:?}: {}", said.err);
    }
    std::fs::write(place.base().join("keys.json"), "nonsense").unwrap();
    let said = place.run(&["admin", "key", "list"]);
    assert!(said.code == 6 && said.err.contains("keys.json"), "{}", said.err);
}

#[test]
fn two_who_make_keys_at_once_are_both_heard() {
    let place = Place::new();
    let made: Vec<_> = (0..6)
        .map(|i| {
            place
                .command(&["admin", "key", "add", &format!("k{i}"), "--json"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    made.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    assert_eq!(place.json_lines(&["admin", "key", "list"]).len(), 6);
}
