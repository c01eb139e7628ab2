//! What a view promises, on any bytes and within any limits.

use super::*;
use proptest::prelude::*;

const REF: &str = "0123456789abcdef0123456789abcdef";

fn limits(max_message_bytes: usize, max_line_length: usize) -> ClipLimits {
    ClipLimits { max_message_bytes, max_line_length }
}

fn last_line(view: &str) -> &str {
    view.rsplit('\n').next().unwrap()
}

/// Head and tail of a view whose lines are whole, without the notes.
fn ends(view: &str) -> (&str, &str) {
    let body = &view[..view.len() - last_line(view).len()];
    let gap = body.find("[…line").unwrap();
    let after = gap + body[gap..].find('\n').unwrap() + 1;
    (&body[..gap], &body[after..])
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n} of the log, 窓\n")).collect()
}

#[test]
fn what_fits_is_shown_as_it_is() {
    for text in ["", "\n", "a", "a\nb", "a\r\nb\r\n", "小窓\n\n\n"] {
        assert_eq!(clip(text, &ClipLimits::default(), REF), None, "{text:?}");
    }
    let just = "x".repeat(2000);
    assert_eq!(clip(&just, &ClipLimits::default(), REF), None);
    let lines = format!("{}\n", "x".repeat(1023)).repeat(50);
    assert_eq!(lines.len(), 50 * 1024);
    assert_eq!(clip(&lines, &ClipLimits::default(), REF), None);
    assert!(clip(&(lines + "x"), &ClipLimits::default(), REF).is_some());
}

#[test]
fn a_long_output_shows_both_ends_and_the_call_that_reads_on() {
    let text = numbered(5678);
    let view = clip(&text, &ClipLimits::default(), REF).unwrap();
    let (head, tail) = ends(&view);
    assert!(text.starts_with(head) && text.ends_with(tail), "{view}");
    assert!(head.len() > 25_000 && tail.len() > 17_000, "{} {}", head.len(), tail.len());
    let (first, after) = (head.lines().count(), 5678 - tail.lines().count());
    let gap = format!("[…lines {} to {after} left out…]", first + 1);
    assert!(view.contains(&gap), "{gap}");
    let shown = first + tail.lines().count();
    assert_eq!(
        last_line(&view),
        format!(
            "[{shown} of 5678 lines shown, {} bytes in all; read on with tool_output_cache({{\"ref_id\":\"{REF}\",\
             \"offset\":{},\"limit\":200}})]",
            text.len(),
            first + 1
        )
    );
}

#[test]
fn one_line_of_60_kb_gives_a_useful_view_not_an_empty_one() {
    let base64: String = (0..60 * 1024).map(|i| b"QUJDREVGR0hJSktM"[i % 16] as char).collect();
    let japanese: String = "吾輩は猫である。名前はまだ無い。".chars().cycle().take(20 * 1024).collect();
    for text in [&base64, &japanese, &format!("{base64}\n"), &format!("{japanese}\n")] {
        let view = clip(text, &ClipLimits::default(), "@7").unwrap();
        let (line, note) = view.split_once('\n').unwrap();
        let (front, rest) = line.split_once("[…").unwrap();
        let (left, back) = rest.split_once(" characters left out…]").unwrap();
        let kept = front.chars().count() + back.chars().count();
        assert!(kept > 1900 && line.chars().count() <= 2000, "{kept}");
        assert!(text.starts_with(front) && text.trim_end().ends_with(back));
        assert_eq!(left.parse::<usize>().unwrap(), text.trim_end().chars().count() - kept);
        let at = front.chars().count();
        let call = format!(
            "tool_output_cache_line({{\"ref_id\":\"@7\",\"line_number\":1,\"char_offset\":{at},\"char_limit\":2000}})]"
        );
        assert!(note.ends_with(&call), "{note}");
        assert!(note.starts_with("[all 1 line shown, 1 of them cut inside, "), "{note}");
    }
}

#[test]
fn a_long_line_among_others_is_cut_and_the_others_stay() {
    let text = format!("first\n{}\r\nlast", "あ".repeat(5000));
    let view = clip(&text, &ClipLimits::default(), "@3").unwrap();
    let lines: Vec<&str> = view.lines().collect();
    assert_eq!((lines[0], lines[2]), ("first", "last"));
    assert!(lines[1].starts_with("ああ") && lines[1].contains("characters left out"));
    assert!(view.contains("あ\r\nlast\n["), "the line break stays what it was");
    assert!(lines[3].contains("\"line_number\":2,"), "{}", lines[3]);
}

#[test]
fn where_lines_are_cut_and_left_out_both_calls_are_named() {
    let text = format!("{}\n{}", "y".repeat(3000), numbered(5000));
    let view = clip(&text, &ClipLimits::default(), REF).unwrap();
    let note = last_line(&view);
    assert!(note.contains("1 of them cut inside"), "{note}");
    assert!(note.contains("; line 1: tool_output_cache_line({"), "{note}");
    assert!(note.ends_with(",\"limit\":200})]"), "{note}");
}

