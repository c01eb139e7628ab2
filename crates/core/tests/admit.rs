//! What may not be appended, and what the refusal tells to do instead: one case for each kind of refusal, and more
//! where one kind has several reasons.
//!
//! A case is a journal in the notation, the line that must not follow, and what the refusal has to say. At the end
//! stands the proof that no kind was forgotten.

use komado_core::journal::{Cause, Edit, EditKind, Entry};
use komado_core::message::{Call, CallKind, Message, MessagePart, Role, ToolOutcome};
use komado_core::{EntryRefusal, Seq, Span, admit};
use komado_testkit::notation;

/// An edit under a later one.
const BURIED: &str = r#"
1 user "one" ~5
2 assistant "two" ~5
3 user "three" ~5
4 condense 1..2 summary "some" ~1
5 condense 1..3 summary "all" ~1
"#;

/// A unit of two calls, a condensed pair, a pin and an anchor.
const STORY: &str = r#"
    1 user "look" ~5
    2 assistant call c1 read {"path":"a"} call c2 ls {} ~9
    3 tool c2 ls "…" ~40
    4 tool c1 read "…" ~90
    5 assistant "seen" ~4
    6 user "go on" ~3
    7 assistant "gone" ~3
    8 condense 5..6 summary "saw it" ~2
    9 pin 1
    10 anchor work "busy" ~4
"#;

const WAITING: &str = r#"
    1 user "look" ~5
    2 assistant call c1 read {"path":"a"} call c2 ls {} ~9
    3 tool c2 ls "…" ~40
"#;

const ENDED: &str = "1 user \"a\"\n2 close completed";

/// A spawned thread at work.
const SPAWNED: &str = r#"
    1 share stelis_1 window=9 of root@3 0.8 keep 1,3 "[root]" ~5
    2 user "a"
"#;

/// A spawned thread that ended.
const SPENT: &str = r#"
    1 share stelis_1 window=9 of root@3 0.8 keep 1,3 "[root]" ~5
    2 user "a"
    3 close completed
"#;

