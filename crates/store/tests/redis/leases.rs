//! One process writes at a time, as long as it is heard of.

use super::{how, make, open, place, reader, row, writer};
use komado_core::ThreadId;
use komado_core::thread::{Header, Moment};
use komado_store::{ConnectOptions, Error, OpenMode, RedisStore, Store, StoreFigures};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A store whose leases are not renewed in time: the process is as good as frozen.
fn deaf(url: &str) -> RedisStore {
    open(url, &ConnectOptions { lease: Duration::from_millis(1), ..how("deaf") })
}

#[test]
fn a_second_process_is_told_who_writes_and_gets_its_turn_when_the_first_is_done() {
    let url = place();
    let (one, two) = (open(&url, &how("one")), open(&url, &how("two")));
    let id = make(&one, "s");
    let held = writer(&one, &id);
    match two.open(&id, &ThreadId::root(), OpenMode::Write) {
        Err(Error::Busy { holder, .. }) => assert_eq!(holder.program, "one"),
        other => panic!("{:?}", other.err()),
    }
    assert!(matches!(two.remove(&id), Err(Error::Busy { .. })));
    assert_eq!(one.vitals().unwrap().leases, Some(1));
    drop(held);
    assert_eq!(one.vitals().unwrap().leases, Some(0));
    writer(&two, &id).append(0, &[row(0, "二番目")]).unwrap();
    assert_eq!(reader(&one, &id).last(), 1);
}

#[test]
fn who_writes_is_told_without_taking_anything() {
    let url = place();
    let (one, two) = (open(&url, &how("one")), open(&url, &how("two")));
    let id = make(&one, "s");
    let told = |store: &RedisStore| store.writer(&id).unwrap().map(|holder| holder.program);
    assert_eq!((told(&one), told(&two)), (None, None));
    let base = Moment { thread: ThreadId::root(), seq: 0 };
    let fork = ThreadId::new("fork").unwrap();
    let header = Header { thread: fork.clone(), base: Some(base), ..Header::root(id.clone(), "2024") };
    one.spawn(&header).unwrap();
    let held = one.open(&id, &fork, OpenMode::Write).unwrap();
    assert_eq!((told(&one).as_deref(), told(&two).as_deref()), (Some("one"), Some("one")));
    drop(held);
    let mut line = redis::Client::open(url.split('?').next().unwrap()).unwrap().get_connection().unwrap();
    let heart = format!("{{{}:s}}", url.split("prefix=").nth(1).unwrap());
    let mut token =
        || redis::cmd("HGET").arg(&heart).arg("lease:token").query::<Option<u64>>(&mut line).unwrap();
    let before = token();
    assert_eq!((told(&one), told(&two)), (None, None));
    assert_eq!(token(), before, "nobody took it");
    let nobody = komado_core::SessionId::new("nobody").unwrap();
    assert!(matches!(one.writer(&nobody), Err(Error::NoSession(_))));
}

#[test]
fn who_was_not_heard_of_is_replaced_and_writes_nothing_more() {
    let url = place();
    let (gone, next) = (deaf(&url), open(&url, &how("next")));
    let id = make(&gone, "s");
    let mut old = writer(&gone, &id);
    old.append(0, &[row(0, "まだ")]).unwrap();
    let start = Instant::now();
    let mut new = loop {
        match next.open(&id, &ThreadId::root(), OpenMode::Write) {
            Ok(new) => break new,
            Err(Error::Busy { .. }) if start.elapsed() < Duration::from_secs(60) => {}
            Err(other) => panic!("{other}"),
        }
    };
    for _ in 0..2 {
        assert!(matches!(old.append(1, &[row(1, "遅い")]), Err(Error::TakenOver(lost)) if lost == id));
        assert!(matches!(old.relabel(Some("x")), Err(Error::TakenOver(_))));
        assert!(matches!(old.rewrite(&mut |_, line| Some(line.into())), Err(Error::TakenOver(_))));
    }
    new.append(1, &[row(1, "新しい")]).unwrap();
    // Letting go of what was lost takes nothing from the one who has it.
    drop(old);
    new.append(2, &[row(2, "もう一つ")]).unwrap();
    drop(new);
    let kept = reader(&next, &id);
    assert_eq!((kept.last(), kept.line(2).unwrap()), (3, row(1, "新しい").line));
}

#[test]
fn a_lease_is_kept_for_as_long_as_its_holder_lives() {
    let url = place();
    let short = ConnectOptions { lease: Duration::from_secs(2), ..how("alive") };
    let (alive, other) = (open(&url, &short), open(&url, &how("other")));
    let id = make(&alive, "s");
    let mut held = writer(&alive, &id);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        assert!(matches!(other.open(&id, &ThreadId::root(), OpenMode::Write), Err(Error::Busy { .. })));
        std::thread::sleep(Duration::from_millis(50));
    }
    held.append(0, &[row(0, "生きている")]).unwrap();
}

#[test]
fn of_many_who_append_after_the_same_entry_exactly_one_wins() {
    let url = place();
    let first = deaf(&url);
    let id = make(&first, "s");
    let mut writers = Vec::new();
    // Each replaces the one before, who does not know yet.
    let start = Instant::now();
    while writers.len() < 6 {
        let store = deaf(&url);
        match store.open(&id, &ThreadId::root(), OpenMode::Write) {
            Ok(journal) => writers.push((store, journal)),
            Err(Error::Busy { .. }) if start.elapsed() < Duration::from_secs(60) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let together = Barrier::new(writers.len());
    let won: Vec<bool> = std::thread::scope(|scope| {
        let all: Vec<_> = writers
            .iter_mut()
            .enumerate()
            .map(|(n, (_, journal))| {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    journal.append(0, &[row(0, &format!("書き手 {n}"))]).is_ok()
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(won, [false, false, false, false, false, true], "the one whose token is the largest");
    let kept = reader(&first, &id);
    assert_eq!((kept.last(), kept.line(1).unwrap()), (1, row(0, "書き手 5").line));
}
