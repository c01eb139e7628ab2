//! `stelis_threads` and `stelis_mail`: seed 003's table for people and their SQL, and never more than an index.

use crate::files::play::{self, NOW, said};
use crate::files::room::{Line, Room, meta, open_store, spoil, tid};
use komado_core::journal::{Anchor, Chronicle, Close, Ending, Entry};
use komado_core::session::State;
use komado_core::thread::{Branch, Header, ThreadStatus};
use komado_core::{Role, Seq};
use komado_store::{
    BranchFilter, BranchTable, FileStore, OpenMode, SessionChange, SessionQuery, Store, ThreadMail,
};
use komado_testkit::Book;
use rusqlite::Connection;
use std::fs;

/// As the first design wrote it, with ids as text.
const SEED: &str = "
CREATE TABLE stelis_threads (
    thread_id TEXT PRIMARY KEY,
    parent_thread_id TEXT,
    depth INTEGER NOT NULL DEFAULT 0,
    window_ratio REAL NOT NULL DEFAULT 0.8,
    status TEXT NOT NULL DEFAULT 'active',
    chronicle_summary TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    completed_at TIMESTAMP,
    FOREIGN KEY (parent_thread_id) REFERENCES stelis_threads(thread_id)
);
";

fn db(room: &Room) -> Connection {
    Connection::open(room.base().join("tasks.db")).unwrap()
}

/// The first column of what `sql` finds, as text.
fn asked(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn row(room: &Room, thread: &str, parent: &str, depth: u32) -> Branch {
    Branch {
        session: room.id.clone(),
        thread: tid(thread),
        parent: Some(tid(parent)),
        depth,
        window_ratio: 0.8,
        status: ThreadStatus::Active,
        label: Some("調査".into()),
        chronicle_summary: None,
        held_by: None,
        told: false,
        created_at: NOW.into(),
        completed_at: None,
    }
}

/// The journal of a thread, open to write, and its book.
fn say(room: &Room, (thread, book): &mut (String, Book), entry: Entry) -> Seq {
    let mut journal = room.store.open_file(&room.id, &tid(thread), OpenMode::Write).unwrap();
    play::write(book, &mut journal, entry, 9)
}

fn told(store: &FileStore) -> Vec<String> {
    store.take_findings().iter().map(ToString::to_string).collect()
}

fn lose_table(room: &Room) {
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(room.base().join(name));
    }
}

