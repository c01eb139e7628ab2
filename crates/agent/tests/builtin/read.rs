//! `read`.

use super::Bench;
use serde_json::json;

#[test]
fn lines_come_with_their_numbers_and_the_way_to_read_on() {
    let mut bench = Bench::new();
    bench.write("日記/窓.txt", "一行目\n二行目\n三行目\n");
    assert_eq!(
        bench.well("read", &json!({ "path": "日記/窓.txt", "limit": "2" })),
        "1\t一行目\n2\t二行目\n[more follows: read on with offset 3]\n"
    );
    assert_eq!(
        bench.well("read", &json!({ "path": "日記/窓.txt", "offset": 3, "limit": null })),
        "3\t三行目\n[end of 日記/窓.txt: 3 lines]\n"
    );
    let whole = bench.work().join("日記/窓.txt");
    assert!(bench.well("read", &json!({ "path": whole })).contains("一行目"));
}

#[test]
fn what_cannot_be_read_is_said_in_words() {
    let mut bench = Bench::new();
    bench.write("binary", b"\x7fELF\0\0");
    bench.write("empty", "");
    bench.write("short", "a\nb\n");
    bench.write("sub/x", "");
    assert!(bench.wrong("read", &json!({ "path": "binary" })).contains("binary file of 6 bytes"));
    assert_eq!(bench.well("read", &json!({ "path": "empty" })), "[empty is empty]\n");
    assert_eq!(
        bench.wrong("read", &json!({ "path": "short", "offset": 9 })),
        "short has 2 lines; there is no line 9"
    );
    assert_eq!(bench.wrong("read", &json!({ "path": "sub" })), "sub is a folder; use list");
    assert!(bench.wrong("read", &json!({ "path": "gone" })).contains("is not there"));
    assert!(bench.wrong("read", &json!({})).contains("path is missing"));
    assert!(bench.wrong("read", &json!({ "path": "a\0b" })).contains("NUL"));
}

#[test]
fn a_long_line_is_cut_and_other_encodings_are_shown_as_well_as_can_be() {
    let mut bench = Bench::new();
    bench.write("long", "x".repeat(5_000));
    bench.write("sjis", b"\x91\x8b\nascii\n");
    assert!(bench.well("read", &json!({ "path": "long" })).contains("… [cut: the line has 5000 bytes]"));
    assert!(bench.well("read", &json!({ "path": "sjis" })).contains("2\tascii"));
}

#[test]
fn a_pipe_does_not_keep_the_reader_waiting() {
    let mut bench = Bench::new();
    assert!(!bench.shell("python3 -c 'import os; os.mkfifo(\"pipe\")'").is_error);
    assert!(bench.wrong("read", &json!({ "path": "pipe" })).contains("not a regular file"));
    assert!(bench.well("list", &json!({})).contains("pipe (no regular file)"));
    assert!(bench.well("grep", &json!({ "pattern": "x" })).contains("no line"));
}
