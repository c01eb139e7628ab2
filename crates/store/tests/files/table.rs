//! `tasks.db`: seed 000's table for people and their SQL, and never more than an index.

use crate::files::play::{self, NOW, answered, result, said};
use crate::files::room::{Room, called, condensed, meta, open_store, sid, spoil};
use komado_core::journal::{Chronicle, Close, Ending, Entry, Reply, Usage};
use komado_core::session::{Counters, Meta, Session, State, StelisConfig};
use komado_core::thread::Branch;
use komado_core::{Message, Role, ThreadId};
use komado_store::{
    BranchFilter, BranchTable, Error, FileStore, OpenMode, SessionChange, SessionQuery, Store,
    TranscriptPlaces,
};
use komado_testkit::Book;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// As the first design wrote it.
const SEED: &str = "
CREATE TABLE tasks (
    uuid TEXT PRIMARY KEY,
    task_source TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    process_id INTEGER,
    hostname TEXT,
    llm_provider TEXT,
    model TEXT,
    context_length INTEGER,
    llm_call_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    compression_count INTEGER DEFAULT 0,
    error_message TEXT,
    user TEXT
);
CREATE INDEX idx_tasks_status ON tasks(status);
CREATE INDEX idx_tasks_created_at ON tasks(created_at);
CREATE INDEX idx_tasks_user ON tasks(user);
";

fn db(room: &Room) -> Connection {
    Connection::open(room.base().join("tasks.db")).unwrap()
}

