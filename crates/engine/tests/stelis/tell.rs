//! Words between threads.

use crate::stelis::kit::{begun, called, done};
use crate::stelis::room::{Room, call, calls, everywhere, result, thread_id, user, words};
use komado_engine::Error;
use komado_store::{MemoryStore, OpenMode, Store};
use komado_testkit::Faulty;
use std::sync::Arc;

#[test]
fn siblings_tell_each_other_and_hear_it_once() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn(&called("first")).unwrap();
        let mut two = root.spawn(&called("second")).unwrap();
        let before = words(&two).len();
        one.tell(two.id(), "the port is 8080").unwrap();
        one.tell(two.id(), "ポートを使ってください。").unwrap();
        root.tell(two.id(), "hurry").unwrap();
        assert_eq!(words(&two).len(), before, "nothing is heard before it is taken in");
        assert_eq!(two.hear().unwrap().len(), 3);
        assert_eq!(
            words(&two)[before..],
            [
                "user: [Message from thread first (stelis_1)]\nthe port is 8080",
                "user: [スレッド first (stelis_1) からのメッセージ]\nポートを使ってください。",
                "user: [Message from thread root]\nhurry",
            ]
        );
        assert!(two.hear().unwrap().is_empty());
        two.tell(&thread_id("root"), "ready").unwrap();
        assert_eq!(root.hear().unwrap().len(), 1);
    });
}

#[test]
fn nothing_is_heard_while_calls_wait_nor_told_to_itself_nor_to_one_that_has_ended() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn(&called("first")).unwrap();
        one.say(calls(vec![call("a", "f", "{}")])).unwrap();
        root.tell(one.id(), "listen").unwrap();
        assert!(one.hear().unwrap().is_empty());
        one.say(result("a", "1")).unwrap();
        assert_eq!(one.hear().unwrap().len(), 1);
        for (why, sign) in [
            (one.tell(&thread_id("stelis_1"), "me").unwrap_err(), "name another"),
            (one.tell(&thread_id("root"), "  ").unwrap_err(), "is empty"),
            (one.tell(&thread_id("nobody"), "hi").unwrap_err(), "no thread nobody"),
        ] {
            assert!(why.to_string().contains(sign), "{why}");
        }
        one.end(&mut root, done("x")).unwrap();
        let why = root.tell(&thread_id("stelis_1"), "late").unwrap_err();
        assert!(matches!(why, Error::NoListener { .. }) && why.to_string().contains("resume it"), "{why}");
    });
}

#[test]
fn words_are_told_once_wherever_a_process_ends() {
    let mut n = 1;
    loop {
        let memory = MemoryStore::default();
        let room = Room::memory();
        let engine = room.engine_on(Arc::new(memory.clone()));
        let id = engine.create(&crate::stelis::room::meta("s", "2024-01-15T10:30:00.000000Z")).unwrap();
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(user("go")).unwrap();
        root.spawn_free(&called("x")).unwrap();
        drop(root);
        let faulty = Arc::new(Faulty::new(memory.clone(), n));
        let store: Arc<dyn Store> = faulty.clone();
        let engine = room.engine_on(store);
        let told = (|| -> komado_engine::Result<()> {
            let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write)?;
            root.tell(&thread_id("stelis_1"), "the words")?;
            let mut child = engine.open(&id, &thread_id("stelis_1"), OpenMode::Write)?;
            child.hear()?;
            Ok(())
        })();
        let through = told.is_ok();
        let engine = room.engine_on(Arc::new(memory.clone()));
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(user("the root goes on")).unwrap();
        let mut child = engine.open(&id, &thread_id("stelis_1"), OpenMode::Write).unwrap();
        child.hear().unwrap();
        child.hear().unwrap();
        let said = (1..=root.last())
            .any(|seq| matches!(root.record(seq).unwrap().entry, komado_core::journal::Entry::Tell { .. }));
        let heard = words(&child).iter().filter(|line| line.contains("the words")).count();
        assert_eq!(heard, usize::from(said), "fault at call {n}");
        assert!(memory_is_empty(&memory, &id), "fault at call {n}");
        if through && faulty.calls() < n {
            assert!(said && n > 20, "{n}");
            break;
        }
        n += 1;
    }
}

fn memory_is_empty(memory: &MemoryStore, id: &komado_core::SessionId) -> bool {
    use komado_store::BranchTable;
    memory.mail(id, &thread_id("stelis_1")).unwrap().is_empty()
}