#[test]
fn tiny_limits_hold_and_still_show_both_something_and_the_call() {
    for text in [numbered(1000), "a".repeat(100_000), "窓".repeat(100_000), "\n".repeat(5000)] {
        for bytes in [0, 1, 300, 301, 350, 512, 1023, 1024, 1025] {
            let limits = limits(bytes, 2000);
            let view = clip(&text, &limits, REF).unwrap();
            assert!(view.len() <= bytes.max(300), "{bytes}: {}", view.len());
            assert!(last_line(&view).contains("read on with tool_output_cache"), "{view}");
            assert!(view.contains(&text[..text.chars().next().unwrap().len_utf8()]), "{view}");
        }
    }
}

#[test]
fn memory_is_bounded_by_the_limits_not_by_the_input() {
    for line in [&b"x"[..], b"\n", b"some words\n", "窓".as_bytes()] {
        let mut clipper = Clipper::new(ClipLimits::default());
        let chunk = line.repeat(65536 / line.len());
        for turn in 0..200 {
            chunk.chunks(if turn > 0 { 700 } else { usize::MAX }).for_each(|piece| clipper.push(piece));
        }
        assert_eq!(clipper.bytes(), 200 * chunk.len() as u64);
        let held = clipper.head.text.len() + clipper.tail.held() + clipper.line.held();
        assert!(held < 3 * 50 * 1024, "{held}");
        assert!(clipper.finish(REF).unwrap().len() <= 50 * 1024);
    }
}

#[test]
fn what_is_no_utf_8_is_shown_as_replaced() {
    let mut clipper = Clipper::new(limits(300, 10));
    clipper.push(b"ab\xff\xe7\xaa");
    clipper.push(b"\x93\xe7\xaa\n\xf0\x9f");
    clipper.push(&[b'x'; 40]);
    let view = clipper.finish(REF).unwrap();
    assert!(view.starts_with("ab\u{fffd}窓\u{fffd}\n\u{fffd}xx["), "{view}");
}

#[test]
fn a_reference_longer_than_any_takes_lines_away_and_not_the_call() {
    let long = "r".repeat(600);
    let view = clip(&numbered(1000), &limits(1500, 2000), &long).unwrap();
    assert!(view.len() <= 1500 && view.starts_with("line 1 "), "{view}");
    assert!(last_line(&view).ends_with("\"limit\":200})]"));
}

/// Lines of every kind: short, long, empty, Japanese, with and without carriage returns.
fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[a-z ]{0,60}",
        2 => "[あ-ん]{0,30}",
        1 => "[a-z]{0,20}\r",
        1 => (1usize..3000).prop_map(|n| "長い".repeat(n)),
        1 => (1usize..6000).prop_map(|n| "b".repeat(n)),
    ];
    (prop::collection::vec(line, 0..120), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

fn any_limits() -> impl Strategy<Value = ClipLimits> {
    (200usize..6000, prop_oneof![0usize..50, 50usize..4000, Just(usize::MAX)])
        .prop_map(|(bytes, chars)| limits(bytes, chars))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_view_holds_its_bounds_and_ends_with_a_call(text in texts(), limits in any_limits()) {
        match clip(&text, &limits, REF) {
            None => {
                prop_assert!(text.len() <= limits.bytes());
                prop_assert!(text.lines().all(|line| line.chars().count() <= limits.max_line_length));
            }
            Some(view) => {
                prop_assert!(view.len() <= limits.bytes(), "{} > {}", view.len(), limits.bytes());
                let last = last_line(&view);
                prop_assert!(last.contains("read on with tool_output_cache") && last.ends_with("})]"), "{}", last);
                prop_assert!(view.len() > last.len(), "nothing but the note");
            }
        }
    }

    #[test]
    fn head_and_tail_are_the_ends_of_the_text(lines in 100usize..600, ends_with_break in any::<bool>()) {
        let text = numbered(lines);
        let text = if ends_with_break { &text[..] } else { text.trim_end() };
        let view = clip(text, &limits(1500, 2000), REF).unwrap();
        let (head, tail) = ends(&view);
        prop_assert!(!head.is_empty() && text.starts_with(head));
        prop_assert!(!tail.is_empty() && text.trim_end().ends_with(tail.trim_end()));
    }

    #[test]
    fn any_pieces_of_the_bytes_give_the_same_view(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(0xe3), Just(0x81)], 0..3000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        limits in any_limits(),
    ) {
        let whole = clip(&String::from_utf8_lossy(&bytes), &limits, REF);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut clipper = Clipper::new(limits);
        for pair in places.windows(2) {
            clipper.push(&bytes[pair[0]..pair[1]]);
        }
        let breaks = bytes.iter().filter(|b| **b == b'\n').count();
        prop_assert_eq!(clipper.lines() as usize, breaks + usize::from(bytes.last().is_some_and(|b| *b != b'\n')));
        let pieces = clipper.finish(REF);
        // The count of bytes is that of the output, not of its text.
        let without_count = |view: &String| view.split(", ").next().map(str::to_owned);
        prop_assert_eq!(pieces.as_ref().and_then(without_count), whole.as_ref().and_then(without_count));
        prop_assert_eq!(pieces.is_some(), whole.is_some());
    }
}
