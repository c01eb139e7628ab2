//! Spawned threads: their rows, the words between them, and what they see of the threads above.

use super::folding::{poured, poured_book};
use super::threads::{header, same};
use super::{make, root, sid, tid};
use crate::suite::play::{self, said};
use crate::suite::shares::{share, slice};
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Setup, Share};
use komado_core::thread::{Branch, Header, Moment, ThreadStatus};
use komado_core::{Role, Seq, SessionId, View};
use komado_store::{BranchFilter, Error, Journal, OpenMode, Store, ThreadMail};
use komado_testkit::Book;

fn branch(id: &SessionId, thread: &str, parent: &str, (depth, minute): (u32, u32)) -> Branch {
    Branch {
        session: id.clone(),
        thread: tid(thread),
        parent: Some(tid(parent)),
        depth,
        window_ratio: 0.8,
        status: ThreadStatus::Active,
        label: Some("調査".into()),
        chronicle_summary: None,
        held_by: None,
        told: true,
        created_at: format!("2024-01-15T10:{minute:02}:00Z"),
        completed_at: None,
    }
}

fn names(store: &dyn Store, id: &SessionId, which: BranchFilter) -> Vec<String> {
    store.branches(id, which).unwrap().iter().map(|branch| branch.thread.to_string()).collect()
}

/// Spawns `thread` from entry `seq` of `parent`, and begins its journal with `share`.
fn spawn(
    store: &dyn Store,
    id: &SessionId,
    thread: &str,
    parent: (&str, Seq),
    share: Share,
) -> (Book, Box<dyn Journal>) {
    let parent = Some(Moment { thread: tid(parent.0), seq: parent.1 });
    store.spawn(&Header { parent, ..header(id, thread, None, 5) }).unwrap();
    let mut journal = store.open(id, &tid(thread), OpenMode::Write).unwrap();
    let mut book = Book::default();
    play::write(&mut book, &mut *journal, Entry::Share(share), 0);
    (book, journal)
}

/// What the journal's view pours is what the book's does.
fn sees_like(journal: &dyn Journal, book: &Book) {
    let view = View::fold(journal, journal.last()).unwrap();
    assert_eq!(view, *book.view());
    assert_eq!(poured(journal, &view), poured_book(book));
}

pub(crate) fn a_branch_is_listed_as_it_was_put_and_put_again_in_its_place(store: &dyn Store) {
    let id = make(store, "s");
    assert_eq!(store.branches(&id, BranchFilter::All).unwrap(), []);
    let mut row = branch(&id, "stelis_1", "root", (1, 7));
    row.told = false;
    row.held_by = Some("engine-7".into());
    row.window_ratio = 0.35;
    store.put_branch(&row).unwrap();
    assert_eq!(store.branches(&id, BranchFilter::All).unwrap(), [row.clone()]);
    row.status = ThreadStatus::Completed;
    row.chronicle_summary = Some("新しい道具を作った\n\"calculator_v2\"".into());
    (row.label, row.held_by, row.told) = (None, None, true);
    row.completed_at = Some("2024-01-15T11:45:00Z".into());
    store.put_branch(&row).unwrap();
    assert_eq!(store.branches(&id, BranchFilter::All).unwrap(), [row]);
    for status in ThreadStatus::ALL {
        let row = Branch { status, ..branch(&id, "stelis_2", "root", (1, 8)) };
        store.put_branch(&row).unwrap();
        assert_eq!(store.branches(&id, BranchFilter::All).unwrap()[1], row);
    }
}

