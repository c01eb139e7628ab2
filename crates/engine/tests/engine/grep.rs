//! Searching and paging a stream: numbers, contexts, long lines, ends.

use komado_core::clip::ClipLimits;
use komado_engine::output::grep::{GrepPattern, GrepSearch, grep};
use komado_engine::output::read::{LineStretch, line};
use komado_engine::output::read::{OutputPage, read};
use komado_engine::output::{Error, OutputReading};
use proptest::prelude::*;

fn literal(text: &str) -> GrepSearch {
    GrepSearch::of(GrepPattern::Literal(text.into()))
}

fn regex(text: &str) -> GrepSearch {
    GrepSearch::of(GrepPattern::Regex(text.into()))
}

fn find(text: impl AsRef<[u8]>, search: &GrepSearch) -> OutputReading {
    grep(&mut text.as_ref(), search, &ClipLimits::default(), "@1").unwrap()
}

fn rows(text: impl AsRef<[u8]>, search: &GrepSearch) -> String {
    let reading = find(text, search);
    let (rows, _) = reading.text.rsplit_once('\n').unwrap_or(("", &reading.text));
    rows.to_owned()
}

const TEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

#[test]
fn matches_and_contexts_are_numbered_merged_and_set_apart() {
    let around = |before, after| GrepSearch { before, after, ..regex("^(two|four|nine)$") };
    assert_eq!(rows(TEN, &around(0, 0)), "2:two\n4:four\n9:nine");
    assert_eq!(rows(TEN, &around(1, 0)), "1-one\n2:two\n3-three\n4:four\n--\n8-eight\n9:nine");
    assert_eq!(rows(TEN, &around(0, 1)), "2:two\n3-three\n4:four\n5-five\n--\n9:nine\n10-ten");
    assert_eq!(
        rows(TEN, &around(2, 2)),
        "1-one\n2:two\n3-three\n4:four\n5-five\n6-six\n7-seven\n8-eight\n9:nine\n10-ten"
    );
    assert_eq!(find(TEN, &around(0, 0)).text, "2:two\n4:four\n9:nine\n[3 matches in lines 1 to 10, the end]");
}

#[test]
fn a_text_is_searched_as_it_is_unless_told_otherwise() {
    let text = "a.c\nabc\n小窓 (small)\n窓\r\n";
    assert_eq!(rows(text, &literal("a.c")), "1:a.c");
    assert_eq!(rows(text, &regex("a.c")), "1:a.c\n2:abc");
    assert_eq!(rows(text, &literal("(")), "3:小窓 (small)");
    assert_eq!(rows(text, &regex("窓$")), "4:窓", "a carriage return belongs to the break");
    assert_eq!(rows(b"\xff\xfe key\n\xffkey", &literal("key")), "1:\u{fffd}\u{fffd} key\n2:\u{fffd}key");
    assert_eq!(find(text, &literal("none")).text, "[no match in lines 1 to 4, the end]");
    assert_eq!(find("", &literal("none")).text, "[no match: the output is empty]");
}

#[test]
fn what_cannot_be_searched_for_says_why() {
    let fails =
        |search: &GrepSearch| grep(&mut TEN.as_bytes(), search, &ClipLimits::default(), "@1").unwrap_err();
    let bad = fails(&regex("(un"));
    assert!(bad.to_string().contains("(un") && matches!(bad, Error::BadPattern(_)), "{bad}");
    assert!(matches!(fails(&literal("")), Error::NoPattern));
    assert!(matches!(fails(&literal(&"a".repeat(1001))), Error::LongPattern { bytes: 1001, most: 1000 }));
    assert!(matches!(fails(&GrepSearch { offset: 0, ..literal("x") }), Error::LineZero { .. }));
    assert!(matches!(fails(&GrepSearch { max_matches: 0, ..literal("x") }), Error::ShowsNothing { .. }));
    assert!(matches!(
        fails(&GrepSearch { offset: 11, ..literal("x") }),
        Error::NoLine { line: 11, lines: 10 }
    ));
}