/// Name, type, not null, default and key of each column.
fn columns(db: &Connection) -> Vec<(String, String, bool, Option<String>, bool)> {
    let mut statement = db.prepare("PRAGMA table_info(tasks)").unwrap();
    let rows =
        statement.query_map([], |row| Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

fn indexes(db: &Connection) -> Vec<(String, String)> {
    let mut statement = db
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'tasks' ORDER BY 1")
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn the_table_has_the_columns_and_indexes_people_know_and_fourteen_more() {
    let room = Room::new();
    let (ours, seed) = (db(&room), Connection::open_in_memory().unwrap());
    seed.execute_batch(SEED).unwrap();
    let (found, known) = (columns(&ours), columns(&seed));
    assert_eq!(found[..known.len()], known);
    let more: Vec<&str> = found[known.len()..].iter().map(|column| column.0.as_str()).collect();
    assert_eq!(
        more,
        [
            "updated_at",
            "compression_threshold",
            "meter",
            "window_from",
            "persona",
            "stelis_config",
            "alias",
            "agent",
            "project",
            "input_tokens",
            "cached_tokens",
            "cache_write_tokens",
            "output_tokens",
            "saved_tokens"
        ]
    );
    assert!(found[known.len()..].iter().all(|column| !column.2 && !column.4));
    assert_eq!(indexes(&ours), indexes(&seed));
    let tables: u32 =
        ours.query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table'", [], |r| r.get(0)).unwrap();
    assert_eq!(tables, 4, "sessions, spawned threads, words between them, places");
    let row = ours.query_row(
        "SELECT uuid || ' ' || task_source || ' ' || owner || ' ' || repo || ' ' || task_type || ' ' || task_id || ' ' || \
         status || ' ' || process_id || ' ' || hostname || ' ' || llm_provider || ' ' || model || ' ' || \
         context_length || ' ' || llm_call_count || ' ' || user FROM tasks",
        [],
        |row| row.get::<_, String>(0),
    );
    assert_eq!(
        row.unwrap(),
        "s github ann tool issue 27 running 12345 worker-node-1 openai gpt-4o 128000 0 ann"
    );
}

#[test]
fn a_table_from_before_the_last_columns_gets_them_and_keeps_its_rows() {
    let room = Room::new();
    let base = room.base().to_owned();
    for change in [
        "ALTER TABLE tasks DROP COLUMN agent; ALTER TABLE tasks DROP COLUMN project; \
         ALTER TABLE tasks DROP COLUMN saved_tokens; ALTER TABLE tasks DROP COLUMN output_tokens",
        "ALTER TABLE tasks DROP COLUMN alias; DROP TABLE places",
        "ALTER TABLE tasks DROP COLUMN stelis_config; ALTER TABLE tasks DROP COLUMN persona",
        "ALTER TABLE tasks DROP COLUMN window_from; DROP TABLE stelis_threads; DROP TABLE stelis_mail",
    ] {
        db(&room).execute_batch(change).unwrap();
        let again = open_store(&base);
        let found = again.sessions(&SessionQuery::default()).unwrap();
        assert_eq!((found.len(), &found[0].meta.config), (1, &meta("s").config));
        assert_eq!(again.branches(&room.id, BranchFilter::All).unwrap(), []);
        assert_eq!(again.spots("n").unwrap(), []);
        assert!(again.take_findings().is_empty(), "nothing had to be made again");
    }
}

#[test]
fn a_table_from_before_tokens_by_kind_knows_only_totals_until_it_is_made_again() {
    let (room, all) = paid_room();
    let dropped = ["input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "saved_tokens"]
        .map(|column| format!("ALTER TABLE tasks DROP COLUMN {column};"));
    db(&room).execute_batch(&dropped.concat()).unwrap();
    let again = open_store(&room.base());
    let old = counters(&again);
    assert_eq!((old.total_tokens, old.output_tokens, old.saved_tokens), (all.total_tokens, 0, 0));
    assert_eq!(old.usage(), None, "a part of the total has no kind");
    again.change(&room.id, &SessionChange::Count { by: Counters::of(&reply(7)), at: NOW.into() }).unwrap();
    assert_eq!(counters(&again).usage(), None, "what comes later does not tell of what came before");
    again.rebuild().unwrap();
    assert_eq!(counters(&again), all);
    assert!(counters(&again).usage().is_some());
}

#[test]
fn who_talks_in_a_session_and_where_is_in_its_row() {
    let room = Room::new();
    let mut spoken = meta("t");
    (spoken.config.agent, spoken.config.project) = (Some("claude-code".into()), Some("/home/綾/app".into()));
    room.store.create(&spoken).unwrap();
    let told = db(&room).query_row("SELECT agent || ' ' || project FROM tasks WHERE uuid = 't'", [], |row| {
        row.get::<_, String>(0)
    });
    assert_eq!(told.unwrap(), "claude-code /home/綾/app");
    let found = |store: &FileStore| store.sessions(&SessionQuery::default()).unwrap().remove(1).meta.config;
    assert_eq!(found(&room.elsewhere()), spoken.config);
    room.store.rebuild().unwrap();
    assert_eq!(found(&room.store), spoken.config);
}

#[test]
fn what_a_session_says_for_its_spawned_threads_is_in_its_row() {
    let room = Room::new();
    let mut spoken = meta("t");
    spoken.config.persona = Some("綾".into());
    let config = StelisConfig { enabled: Some(true), default_window_ratio: Some(0.6), max_depth: None };
    spoken.config.stelis_config = Some(config);
    room.store.create(&spoken).unwrap();
    let told = db(&room).query_row(
        "SELECT persona || ' ' || stelis_config FROM tasks WHERE uuid = 't'",
        [],
        |row| row.get::<_, String>(0),
    );
    assert_eq!(told.unwrap(), r#"綾 {"enabled":true,"default_window_ratio":0.6}"#);
    let found = |store: &FileStore| store.sessions(&SessionQuery::default()).unwrap().remove(1).meta.config;
    assert_eq!(found(&room.elsewhere()), spoken.config);
    room.store.rebuild().unwrap();
    assert_eq!(found(&room.store), spoken.config);
    // Somebody else's hand in the table hinders no listing.
    db(&room).execute_batch("UPDATE tasks SET stelis_config = '{\"depth\":9' WHERE uuid = 't'").unwrap();
    assert_eq!(found(&room.store).stelis_config, None);
}

/// Says `entry` in a thread and counts it, as whoever runs a session does.
fn say(room: &Room, book: &mut Book, thread: &ThreadId, id: &str, entry: Entry) {
    let mut journal = room.store.open_file(&sid(id), thread, OpenMode::Write).unwrap();
    let by = Counters::of(&entry);
    play::write(book, &mut journal, entry, 7);
    room.store.change(&sid(id), &SessionChange::Count { by, at: NOW.into() }).unwrap();
}

fn enter(room: &Room, id: &str, to: State, why: Option<&str>) {
    let change = SessionChange::State { to, at: NOW.into(), why: why.map(str::to_owned) };
    room.store.change(&sid(id), &change).unwrap();
}

fn reply(tokens: u64) -> Entry {
    let usage = Some(Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() });
    Entry::Message(Message::text(Role::Assistant, "yes"), Some(Reply { usage, ..Reply::default() }))
}

/// Sessions in every state, with work done in them.
fn busy_room() -> Room {
    let room = Room::new();
    let root = ThreadId::root();
    for (id, ending) in [
        ("done", Some((Ending::Completed, State::Completed, None))),
        ("bad", Some((Ending::Failed, State::Failed, Some("no 窓")))),
        ("out", Some((Ending::Stopped, State::Stopped, Some("enough")))),
        ("wait", Some((Ending::Paused, State::Paused, None))),
        ("back", None),
    ] {
        room.store.create(&Meta { user: None, ..meta(id) }).unwrap();
        let book = &mut Book::default();
        say(&room, book, &root, id, said(Role::User, "go"));
        say(&room, book, &root, id, reply(100));
        say(&room, book, &root, id, called("c1", "read", "{}"));
        say(&room, book, &root, id, result(answered("c1", "bytes")));
        say(&room, book, &root, id, condensed(1, 4, "in short"));
        let usage = Some(Usage { input_tokens: 9, ..Usage::default() });
        say(&room, book, &root, id, Entry::Lost(Reply { usage, ..Reply::default() }));
        if let Some((ending, state, why)) = ending {
            let result = why.map(str::to_owned).or(Some("result".into()));
            say(&room, book, &root, id, Entry::Close(Close { ending, result }));
            enter(&room, id, state, why);
        } else {
            // Closed and opened again; and a fork that did some work of its own.
            say(&room, book, &root, id, Entry::Close(Close { ending: Ending::Completed, result: None }));
            enter(&room, id, State::Completed, None);
            enter(&room, id, State::Running, None);
            say(&room, book, &root, id, Entry::Rewind { to: 6 });
            let base = Some(komado_core::thread::Moment { thread: root.clone(), seq: 6 });
            let fork = komado_core::thread::Header {
                thread: sid_thread("fork"),
                base,
                ..komado_core::thread::Header::root(sid(id), NOW)
            };
            room.store.spawn(&fork).unwrap();
            say(&room, &mut book.fork(6), &fork.thread, id, reply(1000));
        }
    }
    room.store.create(&Meta { queued: true, ..meta("queued") }).unwrap();
    room
}

fn sid_thread(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// What a row must say, whoever wrote it; when is another matter.
fn telling(session: &Session) -> String {
    let Session { meta, status, error_message, counters, .. } = session;
    let (started, ended) = (session.started_at.is_some(), session.completed_at.is_some());
    format!("{meta:?} {status:?} {started} {ended} {error_message:?} {counters:?}")
}

fn rows(store: &FileStore) -> Vec<String> {
    store.sessions(&SessionQuery::default()).unwrap().iter().map(telling).collect()
}

#[test]
fn a_table_made_again_says_what_the_live_one_said() {
    let room = busy_room();
    let live = rows(&room.store);
    assert_eq!(live.len(), 7);
    let back = room
        .store
        .sessions(&SessionQuery { prefix: Some("back".into()), ..SessionQuery::default() })
        .unwrap()
        .remove(0);
    assert_eq!(back.status, State::Running);
    assert_eq!(back.counters.total_tokens, 101 + 9 + 1001);
    assert_eq!(room.store.rebuild().unwrap().sessions, 7);
    assert_eq!(rows(&room.store), live);
    assert_eq!(rows(&room.elsewhere()), live);
    for id in room.store.folders().unwrap() {
        room.store.check(&id).unwrap();
    }
    assert_eq!(room.store.take_findings(), [""; 0]);
}

#[test]
fn a_missing_table_is_made_from_the_folders() {
    let room = busy_room();
    let live = rows(&room.store);
    let base = room.base();
    drop(room.store);
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(base.join(name));
    }
    let store = open_store(&base);
    assert_eq!(rows(&store), live);
    assert_eq!(store.take_findings(), ["tasks.db was missing; made again with 7 sessions"]);
    assert_eq!(rows(&open_store(&base)), live);
}

#[test]
fn a_table_whose_maker_was_killed_is_filled_by_the_next() {
    let room = busy_room();
    let live = rows(&room.store);
    let base = room.base();
    drop(room.store);
    let half = Connection::open(base.join("tasks.db")).unwrap();
    half.execute_batch("PRAGMA user_version = 0; DELETE FROM tasks WHERE uuid > 'c'").unwrap();
    drop(half);
    assert_eq!(rows(&open_store(&base)), live);
}

#[test]
fn a_table_that_is_none_is_put_aside_and_made_again() {
    let room = busy_room();
    let live = rows(&room.store);
    let base = room.base();
    drop(room.store);
    let mut n = 0;
    let mut put_aside = |what: &str| {
        n += 1;
        let store = open_store(&base);
        assert_eq!(rows(&store), live, "{what}");
        let aside = base.join(format!("tasks.db.broken-{n}"));
        let told = store.take_findings();
        assert!(matches!(&told[..], [one] if one.contains(&format!("; it is now {}, ", aside.display()))));
        assert!(aside.exists(), "{what}");
    };
    fs::write(base.join("tasks.db"), b"garbage, and not little of it".repeat(500)).unwrap();
    put_aside("garbage");
    fs::write(base.join("tasks.db"), b"short").unwrap();
    put_aside("short");
    fs::remove_file(base.join("tasks.db")).unwrap();
    Connection::open(base.join("tasks.db")).unwrap().execute_batch(SEED).unwrap();
    put_aside("a table with other columns");
    let kept = Connection::open(base.join("tasks.db.broken-3")).unwrap();
    assert_eq!(columns(&kept).len(), 21);
}

#[test]
fn a_table_with_holes_is_made_again_when_asked() {
    let room = busy_room();
    let live = rows(&room.store);
    let base = room.base();
    drop(room.store);
    let size = fs::metadata(base.join("tasks.db")).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(base.join("tasks.db")).unwrap();
    for at in (4096..size).step_by(64) {
        file.write_all_at(&[0xa5; 64], at).unwrap();
    }
    let store = open_store(&base);
    let error = store.sessions(&SessionQuery::default()).unwrap_err();
    assert!(matches!(&error, Error::Table(_)) && error.to_string().contains("doctor --rebuild"), "{error}");
    assert_eq!(store.rebuild().unwrap().sessions, 7);
    assert_eq!(rows(&store), live);
    assert!(base.join("tasks.db.broken-1").exists());
}

#[test]
fn a_table_of_a_newer_version_is_left_alone() {
    let room = busy_room();
    let base = room.base();
    drop(room.store);
    Connection::open(base.join("tasks.db")).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = open_store(&base).sessions(&SessionQuery::default()).unwrap_err();
    assert!(
        error.to_string().contains("version 99") && error.to_string().contains("newer komado"),
        "{error}"
    );
    assert!(!base.join("tasks.db.broken-1").exists());
}

#[test]
fn a_table_that_another_process_holds_is_waited_for_and_not_put_aside() {
    let room = busy_room();
    let (live, base) = (rows(&room.store), room.base());
    drop(room.store);
    for unfilled in [false, true] {
        let holder = Connection::open(base.join("tasks.db")).unwrap();
        if unfilled {
            holder.execute_batch("PRAGMA user_version = 0").unwrap();
        }
        holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(rows(&open_store(&base)), live);
                let by = Counters { llm_call_count: 1, ..Counters::default() };
                open_store(&base).change(&sid("s"), &SessionChange::Count { by, at: NOW.into() }).unwrap();
                let by = Counters { llm_call_count: 0, ..Counters::default() };
                open_store(&base).change(&sid("s"), &SessionChange::Count { by, at: NOW.into() }).unwrap();
            });
            std::thread::sleep(Duration::from_millis(300));
            holder.execute_batch("COMMIT").unwrap();
        });
        open_store(&base).rebuild().unwrap();
        assert!(!base.join("tasks.db.broken-1").exists());
    }
}

