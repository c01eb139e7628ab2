//! A child's life: started, ended, aborted, paused, resumed; what each says, and what the parent sees of it.

use super::{node, session, shown, start};
use crate::thread::run::Place;
use serde_json::{Value, json};

#[test]
fn a_child_ends_and_its_parent_is_told_what_was_done() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "コーディングセッション");
    let running = shown(&place, &city);
    assert!(
        running.contains("[Stelisスレッド: コーディングセッション]") && running.contains("進行中"),
        "{running}"
    );
    place.ok(&["append", "city/stelis_1", "calculator_v2 を書いて"]);
    assert_eq!(shown(&place, &city), running, "the anchor stands still while the child works");
    place.ok(&["append", "city/stelis_1", "--role", "assistant", "書きました"]);
    let row =
        place.json(&["thread", "end", "city/st", "できた", "--chronicle", "calculator_v2 を作りました。"]);
    assert_eq!(
        (&row["status"], &row["told"], &row["aborted"]),
        (&json!("completed"), &json!(true), &json!([]))
    );
    assert_eq!(row["chronicle"]["text"], "calculator_v2 を作りました。");
    assert_eq!(row["chronicle"]["partial"], false);
    assert_eq!(row["undo"], "komado thread resume city/stelis_1");
    let ended = shown(&place, &city);
    for words in [
        "## Chronicle",
        "calculator_v2 を作りました。",
        "メッセージ数: 2",
        "[assistant]: 書きました",
        "できた",
    ] {
        assert!(ended.contains(words), "{words}: {ended}");
    }
    assert!(!ended.contains("進行中"), "{ended}");
}

#[test]
fn nothing_is_said_in_an_ended_child_and_the_error_names_the_command_that_opens_it() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    place.ok(&["append", "city/stelis_1", "one"]);
    for (verb, more) in [("end", " --no-chronicle"), ("abort", ""), ("pause", "")] {
        place.ok(&["thread", verb, "city/stelis_1"]);
        for args in [&["append", "city/stelis_1", "more"][..], &["thread", "start", "city/stelis_1", "below"]]
        {
            let said = place.run(args);
            assert_eq!(said.code, 5, "{verb}: {}", said.err);
            assert!(said.err.contains("`komado thread resume city/stelis_1`"), "{verb}: {}", said.err);
        }
        let row = place.json(&["thread", "resume", "city/stelis_1"]);
        assert_eq!(
            (&row["status"], &row["undo"]),
            (&json!("active"), &json!(format!("komado thread {verb} city/stelis_1{more}")))
        );
        place.ok(&["append", "city/stelis_1", "more"]);
    }
}

#[test]
fn a_child_resumed_sees_what_its_parent_said_meanwhile_and_has_its_own_words() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    place.ok(&["append", "city/stelis_1", "own words"]);
    place.ok(&["thread", "pause", "city/stelis_1", "until Monday"]);
    assert!(shown(&place, &city).contains("until Monday"));
    place.ok(&["append", &city, "月曜の知らせ"]);
    place.ok(&["thread", "resume", "city/stelis_1"]);
    let child = shown(&place, "city/stelis_1");
    assert!(child.contains("own words") && child.contains("月曜の知らせ"), "{child}");
    assert!(shown(&place, &city).contains("in progress") || shown(&place, &city).contains("進行中"));
}

#[test]
fn an_aborted_child_leaves_a_partial_chronicle_and_takes_those_below_with_it() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    start(&place, "city/stelis_1", "b");
    place.ok(&["append", "city/stelis_1", "look at src/main.rs"]);
    place.ok(&["append", "city/stelis_1_1", "run cargo test"]);
    let row = place.json(&["thread", "abort", "city/stelis_1", "飽きた"]);
    assert_eq!((&row["status"], &row["aborted"]), (&json!("aborted"), &json!(["stelis_1_1"])));
    assert_eq!(row["chronicle"]["partial"], true);
    let tree = place.json(&["thread", "tree", &city]);
    for thread in ["stelis_1", "stelis_1_1"] {
        assert_eq!(node(&tree, thread)["status"], "aborted");
        assert_eq!(node(&tree, thread)["chronicle"]["partial"], true, "{tree}");
    }
    assert!(shown(&place, &city).contains("飽きた"));
}

#[test]
fn what_resume_is_undone_by_makes_the_thread_what_it_was() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    place.ok(&["append", "city/stelis_1", "one"]);
    place.ok(&["thread", "end", "city/stelis_1", "it's done", "--chronicle", "手で書いた"]);
    let ended = shown(&place, &city);
    let row = place.json(&["thread", "resume", "city/stelis_1"]);
    assert_eq!(row["undo"], r"komado thread end city/stelis_1 'it'\''s done' --no-chronicle");
    place.ok(&["thread", "end", "city/stelis_1", "it's done", "--no-chronicle"]);
    let again = shown(&place, &city);
    for words in ["it's done", "手で書いた"] {
        assert!(ended.contains(words) && again.contains(words), "{words}: {again}");
    }
}