#[test]
fn more_matches_than_wanted_say_how_to_go_on_and_fewer_do_not() {
    let reading = find(TEN, &GrepSearch { max_matches: 2, ..regex("e$") });
    assert_eq!(
        reading.text,
        "1:one\n3:three\n[2 matches up to line 3, more follow; read on with tool_output_cache_grep({\"ref_id\":\"@1\",\
         \"pattern\":\"e$\",\"regex\":true,\"max_matches\":2,\"offset\":5})]"
    );
    let rest = find(TEN, &GrepSearch { max_matches: 2, offset: 5, ..regex("e$") });
    assert_eq!(rest.text, "5:five\n9:nine\n[2 matches in lines 5 to 10, the end]");
    assert_eq!(rest.next, None);
}

#[test]
fn a_long_line_is_shown_around_each_match_and_says_where_it_stands() {
    let text = format!("{}KEY{}KEY{}", "あ".repeat(30_000), "い".repeat(30_000), "う".repeat(300));
    let reading = find(&text, &literal("KEY"));
    let found: Vec<&str> = reading.text.lines().collect();
    assert_eq!(found.len(), 3);
    let side = |c: &str| c.repeat(200);
    assert_eq!(found[0], format!("1:[…29800 characters before…]{}KEY{}[…]", side("あ"), side("い")));
    assert_eq!(found[1], format!("1:[…59803 characters before…]{}KEY{}[…]", side("い"), side("う")));
    assert!(found[2].contains("\"line_number\":1,\"char_offset\":29800,"), "{}", found[2]);
    let first = find(&text, &GrepSearch { max_matches: 1, ..literal("KEY") });
    assert!(
        first.text.ends_with("\"max_matches\":1,\"offset\":1,\"char_offset\":60003})]"),
        "{}",
        first.text
    );
    let second = find(&text, &GrepSearch { char_offset: 60_003, ..literal("KEY") });
    assert_eq!(second.text.lines().next(), Some(found[1]));
}

#[test]
fn a_match_is_found_wherever_a_line_is_parted() {
    // Longer than several pieces; the needle stands at and around every border.
    let hay = 900 * 1024;
    for at in [0, 1, 262_100, 262_143, 262_144, 245_760, 245_755, 229_376, 500_000, 475_136, 475_130, hay] {
        let text = format!("{}needle, 針{}", "x".repeat(at), "y".repeat(hay - at));
        for search in [literal("needle, 針"), regex("n[e]+dle, .")] {
            let reading = find(&text, &search);
            assert_eq!(reading.text.matches("needle, 針").count(), 1, "{at}");
            assert!(reading.text.contains("[1 match in line 1"), "{at}: {}", reading.text);
            let ahead = at.saturating_sub(200);
            assert_eq!(reading.text.contains(&format!("[…{ahead} characters before…]")), ahead > 0, "{at}");
        }
    }
    let text = format!("{}end\r\nnext", "x".repeat(hay));
    assert_eq!(find(&text, &regex("^x")).text.lines().count(), 2, "a line begins once");
    assert_eq!(rows(&text, &regex("d$")).lines().count(), 1, "and ends once");
    assert_eq!(find(&text, &regex("^y|x$")).text, "[no match in lines 1 to 2, the end]");
    assert!(rows(&text, &GrepSearch { before: 1, ..literal("next") }).starts_with("1-xxx"));
    assert!(
        rows(format!("next\n{text}"), &GrepSearch { after: 1, max_matches: 1, ..literal("next") })
            .contains("\n2-xxx")
    );
}

#[test]
fn many_matches_in_one_long_line_are_walked_to_the_end() {
    let text = "hit and some more words; ".repeat(60_000);
    let (mut search, mut seen, mut last) = (literal("hit and"), 0, None);
    loop {
        let reading = find(&text, &search);
        seen += reading.text.matches("hit and some").count();
        let Some(next) = reading.next else { break };
        let arguments: serde_json::Value = serde_json::from_str(&next.arguments).unwrap();
        let at = arguments["char_offset"].as_u64();
        assert!(at > last, "it goes on");
        (search.char_offset, last) = (at.unwrap(), at);
    }
    // Excerpts overlap a little, so that some are seen twice, but none is passed over.
    assert!((60_000..120_000).contains(&seen), "{seen}");
}