#[test]
fn many_make_the_table_at_once() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..6 {
                let base = dir.path();
                scope.spawn(move || open_store(base).create(&meta(&format!("s{n}"))).unwrap());
            }
        });
        assert_eq!(open_store(dir.path()).sessions(&SessionQuery::default()).unwrap().len(), 6);
    }
}

#[test]
fn one_of_many_makes_the_session_and_the_others_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let made: Vec<bool> = std::thread::scope(|scope| {
        let base = dir.path();
        let makers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(move || match open_store(base).create(&meta("s")) {
                    Ok(()) => true,
                    Err(Error::SessionExists(_)) => false,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 1);
    assert_eq!(fs::read_dir(dir.path().join("running")).unwrap().count(), 1);
}

#[test]
fn a_session_taken_from_the_queue_is_not_put_back_by_a_check() {
    let room = Room::new();
    room.store.create(&Meta { queued: true, ..meta("q") }).unwrap();
    room.store.check(&sid("q")).unwrap();
    assert_eq!(room.store.take_findings(), [""; 0]);
    enter(&room, "q", State::Running, None);
    room.store.check(&sid("q")).unwrap();
    assert_eq!(room.store.take_findings(), [""; 0]);
    let row = room
        .store
        .sessions(&SessionQuery { prefix: Some("q".into()), ..SessionQuery::default() })
        .unwrap()
        .remove(0);
    assert_eq!((row.status, row.started_at.as_deref()), (State::Running, Some(NOW)));
}

#[test]
fn a_session_that_cannot_be_read_hinders_no_other() {
    let room = busy_room();
    fs::write(room.base().join("completed/done/messages.jsonl"), "garbage").unwrap();
    fs::remove_file(room.base().join("completed/bad/metadata.json")).unwrap();
    fs::write(room.base().join("completed/out/metadata.json"), "{").unwrap();
    let done = room.store.rebuild().unwrap();
    assert_eq!((done.sessions, done.unreadable), (6, 1));
    let told = room.store.take_findings();
    assert!(told.iter().any(|f| f.starts_with("session done cannot be read: ")));
    for id in ["bad", "out"] {
        assert!(told.contains(&format!("session {id}: metadata.json cannot be read")));
        let row = room
            .store
            .sessions(&SessionQuery { prefix: Some(id.into()), ..SessionQuery::default() })
            .unwrap()
            .remove(0);
        assert_eq!((row.counters.tool_call_count, row.status.is_ended()), (1, true));
    }
}

/// A child that was told what it cost: a reply, a summary that a model wrote, and its chronicle.
fn paid_room() -> (Room, Counters) {
    let mut room = Room::new();
    let mut line = room.line(1, "go");
    let (name, book) = line.0.last_mut().unwrap();
    let thread = sid_thread(name);
    let usage = |tokens: u64| Some(Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() });
    say(&room, book, &thread, "s", reply(100));
    let Entry::Edit(mut edit) = condensed(2, 3, "in short") else { panic!() };
    edit.cause.usage = usage(1000);
    say(&room, book, &thread, "s", Entry::Edit(edit));
    let chronicle =
        Chronicle {
            text: "道具".into(), covers: [1, 4], partial: false, model: None, usage: usage(10_000)
        };
    say(&room, book, &thread, "s", Entry::Close(Close { ending: Ending::Completed, result: None }));
    say(&room, book, &thread, "s", Entry::Chronicle(chronicle));
    let row = Branch { told: true, ..thread_row(&room, name) };
    room.store.put_branch(&row).unwrap();
    let all = Counters {
        llm_call_count: 3,
        total_tokens: 11_103,
        compression_count: 1,
        input_tokens: 11_100,
        output_tokens: 3,
        saved_tokens: 95,
        ..Counters::default()
    };
    (room, all)
}

fn thread_row(room: &Room, name: &str) -> Branch {
    let journal = room.store.open_file(&room.id, &sid_thread(name), OpenMode::Read).unwrap();
    komado_core::thread::branch(komado_store::Journal::header(&journal), &journal).unwrap()
}

fn counters(store: &FileStore) -> Counters {
    store.sessions(&SessionQuery::default()).unwrap().remove(0).counters
}

#[test]
fn what_models_were_paid_for_summaries_and_chronicles_is_counted_again() {
    let (room, all) = paid_room();
    assert_eq!(counters(&room.store), all);
    room.store.check(&room.id).unwrap();
    assert_eq!(room.store.take_findings(), [""; 0]);
    room.store.rebuild().unwrap();
    assert_eq!(counters(&room.store), all);
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(room.base().join(name));
    }
    assert_eq!(counters(&open_store(&room.base())), all);
}

