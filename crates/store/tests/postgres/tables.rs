//! The tables: made once, by whoever comes first, and read by plain SQL.

use super::{fresh, how, make, open, root, sql, talk};
use komado_core::journal::{Entry, Record, encode};
use komado_core::{Role, ThreadId};
use komado_store::search_index::IndexedUpto;
use komado_store::{Error, OpenMode, PostgresStore, Store, StoreFigures, WatchEvent, WatchStore};
use komado_testkit::Book;
use std::time::Duration;
use talk::{NOW, said};

#[test]
fn ten_who_start_at_once_make_the_tables_once() {
    let url = fresh();
    std::thread::scope(|scope| {
        for n in 0..10 {
            let url = &url;
            scope.spawn(move || make(&open(url), &format!("s{n}")));
        }
    });
    assert_eq!(open(&url).sessions(&komado_store::SessionQuery::default()).unwrap().len(), 10);
    assert_eq!(sql(&url, "SELECT version FROM komado_schema"), [[Some("5".to_owned())]]);
}

#[test]
fn an_index_of_words_from_an_earlier_version_is_made_again() {
    let url = fresh();
    let id = make(&open(&url), "s");
    sql(&url, "DROP TABLE shelves, shelf_fields");
    sql(&url, "CREATE TABLE shelves (session BIGINT PRIMARY KEY, clearings BIGINT NOT NULL)");
    sql(&url, "INSERT INTO shelves SELECT number, 7 FROM sessions");
    for table in ["shelf_threads", "shelf_entries", "shelf_passages", "shelf_posts"] {
        sql(&url, &format!("CREATE TABLE {table} (session BIGINT)"));
    }
    sql(&url, "UPDATE komado_schema SET version = 4");
    let store = open(&url);
    let mut index = store.search_index(&id).unwrap();
    let (begin, end) = (IndexedUpto::default(), IndexedUpto { seq: 1, part: 0 });
    assert_eq!(index.upto(&ThreadId::root()).unwrap(), begin);
    index.add(&ThreadId::root(), begin, end, &[]).unwrap();
    assert_eq!(store.search_index(&id).unwrap().upto(&ThreadId::root()).unwrap(), end);
    store.remove(&id).unwrap();
}

#[test]
fn tables_of_a_newer_komado_are_refused_and_left_alone() {
    let url = fresh();
    drop(open(&url));
    sql(&url, "UPDATE komado_schema SET version = 99");
    let error = PostgresStore::open(&url, &how("old", 10_000, 6_000)).err().unwrap();
    assert!(matches!(error, Error::Refused { .. }) && error.to_string().contains("version 99"), "{error}");
    assert!(error.to_string().contains("newer komado"), "{error}");
    assert_eq!(sql(&url, "SELECT version FROM komado_schema"), [[Some("99".to_owned())]]);
}