pub(crate) fn branches_come_from_the_top_then_by_age(store: &dyn Store) {
    let id = make(store, "s");
    for (name, parent, at) in [
        ("deep", "mid", (3, 1)),
        ("b", "root", (1, 9)),
        ("a", "root", (1, 9)),
        ("mid", "late", (2, 2)),
        ("late", "root", (1, 30)),
        ("first", "root", (1, 2)),
    ] {
        store.put_branch(&branch(&id, name, parent, at)).unwrap();
    }
    assert_eq!(names(store, &id, BranchFilter::All), ["first", "a", "b", "late", "mid", "deep"]);
    // A root may have its row; it is nobody's child, and not listed.
    store.put_branch(&Branch { parent: None, depth: 0, ..branch(&id, "root", "root", (0, 0)) }).unwrap();
    assert_eq!(names(store, &id, BranchFilter::All).len(), 6);
    // Another session has threads of the same names.
    let other = make(store, "t");
    assert_eq!(names(store, &other, BranchFilter::All), Vec::<String>::new());
    store.put_branch(&branch(&other, "a", "root", (1, 1))).unwrap();
    store.drop_branch(&id, &tid("a")).unwrap();
    assert_eq!(names(store, &id, BranchFilter::All), ["first", "b", "late", "mid", "deep"]);
    assert_eq!(names(store, &other, BranchFilter::All), ["a"]);
}

pub(crate) fn unsettled_are_those_held_and_those_nobody_was_told_of(store: &dyn Store) {
    let id = make(store, "s");
    for (n, status) in (0..).zip(ThreadStatus::ALL) {
        for told in [true, false] {
            for held in [None, Some("engine-7".to_owned())] {
                let name = format!("{}-{}-{}", status.name(), told, held.is_some());
                let row = Branch { status, told, held_by: held, ..branch(&id, &name, "root", (1, n)) };
                store.put_branch(&row).unwrap();
            }
        }
    }
    let unsettled = names(store, &id, BranchFilter::Unsettled);
    let expected: Vec<String> = names(store, &id, BranchFilter::All)
        .into_iter()
        .filter(|name| {
            name.contains("-false-") || matches!(name.as_str(), "active-true-true" | "paused-true-true")
        })
        .collect();
    assert_eq!(unsettled, expected);
    assert_eq!(unsettled.len(), 10);
}

pub(crate) fn the_children_of_a_thread_are_listed_without_theirs(store: &dyn Store) {
    let id = make(store, "s");
    let rows = [("b", "root", (1, 9)), ("deep", "a", (2, 1)), ("a", "root", (1, 2)), ("ab", "a", (2, 0))];
    for (name, parent, at) in rows {
        store.put_branch(&branch(&id, name, parent, at)).unwrap();
    }
    store.put_branch(&Branch { parent: None, depth: 0, ..branch(&id, "root", "root", (0, 0)) }).unwrap();
    let other = make(store, "t");
    store.put_branch(&branch(&other, "c", "root", (1, 1))).unwrap();
    let under = |id: &SessionId, thread: &str| names(store, id, BranchFilter::Under(tid(thread)));
    assert_eq!(under(&id, "root"), ["a", "b"]);
    assert_eq!(under(&id, "a"), ["ab", "deep"]);
    assert_eq!(under(&other, "root"), ["c"]);
    for nobodys in ["b", "deep", "nobody"] {
        assert_eq!(under(&id, nobodys), Vec::<String>::new());
    }
}

pub(crate) fn a_parent_is_told_anew_of_all_its_children_and_of_no_others(store: &dyn Store) {
    let (id, other) = (make(store, "s"), make(store, "t"));
    store.put_branch(&branch(&other, "a", "root", (1, 1))).unwrap();
    store.put_branch(&Branch { parent: None, depth: 0, ..branch(&id, "root", "root", (0, 0)) }).unwrap();
    let ended = Branch { status: ThreadStatus::Completed, ..branch(&id, "b", "root", (1, 2)) };
    let untold = Branch { told: false, ..branch(&id, "c", "root", (1, 3)) };
    let mut rows = vec![branch(&id, "a", "root", (1, 1)), ended, untold, branch(&id, "deep", "a", (2, 1))];
    rows.iter().for_each(|row| store.put_branch(row).unwrap());
    store.unsettle(&id, &tid("nobody")).unwrap();
    assert_eq!(store.branches(&id, BranchFilter::All).unwrap(), rows);
    store.unsettle(&id, &tid("root")).unwrap();
    rows[..3].iter_mut().for_each(|row| row.told = false);
    assert_eq!(store.branches(&id, BranchFilter::All).unwrap(), rows, "nothing else is changed");
    assert_eq!(names(store, &id, BranchFilter::Unsettled), ["a", "b", "c"]);
    assert_eq!(names(store, &other, BranchFilter::Unsettled), Vec::<String>::new());
}

