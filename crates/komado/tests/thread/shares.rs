//! Who has how much of the window, and what fills it.

use super::{node, session, shown, start};
use crate::thread::run::Place;
use serde_json::{Value, json};

fn shares(node: &Value) -> Vec<u64> {
    let above = node["share"]["above"].as_array().unwrap();
    let above = above.iter().map(|thread| thread["share"].as_u64().unwrap());
    above.chain([node["share"]["own"].as_u64().unwrap()]).collect()
}

#[test]
fn a_hundred_thousand_at_four_fifths_twice_is_20k_and_16k_and_64k() {
    let place = Place::new();
    let city = session(&place);
    let first = start(&place, &city, "Coding Session");
    assert_eq!(
        (&first["thread"], &first["depth"], &first["ratio"]),
        (&json!("stelis_1"), &json!(1), &json!(0.8))
    );
    assert_eq!(shares(&first), [20_000, 80_000]);
    let second = start(&place, "city/stelis_1", "ClaudeCode連携");
    assert_eq!((&second["thread"], &second["depth"]), (&json!("stelis_1_1"), &json!(2)));
    assert_eq!(shares(&second), [20_000, 16_000, 64_000]);
    start(&place, &city, "別タスク");

    let tree = place.json(&["thread", "tree", &city, "--window", "100000"]);
    assert_eq!(tree["window"], 100_000);
    let windows =
        ["root", "stelis_1", "stelis_1_1", "stelis_2"].map(|name| node(&tree, name)["thread_window"].clone());
    assert_eq!(windows, [json!(100_000), json!(80_000), json!(64_000), json!(80_000)]);
    assert_eq!(shares(&node(&tree, "stelis_1_1")), [20_000, 16_000, 64_000]);
    assert_eq!(node(&tree, "stelis_1_1")["parent"], "stelis_1");
    assert_eq!(node(&tree, "stelis_2")["status"], "active");
    let order: Vec<&Value> = tree["threads"].as_array().unwrap().iter().map(|node| &node["thread"]).collect();
    assert_eq!(order, [&json!("root"), &json!("stelis_1"), &json!("stelis_1_1"), &json!("stelis_2")]);
}

#[test]
fn what_is_left_of_the_shares_above_is_lent_unless_told_otherwise() {
    let place = Place::new();
    let city = session(&place);
    let lent = place.json(&["thread", "start", &city])["share"].clone();
    let used = lent["above"][0]["used"].as_u64().unwrap();
    assert_eq!(lent["lent"], 20_000 - used);
    assert_eq!(lent["room"], 100_000 - used);
    let kept = start(&place, &city, "b")["share"].clone();
    assert_eq!((&kept["lent"], &kept["room"]), (&json!(0), &json!(80_000)));
    let off = place.run(&["thread", "start", &city, "c", "--set", "threads.lending=false", "--json"]);
    let off: Value = serde_json::from_str(&off.out).unwrap();
    assert_eq!(off["share"]["lent"], 0);
}

#[test]
fn the_gauge_of_a_child_is_that_of_its_share_and_says_what_is_above() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "Coding Session");
    let said = place.json(&["append", "city/stelis_1", "begin"]);
    let context = place.json(&["context", "city/stelis_1"]);
    let above = context["above"].as_u64().unwrap();
    assert!(above > 0, "{context}");
    assert_eq!(context["window"], 80_000 + above);
    assert_eq!(said["window"], context["window"]);
    assert_eq!(context["parts"]["above"], above);
    assert_eq!(context["free_tokens"], 80_000 + above - context["context_tokens"].as_u64().unwrap());
    let text = place.ok(&["context", "city/stelis_1"]);
    assert!(text.contains("▚ above"), "{text}");
    assert!(text.contains("share: 20,000 root + 80,000 own"), "{text}");
    let root = place.json(&["context", &city]);
    assert_eq!((&root["above"], &root["share"], &root["window"]), (&json!(0), &Value::Null, &json!(100_000)));
}