/// The journal, the line that must not follow, the kind of refusal, and what it says to do.
const REFUSED: [(&str, &str, &str, &str); 45] = [
    (STORY, r#"user"#, "Empty", "give it at least one part"),
    (BURIED, r#"revert 4"#, "Under", "it lies under a later edit; revert that one first: @5"),
    (STORY, r#"user call c1 read {}"#, "Misplaced", "from user cannot hold a tool call; take that out"),
    (STORY, r#"user reasoning "hm""#, "Misplaced", "cannot hold reasoning"),
    (STORY, r#"user "hi" reply stop"#, "Misplaced", "a provider's reply"),
    (WAITING, r#"user "hurry""#, "CallsOpen", "c1 (read); append those first, or rewind to @1"),
    (WAITING, r#"anchor work "busy""#, "CallsOpen", "append those first"),
    (WAITING, r#"sent gpt-4o digest=ab"#, "CallsOpen", "append those first"),
    (WAITING, r#"condense 1..3 summary "x""#, "CallsOpen", "append those first"),
    (WAITING, r#"pin 2..3"#, "CallsOpen", "append those first"),
    (STORY, r#"tool c1 read "again""#, "NoSuchCall", "no call waits for a result; append the call first"),
    (WAITING, r#"tool c2 ls "again""#, "NoSuchCall", "only these wait; answer one of them: c1"),
    (STORY, r#"assistant call c1 a {} call c1 b {}"#, "DoubleCall", "give each call its own"),
    (STORY, r#"assistant call "" read {}"#, "NoCallId", "\"read\" has no id; give it one"),
    (ENDED, r#"user "b""#, "Closed", "closed at @2; resume it, or rewind to @1"),
    (ENDED, r#"setup "b""#, "Closed", "rewind to @1"),
    (ENDED, r#"condense 1 summary "x""#, "Closed", "rewind to @1"),
    (ENDED, r#"close failed"#, "Closed", "rewind to @1"),
    (ENDED, r#"tell root "late""#, "Closed", "resume it, or rewind to @1"),
    (ENDED, r#"anchor t "busy""#, "Closed", "resume it, or rewind to @1"),
    (SPENT, r#"tell root "late""#, "Closed", "rewind to @2"),
    (STORY, r#"share t window=9 of root@1 0.8 "x""#, "NotSpawned", "spawn a thread from it instead"),
    (
        SPAWNED,
        r#"share stelis_1 window=9 of root@3 0.8 keep 3,1 "x""#,
        "BadSpan",
        "span 1: what a slice keeps must be ascending and apart",
    ),
    (
        SPAWNED,
        r#"share t window=9 of a@3 0.8 "w" of b@3 0.8 keep 5..4 "x""#,
        "BadSpan",
        "span 5..4: what a slice keeps",
    ),
    (SPAWNED, r#"share t window=9 of a@3 0.8 keep 0..2 "x""#, "BadSpan", "span 0..2: what a slice keeps"),
    (
        SPAWNED,
        r#"rewind 0"#,
        "NoEntry",
        "@0 cannot be used here: the thread began after that; name a later entry",
    ),
    (
        STORY,
        r#"rewind 99"#,
        "NoEntry",
        "@99 cannot be used here: the thread is not that long; name an earlier",
    ),
    (STORY, r#"revert 99"#, "NoEntry", "it is not on the present path; rewind to where it is"),
    (
        STORY,
        r#"tool c1 read replaces=3 "late""#,
        "NoEntry",
        "@3 cannot be used here: no result of this call stands there",
    ),
    (STORY, r#"tool c1 read replaces=2 "late""#, "NoEntry", "name the one whose place it takes"),
    (WAITING, r#"tool c1 read replaces=99 "late""#, "NoEntry", "no result of this call stands there"),
    (STORY, r#"revert 1"#, "NoEntry", "only edits, late results and reverts can be reverted"),
    (STORY, r#"pin 8"#, "NoEntry", "only messages on the present path can be pinned"),
    (STORY, r#"trim 1 "x""#, "NoEntry", "it is pinned; unpin it first"),
    (STORY, r#"trim 5 "x""#, "NoEntry", "it is not shown; name an entry that is"),
    (STORY, r#"trim 10 "x""#, "NoEntry", "an anchor is changed by its thread alone"),
    (STORY, r#"trim 4 "x", 3 "y""#, "NoEntry", "must come once and in order"),
    (STORY, r#"anchor work completed first=9 "done""#, "NoEntry", "name the thread's first one"),
    (
        STORY,
        r#"condense 7..99 summary "x""#,
        "BadSpan",
        "span 7..99: it ends after the last entry; end it there",
    ),
    (STORY, r#"condense 7,2..4 summary "x""#, "BadSpan", "must be ascending and apart"),
    (
        STORY,
        r#"condense 2..3 summary "x""#,
        "Splits",
        "span 2..3 would split the call and results at 2..; widen",
    ),
    (STORY, r#"pin 3"#, "Splits", "at 2..; widen or narrow it"),
    (
        STORY,
        r#"condense 6..7 summary "x""#,
        "Overlaps",
        "edit @8 without covering it; cover all of it, or revert",
    ),
    (STORY, r#"rewind 10"#, "NoEffect", "nothing would change: that is where the thread is; name an earlier"),
    (
        STORY,
        r#"condense 1 summary "x""#,
        "NoEffect",
        "nothing in the span is shown; choose one where something is",
    ),
];

const KINDS: [&str; 14] = [
    "Empty",
    "Misplaced",
    "CallsOpen",
    "NoSuchCall",
    "DoubleCall",
    "NoCallId",
    "Closed",
    "NotSpawned",
    "NoEntry",
    "BadSpan",
    "Splits",
    "Overlaps",
    "Under",
    "NoEffect",
];

/// The name of a refusal's kind.
fn kind(refusal: &EntryRefusal) -> String {
    format!("{refusal:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

fn refusal(story: &str, line: &str) -> EntryRefusal {
    let mut book = notation::book(story).unwrap();
    let (entry, tokens) = notation::parse(line).unwrap().remove(0);
    let before = book.view().clone();
    let refusal = book.push(entry, tokens, "").expect_err(line);
    assert_eq!(*book.view(), before, "a refused entry changes nothing");
    refusal
}

#[test]
fn each_refusal_names_its_reason_and_what_to_do_instead() {
    for (story, line, name, says) in REFUSED {
        let refusal = refusal(story, line);
        assert_eq!(kind(&refusal), name, "{line}: {refusal}");
        assert!(refusal.to_string().contains(says), "{line}\n  {refusal}\n  {says}");
    }
}

#[test]
fn every_kind_of_refusal_has_its_case() {
    let source = include_str!("../src/admit.rs");
    let body =
        source.split("pub enum EntryRefusal {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let name = |line: &str| line.split([' ', '{', ',']).next().map(str::to_owned);
    let at_variant =
        |line: &&str| line.starts_with("    ") && line[4..].starts_with(|c: char| c.is_ascii_uppercase());
    let declared: Vec<String> =
        body.lines().filter(at_variant).filter_map(|line| name(line.trim())).collect();
    assert_eq!(declared, KINDS);
    for kind in KINDS {
        assert!(REFUSED.iter().any(|case| case.2 == kind), "no case for {kind}");
    }
}

#[test]
fn what_a_refusal_advises_can_be_done() {
    for (story, refused, advised) in [
        (WAITING, r#"user "hurry""#, &["rewind 1"][..]),
        (WAITING, r#"user "hurry""#, &[r#"tool c1 read "x""#]),
        (WAITING, r#"pin 2..3"#, &[r#"tool c1 read "x""#]),
        (ENDED, r#"user "b""#, &["rewind 1"]),
        (STORY, r#"condense 2..3 summary "x""#, &[r#"condense 2..4 summary "x""#]),
        (STORY, r#"condense 6..7 summary "x""#, &[r#"condense 5..7 summary "x""#]),
        (STORY, r#"condense 6..7 summary "x""#, &["revert 8", r#"condense 6..7 summary "x""#]),
        (STORY, r#"trim 1 "x""#, &["unpin 1", r#"trim 1 "x""#]),
    ] {
        refusal(story, refused);
        let mut book = notation::book(story).unwrap();
        for line in advised {
            let (entry, tokens) = notation::parse(line).unwrap().remove(0);
            book.push(entry, tokens, "").unwrap();
        }
    }
}

#[test]
fn a_tools_message_is_one_result_and_nothing_else_holds_one() {
    let book = notation::book(WAITING).unwrap();
    let refused = |message: Message| {
        let Ok(verdict) = admit(book.view(), &Entry::Message(message, None), book.rows());
        verdict.unwrap_err().to_string()
    };
    let outcome = |content| ToolOutcome {
        call_id: "c1".into(),
        name: None,
        content,
        is_error: false,
        output_ref: None,
        duration_ms: None,
        interrupted: false,
        replaces: None,
    };
    let call = Call {
        id: "x".into(),
        name: "f".into(),
        arguments: String::new(),
        kind: CallKind::Function,
        extra: None,
    };
    let result = MessagePart::Result(outcome(vec![]));
    let two = Message::of(Role::Tool, vec![result.clone(), result.clone()]);
    assert!(refused(two).contains("cannot hold anything but one result"));
    assert!(refused(Message::text(Role::Tool, "x")).contains("cannot hold anything but one result"));
    let nested = Message::of(Role::Tool, vec![MessagePart::Result(outcome(vec![MessagePart::Call(call)]))]);
    assert!(refused(nested).contains("inside its result"));

    let book = notation::book("user \"a\"").unwrap();
    let Ok(verdict) =
        admit(book.view(), &Entry::Message(Message::of(Role::User, vec![result]), None), book.rows());
    assert!(verdict.unwrap_err().to_string().contains("from user cannot hold a tool's result"));
}

#[test]
fn an_edit_that_says_nothing_is_refused() {
    let book = notation::book(STORY).unwrap();
    let refused = |kind, hide, replace| {
        let edit = Edit { kind, hide, show: vec![], replace, cause: Cause::default() };
        let Ok(verdict) = admit(book.view(), &Entry::Edit(edit), book.rows());
        verdict.unwrap_err().to_string()
    };
    assert!(refused(EditKind::Trim, vec![], vec![]).contains("must replace entries"));
    assert!(refused(EditKind::Trim, vec![Span::new(2, 4)], vec![]).contains("must replace entries"));
    assert!(
        refused(EditKind::Condense, vec![Span::new(2, 4)], vec![]).contains("show something in its place")
    );
}

#[test]
fn an_edit_under_a_later_one_neither_goes_nor_comes_back() {
    let under =
        |by: Seq| format!("nothing would change: it lies under a later edit; revert that one first: @{by}");
    let story = format!("{STORY}\n11 condense 5..7 summary \"more\" ~3");
    assert_eq!(refusal(&story, "revert 8").to_string(), under(11));
    let story = format!(
        "{STORY}\n11 revert 8\n12 condense 5..6 summary \"again\" ~3\n13 condense 5..7 summary \"all\" ~3"
    );
    assert_eq!(refusal(&story, "revert 11").to_string(), under(13));
    // With the later one gone it is in the way of the one between.
    let story = format!(
        "{STORY}\n11 revert 8\n12 condense 6 summary \"part\" ~3\n13 condense 5..7 summary \"all\" ~3\n14 revert 13"
    );
    assert!(matches!(refusal(&story, "revert 11"), EntryRefusal::Overlaps { other: 12 }));
}

/// What may follow at any time, and what may follow while the thread is open.
#[test]
fn a_chronicle_a_share_and_what_was_heard_are_let_in_also_after_the_end() {
    for story in [STORY, WAITING, ENDED, SPAWNED, SPENT] {
        for line in [r#"chronicle 1..2 by=digest "done""#, "heard stelis_2@7", "heard stelis_2@3"] {
            let mut book = notation::book(story).unwrap();
            let (entry, tokens) = notation::parse(line).unwrap().remove(0);
            let (items, tokens_before) = (book.view().items(book.rows()), book.view().tokens());
            book.push(entry, tokens, "").unwrap();
            assert_eq!(book.view().items(book.rows()), items, "{line}");
            assert_eq!(book.view().tokens(), tokens_before, "{line}");
        }
    }
    let share = r#"share stelis_1 window=9 of root@4 0.8 keep 2 "[root]" ~8"#;
    let mut spent = notation::book(SPENT).unwrap();
    let (entry, tokens) = notation::parse(share).unwrap().remove(0);
    spent.push(entry, tokens, "").unwrap();
    assert_eq!((spent.view().weight().above, spent.view().closed()), (8, Some(3)));
    for story in [STORY, WAITING, SPAWNED] {
        let mut book = notation::book(story).unwrap();
        let (entry, tokens) = notation::parse(r#"tell stelis_2 "早く""#).unwrap().remove(0);
        book.push(entry, tokens, "").unwrap();
    }
}

#[test]
fn a_share_follows_a_share_also_while_calls_wait() {
    let story = format!("{SPAWNED}\n3 assistant call c1 read {{}} ~9");
    let mut book = notation::book(&story).unwrap();
    let (entry, tokens) =
        notation::parse(r#"share s window=9 of root@4 0.8 keep 2 "x" ~3"#).unwrap().remove(0);
    book.push(entry, tokens, "").unwrap();
    assert_eq!((book.view().share(), book.view().weight().above), (Some(4), 3));
}

#[test]
fn a_pause_may_end_but_an_end_may_not() {
    let mut book = notation::book("user \"a\"\nclose paused").unwrap();
    let close = |text: &str| notation::parse(text).unwrap().remove(0).0;
    assert!(book.push(close("close paused"), 0, "").is_err());
    assert!(book.push(close("close completed"), 0, "").is_ok());
    assert!(book.push(close("close failed"), 0, "").is_err());
}