pub(crate) fn a_branch_that_never_came_to_be_is_dropped(store: &dyn Store) {
    let id = make(store, "s");
    for name in ["a", "b"] {
        store.put_branch(&branch(&id, name, "root", (1, 1))).unwrap();
    }
    for _ in 0..2 {
        store.drop_branch(&id, &tid("a")).unwrap();
        assert_eq!(names(store, &id, BranchFilter::All), ["b"]);
    }
}

pub(crate) fn words_wait_in_the_order_they_were_told_until_they_are_taken(store: &dyn Store) {
    let id = make(store, "s");
    let mail = |from: &str, seq: Seq| ThreadMail { from: tid(from), seq };
    let told = [("z", 9), ("a", 4), ("z", 12), ("a", 2), ("z", 9)];
    for (from, seq) in told {
        store.post(&id, &tid("to"), &mail(from, seq)).unwrap();
    }
    store.post(&id, &tid("z"), &mail("a", 4)).unwrap();
    let waits = |to: &str| store.mail(&id, &tid(to)).unwrap();
    assert_eq!(waits("to"), [mail("z", 9), mail("a", 4), mail("z", 12), mail("a", 2)]);
    assert_eq!((waits("z"), waits("a")), (vec![mail("a", 4)], vec![]));
    store.taken(&id, &tid("to"), &tid("z"), 11).unwrap();
    assert_eq!(waits("to"), [mail("a", 4), mail("z", 12), mail("a", 2)]);
    store.taken(&id, &tid("to"), &tid("a"), 4).unwrap();
    store.taken(&id, &tid("to"), &tid("a"), 4).unwrap();
    assert_eq!(waits("to"), [mail("z", 12)]);
    assert_eq!(waits("z"), [mail("a", 4)], "what waits for others stays");
}

pub(crate) fn branches_and_mail_go_with_their_session(store: &dyn Store) {
    for _ in 0..2 {
        let id = make(store, "s");
        assert_eq!(names(store, &id, BranchFilter::All), Vec::<String>::new());
        assert_eq!(store.mail(&id, &tid("a")).unwrap(), []);
        store.put_branch(&branch(&id, "a", "root", (1, 1))).unwrap();
        store.post(&id, &tid("a"), &ThreadMail { from: tid("b"), seq: 3 }).unwrap();
        store.remove(&id).unwrap();
    }
}

pub(crate) fn a_tree_belongs_to_a_session_that_is_there(store: &dyn Store) {
    let (gone, thread) = (sid("gone"), tid("a"));
    let errors = [
        store.put_branch(&branch(&gone, "a", "root", (1, 1))).err(),
        store.branches(&gone, BranchFilter::All).err(),
        store.unsettle(&gone, &thread).err(),
        store.drop_branch(&gone, &thread).err(),
        store.post(&gone, &thread, &ThreadMail { from: tid("b"), seq: 1 }).err(),
        store.mail(&gone, &thread).err(),
        store.taken(&gone, &thread, &tid("b"), 1).err(),
    ];
    for error in errors {
        assert!(matches!(&error, Some(Error::NoSession(id)) if *id == gone), "{error:?}");
    }
    let id = make(store, "s");
    let orphan = Header { parent: Some(Moment { thread, seq: 1 }), ..header(&id, "b", None, 1) };
    assert!(matches!(store.spawn(&orphan), Err(Error::NoThread(_, thread)) if thread == tid("a")));
    assert!(matches!(root(store, &id, OpenMode::Read).above(&tid("b")), Err(Error::NoThread(..))));
}

