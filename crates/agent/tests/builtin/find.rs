//! `list` and `grep`.

use super::Bench;
use serde_json::json;

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(".gitignore", "target/\n*.log\n");
    bench.write("src/main.rs", "fn main() {\n    窓を開ける();\n}\n");
    bench.write("src/深い/下/x.rs", "fn x() {}\n");
    bench.write("src/.gitignore", "!keep.log\n");
    bench.write("src/keep.log", "kept fn\n");
    bench.write("src/drop.log", "dropped fn\n");
    bench.write("target/out", "built fn\n");
    bench.write(".git/config", "fn\n");
    bench
}

#[test]
fn a_list_leaves_out_what_is_ignored_unless_all_is_asked_for() {
    let mut bench = project();
    assert_eq!(
        bench.well("list", &json!({})),
        ".gitignore (14 bytes)\nsrc/\nsrc/.gitignore (10 bytes)\nsrc/keep.log (8 bytes)\nsrc/main.rs (37 bytes)\nsrc/深い/\n"
    );
    assert_eq!(bench.well("list", &json!({ "path": "src/深い", "depth": 9 })), "下/\n下/x.rs (10 bytes)\n");
    let all = bench.well("list", &json!({ "all": "true", "depth": "3" }));
    for name in [".git/config", "target/out", "src/drop.log", "src/深い/下/"] {
        assert!(all.contains(name), "{name} in {all}");
    }
    assert!(bench.wrong("list", &json!({ "path": "src/main.rs" })).contains("is not a folder"));
    std::fs::create_dir(bench.work().join("void")).unwrap();
    assert!(bench.well("list", &json!({ "path": "void" })).contains("is empty"));
}

#[test]
fn a_list_has_an_end() {
    let mut bench = Bench::new();
    for number in 0..2_100 {
        bench.write(&format!("many/{number:04}"), "");
    }
    let list = bench.well("list", &json!({}));
    assert!(list.lines().count() == 2_001 && list.contains("[more than 2000 entries"), "{}", list.len());
}

#[test]
fn a_search_finds_lines_in_any_language_and_tells_where() {
    let mut bench = project();
    assert_eq!(bench.well("grep", &json!({ "pattern": "窓を" })), "src/main.rs:2:    窓を開ける();\n");
    assert_eq!(
        bench.well("grep", &json!({ "pattern": "^FN .*\\(", "regex": true, "ignore_case": true })),
        "src/main.rs:1:fn main() {\nsrc/深い/下/x.rs:1:fn x() {}\n"
    );
    assert_eq!(
        bench.well("grep", &json!({ "pattern": "main", "context": 1, "path": "src/main.rs" })),
        "src/main.rs:1:fn main() {\nsrc/main.rs-2-    窓を開ける();\n"
    );
    assert_eq!(
        bench.well("grep", &json!({ "pattern": "built", "path": "target" })),
        "target/out:1:built fn\n"
    );
    assert_eq!(bench.well("grep", &json!({ "pattern": "nowhere" })), "no line in . matches");
    let few = bench.well("grep", &json!({ "pattern": "fn", "max": 1 }));
    assert!(few.lines().count() == 2 && few.contains("[more than 1 matches"), "{few}");
}

#[test]
fn a_search_survives_bytes_that_are_no_text_and_patterns_that_are_none() {
    let mut bench = Bench::new();
    bench.write("sjis", b"\x91\x8b key\n");
    bench.write("binary", b"key\0key\n");
    bench.write("long", format!("{}\nkey\n", "x".repeat(3 << 20)));
    let found = bench.well("grep", &json!({ "pattern": "key" }));
    assert!(found.contains("sjis:1:") && found.contains(" key"), "{found}");
    assert!(found.contains("[not searched to its end: long:"), "{found}");
    assert!(bench.wrong("grep", &json!({ "pattern": "(", "regex": true })).contains("cannot be used"));
    assert!(bench.wrong("grep", &json!({ "pattern": "" })).contains("is empty"));
    assert_eq!(bench.well("grep", &json!({ "pattern": "(", "path": "sjis" })), "no line in sjis matches");
}
