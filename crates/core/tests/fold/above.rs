//! What a spawned thread sees of those above it, word for word.

use crate::fold::play::poured;
use komado_core::journal::Entry;
use komado_core::{Message, MessagePart, Seq, ThreadId};
use komado_testkit::{Book, notation};

const ROOT: &str = r#"
    1 setup "Be brief." tools [{"name":"read"}] params {"temperature":1} dialect=openai ~20
    2 user "old words" ~10
    3 assistant "old answer" ~10
    4 user "道具を作って" ~10
    5 assistant call c1 read {} ~9
    6 tool c1 read "a long file" ~400
    7 assistant "I start work" ~10
    8 trim 6 "[file left out]" ~5
    9 condense 2..3 summary "They met." ~4
    10 anchor stelis_1 "Work" "Work: in progress" brief="Work began here" ~9
"#;

/// What happens in the root while its children work.
const LATER: &str = r#"
    11 anchor stelis_1 completed first=10 "Work" "Work: done" ~7
    12 anchor stelis_2 "Other" "Other: in progress" brief="Other began here" ~8
"#;

const CHILD: &str = r#"
    1 share stelis_1 window=100000 lends of root@10 0.8 keep 4..6,9..10 "[root]" ~60
    2 setup "You work." ~5
    3 user "begin" ~3
    4 assistant "begun" ~3
    5 anchor stelis_1_1 "Deep" "Deep: in progress" brief="Deep began here" ~5
"#;

const GRANDCHILD: &str = r#"
    1 share stelis_1_1 window=100000 of root@10 0.8 keep 9..10 "[root]" ~20 of stelis_1@5 0.8 keep 3..5 "[stelis_1]" ~15
    2 user "dig" ~2
"#;

const SIBLING: &str = r#"
    1 share stelis_2 window=100000 of root@12 0.8 keep 10..12 "[root]" ~30
    2 user "else" ~2
"#;

fn book(text: &str, above: &[(&str, &Book)]) -> Book {
    let mut book = notation::book(text).unwrap();
    for (name, elder) in above {
        book.below(ThreadId::new(*name).unwrap(), elder);
    }
    book
}

/// Root, child, grandchild and the child's sibling.
fn family() -> [Book; 4] {
    let root = book(&format!("{ROOT}{LATER}"), &[]);
    let child = book(CHILD, &[("root", &root)]);
    let grandchild = book(GRANDCHILD, &[("root", &root), ("stelis_1", &child)]);
    let sibling = book(SIBLING, &[("root", &root)]);
    [root, child, grandchild, sibling]
}

/// What the model is handed: who says what.
fn seen(book: &Book) -> Vec<String> {
    let told = |message: &Message| {
        let calls: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
        format!("{}: {}{}", message.role.name(), message.words(), calls.join(","))
    };
    poured(book, book.view()).iter().map(|(_, message)| told(message)).collect()
}

fn push(book: &mut Book, line: &str) -> Seq {
    let (entry, tokens) = notation::parse(line).unwrap().remove(0);
    book.push(entry, tokens, "").unwrap()
}

#[test]
fn a_child_sees_what_its_slice_keeps_as_it_was_when_it_was_cut() {
    let [_, child, ..] = family();
    assert_eq!(
        seen(&child),
        [
            "system: Be brief.\n\nYou work.",
            "user: [root]",
            "user: They met.",
            "user: 道具を作って",
            "assistant: c1",
            "tool: [file left out]",
            "system: Work began here",
            "user: begin",
            "assistant: begun",
            "system: Deep: in progress",
        ]
    );
    assert_eq!(child.view().weight().above, 60);
    assert_eq!(child.view().tokens(), 60 + 5 + 3 + 3 + 5);
}

#[test]
fn a_grandchild_sees_every_thread_above_it_the_root_first() {
    let [_, _, grandchild, _] = family();
    assert_eq!(
        seen(&grandchild),
        [
            "system: Be brief.\n\nYou work.",
            "user: [root]",
            "user: They met.",
            "system: Work began here",
            "user: [stelis_1]",
            "user: begin",
            "assistant: begun",
            "system: Deep began here",
            "user: dig",
        ]
    );
}

