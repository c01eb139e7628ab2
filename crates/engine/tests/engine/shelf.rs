//! The index behind recall: lost without harm, made again, cut short anywhere, and free of what was redacted.

use crate::engine::recall::{places, recall, seqs, session};
use crate::engine::room::{Room, call, calls, everywhere, result_with_output, thread_id, user};
use komado_engine::recall::RecallQuery;
use komado_engine::redact::RedactTarget;
use komado_testkit::Faulty;
use regex::Regex;
use std::sync::Arc;

#[test]
fn a_very_large_output_is_taken_in_piece_by_piece_and_only_once() {
    let room = &Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(user(&"some chatter first ".repeat(40_000))).unwrap();
    root.say(calls(vec![call("a", "build", "{}")])).unwrap();
    let log: String = (0..120_000).map(|n| format!("line {n} of the log, step{}\n", n % 97)).collect();
    assert!(log.len() > 3 << 20);
    root.say(result_with_output(room, &id, "a", "clipped", log.as_bytes())).unwrap();
    root.say(user("epilogue")).unwrap();
    let count = || {
        let shelf = room.engine.store().search_index(&id).unwrap();
        let tally = shelf.tally(&["119999".into(), "60000".into(), "epilogu".into()]).unwrap();
        (tally.docs, tally.holding)
    };
    room.engine.index(&session(&id), &mut |_, _| {}).unwrap();
    let first = count();
    assert_eq!(first.1, [1, 1, 1]);
    room.engine.reindex(&id, &mut |_, _| {}).unwrap();
    assert_eq!(count(), first);
    // Cut short in the middle of the output: whoever comes next goes on from there.
    let halfway = |n: u64| {
        room.engine.store().search_index(&id).unwrap().clear().unwrap();
        let faulty = Arc::new(Faulty::new(room.memory.clone(), n));
        let done = room.engine_on(faulty.clone()).index(&session(&id), &mut |_, _| {});
        (done.is_ok(), faulty.calls())
    };
    let (_, calls) = halfway(0);
    let mut parts = 0;
    for n in calls - 2..=calls {
        assert!(!halfway(n).0, "call {n}");
        let mut shelf = room.engine.store().search_index(&id).unwrap();
        parts += u32::from(shelf.upto(&thread_id("root")).unwrap().part > 0);
        room.engine.index(&session(&id), &mut |_, _| {}).unwrap();
        let now = shelf.upto(&thread_id("root")).unwrap();
        shelf.add(&thread_id("root"), now, now, &[]).expect("it was not begun anew");
        assert_eq!(count(), first, "call {n}");
    }
    assert!(parts > 0, "no call failed in the middle of the output");
    let found = recall(room, &id, &RecallQuery::new("60000"));
    assert!(found[0].snippet.text.contains("line 60000 of"), "{}", found[0].snippet.text);
}

#[test]
fn a_lost_index_is_made_again_with_the_same_answers_and_a_stale_one_goes_on() {
    let room = Room::files();
    let id = crate::engine::story::tell(&room, "s");
    let ask = |query: &str| {
        let found = recall(&room, &id, &RecallQuery { k: 30, ..RecallQuery::new(query) });
        found.iter().map(|one| (one.thread.clone(), one.seq, one.score.to_bits())).collect::<Vec<_>>()
    };
    let queries = ["line", "何が見える", "another way", "read", "出力"];
    let before: Vec<_> = queries.iter().map(|query| ask(query)).collect();
    assert!(before.iter().all(|found| !found.is_empty()), "{before:?}");
    let path = room.folder(&id).join("recall.db");
    for spoil in ["", "no database"] {
        std::fs::write(&path, spoil).unwrap();
        assert_eq!(queries.iter().map(|query| ask(query)).collect::<Vec<_>>(), before);
    }
    room.engine.resume(&id).unwrap_err();
    room.root(&id).say(user("a brand new zeppelin")).unwrap();
    assert_eq!(seqs(&room, &id, "zeppelin").len(), 1);
    room.engine.complete(&id, None).unwrap();
    assert_eq!(seqs(&room.again(), &id, "zeppelin").len(), 1, "a session that ended is searched, too");
    assert!(room.folder(&id).join("recall.db").exists());
}

