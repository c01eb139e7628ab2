//! The notation says what it means, and means what it says.

use super::*;
use komado_core::message::{Message, MessagePart, Role};
use komado_core::raw::RawJson;
use unicode_width::UnicodeWidthStr;

/// The lines of the module's own example, one of each kind.
fn example() -> String {
    let page = include_str!("../../../core/src/notation.rs");
    let begin = page.find("```text").unwrap();
    let lines = page[begin..].lines().skip(1).take_while(|line| !line.contains("```"));
    lines.map(|line| line.trim_start_matches("//!").trim().to_owned() + "\n").collect()
}

fn records(text: &str) -> Vec<Record> {
    let numbered = (1..).zip(parse(text).unwrap());
    numbered.map(|(seq, (entry, tokens))| Record { seq, timestamp: String::new(), tokens, entry }).collect()
}

fn one(entry: Entry, tokens: u32) -> Record {
    Record { seq: 1, timestamp: String::new(), tokens, entry }
}

fn user(text: &str) -> Record {
    one(Entry::Message(Message::text(Role::User, text), None), 0)
}

#[test]
fn every_line_of_the_page_reads_and_is_written_back_as_it_stands() {
    let page: String = example().lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    assert_eq!(page.lines().count(), 21);
    assert_eq!(journal(&records(&page)), page);
}