/// The table of who sees which form of an anchor.
#[test]
fn an_anchor_is_brief_for_its_thread_and_those_below_and_full_for_all_others() {
    let [root, child, grandchild, sibling] = family();
    for (whose, book, brief, full) in [
        ("stelis_1 sees stelis_1", &child, "Work began here", "Work:"),
        ("stelis_1_1 sees stelis_1", &grandchild, "Work began here", "Work:"),
        ("stelis_1_1 sees stelis_1_1", &grandchild, "Deep began here", "Deep:"),
        ("stelis_2 sees stelis_2", &sibling, "Other began here", "Other:"),
    ] {
        let seen = seen(book);
        assert!(seen.contains(&format!("system: {brief}")), "{whose}: {seen:?}");
        assert!(!seen.iter().any(|said| said.contains(full)), "{whose}: {seen:?}");
    }
    for (whose, book, full, brief) in [
        ("root sees stelis_1", &root, "Work: done", "Work began"),
        ("root sees stelis_2", &root, "Other: in progress", "Other began"),
        ("stelis_2 sees stelis_1", &sibling, "Work: done", "Work began"),
        ("stelis_1 sees stelis_1_1", &child, "Deep: in progress", "Deep began"),
    ] {
        let seen = seen(book);
        assert!(seen.contains(&format!("system: {full}")), "{whose}: {seen:?}");
        assert!(!seen.iter().any(|said| said.contains(brief)), "{whose}: {seen:?}");
    }
}

