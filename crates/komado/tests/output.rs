//! Long outputs on the command line: in by a stream, out by lines, searches and bytes.

use crate::run;

use run::Place;
use serde_json::json;

const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}]}
"#;

fn log(lines: usize) -> String {
    (1..=lines).map(|n| format!("{n} 小窓 line\n")).collect()
}

/// A session with a long output, and the output's ref.
fn with_output(place: &Place, bytes: &[u8]) -> (String, String) {
    let s = place.session();
    place.append(&s, CALL);
    let file = place.path().join("output.txt");
    std::fs::write(&file, bytes).unwrap();
    place.ok(&["append", &s, "--role", "tool", "--call", "c1", "--file", file.to_str().unwrap()]);
    let listed = place.json_lines(&["session", "output", &s]);
    (s, listed[0]["ref"].as_str().unwrap().to_owned())
}

#[test]
fn a_long_output_is_listed_read_searched_and_copied() {
    let place = Place::new();
    let text = log(9000);
    let (s, id) = with_output(&place, text.as_bytes());
    assert_eq!(
        place.json_lines(&["session", "output", &s]),
        [json!({ "ref": id, "byte_size": text.len(), "line_count": 9000, "tool": "run", "seq": 2 })]
    );
    let listed = place.ok(&["session", "output", &s]);
    assert!(listed.contains(&id) && listed.contains("9,000") && listed.contains("@2"), "{listed}");
    assert_eq!(place.ok(&["session", "output", &s, &id, "--raw"]), text);
    assert_eq!(place.ok(&["session", "output", &s, "@2", "--raw"]), text);
    let page = place.ok(&["session", "output", &s, &id[..6], "--offset", "8999"]);
    assert_eq!(page, "  8999\t8999 小窓 line\n  9000\t9000 小窓 line\n[lines 8999 to 9000, the end]\n");
    let found = place.json(&[
        "session",
        "output",
        &s,
        &id,
        "--grep",
        "^8[0-9]+7 小",
        "--regex",
        "--after",
        "1",
        "--max-matches",
        "1",
    ]);
    assert!(found["text"].as_str().unwrap().starts_with("807:807 小窓 line\n808-808 小窓 line\n"), "{found}");
    assert_eq!(found["next"]["tool"], "tool_output_cache_grep");
    assert_eq!(found["next"]["arguments"]["offset"], 817);
    let part =
        place.ok(&["session", "output", &s, &id, "--line", "12", "--char-offset", "3", "--char-limit", "2"]);
    assert!(part.starts_with("小窓\n[characters 4 to 5 of 10 of line 12; read on with "), "{part}");
    let shown = place.json_lines(&["show", &s]);
    let view = shown[1]["message"]["content"].as_str().unwrap();
    assert!(view.len() <= 50 * 1024 && view.contains(&id), "{}", view.len());
}

#[test]
fn what_a_tool_printed_may_be_piped_in_and_need_not_be_text() {
    let place = Place::new();
    let s = place.session();
    for (bytes, kept) in [(&b"short\n"[..], 0), (b"not \xff text", 1), (&b"x".repeat(90_000), 2)] {
        place.append(&s, CALL);
        let said = place.feed(&["append", &s, "--role", "tool", "--json"], bytes);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(place.json_lines(&["session", "output", &s]).len(), kept);
    }
    let shown = place.json_lines(&["show", &s]);
    assert_eq!(shown[1]["message"]["content"], "short", "without its last line break, as ever");
    assert_eq!(shown[3]["message"]["content"], "not \u{fffd} text");
    place.append(&s, CALL);
    let long_line = format!("{}\n", "y".repeat(3000));
    place.feed(&["append", &s, "--role", "tool"], long_line.as_bytes());
    assert_eq!(
        place.ok(&["session", "output", &s, "@8", "--raw"]),
        long_line,
        "what is kept is kept to the byte"
    );
    let folder = place.folder(&s).join("outputs");
    let raw =
        std::fs::read(folder.join(place.json_lines(&["session", "output", &s])[0]["ref"].as_str().unwrap()))
            .unwrap();
    assert_eq!(raw, b"not \xff text");
}

#[test]
fn what_cannot_be_read_says_what_to_do() {
    let place = Place::new();
    let (s, id) = with_output(&place, log(4000).as_bytes());
    for (args, code, needle) in [
        (&["0000"][..], 3, "no output \"0000\""),
        (&["@9"], 3, "has 2 entries"),
        (&[&id, "--offset", "0"], 2, "lines count from 1"),
        (&[&id, "--offset", "4001"], 3, "the output has 4000 lines"),
        (&[&id, "--grep", "(", "--regex"], 6, "not a regular expression"),
        (&[&id, "--line", "1", "--char-offset", "99"], 3, "line 1 has 9 characters"),
        (&[&id, "--raw", "--json"], 2, "--raw copies bytes"),
        (&["--grep", "x"], 2, "which output?"),
        (&[&id, "--limit", "3", "--grep", "x"], 2, "--limit"),
    ] {
        let all: Vec<&str> = ["session", "output", &s].iter().chain(args).copied().collect();
        let said = place.run(&all);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(needle), "{args:?}: {}", said.err);
    }
    let fresh = place.session();
    assert_eq!(place.ok(&["session", "output", &fresh]), "");
    let said = place.run(&["append", &fresh, "--role", "tool", "--file", "nowhere"]);
    assert_eq!(said.code, 3, "{}", said.err);
}