#[test]
fn conversations_are_read_by_sql_and_what_was_taken_out_is_not() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "session_an");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    for (role, text) in [
        (Role::System, "あなたは窓です"),
        (Role::User, "秘密は 4711 です"),
        (Role::Assistant, "わかりました \"と\" \0 言う"),
        (Role::User, "二番目"),
    ] {
        talk::write(&mut book, &mut *writer, said(role, text), 3);
    }
    let clean = |seq| {
        encode(&Record {
            seq,
            timestamp: NOW.into(),
            tokens: 3,
            entry: said(Role::User, "秘密は [redacted]"),
        })
    };
    writer.rewrite(&mut |seq, line| line.contains("4711").then(|| clean(seq))).unwrap();
    let rows = sql(
        &url,
        "SELECT user_id, session_id, message_type, content, \"timestamp\", metadata ->> 'seq', \
         metadata ->> 'model' FROM conversations WHERE user_id = '安' ORDER BY id",
    );
    let row = |kind: &str, content: &str, seq: &str| {
        ["安", "session_an", kind, content, "2024-01-15 10:30:00", seq, "m"]
            .map(|text| Some(text.to_owned()))
            .to_vec()
    };
    let expected = [
        row("user", "秘密は [redacted]", "2"),
        row("assistant", "わかりました \"と\" \u{fffd} 言う", "3"),
        row("user", "二番目", "4"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_another_process_writes_is_heard() {
    let url = fresh();
    let (here, there) = (open(&url), open(&url));
    let id = make(&there, "s");
    let mut watcher = here.watch().unwrap();
    talk::write(
        &mut Book::default(),
        &mut *root(&there, &id, OpenMode::Write),
        said(Role::User, "聞こえる？"),
        1,
    );
    let heard = std::iter::repeat_with(|| watcher.next(Duration::from_secs(5)).unwrap()).find(|heard| {
        matches!(heard, WatchEvent::News(news) if news.last == 1) || *heard == WatchEvent::Quiet
    });
    assert!(matches!(heard, Some(WatchEvent::News(news)) if news.session == id), "nothing was heard");
}

#[test]
fn a_store_tells_how_durable_it_is() {
    let url = fresh();
    let store = open(&url);
    let vitals = store.vitals().unwrap();
    assert!(!vitals.may_lose && vitals.durability.contains("synchronous_commit is on"), "{vitals:?}");
    assert_eq!((vitals.kind, vitals.sessions, vitals.leases), ("postgres", Some(0), Some(0)));
    let id = make(&store, "s");
    let writer = root(&store, &id, OpenMode::Write);
    let vitals = store.vitals().unwrap();
    assert_eq!((vitals.sessions, vitals.leases), (Some(1), Some(1)));
    drop(writer);
}

#[test]
fn a_batch_of_any_size_is_one_append() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    for n in 0..5_000 {
        let long = if n % 1000 == 0 { "長い話。".repeat(200_000) } else { format!("{n}番") };
        book.push(said(Role::User, &long), 1, NOW).unwrap();
    }
    let rows = talk::rows(&book, 0);
    writer.append(0, &rows).unwrap();
    let reader = root(&store, &id, OpenMode::Read);
    assert_eq!(reader.last(), 5_000);
    for seq in (1..=5_000).step_by(499).chain([1, 5_000]) {
        assert_eq!(reader.line(seq).unwrap(), rows[seq as usize - 1].line);
    }
    let backwards = (4_000..=4_600).rev().all(|seq| reader.line(seq).unwrap() == rows[seq as usize - 1].line);
    assert!(backwards);
}

#[test]
fn an_entry_of_another_kind_is_no_conversation() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    talk::write(&mut book, &mut *writer, said(Role::User, "一"), 1);
    talk::write(&mut book, &mut *writer, Entry::Rewind { to: 0 }, 0);
    assert_eq!(sql(&url, "SELECT count(*) FROM conversations"), [[Some("1".to_owned())]]);
}

#[test]
fn no_line_spoils_the_conversations_of_others() {
    let url = fresh();
    let store = open(&url);
    make(&store, "s");
    sql(
        &url,
        r#"INSERT INTO entries SELECT number, 'root', n, 2, 1, '',
            convert_to('{"content":"' || content || '","timestamp":"' || at || '","tokens":1e400000}', 'UTF8')
        FROM sessions, (VALUES (1, 'a\ud800b', '2024-02-30T10:00:00Z'), (2, '\ud83d\ude00', '2024-02-29T10:00:00Z'),
            (3, '\ude00\u0000\u0000', 'never'), (4, '\ud83d\ud83d\ude00\ude00', '2024-01-15T10:30:00+09:00'),
            (5, '\\ud800 \\\u0000 \\ud83d\ude00', '2024-01-15T10:30:00 x')) AS lines(n, content, at)"#,
    );
    let rows =
        sql(&url, "SELECT content, \"timestamp\", metadata ->> 'tokens' FROM conversations ORDER BY id");
    let row = |content: &str, at: Option<&str>| {
        vec![Some(content.to_owned()), at.map(str::to_owned), Some("1e400000".to_owned())]
    };
    let expected = [
        row("a\u{fffd}b", None),
        row("😀", Some("2024-02-29 10:00:00")),
        row("\u{fffd}\u{fffd}\u{fffd}", None),
        row("\u{fffd}😀\u{fffd}", Some("2024-01-15 01:30:00")),
        row("\\ud800 \\\u{fffd} \\ud83d\u{fffd}", None),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn who_owns_a_schema_needs_no_right_to_make_one() {
    let url = fresh();
    let schema = url.split_once("?schema=").unwrap().1;
    sql(&url, &format!("CREATE ROLE {schema} LOGIN; CREATE SCHEMA {schema} AUTHORIZATION {schema}"));
    let store = open(&url.replace("komado@", &format!("{schema}@")));
    make(&store, "s");
}