pub(crate) fn a_child_sees_the_slices_of_all_threads_above(store: &dyn Store) {
    let id = make(store, "s");
    let (mut trunk, mut top) = (Book::default(), root(store, &id, OpenMode::Write));
    let system = |text: &str| Entry::Setup(Setup { system: Some(text.into()), ..Setup::default() });
    play::write(&mut trunk, &mut *top, system("You are 窓."), 5);
    for text in ["古い話", "please build it", "more"] {
        play::write(&mut trunk, &mut *top, said(Role::User, text), 9);
    }
    let slices = vec![slice("root", 4, &[(3, 4)])];
    let (mut child, mut below) =
        spawn(store, &id, "stelis_1", ("root", 4), share("stelis_1", slices.clone()));
    child.below(tid("root"), &trunk);
    play::write(&mut child, &mut *below, system("Work alone."), 5);
    for text in ["begin", "細部", "end"] {
        play::write(&mut child, &mut *below, said(Role::User, text), 9);
    }
    sees_like(&*below, &child);

    let mut slices = slices;
    slices.push(slice("stelis_1", 4, &[(3, 3)]));
    let (mut grandchild, mut deep) =
        spawn(store, &id, "stelis_1_1", ("stelis_1", 4), share("stelis_1_1", slices));
    grandchild.below(tid("root"), &trunk);
    grandchild.below(tid("stelis_1"), &child);
    play::write(&mut grandchild, &mut *deep, said(Role::User, "deep"), 9);
    sees_like(&*deep, &grandchild);
    let seen: Vec<String> = poured(&*deep, grandchild.view()).iter().map(|(_, m)| m.words()).collect();
    assert_eq!(
        seen,
        [
            "You are 窓.\n\nWork alone.",
            "[root から]",
            "please build it",
            "more",
            "[stelis_1 から]",
            "begin",
            "deep"
        ]
    );

    // The threads above go on, in other hands; what was cut from them stays as it was.
    play::write(&mut trunk, &mut *top, said(Role::User, "and then"), 9);
    play::write(&mut child, &mut *below, Entry::Rewind { to: 2 }, 0);
    drop((top, below));
    sees_like(&*deep, &grandchild);
    drop(deep);
    let deep = store.open(&id, &tid("stelis_1_1"), OpenMode::Read).unwrap();
    same(&*deep, &grandchild);
    sees_like(&*deep, &grandchild);
}

pub(crate) fn a_thread_looks_up_others_as_they_are_now(store: &dyn Store) {
    let id = make(store, "s");
    let (mut trunk, mut top) = (Book::default(), root(store, &id, OpenMode::Write));
    play::write(&mut trunk, &mut *top, said(Role::User, "one"), 1);
    // A fork of the root, a child of the fork, and a fork of the child.
    store.spawn(&header(&id, "fork", Some(("root", 1)), 1)).unwrap();
    let (mut fork, mut journal) = (trunk.fork(1), store.open(&id, &tid("fork"), OpenMode::Write).unwrap());
    play::write(&mut fork, &mut *journal, said(Role::User, "二"), 1);
    let slices = vec![slice("fork", 2, &[(1, 2)])];
    let (mut child, mut below) = spawn(store, &id, "c", ("fork", 2), share("c", slices));
    child.below(tid("fork"), &fork);
    play::write(&mut child, &mut *below, said(Role::User, "three"), 1);
    let parent = Some(Moment { thread: tid("fork"), seq: 2 });
    store.spawn(&Header { parent, ..header(&id, "c2", Some(("c", 2)), 9) }).unwrap();
    let other = store.open(&id, &tid("c2"), OpenMode::Write).unwrap();
    sees_like(&*other, &child);

    let above = below.above(&tid("fork")).unwrap();
    same(&*above, &fork);
    assert_eq!(above.header().base, Some(Moment { thread: tid("root"), seq: 1 }));
    same(&*above.above(&tid("root")).unwrap(), &trunk);
    play::write(&mut fork, &mut *journal, said(Role::User, "later"), 1);
    same(&*below.above(&tid("fork")).unwrap(), &fork);
    let mut above = below.above(&tid("fork")).unwrap();
    assert!(matches!(above.append(3, &[]), Err(Error::ReadOnly)), "it is there to look");
    let source: &dyn Journal = &*below;
    assert_eq!(EntrySource::above(source, &tid("root")).unwrap().last(), 1);
    drop(journal);
    same(&*below.above(&tid("fork")).unwrap(), &fork);
}