#[test]
fn what_cannot_be_read_any_more_was_counted_when_it_could_be() {
    for (from, to, left) in [
        ("\"role\":\"assistant\"", "\"role\":\"assistan?\"", (2, 11_002, 1)),
        ("\"op\":\"condense\"", "\"op\":\"condens?\"", (2, 10_102, 0)),
        ("\"op\":\"chronicle\"", "\"op\":\"chronicl?\"", (2, 1102, 1)),
    ] {
        let (room, all) = paid_room();
        spoil(&room, "stelis_1", from, to);
        room.store.rebuild().unwrap();
        assert_eq!(counters(&room.store), all, "{from}");
        assert!(room.store.check(&room.id).is_err(), "{from}");
        assert_eq!(counters(&room.store), all, "{from}");
        let told = room.store.take_findings();
        assert!(
            matches!(&told[..], [one] if one.starts_with("s/stelis_1: not all of it can be read: ")),
            "{told:?}"
        );
        // Nobody knows any more; the rest is counted.
        for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
            let _ = fs::remove_file(room.base().join(name));
        }
        let Counters { llm_call_count, total_tokens, compression_count, .. } =
            counters(&open_store(&room.base()));
        assert_eq!((llm_call_count, total_tokens, compression_count), left, "{from}");
    }
}

