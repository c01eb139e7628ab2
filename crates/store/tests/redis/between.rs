//! What others do between two steps of a call.

use super::servers::{Kind, Server};
use super::{how, make, open, row, writer};
use crate::redis::servers::proxy::Proxy;
use komado_core::session::{Counters, State};
use komado_core::{SessionId, ThreadId};
use komado_store::{
    Blobs, Error, Job, OpenMode, Queue, RedisStore, SessionChange, SessionQuery, Store, StoreFigures,
    TranscriptPlace, TranscriptPlaces, WatchStore,
};
use std::io::Read;
use std::sync::Barrier;

/// A store behind a proxy, and the same one reached directly.
fn both(prefix: &str) -> (Proxy, RedisStore, RedisStore) {
    let server = Server::shared(Kind::Redis);
    let proxy = Proxy::before(&server.url);
    let slow = open(&format!("{}?prefix={prefix}", proxy.url), &how("slow"));
    let quick = open(&format!("{}?prefix={prefix}", server.url), &how("quick"));
    (proxy, slow, quick)
}

fn line() -> redis::Connection {
    redis::Client::open(Server::shared(Kind::Redis).url.as_str()).unwrap().get_connection().unwrap()
}

fn members(key: &str) -> Vec<String> {
    redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).query(&mut line()).unwrap()
}

fn erase(key: &str) {
    let _: () = redis::cmd("DEL").arg(key).query(&mut line()).unwrap();
}

#[test]
fn a_sweep_leaves_an_output_that_was_finished_while_it_looked() {
    let (proxy, slow, quick) = both("sweep");
    let id = make(&slow, "s");
    let blob = slow.put_blob(&id, &mut &b"output"[..]).unwrap();
    // The first time a script may have to be sent twice.
    slow.sweep(&id, &|_| true).unwrap();
    // As if its name were still to come.
    let _: () = redis::cmd("HDEL").arg("{sweep:s}:outputs").arg(&blob.id).query(&mut line()).unwrap();
    assert!(slow.blob(&id, &blob.id).is_err());
    let session = id.clone();
    proxy.delay_an_answer(0, move || drop(quick.put_blob(&session, &mut &b"output"[..]).unwrap()));
    assert_eq!(slow.sweep(&id, &|_| true).unwrap().blobs, 0);
    assert!(proxy.is_done());
    let mut kept = String::new();
    slow.blob(&id, &blob.id).unwrap().read_to_string(&mut kept).unwrap();
    assert_eq!(kept, "output");
}

