//! Reading a session: the transcript, the log, exports, ids of any script, and names that are not there.

use crate::run;

use run::{Place, feed};
use serde_json::{Value, json};

const WILD: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}\u{9b}2J\u{202e}";

/// A session with a long tool output, in `licences`.
fn talk(place: &Place) {
    place.ok(&[
        "new",
        "--id",
        "licences",
        "--meter",
        "bytes4",
        "--window",
        "8000",
        "--system",
        "Be careful.",
    ]);
    let output: Vec<String> = (1..=40).map(|line| format!("line {line} <script>alert(1)</script>")).collect();
    let lines = [
        json!({ "role": "user", "content": "Please read both licences." }),
        json!({ "role": "assistant", "content": "I will.", "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"LICENSE\"}" } },
        ] }),
        json!({ "role": "tool", "tool_call_id": "call_1", "tool_name": "read", "content": output.join("\n") }),
        json!({ "role": "assistant", "content": "MIT is shorter." }),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    assert_eq!(place.append("licences", &lines.join("\n")).code, 0);
}

/// Runs at `width` columns in UTC.
fn at(place: &Place, width: usize, args: &[&str]) -> String {
    let mut command = place.command(args);
    command.env("COLUMNS", width.to_string()).env("TZ", "UTC");
    let said = feed(command, b"");
    assert_eq!(said.code, 0, "{args:?}: {}", said.err);
    said.out
}