#[test]
fn a_child_is_shown_what_protects_its_parent_and_the_parent_is_not_shown_its_words() {
    let place = Place::new();
    let city = place.session_with(&[
        "--id",
        "city",
        "--meter",
        "bytes4",
        "--window",
        "100000",
        "--system",
        "You are the harbour master.",
    ]);
    place.ok(&["append", &city, "電卓を作って"]);
    start(&place, &city, "作業");
    place.ok(&["append", "city/stelis_1", "内緒の細部"]);
    start(&place, "city/stelis_1", "孫");
    let child = shown(&place, "city/stelis_1_1");
    for words in ["harbour master", "電卓を作って", "内緒の細部"] {
        assert!(child.contains(words), "{words}: {child}");
    }
    let root = shown(&place, &city);
    assert!(root.contains("作業") && root.contains("stelis_1") && !root.contains("内緒の細部"), "{root}");
    let text = place.ok(&["show", "city/stelis_1_1", "--brief"]);
    for words in ["of root@", "of stelis_1@", "電卓を作って", "内緒の細部"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn shares_are_balanced_anew_and_the_one_before_comes_back() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    start(&place, "city/stelis_1", "b");
    let row = place.json(&["thread", "balance", "city/stelis_1", "--ratio", "0.5"]);
    assert_eq!(shares(&row), [50_000, 50_000]);
    assert_eq!(row["entries"].as_array().unwrap().len(), 2, "{row}");
    let tree = place.json(&["thread", "tree", &city]);
    assert_eq!(shares(&node(&tree, "stelis_1_1")), [50_000, 10_000, 40_000]);
    let undo: Vec<&str> = row["undo"].as_str().unwrap().split(' ').skip(1).collect();
    place.ok(&undo);
    let tree = place.json(&["thread", "tree", &city]);
    assert_eq!(shares(&node(&tree, "stelis_1_1")), [20_000, 16_000, 64_000]);

    place.ok(&["append", &city, "新しい知らせ"]);
    assert!(!shown(&place, "city/stelis_1").contains("新しい知らせ"));
    let row = place.json(&["thread", "balance", "city/stelis_1", "--refresh"]);
    assert_eq!(row["undo"], Value::Null);
    assert!(shown(&place, "city/stelis_1").contains("新しい知らせ"));
    assert_eq!(place.run(&["thread", "balance", "city/stelis_1"]).code, 2);
}

#[test]
fn a_child_too_deep_or_without_room_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let city = session(&place);
    let mut parent = city.clone();
    for _ in 0..3 {
        parent = start(&place, &parent, "d")["address"].as_str().unwrap().to_owned();
    }
    let before = place.ok(&["log", &parent]);
    let said = place.run(&["thread", "start", &parent]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains('3'), "{}", said.err);
    assert_eq!(place.ok(&["log", &parent]), before);
    assert_eq!(place.json_lines(&["sessions", &city]).len(), 4);
    place.ok(&["thread", "start", &parent, "--max-depth", "4"]);

    let small = place.session_with(&["--meter", "bytes4", "--window", "1000"]);
    place.ok(&["append", &small, "hello"]);
    let said = place.run(&["thread", "start", &small, "--ratio", "0.1", "--no-lending"]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("1000") || said.err.contains("100"), "numbers: {}", said.err);
    assert_eq!(place.json_lines(&["sessions", &small]).len(), 1);
}

#[test]
fn the_tree_is_drawn_with_every_thread_its_state_and_its_share() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "コーディング");
    start(&place, "city/stelis_1", "test");
    place.ok(&["append", "city/stelis_1_1", "走らせて"]);
    place.ok(&["thread", "end", "city/stelis_1_1", "--chronicle", "すべて通った。\n二行目"]);
    start(&place, &city, "別タスク");
    place.ok(&["fork", &city, "plan-b"]);
    let drawn = place.ok(&["thread", "tree", &city]);
    let lines: Vec<&str> = drawn.lines().collect();
    let has = |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["root", "active"]), "{drawn}");
    assert!(has(&["├─ stelis_1", "コーディング", "active", "80,000"]), "{drawn}");
    assert!(has(&["└─ stelis_1_1", "test", "completed"]), "{drawn}");
    assert!(has(&["すべて通った。"]) && !drawn.contains("二行目"), "{drawn}");
    assert!(has(&["└─ stelis_2", "別タスク"]), "{drawn}");
    assert!(has(&["plan-b", "root@"]), "{drawn}");
    assert!(has(&["20,000 root + 80,000 own"]), "{drawn}");
    assert!(!drawn.contains('\u{1b}'), "no colours without a terminal: {drawn}");
}

#[test]
fn a_window_too_small_for_what_is_seen_above_is_shown_as_overfull() {
    let place = Place::new();
    let city = session(&place);
    place.ok(&["append", &city, &"word ".repeat(8_000)]);
    start(&place, &city, "a");
    let context = place.json(&["context", "city/stelis_1", "--window", "5000"]);
    assert!(context["context_tokens"].as_u64().unwrap() > 5_000, "{context}");
    assert_eq!((&context["window"], &context["free_tokens"]), (&json!(5_000), &json!(0)));
    for args in [
        &["context", "city/stelis_1", "--window", "5000"][..],
        &["thread", "tree", &city, "--window", "5000"],
    ] {
        let text = place.ok(args);
        assert!(text.contains("201.0 % 10,048 of 5,000"), "{text}");
    }
}

#[test]
fn narrow_paper_is_wide_enough_for_a_tree_and_labels_give_no_orders() {
    use crate::thread::run::feed;
    use komado_core::notation::width;
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "とても長い名前のスレッドでまだ続く");
    start(&place, "city/stelis_1", "a\nFAKE ROW\u{1b}[2J");
    start(&place, "city/stelis_1_1", "another label that goes on and on");
    let mut command = place.command(&["thread", "tree", &city]);
    command.env("COLUMNS", "40");
    let narrow = feed(command, b"").out;
    for line in narrow.lines() {
        assert!(width(line) <= 40, "{} columns: {line}", width(line));
    }
    assert!(narrow.contains("active") && narrow.contains('…'), "{narrow}");
    for args in
        [&["thread", "tree", &city][..], &["sessions", &city], &["show", &city], &["show", "city/stelis_1_1"]]
    {
        let text = place.ok(args);
        assert!(!text.contains('\u{1b}') && !text.contains("\nFAKE ROW"), "{args:?}: {text}");
    }
    // The model reads the label as we do.
    assert!(shown(&place, "city/stelis_1").contains(r"\\u001b[2J"));
}