#[test]
fn the_table_of_threads_has_the_columns_people_know_and_five_more() {
    let room = Room::new();
    let (ours, seed) = (db(&room), Connection::open_in_memory().unwrap());
    seed.execute_batch(SEED).unwrap();
    let columns = "SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || COALESCE(dflt_value, '-') || ' ' || pk \
                   FROM pragma_table_info('stelis_threads')";
    let (found, known) = (asked(&ours, columns), asked(&seed, columns));
    assert_eq!(found[..8], known);
    let more: Vec<&str> = found[8..].iter().filter_map(|column| column.split(' ').next()).collect();
    assert_eq!(more, ["session", "thread", "label", "held_by", "told"]);
    let keys =
        "SELECT \"table\" || ' ' || \"from\" || ' ' || \"to\" FROM pragma_foreign_key_list('stelis_threads')";
    assert_eq!(asked(&ours, keys), asked(&seed, keys));
    let indexes =
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%stelis_threads(%' ORDER BY 1";
    let names = ["idx_stelis_parent", "idx_stelis_session", "idx_stelis_status", "idx_stelis_unsettled"];
    assert_eq!(asked(&ours, indexes), names);
}

#[test]
fn a_root_has_its_row_with_its_first_child_and_follows_its_session() {
    let mut room = Room::new();
    let line = room.line(2, "go");
    let rows = "SELECT thread_id || ' ' || COALESCE(parent_thread_id, '-') || ' ' || depth || ' ' || window_ratio || \
                ' ' || status || ' ' || COALESCE(completed_at, '-') FROM stelis_threads ORDER BY depth, thread_id";
    assert_eq!(asked(&db(&room), rows), Vec::<String>::new());
    // The grandchild comes first: those above it are made from their journals.
    assert_eq!(line.0[2].0, "stelis_1_1");
    room.store.put_branch(&row(&room, "stelis_1_1", "stelis_1", 2)).unwrap();
    let all = [
        "s/root - 0 1.0 active -",
        "s/stelis_1 s/root 1 0.8 active -",
        "s/stelis_1_1 s/stelis_1 2 0.8 active -",
    ];
    assert_eq!(asked(&db(&room), rows), all);
    assert_eq!(asked(&db(&room), "SELECT \"table\" FROM pragma_foreign_key_check"), Vec::<String>::new());
    let names: Vec<_> =
        room.store.branches(&room.id, BranchFilter::All).unwrap().into_iter().map(|b| b.thread).collect();
    assert_eq!(names, [tid("stelis_1"), tid("stelis_1_1")], "a root is nobody's child");
    // One of which nothing else is known keeps nobody from being put.
    room.store.put_branch(&row(&room, "lost", "nobody", 4)).unwrap();
    assert_eq!(room.store.branches(&room.id, BranchFilter::All).unwrap().len(), 3);
    room.store.drop_branch(&room.id, &tid("lost")).unwrap();
    for (to, status) in [
        (State::Paused, "paused -"),
        (State::Running, "active -"),
        (State::Completed, "completed 2024-01-15T10:30:00Z"),
        (State::Failed, "aborted 2024-01-15T10:30:00Z"),
    ] {
        room.store.change(&room.id, &SessionChange::State { to, at: NOW.into(), why: None }).unwrap();
        assert_eq!(asked(&db(&room), rows)[0], format!("s/root - 0 1.0 {status}"));
        assert_eq!(asked(&db(&room), rows)[1..], all[1..], "the others go their own way");
    }
    room.store.remove(&room.id).unwrap();
    assert_eq!(asked(&db(&room), rows), Vec::<String>::new());
}

/// A tree with a bit of everything, in journals and in the table.
fn grown() -> (Room, Line) {
    let mut room = Room::new();
    let mut line = room.line(2, "go");
    let (mut other, journal) = room.child("stelis_2", &Line(vec![line.0[0].clone()]));
    drop(journal);
    other.below(tid("root"), &room.book);
    line.0.push(("stelis_2".into(), other));
    for (to, text) in [("stelis_2", "一"), ("stelis_1_1", "two"), ("stelis_2", "three"), ("gone", "four")] {
        say(&room, &mut line.0[1], Entry::Tell { to: tid(to), text: text.into() });
    }
    say(&room, &mut line.0[3], Entry::Heard { from: tid("stelis_1"), upto: 3 });
    say(&room, &mut line.0[3], Entry::Close(Close { ending: Ending::Completed, result: None }));
    let text = "calculator_v2 を作った".into();
    let chronicle = Chronicle { text, covers: [1, 2], partial: false, model: None, usage: None };
    say(&room, &mut line.0[3], Entry::Chronicle(chronicle));
    say(&room, &mut line.0[2], Entry::Close(Close { ending: Ending::Stopped, result: None }));
    for (thread, parent, depth) in
        [("stelis_1", "root", 1), ("stelis_1_1", "stelis_1", 2), ("stelis_2", "root", 1)]
    {
        room.store.put_branch(&Branch { told: true, ..row(&room, thread, parent, depth) }).unwrap();
    }
    let mut row = row(&room, "stelis_2", "root", 1);
    (row.told, row.status, row.completed_at) = (true, ThreadStatus::Completed, Some(NOW.into()));
    row.chronicle_summary = Some("calculator_v2 を作った".into());
    room.store.put_branch(&row).unwrap();
    let ended = self::row(&room, "stelis_1_1", "stelis_1", 2);
    let ended = Branch { told: true, status: ThreadStatus::Aborted, completed_at: Some(NOW.into()), ..ended };
    room.store.put_branch(&ended).unwrap();
    for (to, seq) in [("stelis_1_1", 4), ("stelis_2", 5), ("gone", 6)] {
        room.store.post(&room.id, &tid(to), &ThreadMail { from: tid("stelis_1"), seq }).unwrap();
    }
    (room, line)
}

/// All that the table says, whoever was told of it.
fn says(room: &Room, store: &FileStore) -> Vec<String> {
    let rows = store.branches(&room.id, BranchFilter::All).unwrap();
    let rows = rows.into_iter().map(|row| format!("{:?}", Branch { told: false, ..row }));
    let mail = ["root", "stelis_1", "stelis_1_1", "stelis_2", "gone"];
    rows.chain(mail.map(|to| format!("{to}: {:?}", store.mail(&room.id, &tid(to)).unwrap()))).collect()
}

#[test]
fn rows_and_words_that_wait_outlive_the_process() {
    let (room, _) = grown();
    let live = says(&room, &room.store);
    assert_eq!(live.len(), 3 + 5);
    assert_eq!(says(&room, &room.elsewhere()), live);
    assert_eq!(room.elsewhere().branches(&room.id, BranchFilter::Unsettled).unwrap(), []);
}

#[test]
fn a_lost_table_is_made_again_from_the_journals_and_the_next_to_open_looks_at_every_row() {
    let (room, _) = grown();
    let live = says(&room, &room.store);
    let root = asked(&db(&room), "SELECT thread_id || told FROM stelis_threads WHERE depth = 0");
    lose_table(&room);
    let store = open_store(&room.base());
    assert_eq!(says(&room, &store), live);
    assert_eq!(store.branches(&room.id, BranchFilter::Unsettled).unwrap().len(), 3);
    assert_eq!(told(&store), ["tasks.db was missing; made again with 1 session"]);
    assert_eq!(asked(&db(&room), "SELECT thread_id || told FROM stelis_threads WHERE depth = 0"), root);
    // What nobody says any more goes; what somebody is about to say stays.
    let spoil = "UPDATE stelis_threads SET told = 1, status = 'active', chronicle_summary = NULL; DELETE FROM stelis_mail \
                 WHERE seq = 5; INSERT INTO stelis_mail VALUES ('s', 'stelis_2', 'stelis_1', 2)";
    db(&room).execute_batch(spoil).unwrap();
    store.put_branch(&Branch { told: true, ..row(&room, "old", "root", 1) }).unwrap();
    store.rebuild().unwrap();
    assert_eq!(says(&room, &store), live);
    store.put_branch(&row(&room, "new", "root", 1)).unwrap();
    store.rebuild().unwrap();
    assert_eq!(says(&room, &store).len(), live.len() + 1);
    // A row with a word in it that is none.
    db(&room).execute_batch("UPDATE stelis_threads SET status = '進行中' WHERE thread = 'stelis_1'").unwrap();
    let why = store.branches(&room.id, BranchFilter::All).unwrap_err().to_string();
    assert!(why.contains("進行中") && why.contains("doctor --rebuild"), "{why}");
    store.rebuild().unwrap();
    assert_eq!(says(&room, &store), live);
}

#[test]
fn a_check_tells_what_the_table_said_and_puts_it_right() {
    let (room, _) = grown();
    let live = says(&room, &room.store);
    room.store.check(&room.id).unwrap();
    assert_eq!(told(&room.store), Vec::<String>::new());
    assert_eq!(room.store.branches(&room.id, BranchFilter::Unsettled).unwrap(), [], "nobody is told anew");
    let spoil = "PRAGMA foreign_keys = OFF; UPDATE stelis_threads SET depth = 7 WHERE thread = 'stelis_1'; DELETE FROM stelis_threads WHERE \
                 thread IN ('stelis_2', 'root'); DELETE FROM stelis_mail WHERE to_thread = 'stelis_1_1'; \
                 INSERT INTO stelis_mail VALUES ('s', 'stelis_2', 'stelis_1', 3)";
    db(&room).execute_batch(spoil).unwrap();
    room.store.put_branch(&Branch { told: true, ..row(&room, "old", "stelis_1", 2) }).unwrap();
    room.store.check(&room.id).unwrap();
    assert_eq!(
        told(&room.store),
        [
            "s/stelis_1: the table of threads said active, child of root, depth 7, ratio 0.8, it is active, child of root, \
             depth 1, ratio 0.8",
            "s/stelis_2: the table of threads said nothing, it is completed, child of root, depth 1, ratio 0.8, with a \
             chronicle",
            "s/old: the table of threads said active, child of stelis_1, depth 2, ratio 0.8, it is gone",
            "s/stelis_1_1: of the words told to it, 1 that wait were not in the table and 0 that it has heard still were",
            "s/stelis_2: of the words told to it, 0 that wait were not in the table and 1 that it has heard still were",
        ]
    );
    assert_eq!(says(&room, &room.store), live);
    assert_eq!(asked(&db(&room), "SELECT thread_id FROM stelis_threads WHERE depth = 0"), ["s/root"]);
    room.store.check(&room.id).unwrap();
    assert_eq!(told(&room.store), Vec::<String>::new());
}

#[test]
fn words_of_a_chronicle_that_were_taken_out_are_nowhere_in_the_table() {
    let (room, _) = grown();
    let found = |word: &str| {
        let paths = ["tasks.db", "tasks.db-wal"].map(|name| room.base().join(name));
        let bytes = paths.map(|path| fs::read(path).unwrap_or_default()).concat();
        bytes.windows(word.len()).any(|at| at == word.as_bytes())
    };
    assert!(found("calculator_v2"));
    let mut row = room.store.branches(&room.id, BranchFilter::All).unwrap().remove(1);
    row.chronicle_summary = Some("[redacted] を作った".into());
    room.store.put_branch(&row).unwrap();
    assert!(!found("calculator_v2") && found("[redacted]"));
    room.store.drop_branch(&room.id, &row.thread).unwrap();
    assert!(!found("[redacted]"));
    room.store.put_branch(&row).unwrap();
    assert!(found("[redacted]"));
    room.store.remove(&room.id).unwrap();
    assert!(!found("[redacted]"));
}

/// A line that cannot be read: whose it is, what it has, and what it has then, of the same length.
const HURT: [(&str, &str, &str); 6] = [
    ("stelis_1", "\"op\":\"share\"", "\"op\":\"shar?\""),
    ("stelis_1", "\"op\":\"tell\"", "\"op\":\"tel?\""),
    ("stelis_1_1", "\"op\":\"close\"", "\"op\":\"clos?\""),
    ("stelis_2", "\"op\":\"heard\"", "\"op\":\"hear?\""),
    ("stelis_2", "\"op\":\"chronicle\"", "\"op\":\"chronicl?\""),
    ("root", "\"op\":\"anchor\"", "\"op\":\"ancho?\""),
];

/// A grown tree, another session, and one line of the tree that cannot be read. Its index is as it was.
fn hurt((thread, from, to): (&str, &str, &str)) -> (Room, Vec<String>) {
    let (room, mut line) = grown();
    let (label, text) = (Some("調査".into()), "text".into());
    let anchor = Anchor { thread: tid("stelis_2"), label, ending: None, text, brief: None, first: None };
    say(&room, &mut line.0[0], Entry::Anchor(anchor));
    room.store.create(&meta("t")).unwrap();
    let live = says(&room, &room.store);
    spoil(&room, thread, from, to);
    (room, live)
}

#[test]
fn a_thread_that_cannot_be_read_is_told_and_locks_nobody_out() {
    for case in HURT {
        let (room, _) = hurt(case);
        lose_table(&room);
        let store = open_store(&room.base());
        let found = store.sessions(&SessionQuery::default()).unwrap();
        assert_eq!(found.iter().map(|s| s.meta.uuid.as_str()).collect::<Vec<_>>(), ["s", "t"], "{case:?}");
        let told = told(&store);
        let begin = format!("s/{}: not all of it can be read: s/{0}@", case.0);
        assert!(told[0].starts_with(&begin), "{case:?}: {told:?}");
        assert_eq!(told[told.len() - 1], "tasks.db was missing; made again with 2 sessions");
        let rows = store.branches(&room.id, BranchFilter::All).unwrap();
        let names: Vec<_> = rows.iter().map(|row| (row.thread.as_str(), row.depth)).collect();
        assert_eq!(names, [("stelis_1", 1), ("stelis_2", 1), ("stelis_1_1", 2)], "{case:?}");
        // What of it can be read counts: a thread that has ended is not taken for an open one.
        assert_eq!(rows[1].status, ThreadStatus::Completed, "{case:?}");
        for name in ["root", "stelis_1", "stelis_1_1", "stelis_2"] {
            drop(store.open_file(&room.id, &tid(name), OpenMode::Write).unwrap());
        }
    }
}

#[test]
fn what_the_table_knows_of_a_thread_that_cannot_be_read_stays_and_the_others_are_put_right() {
    for case in HURT {
        let (room, live) = hurt(case);
        room.store.rebuild().unwrap();
        let begin = format!("s/{}: not all of it can be read: s/{0}@", case.0);
        let found = told(&room.store);
        assert!(found.len() == 1 && found[0].starts_with(&begin), "{case:?}: {found:?}");
        assert_eq!(says(&room, &room.store), live, "{case:?}");
        // A check says so, too, when it has been through with the rest.
        let other = if case.0 == "stelis_1" { "stelis_2" } else { "stelis_1" };
        let spoil = format!("UPDATE stelis_threads SET depth = 7 WHERE thread = '{other}'");
        db(&room).execute_batch(&spoil).unwrap();
        assert!(room.store.check(&room.id).is_err(), "{case:?}");
        // Without its root nothing can be said of a session.
        assert_eq!(says(&room, &room.store) == live, case.0 != "root", "{case:?}");
    }
}

#[test]
fn a_thread_that_cannot_be_opened_is_told_and_has_its_row() {
    let (room, _) = hurt(HURT[0]);
    fs::remove_file(room.path("threads/stelis_1/index")).unwrap();
    lose_table(&room);
    let store = open_store(&room.base());
    let rows = store.branches(&room.id, BranchFilter::All).unwrap();
    assert_eq!(rows.iter().map(|row| row.depth).collect::<Vec<_>>(), [1, 1, 2]);
    let lost = Branch { window_ratio: 1.0, ..row(&room, "stelis_1", "root", 1) };
    assert!(rows.contains(&lost), "{rows:?}");
    assert!(told(&store)[0].starts_with("s/stelis_1: not all of it can be read: "));
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap().len(), 2);
}

