//! The row of a thread says what its header and its journal say.

use komado_core::thread::{Branch, Header, Moment, ThreadStatus, branch};
use komado_core::{SessionId, ThreadId};
use komado_testkit::{Book, notation};

fn tid(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

/// The header of a thread spawned at `root@3`.
fn spawned(name: &str) -> Header {
    let mut header = Header::root(SessionId::new("s").unwrap(), "2024-01-15T10:30:00Z");
    header.thread = tid(name);
    header.parent = Some(Moment { thread: ThreadId::root(), seq: 3 });
    header.label = Some("作業".into());
    header
}

#[test]
fn a_branch_says_what_header_and_journal_say() {
    let mut book = notation::book(
        r#"
        share stelis_1 window=100000 of root@3 0.75 keep 1 "[root]" ~9 held=p1
        user "a"
        "#,
    )
    .unwrap();
    let Ok(row) = branch(&spawned("stelis_1"), book.rows());
    let expected = Branch {
        session: SessionId::new("s").unwrap(),
        thread: tid("stelis_1"),
        parent: Some(ThreadId::root()),
        depth: 1,
        window_ratio: 0.75,
        status: ThreadStatus::Active,
        label: Some("作業".into()),
        chronicle_summary: None,
        held_by: Some("p1".into()),
        told: false,
        created_at: "2024-01-15T10:30:00Z".into(),
        completed_at: None,
    };
    assert_eq!(row, expected);
    let mut push = |line: &str, at: &str| {
        let (entry, tokens) = notation::parse(line).unwrap().remove(0);
        book.push(entry, tokens, at).unwrap();
        let Ok(row) = branch(&spawned("stelis_1"), book.rows());
        row
    };
    assert_eq!(push("close paused", "t1"), Branch { status: ThreadStatus::Paused, ..expected.clone() });
    let ended = Branch { status: ThreadStatus::Aborted, completed_at: Some("t2".into()), ..expected.clone() };
    assert_eq!(push("close failed", "t2"), ended);
    let told = Branch { chronicle_summary: Some("途中まで".into()), ..ended };
    assert_eq!(push(r#"chronicle 1..2 partial "途中まで""#, "t3"), told);
    assert_eq!(push("rewind 2", "t4"), expected);
}

#[test]
fn a_branch_whose_share_was_never_written_is_one_below_its_parent() {
    let mut child = Book::default();
    let text = r#"share stelis_1 window=9 of root@1 0.5 "x" ~1"#;
    child.below(tid("root"), &notation::book(text).unwrap());
    let Ok(row) = branch(&spawned("stelis_1_1"), child.rows());
    assert_eq!((row.depth, row.window_ratio, row.status), (2, 1.0, ThreadStatus::Active));
    let Ok(root) = branch(&Header::root(SessionId::new("s").unwrap(), "t"), Book::default().rows());
    assert_eq!((root.depth, root.window_ratio, root.parent), (0, 1.0, None));
}
