//! Drawings, for people.

use crate::seed::CODING;
use komado_agent::playbook::{BUILT_IN, Playbook};

fn parsed(text: &str) -> Playbook {
    Playbook::parse("p.json", text).unwrap()
}

#[test]
fn a_drawing_shows_nodes_in_order_loops_and_child_threads() {
    assert_eq!(parsed(CODING).drawn(80), include_str!("drawn/coding.txt").trim_end());
    assert_eq!(parsed(BUILT_IN).drawn(80), include_str!("drawn/default.txt").trim_end());
}

#[test]
fn a_drawing_stays_inside_its_columns() {
    let drawn = parsed(CODING).drawn(24);
    let columns = |line: &str| line.chars().map(|c| if c > '\u{2fff}' { 2 } else { 1 }).sum::<usize>();
    assert!(drawn.lines().all(|line| columns(line) <= 24), "{drawn}");
    assert!(drawn.contains('…'));
}

/// Every tag that is opened is closed, in order, and nothing else stands where a tag could be.
fn check_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{}", &rest[..at]);
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name)),
            (false, false) => open.push(name),
            (false, true) => {}
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_picture_is_well_formed_and_the_same_each_time() {
    let nasty = CODING.replace("実装する", "<b>&\\\"\\u0007実装する").replace("\"coding\"", "\"<coding>\"");
    for text in [CODING, BUILT_IN, &nasty] {
        let playbook = parsed(text);
        let svg = playbook.svg();
        check_xml(&svg);
        assert_eq!(svg, playbook.svg());
        assert!(!svg.contains("<b>") && !svg.contains('\u{7}'));
    }
    let svg = parsed(CODING).svg();
    assert!(svg.contains("結果を報告する") && svg.contains("calls &gt; 0"), "{svg}");
    assert_eq!(svg.matches("class=\"stelis\"").count(), 1);
}