#[test]
fn an_anchor_that_leads_nowhere_is_told_and_has_a_row_for_who_ends_it() {
    let mut room = Room::new();
    let mut journal = room.write();
    let anchor = |thread: &str, ending, first| {
        let (thread, label) = (tid(thread), Some("調査".into()));
        Entry::Anchor(Anchor { thread, label, ending, text: "text".into(), brief: None, first })
    };
    room.say(&mut journal, said(Role::User, "go"));
    room.say(&mut journal, anchor("never", None, None));
    room.say(&mut journal, anchor("ended", None, None));
    room.say(&mut journal, anchor("ended", Some(Ending::Aborted), Some(3)));
    room.say(&mut journal, anchor("undone", None, None));
    room.say(&mut journal, Entry::Rewind { to: 4 });
    drop(journal);
    let never = Branch { window_ratio: 1.0, ..row(&room, "never", "root", 1) };
    for check in [true, false] {
        lose_table(&room);
        let store = open_store(&room.base());
        if check {
            store.check(&room.id).unwrap();
            let told = store.take_findings();
            assert!(
                told.iter().any(|f| f.starts_with("s/root@2: this anchor names thread never,")),
                "{told:?}"
            );
        }
        assert_eq!(store.branches(&room.id, BranchFilter::Unsettled).unwrap(), std::slice::from_ref(&never));
    }
}