#[test]
fn what_happens_above_later_changes_nothing_below() {
    let [mut root, child, grandchild, _] = family();
    let before = (seen(&child), seen(&grandchild));
    for line in [
        r#"user "later" ~9"#,
        r#"trim 4 "[gone]" ~1"#,
        r#"condense 4..9 summary "all gone" ~1"#,
        r#"setup "Be loud." tools [] ~2"#,
        "revert 15",
        "rewind 3",
        r#"close aborted "over""#,
    ] {
        push(&mut root, line);
        let child = book(CHILD, &[("root", &root)]);
        let mut later = child.clone();
        assert_eq!(seen(&child), before.0, "{line}");
        push(&mut later, r#"condense 3..4 summary "said" ~1"#);
        let grandchild = book(GRANDCHILD, &[("root", &root), ("stelis_1", &later)]);
        assert_eq!(seen(&grandchild), before.1, "{line}");
    }
}

#[test]
fn what_is_said_later_extends_what_was_poured() {
    let [_, mut child, ..] = family();
    let (before, after) = (poured(&child, child.view()), child.view().last());
    for line in [r#"user "more" ~1"#, "assistant call c1 read {} ~1", r#"tool c1 read "x" ~1"#] {
        push(&mut child, line);
    }
    let mut since = Vec::new();
    let Ok(()) = child.view().pour_since(child.rows(), after, &mut |seq: Seq, message: &Message| {
        since.push((seq, message.clone()));
        Ok::<(), std::convert::Infallible>(())
    });
    assert_eq!(since.len(), 3);
    assert_eq!(poured(&child, child.view()), [before, since].concat());
}

#[test]
fn prompts_are_joined_and_the_nearest_tools_are_offered() {
    let [_, mut child, grandchild, _] = family();
    let setup = |book: &Book| {
        let Ok(setup) = book.view().setup_in(book.rows());
        setup
    };
    let inherited = setup(&grandchild);
    assert_eq!(inherited.system.as_deref(), Some("Be brief.\n\nYou work."));
    assert_eq!(inherited.tools.unwrap().get(), r#"[{"name":"read"}]"#);
    assert_eq!(inherited.params.unwrap().get(), r#"{"temperature":1}"#);
    assert_eq!(inherited.dialect.as_deref(), Some("openai"));
    push(&mut child, r#"setup "You dig." tools [{"name":"dig"}] dialect=anthropic ~5"#);
    let own = setup(&child);
    assert_eq!(own.system.as_deref(), Some("Be brief.\n\nYou dig."));
    assert_eq!(own.tools.unwrap().get(), r#"[{"name":"dig"}]"#);
    assert_eq!(own.dialect.as_deref(), Some("anthropic"));
}

#[test]
fn a_later_share_takes_the_place_of_the_first_and_a_rewind_gives_that_back() {
    let [_, mut child, ..] = family();
    let first = seen(&child);
    push(&mut child, r#"share stelis_1 window=50000 of root@12 0.5 keep 7 "[root again]" ~33"#);
    assert_eq!(child.view().weight().above, 33);
    assert_eq!(seen(&child)[1..3], ["user: [root again]", "assistant: I start work"]);
    push(&mut child, "rewind 5");
    assert_eq!(seen(&child), first);
    assert_eq!(child.view().weight().above, 60);
    let Err(refused) = child.push(Entry::Rewind { to: 0 }, 0, "") else { panic!("the share would be lost") };
    assert!(refused.to_string().contains("the thread began after that; name a later entry"), "{refused}");
}

#[test]
fn an_anchor_without_a_brief_form_and_a_thread_that_says_nothing_are_shown_as_they_are() {
    let root = book(r#"1 anchor t "t runs" ~3"#, &[]);
    let child = book(r#"1 share t window=9 of root@1 0.5 keep 1 "[root]" ~5"#, &[("root", &root)]);
    assert_eq!(seen(&child), ["user: [root]", "system: t runs"]);
    let orphan = book(r#"1 share t window=9 of root@1 0.5 keep 1 "[root]" ~5"#, &[]);
    assert_eq!(seen(&orphan), ["user: [root]"]);
}

#[test]
fn a_view_in_the_notation_says_whose_each_line_is() {
    let [_, child, grandchild, _] = family();
    let Ok(lines) = notation::items(child.view(), child.rows());
    let expected = [
        r#"root@1 setup "Be brief." tools [{"name":"read"}] params {"temperature":1} dialect=openai ~20"#,
        r#"2 setup "You work." ~5"#,
        r#"of root@10 0.8 "[root]" ~60"#,
        r#"root@2..3 condense@9 summary "They met." ~4"#,
        r#"root@4 user "道具を作って" ~10"#,
        r#"root@5 assistant call c1 read {} ~9"#,
        r#"root@6 tool c1 read trim@8 "[file left out]" ~5"#,
        r#"root@10 anchor stelis_1 "Work began here""#,
        r#"3 user "begin" ~3"#,
        r#"4 assistant "begun" ~3"#,
        r#"5 anchor stelis_1_1 "Deep" "Deep: in progress" ~5"#,
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    for width in 0..60 {
        let Ok(short) = notation::brief_items(grandchild.view(), grandchild.rows(), width);
        assert!(short.lines().all(|line| notation::width(line) <= width), "{width}: {short}");
    }
}

#[test]
fn nothing_of_a_message_is_lost_on_the_way_down() {
    let root = book(
        r#"
        1 user name=ann "look" image "http://x/y.png" detail=low ~9
        2 assistant reasoning "hm" signature="s=" call c1 f {"a":1.0} extra openai {"refusal":null} reply stop ~9
        3 tool c1 f error "bad" ref=abc/12b took=3ms ~9
        "#,
        &[],
    );
    let child = book(r#"1 share t window=9 of root@3 0.5 keep 1..3 "[root]" ~5"#, &[("root", &root)]);
    let own: Vec<Message> = poured(&root, root.view()).into_iter().map(|(_, message)| message).collect();
    let below: Vec<Message> = poured(&child, child.view()).into_iter().map(|(_, message)| message).collect();
    assert_eq!(below[1..], own);
    assert!(matches!(below[0].parts[..], [MessagePart::Text { .. }]));
}