#[test]
fn who_has_little_patience_is_refused_soon_and_then_at_once() {
    let room = Room::new();
    let by = Counters { llm_call_count: 1, ..Counters::default() };
    let count = || room.store.change(&sid("s"), &SessionChange::Count { by, at: NOW.into() });
    count().unwrap();
    let holder = db(&room);
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    room.store.set_table_patience(Duration::from_millis(50));
    let waited = count().unwrap_err().to_string();
    assert!(waited.contains("locked"), "{waited}");
    // Nothing here waits an hour: the table is not asked again.
    room.store.set_table_patience(Duration::from_secs(3600));
    let at_once = count().unwrap_err().to_string();
    assert!(at_once.contains("a moment ago"), "{at_once}");
    holder.execute_batch("COMMIT").unwrap();
    room.store.set_table_patience(Duration::ZERO);
    assert_eq!(count().unwrap().counters.llm_call_count, 2);
}

#[test]
fn a_table_that_is_removed_under_us_is_told_once_and_made_again() {
    let room = Room::new();
    rows(&room.store);
    fs::remove_dir_all(room.base()).unwrap();
    let told = room.store.create(&meta("other")).unwrap_err().to_string();
    assert!(told.contains("removed while it was in use"), "{told}");
    room.store.create(&meta("other")).unwrap();
    assert_eq!(rows(&room.elsewhere()).len(), 1, "what is made then is found by others");
}

#[test]
fn what_a_writer_has_not_told_yet_is_left_to_it() {
    let room = Room::new();
    let mut book = Book::default();
    let mut journal = room.write();
    play::write(&mut book, &mut journal, said(Role::User, "go"), 10);
    play::write(&mut book, &mut journal, reply(100), 10);
    let other = room.elsewhere();
    let calls = |store: &FileStore| {
        store.sessions(&SessionQuery::default()).unwrap().remove(0).counters.llm_call_count
    };
    other.check(&sid("s")).unwrap();
    assert_eq!(calls(&other), 0, "it will count when it is done");
    let by = Counters::of(&reply(100));
    room.store.change(&sid("s"), &SessionChange::Count { by, at: NOW.into() }).unwrap();
    drop(journal);
    other.check(&sid("s")).unwrap();
    assert_eq!((calls(&other), other.take_findings().len()), (1, 0));
}