#[test]
fn what_was_left_unfinished_is_swept() {
    let (_, slow, _) = both("unfinished");
    let id = make(&slow, "s");
    let blob = slow.put_blob(&id, &mut &b"output"[..]).unwrap();
    let _: () = redis::cmd("HDEL").arg("{unfinished:s}:outputs").arg(&blob.id).query(&mut line()).unwrap();
    slow.sweep(&id, &|_| true).unwrap();
    let left: u32 = redis::cmd("HLEN").arg("{unfinished:s}:outputs").query(&mut line()).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_session_that_is_made_while_somebody_lists_is_listed_from_then_on() {
    let (proxy, slow, quick) = both("listed");
    make(&slow, "s");
    // Its name is there and it is not yet, as in the midst of its making.
    erase("{listed:s}");
    let made = quick.clone();
    proxy.delay_an_answer(1, move || drop(make(&made, "s")));
    slow.sessions(&SessionQuery::default()).unwrap();
    assert!(proxy.is_done());
    for user in [None, Some("安".to_owned())] {
        assert_eq!(quick.sessions(&SessionQuery { user, ..SessionQuery::default() }).unwrap().len(), 1);
    }
    assert_eq!(slow.vitals().unwrap().expired, Some(0));
}

#[test]
fn the_index_of_users_forgets_what_ended_by_itself() {
    let (_, store, _) = both("users");
    let of_ann = SessionQuery { user: Some("安".into()), ..SessionQuery::default() };
    let asks: [&dyn Fn(); 2] =
        [&|| drop(store.vitals().unwrap()), &|| drop(store.sessions(&of_ann).unwrap())];
    for ask in asks {
        make(&store, "s");
        make(&store, "t");
        erase("{users:s}");
        ask();
        assert_eq!((members("{users}:users").len(), members("{users}:sessions").len()), (1, 1));
        store.remove(&SessionId::new("t").unwrap()).unwrap();
    }
    assert_eq!(store.vitals().unwrap().expired, Some(2));
}

#[test]
fn very_many_moments_of_a_session_that_ended_go_a_few_at_a_time() {
    let (_, store, _) = both("moments");
    let id = make(&store, "s");
    let spot = |n: u32| TranscriptPlace {
        name: format!("n{}", n % 7),
        session: id.clone(),
        thread: ThreadId::root(),
        seq: n,
    };
    let spots: Vec<TranscriptPlace> = (1..=1000).map(spot).collect();
    store.note(&spots).unwrap();
    erase("{moments:s}");
    let left = || redis::cmd("SCARD").arg("{moments}:spots:s").query::<u32>(&mut line()).unwrap();
    // It is met twice, as a session and as a user's.
    store.vitals().unwrap();
    assert_eq!((left(), members("{moments}:sessions").len()), (488, 1));
    // The next look finds the end, and begins again.
    (0..2).for_each(|_| drop(store.vitals().unwrap()));
    assert_eq!((left(), members("{moments}:sessions").len()), (0, 0));
    let keys: Vec<String> = redis::cmd("KEYS").arg("{moments*").query(&mut line()).unwrap();
    assert_eq!(keys, Vec::<String>::new());
}

#[test]
fn the_moments_of_a_session_outlive_one_that_had_its_id() {
    let (_, store, _) = both("again");
    let id = make(&store, "s");
    let spot =
        |n: u32| TranscriptPlace { name: "n".into(), session: id.clone(), thread: ThreadId::root(), seq: n };
    store.note(&[spot(1)]).unwrap();
    erase("{again:s}");
    make(&store, "s");
    store.note(&[spot(2)]).unwrap();
    let _: () = redis::cmd("ZADD").arg("{again}:sessions").arg(0).arg("2023\0s").query(&mut line()).unwrap();
    store.sessions(&SessionQuery::default()).unwrap();
    assert_eq!(store.spots("n").unwrap(), [spot(2)]);
    assert_eq!(members("{again}:sessions").len(), 1);
    store.remove(&id).unwrap();
    let left: Vec<String> = redis::cmd("KEYS").arg("{again*").query(&mut line()).unwrap();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_page_of_jobs_goes_on_where_the_last_one_ended_though_its_last_job_left() {
    let (proxy, slow, quick) = both("pages");
    for n in 0..300 {
        let session = SessionId::new(format!("s{n}")).unwrap();
        let job = Job { session, key: format!("k{n}"), user: None, body: "{}".into(), at: "t".into() };
        assert!(quick.enqueue(&job).unwrap());
    }
    // The first time a script may have to be sent twice.
    assert_eq!(slow.jobs(None, 1).unwrap().len(), 1);
    proxy.delay_an_answer(0, move || assert!(quick.withdraw(&SessionId::new("s255").unwrap()).unwrap()));
    let listed: Vec<String> =
        slow.jobs(None, 0).unwrap().into_iter().map(|queued| queued.job.session.to_string()).collect();
    assert!(proxy.is_done());
    assert_eq!(listed, (0..300).map(|n| format!("s{n}")).collect::<Vec<_>>());
}

#[test]
fn a_change_whose_answer_was_lost_is_made_once_though_others_came_between() {
    let (proxy, slow, quick) = both("changes");
    let id = make(&slow, "s");
    let count = |store: &RedisStore, id: &SessionId| {
        let by = Counters { llm_call_count: 1, ..Counters::default() };
        store.change(id, &SessionChange::Count { by, at: "t".into() }).unwrap().counters.llm_call_count
    };
    let session = id.clone();
    // The first time a script may have to be sent twice.
    count(&slow, &id);
    // The first answer is the row as it is.
    proxy.lose_an_answer(1, move || (2..7).for_each(|n| assert_eq!(count(&quick, &session), n + 1)));
    count(&slow, &id);
    assert_eq!((proxy.lost(), count(&slow, &id)), (1, 8));
}

#[test]
fn a_session_is_never_ended_where_this_process_just_began_to_write_it() {
    let store = both("begun").2;
    let id = make(&store, "s");
    let enter = |to: State| store.change(&id, &SessionChange::State { to, at: "t".into(), why: None });
    for _ in 0..100 {
        let together = Barrier::new(2);
        let (journal, ended) = std::thread::scope(|scope| {
            let opens = scope.spawn(|| {
                together.wait();
                store.open(&id, &ThreadId::root(), OpenMode::Write)
            });
            together.wait();
            let ended = enter(State::Completed);
            (opens.join().unwrap(), ended)
        });
        match (&journal, &ended) {
            (Ok(_), Err(Error::Busy { .. })) => {}
            (Err(Error::Ended(..)), Ok(_)) => drop(enter(State::Running).unwrap()),
            (journal, ended) => panic!("{:?} and {ended:?}", journal.as_ref().err()),
        }
    }
}

#[test]
fn what_waits_for_replicas_keeps_nobody_else_waiting() {
    let (main, copy) = (Server::start(Kind::Redis, &[]), Server::start(Kind::Redis, &[]));
    let port = main.url.rsplit(':').next().unwrap().to_owned();
    let id = make(&open(&main.url, &how("maker")), "s");
    let careful = open(&format!("{}?wait=1", main.url), &how("careful"));
    let line = |server: &Server| redis::Client::open(server.url.as_str()).unwrap().get_connection().unwrap();
    let mut clients = line(&main);
    let mut is_waiting = || {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut clients).unwrap();
        list.contains("cmd=wait ")
    };
    std::thread::scope(|scope| {
        let appends = scope.spawn(|| writer(&careful, &id).append(0, &[row(0, "写し")]));
        while !is_waiting() {
            assert!(!appends.is_finished(), "it did not wait");
        }
        assert_eq!(careful.sessions(&SessionQuery::default()).unwrap().len(), 1);
        assert!(is_waiting(), "who asked had to wait too");
        let _: () = redis::cmd("REPLICAOF").arg("127.0.0.1").arg(&port).query(&mut line(&copy)).unwrap();
        appends.join().unwrap().unwrap();
    });
    assert_eq!(careful.vitals().unwrap().connections, Some(2));
}

#[test]
fn of_a_session_that_is_removed_is_heard() {
    let (_, one, two) = both("removed");
    let id = make(&one, "s");
    let mut ear = two.watch().unwrap();
    one.remove(&id).unwrap();
    match ear.next(std::time::Duration::from_secs(30)).unwrap() {
        komado_store::WatchEvent::News(news) => assert_eq!((news.session, news.last), (id, 0)),
        other => panic!("{other:?}"),
    }
}
