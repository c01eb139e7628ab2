//! `komado recall` as its user meets it.
use crate::run;

use run::{Place, TALK};
use serde_json::Value;

fn seqs(rows: &[Value]) -> Vec<u64> {
    rows.iter().map(|row| row["seq"].as_u64().unwrap()).collect()
}

#[test]
fn what_was_said_is_found_as_text_and_as_json_lines() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    place.ok(&["edit", "condense", &s, "2..5", "--text", "short"]);
    let rows = place.json_lines(&["recall", &s, "small windows", "-k", "3"]);
    assert_eq!(rows[0]["seq"], 3, "{rows:?}");
    for field in ["session", "thread", "seq", "address", "score", "role", "timestamp", "snippet", "hidden"] {
        assert!(!rows[0][field].is_null(), "{field}");
    }
    assert_eq!((rows[0]["thread"].as_str(), rows[0]["hidden"].as_bool()), (Some("root"), Some(true)));
    assert_eq!((rows[0]["role"].as_str(), rows[0]["tools"][0].as_str()), (Some("tool"), Some("read")));
    assert_eq!(rows[0]["matches"], serde_json::json!(["small", "window"]));
    assert!(rows.len() <= 3 && rows[0]["score"].as_f64() >= rows[1]["score"].as_f64());
    let said = place.run(&["recall", &s, "バグ"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines[0].starts_with(&format!("{s}@1 user · ")) && lines[1] == "    バグを直して main.py",
        "{}",
        said.out
    );
    assert!(said.err.contains(&format!("komado log {s}@1 -n 1 --full")), "{}", said.err);
    let in_full = place.ok(&["log", &format!("{s}@3"), "-n", "1", "--full"]);
    assert!(in_full.contains("hello, small window"), "{in_full}");
    assert!(place.folder(&s).join("recall.db").exists());
}

#[test]
fn modes_filters_and_limits_do_what_they_say() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let find = |more: &[&str]| {
        let args: Vec<&str> = ["recall", &s].iter().chain(more).copied().collect();
        seqs(&place.json_lines(&args))
    };
    assert_eq!(find(&["main.py", "--exact"]), [4, 2, 1]);
    assert_eq!(find(&["main.py", "--exact", "-k", "1"]), [4]);
    assert_eq!(find(&["--regex", r"^if __\w+__"]), [3]);
    assert_eq!(find(&["main.py", "--role", "user"]), [1]);
    assert_eq!(find(&["main.py", "--tool", "ls", "--role", "tool"]), [4]);
    assert_eq!(find(&["main", "--file", "main.py", "--role", "tool"]), [3]);
    assert_eq!(find(&["main", "--until", "2000-01-01"]), [] as [u64; 0]);
    assert_eq!(find(&["main.py", "--exact", "--since", "1h"]).len(), 3);
    assert_eq!(find(&["main.py", "--budget", "0"]), [] as [u64; 0]);
    assert_eq!(find(&["two", "words", "small", "window"]).first(), Some(&3));
    let around = place.json_lines(&["recall", &s, "hello", "-k", "1", "--neighbours", "1"]);
    assert_eq!(seqs(around[0]["around"].as_array().unwrap()), [2, 4]);
    place.ok(&["fork", &format!("{s}@1"), "side"]);
    place.ok(&["append", &format!("{s}/side"), "a window of its own"]);
    let side = place.json_lines(&["recall", &format!("{s}/side"), "window", "-k", "1"]);
    assert_eq!(
        (side[0]["thread"].as_str(), side[0]["address"].as_str()),
        (Some("side"), Some(&*format!("{s}/side@2")))
    );
    assert_eq!(place.json_lines(&["recall", &format!("{s}/side"), "hello"]).len(), 0);
}

#[test]
fn sessions_of_a_user_and_all_of_them_are_searched_together() {
    let place = Place::new();
    let ann = place.session_with(&["--meter", "bytes4", "--window", "8000", "--user", "ann"]);
    let ben = place.session_with(&["--meter", "bytes4", "--window", "8000", "--user", "ben"]);
    place.ok(&["append", &ann, "the kettle is on"]);
    place.ok(&["append", &ben, "the kettle is off"]);
    place.ok(&["session", "complete", &ben]);
    let found = |more: &[&str]| {
        let args: Vec<&str> = ["recall"].iter().chain(more).copied().collect();
        let mut found: Vec<String> =
            place.json_lines(&args).iter().map(|row| row["session"].as_str().unwrap().to_owned()).collect();
        found.sort();
        found
    };
    let mut both = vec![ann.clone(), ben.clone()];
    both.sort();
    assert_eq!(found(&["--all", "kettle"]), both);
    assert_eq!(found(&["--user", "ben", "kettle"]).join(" "), ben);
    let said = place.run(&["recall", "--all", "kettle"]);
    assert!(said.out.contains(&format!("{ann}@1 user · ")), "{}", said.out);
    assert!(said.err.contains("searched 2 sessions"), "{}", said.err);
    assert!(place.run(&["recall", "--user", "ann", "kettle"]).err.contains("searched 1 session\n"));
}

