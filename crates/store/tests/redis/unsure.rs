//! Calls whose answer was lost, and servers that come and go.

use super::servers::{Kind, Server};
use super::{how, make, open, reader, row, rows, writer};
use crate::redis::servers::proxy::Proxy;
use komado_core::session::Counters;
use komado_core::{SessionId, ThreadId};
use komado_store::{
    ConnectOptions, Error, Job, JobOutcome, OpenMode, Queue, SessionChange, Store, WatchEvent, WatchStore,
};
use std::time::{Duration, Instant};

#[test]
fn what_was_done_once_is_not_done_twice_when_the_answer_is_lost() {
    let server = Server::shared(Kind::Redis);
    let proxy = Proxy::before(&server.url);
    let store = open(&format!("{}?prefix=lost", proxy.url), &how("cut off"));
    proxy.lose_the_answer();
    let id = make(&store, "s");
    proxy.lose_the_answer();
    let mut journal = writer(&store, &id);
    for after in 0..5 {
        proxy.lose_the_answer();
        journal.append(after, &[row(after, "一度だけ")]).unwrap();
    }
    proxy.lose_the_answer();
    let by = Counters { llm_call_count: 1, ..Counters::default() };
    let session = store.change(&id, &SessionChange::Count { by, at: "t".into() }).unwrap();
    assert_eq!(session.counters.llm_call_count, 1);
    assert_eq!(reader(&store, &id).last(), 5);
    let session = id.clone();
    let job = Job { session, key: "k".into(), user: None, body: "{}".into(), at: "t".into() };
    // The first time a script may have to be sent twice.
    assert_eq!(store.take(&how("w").holder, Duration::from_secs(60)).unwrap(), None);
    proxy.lose_the_answer();
    assert!(store.enqueue(&job).unwrap(), "it is the one that was put in");
    assert!(!store.enqueue(&job).unwrap());
    let next = Job { session: SessionId::new("next").unwrap(), key: "l".into(), ..job.clone() };
    assert!(store.enqueue(&next).unwrap());
    proxy.lose_the_answer();
    let taken = store.take(&how("w").holder, Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!((&taken.job, taken.tries), (&job, 1));
    let after = store.take(&how("w").holder, Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!((&after.job, after.tries), (&next, 1), "one job was taken at a time");
    store.finish(&after, &JobOutcome::Done).unwrap();
    proxy.lose_the_answer();
    store.finish(&taken, &JobOutcome::Done).unwrap();
    assert!(matches!(store.finish(&taken, &JobOutcome::Done), Err(Error::NotYours(_))));
    drop(journal);
    proxy.lose_the_answer();
    store.remove(&id).unwrap();
    assert!(proxy.lost() >= 11, "{} answers were lost", proxy.lost());
}

#[test]
fn an_append_that_nobody_answered_is_acknowledged_when_it_is_made_again() {
    let server = Server::start(Kind::Redis, &[]);
    let brief = ConnectOptions { patience: Duration::from_millis(300), ..how("impatient") };
    let store = open(&server.url, &how("patient"));
    let id = make(&store, "s");
    let impatient = open(&server.url, &brief);
    let mut journal = writer(&impatient, &id);
    journal.append(0, &[row(0, "一")]).unwrap();
    server.tell("freeze");
    let two = [row(1, "二"), row(2, "三")];
    let start = Instant::now();
    let error = journal.append(1, &two).unwrap_err();
    assert!(error.is_away() && error.to_string().contains("127.0.0.1"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30), "patience is not endless");
    server.tell("thaw");
    // What was sent may be there by now or not; it is there once.
    let again = |journal: &mut dyn komado_store::Journal| loop {
        match journal.append(1, &two) {
            Err(error) if error.is_away() => {}
            done => break done.unwrap(),
        }
    };
    again(&mut *journal);
    assert_eq!(journal.last(), 3);
    assert!(matches!(journal.append(3, &[]), Ok(())));
    assert!(matches!(journal.append(1, &[row(1, "別")]), Err(Error::Moved { found: 3, .. })));
    let kept = reader(&store, &id);
    let lines: Vec<Vec<u8>> = (1..=3).map(|seq| kept.line(seq).unwrap()).collect();
    assert_eq!(lines, rows(&["一", "二", "三"]).into_iter().map(|row| row.line).collect::<Vec<_>>());
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed_again_and_again() {
    let server = Server::start(Kind::Redis, &["--appendfsync", "always"]);
    let store = open(&server.url, &how("steadfast"));
    let id = make(&store, "s");
    let done = std::sync::atomic::AtomicBool::new(false);
    let texts: Vec<String> = (0..).take(100_000).map(|n| format!("行 {n}")).collect();
    let acknowledged = std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut journal = writer(&store, &id);
            let mut book = komado_testkit::Book::default();
            for text in &texts {
                if done.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                super::play::write(
                    &mut book,
                    &mut *journal,
                    super::play::said(komado_core::Role::User, text),
                    1,
                );
            }
            super::play::rows(&book, 0)
        });
        for _ in 0..3 {
            let before = reader(&store, &id).last();
            while reader(&store, &id).last() < before + 20 {}
            server.tell("kill");
            server.tell("start");
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        writes.join().unwrap()
    });
    let kept = reader(&store, &id);
    assert_eq!(kept.last() as usize, acknowledged.len());
    assert!(acknowledged.len() >= 60);
    for (row, seq) in acknowledged.iter().zip(1..) {
        assert_eq!(kept.line(seq).unwrap(), row.line, "@{seq}");
    }
}

#[test]
fn who_listens_hears_of_others_and_is_told_when_something_was_missed() {
    let server = Server::start(Kind::Redis, &[]);
    let (one, two) = (open(&server.url, &how("one")), open(&server.url, &how("two")));
    let id = make(&one, "s");
    let mut ear = two.watch().unwrap();
    let hears = |ear: &mut dyn komado_store::Watcher| ear.next(Duration::from_secs(30)).unwrap();
    let mut journal = writer(&one, &id);
    journal.append(0, &rows(&["一", "二"])).unwrap();
    match hears(&mut *ear) {
        WatchEvent::News(news) => {
            assert_eq!((news.session, news.thread, news.last), (id.clone(), ThreadId::root(), 2));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ear.next(Duration::from_millis(10)).unwrap(), WatchEvent::Quiet);
    server.tell("kill");
    server.tell("start");
    assert_eq!(hears(&mut *ear), WatchEvent::Gap);
    journal.append(2, &[row(2, "三")]).unwrap();
    assert!(matches!(hears(&mut *ear), WatchEvent::News(news) if news.last == 3));
}

#[test]
fn a_server_that_is_not_there_is_named_at_once_and_its_password_is_not() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Err(error) = komado_store::connect(&format!("redis://ann:geheim@127.0.0.1:{free}"), &how("lost"))
    else {
        panic!("there is a server");
    };
    let told = error.to_string();
    assert!(
        error.is_away() && told.contains(&format!("127.0.0.1:{free}")) && !told.contains("geheim"),
        "{told}"
    );
    let nobody = SessionId::new("s").unwrap();
    let server = Server::start(Kind::Redis, &[]);
    let brief = ConnectOptions { patience: Duration::from_millis(300), ..how("brief") };
    let store = open(&server.url, &brief);
    server.tell("kill");
    assert!(store.open(&nobody, &ThreadId::root(), OpenMode::Read).err().unwrap().is_away());
    server.tell("start");
    let start = Instant::now();
    // It is found again by itself.
    while store.sessions(&komado_store::SessionQuery::default()).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
