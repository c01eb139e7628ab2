//! `edit`.

use super::Bench;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn words_take_the_place_of_others_and_the_change_is_shown() {
    let mut bench = Bench::new();
    bench.write("本.txt", "一\n二\n三\n");
    assert_eq!(
        bench.well("edit", &json!({ "path": "本.txt", "old": "二\n", "new": "弐\n四\n" })),
        "changed 本.txt once, at line 2\n-二\n+弐\n+四"
    );
    assert_eq!(bench.read("本.txt"), "一\n弐\n四\n三\n");
    bench.write("many", "a b a\na\n");
    let why = bench.wrong("edit", &json!({ "path": "many", "old": "a", "new": "c" }));
    assert!(why.contains("3 times (lines 1, 1, 2)"), "{why}");
    assert_eq!(bench.read("many"), "a b a\na\n");
    bench.well("edit", &json!({ "path": "many", "old": "a", "new": "", "all": true }));
    assert_eq!(bench.read("many"), " b \n\n");
}

#[test]
fn words_that_are_not_there_bring_the_nearest_line() {
    let mut bench = Bench::new();
    bench.write("code.rs", "fn a() {\n        let window = 1;\n}\n");
    let why = bench.wrong("edit", &json!({ "path": "code.rs", "old": "    let window = 2;", "new": "x" }));
    assert!(why.contains("nearest is line 2:         let window = 1;"), "{why}");
    let why = bench.wrong("edit", &json!({ "path": "code.rs", "old": "まったく違う", "new": "x" }));
    assert!(why.contains("no line is like it"), "{why}");
}

#[test]
fn a_file_of_another_system_keeps_its_line_ends() {
    let mut bench = Bench::new();
    bench.write("dos.txt", "a\r\nb\r\nc\r\n");
    bench.well("edit", &json!({ "path": "dos.txt", "old": "a\nb", "new": "x\ny\nz" }));
    assert_eq!(bench.read("dos.txt"), "x\r\ny\r\nz\r\nc\r\n");
}

#[test]
fn a_whole_file_is_written_with_the_folders_above_it() {
    let mut bench = Bench::new();
    let made = bench.well("edit", &json!({ "path": "新/しい/file.txt", "content": "一\n二\n" }));
    assert_eq!(made, "made 新/しい/file.txt: 2 lines, 8 bytes");
    assert_eq!(bench.read("新/しい/file.txt"), "一\n二\n");
    let anew = bench.well("edit", &json!({ "path": "新/しい/file.txt", "content": "" }));
    assert_eq!(anew, "wrote 新/しい/file.txt anew: 0 lines, 0 bytes");
    bench.well("edit", &json!({ "path": "-rf", "content": "x" }));
    assert_eq!(bench.read("-rf"), "x");
}

#[test]
fn permissions_are_kept_a_link_stays_a_link_and_nothing_is_left_beside() {
    let mut bench = Bench::new();
    bench.write("sub/run.sh", "echo 1\n");
    let file = bench.work().join("sub/run.sh");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("sub/run.sh", bench.work().join("link")).unwrap();
    bench.well("edit", &json!({ "path": "link", "old": "1", "new": "2" }));
    assert_eq!(bench.read("sub/run.sh"), "echo 2\n");
    assert!(bench.work().join("link").is_symlink());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(std::fs::read_dir(bench.work().join("sub")).unwrap().count(), 1);
}

#[test]
fn orders_that_contradict_themselves_are_refused() {
    let mut bench = Bench::new();
    bench.write("a", "a");
    std::fs::create_dir(bench.work().join("dir")).unwrap();
    for (order, words) in [
        (json!({ "path": "a", "content": "x", "old": "a" }), "not both"),
        (json!({ "path": "a", "old": "", "new": "x" }), "old is empty"),
        (json!({ "path": "a", "old": "a", "new": "a" }), "the same"),
        (json!({ "path": "a", "old": "a" }), "give old and new"),
        (json!({ "path": "gone", "old": "a", "new": "b" }), "is not there"),
        (json!({ "path": "dir", "content": "x" }), "is a folder"),
        (json!({ "path": ".", "content": "x" }), "is a folder"),
        (json!({ "path": "a/b", "content": "x" }), "is not a folder"),
    ] {
        let why = bench.wrong("edit", &order);
        assert!(why.contains(words), "{order}: {why}");
    }
    assert_eq!(bench.read("a"), "a");
}

#[test]
fn words_that_would_fill_the_memory_are_refused_and_the_file_stays() {
    let mut bench = Bench::new();
    let before = "a".repeat(1 << 20);
    bench.write("a", &before);
    let why =
        bench.wrong("edit", &json!({ "path": "a", "old": "a", "new": "b".repeat(1 << 20), "all": true }));
    assert!(why.contains("would grow to about"), "{why}");
    let why = bench.wrong("edit", &json!({ "path": "a", "old": "a".repeat(70_000), "new": "b" }));
    assert!(why.contains("old has 70000 bytes"), "{why}");
    assert_eq!(bench.read("a"), before);
}