#[test]
fn a_pattern_too_long_to_be_repeated_and_a_row_too_wide_hold_the_bound() {
    let quotes = "\"".repeat(1000);
    let text = format!("{quotes}\n").repeat(3);
    for bytes in [300, 1000, 2000] {
        for max_line_length in [10, 2000, 100_000] {
            let limits = ClipLimits { max_message_bytes: bytes, max_line_length };
            let search = GrepSearch { max_matches: 1, before: 2, ..literal(&quotes) };
            let reading = grep(&mut text.as_bytes(), &search, &limits, "@1").unwrap();
            assert!(reading.text.len() <= bytes, "{}", reading.text.len());
            assert!(reading.text.starts_with("1:\"\"\""), "{}", &reading.text[..50]);
            assert!(reading.text.contains("with {\"offset\":2"), "{max_line_length} {}", reading.text);
        }
    }
}

#[test]
fn a_page_of_lines_holds_its_bound_and_cuts_long_ones() {
    let text = format!("short\n{}\nlast", "長".repeat(5000));
    let reading = read(&mut text.as_bytes(), &OutputPage::default(), &ClipLimits::default(), "@4").unwrap();
    let lines: Vec<&str> = reading.text.lines().collect();
    assert_eq!((lines[0], lines[2]), ("     1\tshort", "     3\tlast"));
    assert!(lines[1].contains("characters left out"));
    assert!(
        lines[3].starts_with("[lines 1 to 3, the end; line 2 is cut: read on with tool_output_cache_line(")
    );
    assert_eq!(reading.next, None);
    let wide = "w".repeat(1500) + "\n";
    let reading =
        read(&mut wide.repeat(100).as_bytes(), &OutputPage::default(), &ClipLimits::default(), "@4").unwrap();
    assert!(reading.text.len() <= 50 * 1024);
    assert!(reading.next.unwrap().arguments.contains("\"offset\":34,"), "a page ends where the bytes do");
    let empty = read(&mut &b""[..], &OutputPage::default(), &ClipLimits::default(), "@4").unwrap();
    assert_eq!(empty.text, "[the output is empty]");
}

#[test]
fn a_stretch_of_a_line_goes_on_until_the_line_ends() {
    let text = format!("first\n{}\n", "一二三四五".repeat(1000));
    let take = |line_number, char_offset, char_limit| {
        line(
            &mut text.as_bytes(),
            &LineStretch { line_number, char_offset, char_limit },
            &ClipLimits::default(),
            "@4",
        )
    };
    let reading = take(2, 3, 4).unwrap();
    assert_eq!(
        reading.text,
        "四五一二\n[characters 4 to 7 of 5000 of line 2; read on with tool_output_cache_line({\"ref_id\":\"@4\",\
         \"line_number\":2,\"char_offset\":7,\"char_limit\":4})]"
    );
    assert_eq!(take(2, 4998, 10).unwrap().text, "四五\n[characters 4999 to 5000 of 5000 of line 2, its end]");
    assert_eq!(take(1, 0, 2000).unwrap().text, "first\n[characters 1 to 5 of 5 of line 1, its end]");
    assert!(take(2, 5000, 1).unwrap_err().to_string().contains("line 2 has 5000 characters"));
    assert!(take(3, 0, 1).unwrap_err().to_string().contains("no line 3: the output has 2 lines"));
    assert!(take(0, 0, 1).unwrap_err().to_string().contains("line_number is 0"));
    assert!(take(1, 0, 0).unwrap_err().to_string().contains("char_limit is 0"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_simple_one_finds(
        lines in prop::collection::vec("[abx窓 ]{0,12}\r?", 0..60),
        (before, after) in (0u64..4, 0u64..4),
    ) {
        let text = lines.join("\n");
        let search = GrepSearch { before, after, ..literal("ab") };
        let all: Vec<&str> = text.split_inclusive('\n').map(|l| l.trim_end_matches('\n').trim_end_matches('\r')).collect();
        let hits: Vec<usize> = (0..all.len()).filter(|i| all[*i].contains("ab")).collect();
        let hits = &hits[..hits.len().min(50)];
        let mut due = Vec::new();
        for (i, line) in all.iter().enumerate() {
            let near = hits.iter().any(|h| i + before as usize >= *h && i <= h + after as usize);
            let mark = if hits.contains(&i) { ':' } else { '-' };
            if near {
                due.push((i, format!("{}{mark}{line}", i + 1)));
            }
        }
        let mut expected = Vec::new();
        for (n, (i, row)) in due.iter().enumerate() {
            if n > 0 && due[n - 1].0 + 1 < *i && before + after > 0 {
                expected.push("--".to_owned());
            }
            expected.push(row.clone());
        }
        prop_assert_eq!(rows(&text, &search), expected.join("\n"));
    }
}