#[test]
fn whoever_ends_a_thread_is_told_how_those_below_it_go_on() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    start(&place, "city/stelis_1", "b");
    start(&place, "city/stelis_1_1", "c");
    let below = ["komado thread resume city/stelis_1_1", "komado thread resume city/stelis_1_1_1"];
    let ended = place.json(&["thread", "end", "city/stelis_1"]);
    assert_eq!(ended["undo_aborted"], json!(below));
    let undo = |row: &Value| {
        let commands = [&row["undo"]].into_iter().chain(row["undo_aborted"].as_array().unwrap());
        for command in commands {
            place.ok(&command.as_str().unwrap().split(' ').skip(1).collect::<Vec<_>>());
        }
        let tree = place.json(&["thread", "tree", "city"]);
        for thread in ["stelis_1", "stelis_1_1", "stelis_1_1_1"] {
            assert_eq!(node(&tree, thread)["status"], "active", "{tree}");
        }
    };
    undo(&ended);
    let stopped = place.json(&["session", "stop", &city]);
    assert_eq!(stopped["undo_aborted"].as_array().unwrap().len(), 3, "{stopped}");
    undo(&stopped);
    let said = place.run(&["session", "complete", &city]);
    assert!(
        said.err.contains(&format!(
            "undo: komado session resume city\n      komado thread resume city/stelis_1\n      {}",
            below[0]
        )),
        "{}",
        said.err
    );
}

#[test]
fn a_session_that_ends_says_which_children_ended_with_it() {
    let place = Place::new();
    for verb in [&["session", "complete"][..], &["session", "fail"], &["session", "stop"]] {
        let id = place.session_with(&["--meter", "bytes4", "--window", "100000"]);
        place.ok(&["append", &id, "hello"]);
        start(&place, &id, "a");
        start(&place, &id, "b");
        place.ok(&["thread", "end", &format!("{id}/stelis_2"), "--no-chronicle"]);
        let mut args = verb.to_vec();
        args.push(&id);
        args.extend((verb[1] == "fail").then_some("because"));
        let row = place.json(&args);
        assert_eq!(row["aborted"], json!(["stelis_1"]), "{verb:?}");
        let tree = place.json(&["thread", "tree", &id]);
        assert_eq!(node(&tree, "stelis_1")["status"], "aborted");
        assert_eq!(node(&tree, "stelis_2")["status"], "completed");
    }
}

#[test]
fn a_chronicle_is_shown_edited_and_taken_back_with_what_it_covers() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    let said = place.run(&["thread", "chronicle", "city/stelis_1"]);
    assert_eq!(said.code, 3, "{}", said.err);
    place.ok(&["append", "city/stelis_1", "look at src/main.rs and keep it small"]);
    place.ok(&["thread", "end", "city/stelis_1"]);
    let first = place.json(&["thread", "chronicle", "city/stelis_1"]);
    let covers = first["covers"].as_array().unwrap();
    assert_eq!(covers.len(), 2);
    assert!(!first["text"].as_str().unwrap().is_empty());

    let row = place.json(&["thread", "chronicle", "city/stelis_1", "--text", "手で書いた"]);
    assert_eq!((&row["text"], &row["by"]), (&json!("手で書いた"), &json!("by_hand")));
    assert!(shown(&place, &city).contains("手で書いた"));
    let undo: Vec<&str> = row["undo"].as_str().unwrap().split(' ').skip(1).collect();
    place.ok(&undo);
    assert_eq!(place.json(&["thread", "chronicle", "city/stelis_1"])["text"], first["text"]);
    assert!(!shown(&place, &city).contains("手で書いた"));

    std::fs::write(place.path().join("told.txt"), "from a file\n").unwrap();
    place.ok(&["thread", "chronicle", "city/stelis_1", "--file", "told.txt"]);
    assert!(place.ok(&["thread", "chronicle", "city/stelis_1"]).starts_with("from a file"));
    place.ok(&["thread", "chronicle", "city/stelis_1", "--again"]);
    assert_eq!(place.json(&["thread", "chronicle", "city/stelis_1"])["text"], first["text"]);
    assert_eq!(place.run(&["thread", "chronicle", "city/stelis_1", "--text", " "]).code, 2);
    assert_eq!(place.run(&["thread", "chronicle", "city/stelis_1", "--file", "none"]).code, 3);
}

#[test]
fn a_program_writes_the_chronicle_where_the_settings_name_one() {
    let place = Place::new();
    let city = session(&place);
    place.ok(&["thread", "start", &city, "a", "--chronicle-prompt", "Tell it as a haiku."]);
    place.ok(&["append", "city/stelis_1", "do the long thing"]);
    let script = place.path().join("writer.sh");
    std::fs::write(&script, "#!/bin/sh\ncat > asked.txt\necho 'Long thing done; the harbour sleeps.'\n")
        .unwrap();
    let set = format!("compaction.command=sh {}", script.display());
    let row = place.json(&["thread", "end", "city/stelis_1", "--set", &set]);
    assert!(row["chronicle"]["text"].as_str().unwrap().contains("the harbour sleeps"), "{row}");
    let asked = std::fs::read_to_string(place.path().join("asked.txt")).unwrap();
    assert!(asked.contains("haiku") && asked.contains("do the long thing"), "{asked}");
}

