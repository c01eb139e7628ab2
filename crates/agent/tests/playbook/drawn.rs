//! Drawings, for people.

use crate::playbook::seed::CODING;
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

/// The number of an attribute.
fn number(tag: &str, name: &str) -> usize {
    let after = tag.split(&format!(" {name}=\"")).nth(1).unwrap();
    after.split('"').next().unwrap().parse().unwrap()
}

/// A playbook whose branch has many ways with long words, in Japanese.
fn crowded() -> Playbook {
    let way = |n: usize| serde_json::json!({"if": {"var": "last", "contains": format!("とても長い条件の文がここに書かれている場合 {n}")}, "next": format!("節{n}")});
    let mut nodes = vec![
        serde_json::json!({"id": "見る", "type": "branch", "label": "課題を読み取り、何を求められているかを整理してから次の節を選ぶ",
        "cases": (0..18).map(way).collect::<Vec<_>>(), "else": "終わり"}),
    ];
    nodes.extend((0..18).map(|n| serde_json::json!({"id": format!("節{n}"), "type": "llm", "next": "見る"})));
    nodes.push(serde_json::json!({"id": "終わり", "type": "end"}));
    crate::playbook::kit::playbook(nodes.into())
}

#[test]
fn every_word_of_a_picture_is_whole_and_inside_its_box_where_no_line_comes() {
    for playbook in [parsed(CODING), parsed(BUILT_IN), crowded()] {
        let svg = playbook.svg();
        assert!(!svg.contains('…'), "{svg}");
        let mut boxes = Vec::new();
        for group in svg.lines().filter(|line| line.starts_with("<g>")) {
            let rect = group.split("/>").next().unwrap();
            let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(rect, name));
            boxes.push((x, y, x + width, y + height));
            for text in group.split("<text").skip(1) {
                let words = text.split_once('>').unwrap().1.split('<').next().unwrap();
                let columns: usize = words.chars().map(|c| if c > '\u{2e7f}' { 2 } else { 1 }).sum();
                assert!(number(text, "x") + columns * 5 < x + width, "{words}");
                assert!((y..y + height).contains(&number(text, "y")), "{words}");
            }
        }
        let mut tops: Vec<usize> = boxes.iter().map(|(_, y, ..)| *y).collect();
        tops.dedup();
        assert_eq!(tops.len(), playbook.len());
        assert!(boxes.windows(2).all(|pair| pair[0].3 < pair[1].1), "boxes lie on each other: {boxes:?}");
        for lane in svg.lines().filter(|line| line.starts_with("<path") && line.contains('H')) {
            let x = lane.split('H').nth(1).unwrap().split('V').next().unwrap().parse::<usize>().unwrap();
            assert!(boxes.iter().all(|(left, _, right, _)| x < *left || x > *right), "{lane}");
        }
    }
}