#[test]
fn show_is_a_transcript_that_says_who_when_and_how_much() {
    let place = Place::new();
    talk(&place);
    let text = at(&place, 80, &["show", "licences"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("licences@5  what the model sees: "), "{text}");
    assert!(lines[1].starts_with("── ") && lines[1].ends_with(" ──"), "{text}");
    for heading in ["system  @1 · ", "user  @2 · ", "assistant  @3 · ", "tool read  @4 · "] {
        let line = lines
            .iter()
            .find(|line| line.starts_with(heading))
            .unwrap_or_else(|| panic!("{heading}: {text}"));
        assert!(line.ends_with(" tokens"), "{line}");
        let time = &line[heading.len()..heading.len() + 5];
        assert!(time.as_bytes()[2] == b':' && time.split(':').all(|n| n.parse::<u8>().is_ok()), "{line}");
    }
    for line in
        ["  Be careful.", "  Please read both licences.", "  → read path=LICENSE", "  MIT is shorter."]
    {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(!at(&place, 80, &["show", "licences@2"]).contains("@3"), "a moment in the past");
    let narrow = at(&place, 30, &["show", "licences", "--full"]);
    let wide = |line: &&str| {
        line.chars().count() > 30 && !line.contains(" · ") && !line.contains("@5") && !line.starts_with("──")
    };
    assert_eq!(narrow.lines().find(wide), None);
    let brief = at(&place, 80, &["show", "licences", "--brief"]);
    assert_eq!(brief.lines().count(), 5, "{brief}");
    assert!(brief.contains("4 tool call_1 read \"line 1 "), "{brief}");
}

#[test]
fn a_long_output_is_clipped_and_the_command_beside_it_reads_on() {
    let place = Place::new();
    talk(&place);
    let text = at(&place, 100, &["show", "licences"]);
    let clipped = text.lines().find(|line| line.contains('…')).unwrap();
    assert_eq!(clipped, "  │ … 30 more lines: komado session output licences @4");
    assert!(text.contains("line 10 ") && !text.contains("line 11 "), "{text}");
    assert!(place.ok(&["session", "output", "licences", "@4"]).contains("line 40 "));
    assert!(at(&place, 100, &["show", "licences", "--full"]).contains("line 40 "));
}

#[test]
fn an_edit_is_a_row_that_says_what_it_stands_for_and_how_it_is_undone() {
    let place = Place::new();
    talk(&place);
    let before = at(&place, 100, &["show", "licences", "--json"]);
    place.ok(&["edit", "condense", "licences", "2..4", "--text", "Both were read."]);
    let text = at(&place, 100, &["show", "licences"]);
    let row = text.lines().find(|line| line.starts_with('▚')).unwrap();
    assert!(row.starts_with("▚ summary of @2..@4, ") && row.contains(" → "), "{row}");
    assert!(text.contains("\n  Both were read.\n") && !text.contains("Please read"), "{text}");
    let undo: Vec<&str> = row.split("undo: komado ").nth(1).unwrap().split(' ').collect();
    place.ok(&undo);
    assert_eq!(at(&place, 100, &["show", "licences", "--json"]), before);
    place.ok(&["edit", "trim", "licences", "4", "--text", "left out"]);
    let text = at(&place, 100, &["show", "licences"]);
    assert!(text.contains("▚ trim shows ") && text.contains("  │ left out"), "{text}");
}

#[test]
fn log_says_when_in_plain_words_and_digests_only_where_they_are_asked_for() {
    let place = Place::new();
    talk(&place);
    place.ok(&["edit", "condense", "licences", "2..4", "--text", "Both were read."]);
    place.ok(&["edit", "pin", "licences@5"]);
    for width in [80, 120] {
        let log = at(&place, width, &["log", "licences"]);
        assert!(log.lines().all(|line| line.chars().count() <= width), "{log}");
        let lines: Vec<&str> = log.lines().skip(1).collect();
        let (time, entry) = lines[3].split_once("  ").unwrap();
        assert_eq!(time.split(':').filter(|n| n.len() == 2 && n.parse::<u8>().is_ok()).count(), 3, "{time}");
        assert!(entry.starts_with("4 tool read \"line 1 "), "{entry}");
        assert!(
            lines[5].contains("  6 edit condense 2..4 summary ") && lines[6].contains("  7 pin 5"),
            "{log}"
        );
    }
    let log = at(&place, 120, &["log", "licences", "-v"]);
    assert!(log.contains("call call_1 read") && log.contains(" 6 condense 2..4"), "{log}");
}

#[test]
fn nothing_that_is_read_gives_orders_to_a_terminal() {
    let place = Place::new();
    place.ok(&["new", "--id", "w", "--meter", "bytes4", "--system", WILD]);
    let call = json!({ "id": WILD, "type": "function", "function": { "name": WILD, "arguments": WILD } });
    let lines = [
        json!({ "role": "user", "name": WILD, "content": format!("a\nFAKE\r{WILD}") }),
        json!({ "role": "assistant", "content": WILD, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": WILD, "tool_name": WILD, "content": WILD }),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    assert_eq!(place.append("w", &lines.join("\n")).code, 0);
    for args in [
        &["show", "w"][..],
        &["show", "w", "--full"],
        &["show", "w", "--brief"],
        &["log", "w"],
        &["log", "w", "-v", "--full"],
        &["export", "w", "--format", "md"],
        &["export", "w", "--format", "html"],
    ] {
        let text = at(&place, 60, args);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r']), "{args:?}: {text:?}");
        assert!(!text.lines().any(|line| line == "FAKE"), "{args:?}: {text}");
    }
}

/// Runs at a terminal of its own; gives what came to it.
fn at_terminal(place: &Place, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = place.command(args);
    command.envs(env.iter().copied());
    let (code, text) = run::at_terminal(command);
    assert_eq!(code, 0, "{args:?}: {text}");
    text
}

#[test]
fn append_draws_the_window_in_colours_at_a_terminal_and_no_code_shows() {
    let place = Place::new();
    place.ok(&["new", "--id", "lic", "--window", "100"]);
    let said = at_terminal(&place, &["append", "lic", "May we ship this? Answer in one line."], &[]);
    assert!(said.contains("▕\u{1b}[") && said.contains("▏ \u{1b}[32m"), "{said:?}");
    assert!(said.contains("of 100") && !said.contains("u001b"), "{said:?}");
    let plain = at_terminal(&place, &["append", "lic", "Please."], &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\u{1b}') && !plain.contains("u001b"), "{plain:?}");
}

#[test]
fn a_terminal_gets_a_pager_unless_none_is_wanted_or_none_can_be_started() {
    let place = Place::new();
    talk(&place);
    let paged = place.path().join("paged");
    for args in [
        &["show", "licences"][..],
        &["log", "licences"],
        &["recall", "licences", "shorter"],
        &["session", "diff", "licences@2", "licences@5"],
    ] {
        for named in [&[("KOMADO_PAGER", "tee paged"), ("PAGER", "false")][..], &[("PAGER", "tee paged")]] {
            let seen = at_terminal(&place, args, named);
            let text = std::fs::read_to_string(&paged).unwrap();
            assert!(
                seen.replace("\r\n", "\n").contains(&text) && text.contains("\u{1b}["),
                "{args:?}: {seen}"
            );
            std::fs::remove_file(&paged).unwrap();
        }
        let with_option = [args, &["--no-pager"]].concat();
        for (args, pager) in
            [(&with_option[..], "tee paged"), (args, "cat"), (args, ""), (args, "/nowhere/less")]
        {
            let seen = at_terminal(&place, args, &[("KOMADO_PAGER", pager)]);
            assert!(!paged.exists() && seen.contains("shorter"), "{args:?} {pager:?}: {seen}");
        }
    }
    let piped = place
        .program(env!("CARGO_BIN_EXE_komado"))
        .env("KOMADO_PAGER", "tee paged")
        .args(["show", "licences"])
        .output();
    assert!(piped.unwrap().status.success() && !paged.exists(), "no pager where no terminal is");
}

#[test]
fn a_session_is_exported_as_a_transcript_with_what_is_hidden_and_what_stands_for_it() {
    let place = Place::new();
    talk(&place);
    place.ok(&["edit", "condense", "licences", "2..4", "--text", "Both were read."]);
    place.ok(&["append", "licences", "second thought"]);
    place.ok(&["rewind", "licences@6"]);
    place.ok(&["append", "licences", "third thought"]);
    let md = place.ok(&["export", "licences", "--format", "md"]);
    let place_of = |text: &str| md.find(text).unwrap_or_else(|| panic!("{text}: {md}"));
    assert!(place_of("in place of @2..@4") < place_of("> Both were read."));
    assert!(place_of("> Both were read.") < place_of("### @2 user"));
    assert!(place_of("### @2 user") < place_of("line 40 "));
    let heading = |seq: u32| md.lines().find(|line| line.starts_with(&format!("### @{seq} "))).unwrap();
    assert!((2..=4).all(|seq| heading(seq).ends_with("hidden from the model by @6")), "{md}");
    assert!(!heading(5).contains("hidden") && heading(7).ends_with("left behind by a rewind"), "{md}");
    assert!(heading(9).starts_with("### @9 user"), "{md}");
    let html = place.ok(&["export", "licences", "-f", "html", "-o", "page.html"]);
    assert_eq!(html, "");
    let html = std::fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(html.contains("line 40 &lt;script&gt;alert(1)") && !html.contains("<script"), "{html}");
    for loads in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!html.contains(loads), "{loads}: {html}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("@media print"), "{html}");
    assert_eq!(html.matches("<details>").count(), html.matches("</details>").count(), "{html}");
    assert_eq!(html.matches("<article").count(), html.matches("</article>").count());
    let then = place.ok(&["export", "licences@2", "--format", "md"]);
    assert!(then.contains("### @2 user") && !then.contains("hidden") && !then.contains("### @3"), "{then}");
}

#[test]
fn a_moment_is_exported_as_the_request_that_an_api_takes() {
    let place = Place::new();
    talk(&place);
    let tools = r#"[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}]"#;
    std::fs::write(place.path().join("tools.json"), tools).unwrap();
    place.ok(&["edit", "setup", "licences", "--tools", "tools.json"]);
    let body = |args: &[&str]| -> Value {
        let args = [&["export"][..], args].concat();
        serde_json::from_str(&place.ok(&args)).unwrap()
    };
    let openai = body(&["licences", "--format", "openai", "--model", "gpt-4o"]);
    assert_eq!((&openai["model"], &openai["messages"][0]["role"]), (&json!("gpt-4o"), &json!("system")));
    assert_eq!(openai["messages"].as_array().unwrap().len(), 5);
    assert_eq!(openai["tools"][0]["function"]["name"], "read");
    let anthropic = body(&["licences", "--format", "anthropic", "--model", "claude"]);
    assert_eq!(anthropic["system"], "Be careful.");
    assert_eq!(
        (&anthropic["tools"][0]["name"], &anthropic["messages"][0]["role"]),
        (&json!("read"), &json!("user"))
    );
    assert!(anthropic["max_tokens"].is_u64());
    let then = body(&["licences@2", "--format", "openai", "--model", "m"]);
    assert_eq!(then["messages"].as_array().unwrap().len(), 2, "the set-up came with @1, and one message");
    let said = place.run(&["export", "licences", "--format", "openai"]);
    assert!(said.code == 2 && said.err.contains("--model"), "{}", said.err);
    let said = place.run(&["export", "licences@0", "--format", "openai", "--model", "m"]);
    assert!(said.code == 5 && said.out.is_empty(), "{}", said.err);
    let said = place.run(&["export", "licences@2"]);
    assert!(said.code == 2 && said.err.contains("whole session"), "{}", said.err);
}

#[test]
fn an_entry_that_is_not_there_is_the_same_mistake_everywhere() {
    let place = Place::new();
    talk(&place);
    let want = "komado: licences/root has 5 entries; @99 is not there; `komado log licences` lists them\n";
    for args in [
        &["rewind", "licences@99"][..],
        &["fork", "licences@99", "other"],
        &["log", "licences@99"],
        &["show", "licences@99"],
        &["revert", "licences@99"],
        &["edit", "pin", "licences@99"],
        &["edit", "unpin", "licences@99"],
        &["session", "output", "licences", "@99"],
        &["session", "diff", "licences@99"],
        &["export", "licences@99", "--format", "md"],
        &["export", "licences@99", "--format", "openai", "--model", "m"],
    ] {
        let said = place.run(args);
        assert_eq!((said.code, said.err.as_str()), (3, want), "{args:?}");
    }
    assert_eq!(place.json_lines(&["log", "licences"]).len(), 5, "nothing was written");
    assert!(place.run(&["edit", "pin", "licences@0"]).err.contains("@0 is not there"));
    place.ok(&["new", "--id", "empty", "--meter", "bytes4"]);
    assert!(place.run(&["show", "empty@1"]).err.contains("empty/root has no entries yet; @1 is not there"));
}

#[test]
fn a_name_that_is_not_there_is_told_with_the_nearest_and_a_beginning_of_several_with_their_ages() {
    let place = Place::new();
    talk(&place);
    let said = place.run(&["show", "licenses"]);
    let want = format!(
        "komado: there is no session \"licenses\"; did you mean \"licences\"? sessions are in {}; `komado sessions` \
         lists them\n",
        place.base().display()
    );
    assert_eq!((said.code, said.err), (3, want));
    let said = place.run(&["show", "licences/roto"]);
    assert!(said.code == 3 && said.err.contains("did you mean \"root\"?"), "{}", said.err);
    let said = place.run(&["show", "quite-another"]);
    assert!(said.code == 3 && !said.err.contains("did you mean"), "{}", said.err);
    for n in 1..=7 {
        place.ok(&["new", "--id", &format!("run-{n}"), "--meter", "bytes4"]);
    }
    let said = place.run(&["show", "run"]);
    assert!(
        said.code == 3 && said.err.contains("\"run\" fits several sessions: run-7 (just now), "),
        "{}",
        said.err
    );
    assert!(said.err.contains(" and 2 more; write more of it"), "{}", said.err);
}

#[test]
fn ids_are_of_any_script_and_one_name_is_one_id() {
    let place = Place::new();
    place.ok(&["new", "--id", "小窓-1", "--meter", "bytes4", "--window", "4000"]);
    place.ok(&["append", "小窓-1", "開ける"]);
    assert!(place.folder("小窓-1").join("messages.jsonl").exists());
    assert!(place.ok(&["show", "小"]).contains("開ける"), "a beginning is enough");
    place.ok(&["fork", "小窓-1@1", "枝"]);
    assert!(place.ok(&["log", "小窓-1/枝"]).contains("開ける"));
    assert!(place.ok(&["sessions"]).contains("小窓-1"));
    assert!(place.ok(&["recall", "--all", "開ける"]).contains("小窓-1@1"));
    // A keyboard may send é as two characters.
    place.ok(&["new", "--id", "e\u{301}te\u{301}", "--meter", "bytes4"]);
    place.ok(&["append", "\u{e9}t\u{e9}", "chaud"]);
    assert_eq!(place.run(&["new", "--id", "\u{e9}t\u{e9}"]).code, 5, "it is taken");
    for wrong in ["窓/窓", "窓 窓", "a\u{202e}b", "a\u{ff0f}b", "\u{301}a", "窓\u{fe0f}"] {
        assert_eq!(place.run(&["new", "--id", wrong]).code, 6, "{wrong:?}");
    }
    let copy = place.ok(&["export", "小窓-1"]);
    place.ok(&["session", "complete", "小窓-1"]);
    let other = Place::new();
    assert_eq!(other.feed(&["import"], copy.as_bytes()).code, 0);
    assert_eq!(other.ok(&["export", "小窓-1"]), copy);
    assert_eq!(place.run(&["admin", "doctor"]).code, 0);
}
