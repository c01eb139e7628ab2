//! The server goes, comes back, does not answer or refuses.

use super::servers::{Kind, Server};
use super::{fresh, how, lines, make, open, root, talk};
use crate::postgres::servers::proxy::Proxy;
use komado_core::Role;
use komado_store::{Error, JournalRow, OpenMode, PostgresStore, SessionQuery, Store};
use komado_testkit::Book;
use std::time::{Duration, Instant};
use talk::said;

/// Something new to say in the book; as rows.
fn next(book: &mut Book, text: &str) -> (u32, Vec<JournalRow>) {
    let seq = book.push(said(Role::User, text), 1, talk::NOW).unwrap();
    (seq - 1, talk::rows(book, seq - 1))
}

fn expected(book: &Book) -> Vec<Vec<u8>> {
    talk::rows(book, 0).into_iter().map(|row| row.line).collect()
}

#[test]
fn an_append_whose_request_or_answer_is_lost_is_there_once() {
    let url = fresh();
    let proxy = Proxy::before(&url);
    let (store, direct) = (open(&proxy.url), open(&url));
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    for n in 0..12 {
        match n % 3 {
            1 => proxy.lose_the_request(),
            2 => proxy.lose_the_answer(),
            _ => {}
        }
        let (after, rows) = next(&mut book, &format!("{n}番目"));
        writer.append(after, &rows).unwrap();
        assert_eq!(writer.last(), after + 1);
    }
    assert_eq!(lines(&direct, &id), expected(&book));
}

#[test]
fn a_server_that_is_killed_in_mid_append_and_comes_back_has_each_entry_once() {
    let server = Server::start(Kind::Postgres, &[]);
    let store = PostgresStore::open(&server.url, &how("the tests", 30_000, 60_000)).unwrap();
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    std::thread::scope(|scope| {
        let killing = scope.spawn(|| {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(150));
                server.tell("kill");
                server.tell("start");
            }
        });
        while !killing.is_finished() {
            let (after, rows) = next(&mut book, "続ける");
            writer.append(after, &rows).unwrap();
        }
    });
    drop(writer);
    assert_eq!(lines(&store, &id), expected(&book));
}

#[test]
fn what_was_given_up_while_the_server_was_away_is_settled_by_the_next_append() {
    let server = Server::start(Kind::Postgres, &["-c", "fsync=off"]);
    let store = PostgresStore::open(&server.url, &how("the tests", 5_000, 60_000)).unwrap();
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    let (after, rows) = next(&mut book, "先");
    writer.append(after, &rows).unwrap();

    server.tell("freeze");
    let (after, rows) = next(&mut book, "凍る");
    let begun = Instant::now();
    let error = writer.append(after, &rows).unwrap_err();
    assert!(error.is_away() && error.to_string().contains("127.0.0.1:"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it waits no longer than it is told to");
    assert!(store.sessions(&SessionQuery::default()).unwrap_err().is_away());
    server.tell("thaw");
    // Whether the frozen one was done by now or not: it is there once.
    while let Err(error) = writer.append(after, &rows) {
        assert!(error.is_away(), "{error}");
    }
    assert_eq!(writer.last(), 2);

    server.tell("kill");
    let (after, rows) = next(&mut book, "消える");
    assert!(writer.append(after, &rows).unwrap_err().is_away());
    server.tell("start");
    writer.append(after, &rows).unwrap();
    assert_eq!(lines(&store, &id), expected(&book));
}

#[test]
fn other_lines_than_those_that_were_given_up_are_not_taken_for_them() {
    let server = Server::start(Kind::Postgres, &["-c", "fsync=off"]);
    let (patient, hasty) = (how("direct", 30_000, 60_000), how("the tests", 5_000, 60_000));
    let direct = PostgresStore::open(&server.url, &patient).unwrap();
    let store = PostgresStore::open(&server.url, &hasty).unwrap();
    let id = make(&store, "s");
    let (mut book, mut writer) = (Book::default(), root(&store, &id, OpenMode::Write));
    let (after, rows) = next(&mut book, "一");
    writer.append(after, &rows).unwrap();
    let (_, given_up) = next(&mut book.fork(1), "凍る");
    let (_, other) = next(&mut book.fork(1), "別");
    // A connection on which nothing was appended yet does not get as far as the append: then it is given up again.
    let is_there = || {
        (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            root(&direct, &id, OpenMode::Read).last() == 2
        })
    };
    loop {
        server.tell("freeze");
        assert!(writer.append(1, &given_up).unwrap_err().is_away());
        server.tell("thaw");
        if is_there() {
            break;
        }
    }
    assert!(matches!(writer.append(1, &other), Err(Error::Moved { expected: 1, found: 2 })));
    assert_eq!(lines(&direct, &id), [rows[0].line.clone(), given_up[0].line.clone()]);
}

#[test]
fn who_cannot_come_in_is_told_what_to_do() {
    let refused = |url: &str| PostgresStore::open(url, &how("nobody", 2_000, 6_000)).err().unwrap();
    let url = fresh();
    let tls = refused(&format!("{url}&sslmode=require"));
    assert!(
        matches!(&tls, Error::Refused { why, .. } if why.contains("TLS") && why.contains("sslmode")),
        "{tls}"
    );
    let missing = refused(&url.replace("/postgres?", "/keine_da?"));
    assert!(matches!(&missing, Error::Refused { why, .. } if why.contains("createdb")), "{missing}");
    let user = refused(&url.replace("komado@", "fremd:geheim@"));
    assert!(matches!(&user, Error::Refused { .. }) && !user.to_string().contains("geheim"), "{user}");
    assert!(user.to_string().contains("user"), "{user}");
    let nobody = refused("postgres://ann:geheim@127.0.0.1:1/bot");
    assert!(nobody.is_away() && nobody.to_string().contains("127.0.0.1:1"), "{nobody}");
    assert!(!nobody.to_string().contains("geheim"), "{nobody}");
}