#[test]
fn what_is_written_reads_back_whatever_it_holds() {
    for line in [
        r#"1 user"#,
        r#"1 user "" "" ~1"#,
        r#"1 developer name="Ann B." "x" marked openai {"cache_control": {"type":"ephemeral"}} ~4294967295"#,
        r#"1 user image "http://x/y.png" detail=low image blob=b1 type=image/png bytes=12 "見て" opaque openai {"type":"audio"}"#,
        r#"1 assistant reasoning "hm" signature="a b=" reasoning "" call "c 1" "my tool" "not json" custom c2 patch {"a":1.0} plus {"k":[1]}"#,
        r#"1 assistant call c1 f "{\"a\":1} " call c2 f "{\"a\":\t1}" call c3 f """#,
        r#"1 assistant "done" extra openai {"refusal":null} reply"#,
        r#"1 assistant "done" reply finish="very odd" to=3 model="my model" used=1+2+4r "late" ~3"#,
        r#"1 tool "" "x""#,
        r#"1 tool c1"#,
        r#"1 tool c1 tool="error" name=ann error interrupted "x" "y" ref="a/b"/12l took=0ms"#,
        r#"1 tool c1 tool="reply" image "u" ref="" extra anthropic [1]"#,
        r#"1 tool c1 read ref=abc/12b"#,
        r#"1 setup"#,
        r#"1 setup params {"temperature":1.0} ~3"#,
        r#"1 condense 1,3..4 because "" "only a note""#,
        r#"1 condense 2..4 summary "x" ~9 because r model=m used=0+0 total ~0"#,
        r#"1 trim 4 "x", 5 "" ~2 total ~77"#,
        r#"1 lost"#,
        r#"1 lost finish="" "x""#,
        r#"1 anchor work paused first=3 "label" "" ~2"#,
        r#"1 sent "my model" digest="" for="a b""#,
        r#"1 close paused ~1"#,
        r#"1 anchor work "label" "" brief="" ~2"#,
        r#"1 anchor work first=3 "小窓" brief="a \"b\"\n""#,
        r#"1 share t window=0"#,
        r#"1 share of window=18446744073709551615 lends prompt="" held="host 7: 窓" total ~4294967295"#,
        r#"1 share a.b:c window=9 of keep@0 0.01 "" of root@4294967295 0.99 keep 3,1..2 "親\n" ~5 total ~0"#,
        r#"1 share t window=9 lends of root@1 0.333333 keep 4..2 "x" ~7 prompt="要約" held=p-1"#,
        r#"1 chronicle 0 """#,
        r#"1 chronicle 3..2 partial by="my model" used=1+2+3w+4r "やったこと\n- a" ~9"#,
        r#"1 chronicle 4 by=partial "x""#,
        r#"1 sent gpt-4o digest=ab12 4500 mark=4..7/1:1:3/2:1/inner@9f3a"#,
        r#"1 sent m digest=d for=condense mark=0..0@"#,
        r#"1 sent m digest=d mark=4..7/0:1/1:1/apart@9f3a"#,
        r#"1 sent m digest=d mark=4..4/0:1/inner/apart@9f3a"#,
        r#"1 sent m digest=d mark="0..3/0:2@a b@c/inner""#,
        r#"1 assistant "x" reply stop to=3 used=1+2 id=9f3a heard="…""#,
        r#"1 tell root """#,
        r#"1 tell partial "a b" ~3"#,
        r#"1 heard a-b@0"#,
        r#"1 heard root@4294967295 ~2"#,
    ] {
        let read = records(line);
        let written = entry(&read[0]);
        assert_eq!(records(&written), read, "{line}");
        // Two ways to say nothing: only the shorter one is written.
        assert_eq!(written, line.replace(r#" finish="""#, ""));
    }
}

#[test]
fn nothing_in_a_text_can_act_on_a_terminal_or_break_the_line() {
    let wild = "a\u{1b}[31m\u{9b}\n\r\t\u{7f}\u{202e}\u{2028}\u{feff}\\\"é漢";
    let record = user(wild);
    let line = entry(&record);
    assert_eq!(line, r#"1 user "a\u001b[31m\u009b\n\r\t\u007f\u202e\u2028\ufeff\\\"é漢""#,);
    assert_eq!(records(&line), [record]);
    let json = RawJson::parse("{\"a\":\t\"\u{9b}\"}").unwrap();
    let opaque = MessagePart::Opaque(komado_core::message::Opaque { dialect: "x".into(), json });
    let line = entry(&one(Entry::Message(Message::of(Role::User, vec![opaque]), None), 0));
    assert_eq!(line, r#"1 user opaque x {"a": "\u009b"}"#);
}

#[test]
fn comments_empty_lines_and_numbers_may_stand_or_not() {
    let text = "# head\n\n  user \"a\" ~1  # why\n\t2 user \"# no comment\"\nrewind 0";
    let read = parse(text).unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!(parse("1 user \"a\" ~1\n2 user \"# no comment\"\n3 rewind 0").unwrap(), read);
    assert_eq!(parse_after(7, "8 user \"a\" ~1").unwrap(), read[..1]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, says) in [
        ("user \"a\"\n3 user \"b\"", "line 2, column 3: this is entry 2; correct its number or leave it out"),
        ("wizard \"a\"", "line 1, column 1: expected an entry: system, developer"),
        ("user \"漢\" what", "line 1, column 10: expected the end of the line, found: what"),
        ("user \"a", "line 1, column 6: a text: EOF while parsing a string"),
        ("user \"a\" ~x", "column 11: expected a number of tokens, found: x"),
        ("assistant call c1", "column 18: expected the tool's name, but the line ends here"),
        ("assistant call c1 f 5", "column 21: expected arguments: a JSON object, or a text in quotes"),
        ("assistant call c1 f {a}", "column 21: arguments: key must be a string"),
        ("tool", "expected the id of the call"),
        ("tool c1 read ref=a/5x", "a size must look like 1234b or 17l: 5x"),
        ("tool c1 read took=5", "took must be a number and ms: 5"),
        ("condense 2.4 summary \"x\"", "column 12: expected the end of the span, as in 2..4, found: 4"),
        ("condense 2..4 summary x", "expected what is shown instead in quotes, found: x"),
        ("trim 2 \"x\" ~1,", "expected an entry's number, but the line ends here"),
        ("revert seven", "column 8: expected an entry's number, found: seven"),
        ("pin 99999999999", "expected a span such as 4 or 2..4, found: 99999999999"),
        ("condense 1 summary \"x\" because r 5<6", "expected tokens before and after, as in 1200>300"),
        ("sent m 5", "expected digest=…"),
        ("lost x used=1+2+3", "used must be input+output+…w+…r: 1+2+3"),
        ("anchor .x \"t\"", "not a name for a thread"),
        ("setup tools 2", "column 13: expected tool definitions as a JSON array, found: 2"),
        ("close gladly", "expected how the thread ended, found: gladly"),
        ("share", "expected the thread's name, but the line ends here"),
        ("share t 9", "column 9: expected window=…, found: 9"),
        ("share t window=x", "window must be a number: x"),
        ("share t window=9 of root 0.8 \"x\"", "expected a moment of a thread, as in root@12, found: root"),
        ("share t window=9 of .r@1 0.8 \"x\"", "that is not a name for a thread: .r"),
        ("share t window=9 of root@1 1.5 \"x\"", "cannot have 1.5 of its parent's window; give it between"),
        ("share t window=9 of root@1 NaN \"x\"", "cannot have NaN of its parent's window"),
        ("share t window=9 of root@1 much \"x\"", "a part of the window, such as 0.8, found: much"),
        ("share t window=9 of root@1 0.8 keep \"x\"", "expected a span such as 4 or 2..4"),
        ("share t window=9 of root@1 0.8", "expected the heading of the slice in quotes, but the line ends"),
        ("chronicle \"x\"", "expected a span such as 4 or 2..4"),
        ("chronicle 1..2", "expected what was done in quotes, but the line ends here"),
        ("tell 宛 \"x\"", "column 6: expected the thread's name, found: 宛"),
        ("tell t", "expected what is told in quotes"),
        ("heard t@x", "expected a moment of a thread, as in root@12, found: t@x"),
        ("user image blob=b", "expected an address in quotes, or blob=… type=… bytes=…"),
    ] {
        let why = parse(text).unwrap_err().to_string();
        assert!(why.contains(says), "{text}\n  {why}\n  {says}");
    }
}

#[test]
fn a_refused_entry_is_reported_with_its_line() {
    let refused = book("user \"a\"\n\n# result without a call\ntool c1 \"x\"").unwrap_err();
    assert_eq!((refused.line, refused.column), (4, 1));
    assert!(refused.why.contains("no call waits"), "{refused}");
}

#[test]
fn a_short_line_keeps_its_words_and_shortens_its_texts() {
    let text = r#"1 assistant "I'll look into that file" call c1 read {"path":"src/main.py"} ~45"#;
    let record = &records(text)[0];
    assert_eq!(brief(record, 200), entry(record));
    assert_eq!(brief(record, 60), r#"1 assistant "I'll look in…" call c1 read {"path":"src/m… ~45"#);
    assert_eq!(brief(record, 36), r#"1 assistant "…" call c1 read {"… ~45"#);
    assert_eq!(brief(record, 20), r#"1 assistant "…" cal…"#);
    assert_eq!(brief(record, 1), "…");
    assert_eq!(brief(record, 0), "");
}

#[test]
fn a_short_text_leaves_its_room_to_the_long_ones() {
    let record = &records(&format!(r#"1 user "ok" "{}" "{}""#, "a".repeat(50), "b".repeat(50)))[0];
    let line = brief(record, 41);
    assert_eq!(line, r#"1 user "ok" "aaaaaaaaaaa…" "bbbbbbbbbbb…""#);
    assert_eq!(line.width(), 41);
}

#[test]
fn wide_characters_take_two_columns_and_are_never_split() {
    let record = user("小窓は会話を窓に収める");
    assert_eq!(brief(&record, 17), r#"1 user "小窓は…""#);
    assert_eq!(brief(&record, 18), r#"1 user "小窓は会…""#);
    assert_eq!(brief(&record, 18).width(), 18);
}

#[test]
fn no_short_line_is_wider_than_asked() {
    let mixed = "ab漢字\n\u{1b}é\u{301}👩‍👩‍👧❤️☺️\u{202e}ﷺ한국어\"\\".repeat(3);
    let mut all = records(&example());
    all.push(user(&mixed));
    all.push(user(&format!("{mixed}{}", "x".repeat(100_000))));
    for record in &all {
        for width in 0..160 {
            let line = brief(record, width);
            assert!(line.width() <= width, "{width} {} {line}", line.width());
        }
    }
}

#[test]
fn a_short_line_tells_how_many_tools_there_are() {
    let record = &records(r#"1 setup "You are" tools [{"name":"read"},{"name":"ls"}] ~400"#)[0];
    assert_eq!(brief(record, 80), r#"1 setup "You are" tools 2 ~400"#);
}

#[test]
fn a_view_shows_what_stands_for_what() {
    let book = book(
        r#"
        setup "Be brief." tools [] ~3
        user "a" ~1
        assistant "b" call c1 f {} call c2 g {} reply tool_calls used=9+1 ~2
        tool c2 g "long" ref=abc/99b ~50
        tool c1 f error "bad" ~4
        user "c" ~1
        anchor work "Label" "busy" ~5
        user "d" ~1
        trim 3 "(said b)" ~7, 4 "[left out]" ~6
        condense 2,6 retain "a" ~1 summary "and c" ~2 because by_hand
        anchor work completed first=7 "Label" "done" ~8
        "#,
    )
    .unwrap();
    let Ok(seen) = items(book.view(), book.rows());
    let expected = [
        r#"1 setup "Be brief." tools [] ~3"#,
        r#"3 assistant trim@9 "(said b)" call c1 f {} call c2 g {} ~7"#,
        r#"4 tool c2 g trim@9 "[left out]" ref=abc/99b ~6"#,
        r#"5 tool c1 f error "bad" ~4"#,
        r#"2,6 condense@10 retain "a" ~1 summary "and c" ~2"#,
        r#"7 anchor work completed anchor@11 "Label" "done" ~8"#,
        r#"8 user "d" ~1"#,
    ];
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
    let Ok(short) = brief_items(book.view(), book.rows(), 30);
    assert_eq!(short.lines().next(), Some(r#"1 setup "Be brief." tools 0 ~3"#));
    assert!(short.lines().all(|line| line.width() <= 30), "{short}");
}

#[test]
fn a_text_that_is_shown_gives_no_orders_to_a_terminal_and_keeps_its_lines() {
    let wild = "a\tb\r\nc\u{1b}]0;title\u{7}\u{1b}]8;;http://x\u{1b}\\y\rz\u{9b}2J\u{7f}\u{202e}\\ \"窓\"\n";
    assert_eq!(
        shown(wild),
        "a\tb\r\nc\\u001b]0;title\\u0007\\u001b]8;;http://x\\u001b\\y\\rz\\u009b2J\\u007f\\u202e\\ \"窓\"\n"
    );
}