#[test]
fn what_cannot_be_meant_is_an_error_that_says_what_can() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    for (args, code, words) in [
        (&["thread", "end", &city][..], 2, "name a child thread"),
        (&["thread", "end", "city/nobody"], 3, "nobody"),
        (&["thread", "abort", "elsewhere/x"], 3, "elsewhere"),
        (&["thread", "resume", "city/stelis_1"], 5, ""),
        (&["thread", "start", &city, "--ratio", "0"], 2, "0.01 to 0.99, not: 0"),
        (&["thread", "start", &city, "--ratio", "1"], 2, "not: 1"),
        (&["thread", "start", &city, "--ratio", "1.2"], 2, "not: 1.2"),
        (&["thread", "start", &city, "--ratio", "0.009999999"], 2, "not: 0.009999999"),
        (&["thread", "start", &city, "--ratio", "abc"], 2, "not: abc"),
        (&["thread", "start", &city, "--max-depth", "-1"], 2, "-1"),
        (&["thread", "start", &city, "--name", "a/b"], 6, "a/b"),
        (&["thread", "start", &city, "--name", "stelis_1"], 5, "stelis_1"),
        (&["thread", "start", &city, "--tools", "none.json"], 3, "none.json"),
        (&["thread", "end", "city/stelis_1", "--chronicle", ""], 2, "empty"),
        (&["thread", "end", "city/stelis_1", "--no-chronicle", "--chronicle", "x"], 2, "cannot be used"),
        (&["thread", "end", "city/stelis_1@2"], 2, "@2"),
        (&["thread", "start"], 2, "required"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
    let bare = place.session_with(&["--meter", "bytes4"]);
    let said = place.run(&["thread", "start", &bare]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--window TOKENS"), "{}", said.err);
    place.ok(&["append", &bare, "hello"]);
    place.ok(&["thread", "start", &bare, "--window", "50000"]);
    let said = place.run(&["thread", "abort", "city/nobody", "--json"]);
    let error: Value = serde_json::from_str(said.err.trim()).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
}

#[test]
fn other_verbs_work_in_a_child_and_inside_its_share() {
    let place = Place::new();
    let city = place.session_with(&["--id", "city", "--meter", "bytes4", "--window", "8000"]);
    place.ok(&["append", &city, "the request"]);
    start(&place, &city, "long");
    for n in 0..40 {
        place.ok(&["append", "city/stelis_1", &format!("{n} {}", "word ".repeat(200))]);
    }
    let slices: Vec<String> = shown(&place, "city/stelis_1").lines().take(3).map(str::to_owned).collect();
    let row = place.json(&["fit", "city/stelis_1"]);
    assert!(!row["edits"].as_array().unwrap().is_empty(), "{row}");
    let context = place.json(&["context", "city/stelis_1"]);
    assert!(context["context_tokens"].as_u64() <= context["window"].as_u64(), "{context}");
    let after: Vec<String> = shown(&place, "city/stelis_1").lines().take(3).map(str::to_owned).collect();
    assert_eq!(after, slices, "what protects the parent is not the ladder's to take");
    let undo: Vec<&str> = row["edits"][0]["undo"].as_str().unwrap().split(' ').skip(1).collect();
    place.ok(&undo);
    place.ok(&["edit", "pin", "city/stelis_1@2"]);
    // Until it is answered, all that was said stays.
    place.ok(&["append", "city/stelis_1", "--role", "assistant", "I read it."]);
    place.ok(&["edit", "condense", "city/stelis_1"]);
    assert!(place.ok(&["log", "city/stelis_1"]).contains("share"));
    let rows = place.json_lines(&["sessions", &city]);
    let child = rows.iter().find(|row| row["thread"] == "stelis_1").unwrap();
    assert_eq!((&child["status"], &child["parent"]), (&json!("active"), &json!("root@2")));
    assert!(place.ok(&["sessions", &city]).contains("root@2"));

    let fork = place.json(&["fork", "city/stelis_1", "other"]);
    assert_eq!(fork["parent"]["thread"], "root");
    place.ok(&["append", "city/other", "another way"]);
    place.ok(&["thread", "end", "city/other", "--chronicle", "the other way"]);
    assert!(shown(&place, &city).contains("the other way"));
    place.ok(&["admin", "doctor"]);
    let copy = place.ok(&["export", &city]);
    place.feed(&["import", "--as", "copy"], copy.as_bytes());
    let tree = place.json(&["thread", "tree", "copy"]);
    assert_eq!(node(&tree, "stelis_1")["status"], "active");
    assert_eq!(node(&tree, "other")["status"], "completed");
}