#[test]
fn threads_without_a_parent_or_in_a_circle_are_told_and_keep_nobody_from_opening() {
    let mut room = Room::new();
    let line = room.line(2, "go");
    for name in ["x", "y"] {
        drop(room.child(name, &Line(vec![line.0[0].clone()])));
    }
    let header = |name: &str, parent: &str| {
        let path = room.path(&format!("threads/{name}/messages.jsonl"));
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let mut header = Header::decode(first).unwrap();
        header.parent.as_mut().unwrap().thread = tid(parent);
        fs::write(&path, [&header.encode()[..], rest.as_bytes()].concat()).unwrap();
        let _ = fs::remove_file(room.path(&format!("threads/{name}/index")));
    };
    header("x", "y");
    header("y", "x");
    fs::remove_dir_all(room.path("threads/stelis_1")).unwrap();
    lose_table(&room);
    let store = open_store(&room.base());
    assert_eq!(store.branches(&room.id, BranchFilter::All).unwrap().len(), 3);
    assert_eq!(store.threads(&room.id).unwrap().len(), 4);
    for name in ["x", "y", "stelis_1_1"] {
        drop(store.open_file(&room.id, &tid(name), OpenMode::Write).unwrap());
    }
    store.take_findings();
    store.check(&room.id).unwrap();
    assert_eq!(
        told(&store),
        [
            "s/stelis_1_1: it stands on thread stelis_1, which is not there; what it says itself can be read",
            "session s: these threads stand on one another in a circle: x, y; the first lines of their journals must be put \
             right by hand",
        ]
    );
}