#[test]
fn what_cannot_be_asked_is_told_with_what_to_do() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    for (args, code, told) in [
        (&["recall", &s][..], 2, "komado recall SESSION QUERY"),
        (&["recall", &s, " "], 6, "say what to look for"),
        (&["recall", &s, "--regex", "("], 6, "not a pattern"),
        (&["recall", &s, "x", "--role", "boss"], 2, "possible values: system, developer"),
        (&["recall", &s, "x", "--since", "soon"], 2, "2024-01-15"),
        (&["recall", "nobody", "x"], 3, "komado sessions"),
        (&["recall", &s, "x", "--exact", "--regex"], 2, "cannot be used with"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(told), "{args:?}: {}", said.err);
    }
    let none = place.run(&["recall", &s, "zzzzqq"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert!(none.err.contains("nothing was found"), "{}", none.err);
}

#[test]
fn nothing_in_a_result_acts_on_the_terminal_and_a_line_has_an_end() {
    let place = Place::new();
    let s = place.session();
    let long = "窓".repeat(3000);
    place.feed(&["append", &s, "-"], format!("red \u{1b}[31m alert\r\n{long} alert").as_bytes());
    let said = place.feed(&["recall", &s, "alert"], b"");
    assert!(!said.out.contains('\u{1b}') && said.out.len() < 2000, "{}", said.out);
    let mut narrow = place.command(&["recall", &s, "窓"]);
    narrow.env("COLUMNS", "40");
    let said = run::feed(narrow, b"");
    assert!(said.out.lines().skip(1).all(|line| line.chars().count() <= 22), "{}", said.out);
}

#[test]
fn doctor_makes_the_index_again_and_redact_leaves_no_word_in_it() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let find = || seqs(&place.json_lines(&["recall", &s, "pyproject"]));
    let before = find();
    assert_eq!(before[0], 4);
    let path = place.folder(&s).join("recall.db");
    let has = |word: &str| std::fs::read(&path).unwrap().windows(word.len()).any(|w| w == word.as_bytes());
    assert!(has("pyproject"));
    let doctor = place.run(&["admin", "doctor"]);
    assert!(doctor.code == 0 && doctor.err.contains("0 findings"), "{}{}", doctor.out, doctor.err);
    std::fs::write(&path, "broken").unwrap();
    place.ok(&["admin", "doctor", "--rebuild"]);
    assert!(has("pyproject"), "it was made again without a search");
    assert_eq!(find(), before);
    place.ok(&["edit", "redact", &s, "--text", "pyproject", "--reason", "r", "--yes"]);
    assert!(!has("pyproject"));
    assert_eq!(place.json_lines(&["recall", &s, "pyproject"]).len(), 0);
    assert!(!place.ok(&["export", &s]).contains("recall.db"));
}

#[test]
fn a_session_that_another_process_writes_is_searched() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let place = Place::new();
    let s = place.session();
    let mut command = place.command(&["append", &s, "--jsonl", "-"]);
    let mut writer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    let mut told = BufReader::new(writer.stdout.take().unwrap()).lines();
    for n in 1..=3u64 {
        writeln!(stdin, r#"{{"role":"user","content":"needle {n}"}}"#).unwrap();
        stdin.flush().unwrap();
        assert_eq!(told.next().unwrap().unwrap(), n.to_string());
        assert_eq!(place.json_lines(&["recall", &s, "needle"]).len() as u64, n);
    }
    drop(stdin);
    assert!(writer.wait().unwrap().success());
}

#[test]
fn what_has_a_word_comes_first_neighbours_are_marked_and_each_heading_is_an_address() {
    let place = Place::new();
    let s = place.session();
    for (role, text) in [
        ("user", "Where do the ferries go?"),
        ("assistant", "I do not know yet."),
        ("user", "Tests are named after harbours; the first one is Otaru."),
        ("assistant", "Understood."),
        ("user", "Go on, please."),
        ("assistant", "Of all harbours this one is the oldest."),
    ] {
        place.ok(&["append", &s, "--role", role, text]);
    }
    let rows = place.json_lines(&["recall", &s, "harbours"]);
    let has_word = |row: &Value| row["snippet"].as_str().unwrap().contains("harbours");
    assert!(rows.iter().map(|row| !has_word(row)).is_sorted() && rows.len() > 2, "{rows:?}");
    assert!(
        rows.iter().all(|row| has_word(row) != row["matches"].as_array().unwrap().is_empty()),
        "{rows:?}"
    );
    place.ok(&["fork", &format!("{s}@5"), "side"]);
    place.ok(&["append", &format!("{s}/side"), "--role", "assistant", "No harbours here."]);
    let said = place.ok(&["recall", &s, "harbours"]);
    let headings: Vec<&str> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(headings.iter().any(|line| line.ends_with("beside a match")), "{said}");
    let mut addresses: Vec<&str> = headings.iter().map(|line| line.split(' ').next().unwrap()).collect();
    for address in &addresses {
        place.ok(&["log", address, "-n", "1", "--full"]);
    }
    let all = addresses.len();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), all, "each entry once: {said}");
    assert!(!addresses.contains(&&*format!("{s}/side@3")), "what a fork shares is said once: {said}");
}