#[test]
fn an_index_of_another_journal_is_thrown_away() {
    let room = Room::files();
    let (long, short) = (room.session("long"), room.session("short"));
    let mut root = room.root(&long);
    for n in 0..9 {
        root.say(user(&format!("ghost {n}"))).unwrap();
    }
    drop(root);
    room.root(&short).say(user("the living")).unwrap();
    assert_eq!(seqs(&room, &long, "ghost").len(), 9);
    std::fs::copy(room.folder(&long).join("recall.db"), room.folder(&short).join("recall.db")).unwrap();
    assert!(seqs(&room, &short, "ghost").is_empty());
    assert_eq!(seqs(&room, &short, "living"), [1]);
}

#[test]
fn a_redacted_word_is_in_no_index_and_in_no_byte_of_its_file() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("the token is hunter2xyzzy, keep it")).unwrap();
        root.say(calls(vec![call("a", "run", "{}")])).unwrap();
        root.say(result_with_output(room, &id, "a", "cut", b"log line\nhunter2xyzzy\n")).unwrap();
        drop(root);
        assert_eq!(seqs(room, &id, "hunter2xyzzy").len(), 2);
        let secret = RedactTarget::Matching(Regex::new("hunter2xyzzy").unwrap());
        room.engine.redact(&id, &secret, "leaked").unwrap();
        let gone = |needle: &[u8]| {
            let Some(path) = room.files.as_ref().map(|_| room.folder(&id).join("recall.db")) else {
                return true;
            };
            !std::fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle)
        };
        assert!(gone(b"hunter2xyzzy"), "right after the redaction");
        assert!(seqs(room, &id, "hunter2xyzzy").is_empty());
        assert_eq!(seqs(room, &id, "token").first(), Some(&1));
        assert!(gone(b"hunter2xyzzy") && (room.files.is_none() || !gone(b"token")));
        room.engine.redact(&id, &RedactTarget::Entry(thread_id("root"), 1), "r").unwrap();
        assert!(gone(b"token") && !seqs(room, &id, "token").contains(&1));
    });
}

#[test]
fn the_index_is_no_part_of_an_export() {
    let room = Room::files();
    let id = crate::engine::story::tell(&room, "s");
    let before = crate::engine::export::export(&room, &id);
    recall(&room, &id, &RecallQuery::new("line"));
    assert_eq!(crate::engine::export::export(&room, &id), before);
    let copy = Room::files();
    let other = copy.engine.import(&mut &before[..], None, |_| {}).unwrap();
    assert!(!copy.folder(&id).join("recall.db").exists(), "{other:?}");
    assert_eq!(
        places(&recall(&copy, &id, &RecallQuery::new("line"))),
        places(&recall(&room, &id, &RecallQuery::new("line")))
    );
}

#[test]
fn any_call_may_fail_and_the_next_search_finds_everything() {
    let room = Room::memory();
    let id = crate::engine::story::tell(&room, "s");
    let expected = places(&recall(&room, &id, &RecallQuery::new("line")));
    let mut n = 1;
    loop {
        room.engine.store().search_index(&id).unwrap().clear().unwrap();
        let faulty = Arc::new(Faulty::new(room.memory.clone(), n));
        let found = room.engine_on(faulty.clone()).recall(&session(&id), &RecallQuery::new("line"));
        if faulty.calls() < n {
            assert_eq!(places(&found.unwrap()), expected);
            break;
        }
        assert!(found.is_err(), "call {n}");
        assert_eq!(places(&recall(&room, &id, &RecallQuery::new("line"))), expected, "call {n}");
        n += 1;
    }
    assert!(n > 50, "{n}");
}

#[test]
fn many_search_while_one_writes() {
    let room = Room::files();
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(user("needle 0")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let room = room.again();
                let mut last = 0;
                while last < 40 {
                    let found = recall(&room, &id, &RecallQuery { k: 100, ..RecallQuery::new("needle") });
                    assert!(found.len() >= last, "nothing that was found is lost");
                    last = found.len();
                }
            });
        }
        for n in 1..40 {
            root.say(user(&format!("needle {n}"))).unwrap();
        }
    });
    let shelf = room.engine.store().search_index(&id).unwrap();
    assert_eq!(shelf.tally(&["needl".into()]).unwrap().holding, [40]);
}
