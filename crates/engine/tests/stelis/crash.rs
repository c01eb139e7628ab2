//! What is left when a process ends, or a disk refuses, in the middle of things.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, row, sees, status};
use crate::stelis::room::{Room, meta, model, thread_id, user};
use komado_core::SessionId;
use komado_core::thread::ThreadStatus;
use komado_engine::{Engine, Result};
use komado_store::{Error as StoreError, FileStore, MemoryStore, OpenMode, Store};
use komado_testkit::Faulty;
use std::sync::Arc;

/// A process that is gone: its guards never ran, its locks went with it.
pub(crate) fn killed(run: impl FnOnce(&Room, &SessionId)) -> (Room, SessionId) {
    let room = Room::files();
    let id = begun(&room);
    // A copy of the folder is what another process would find after a kill: no lock is held there.
    run(&room, &id);
    let found = Room::files();
    copy(room.base(), found.base());
    std::mem::forget(room);
    (found, id)
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn children_of_a_dead_process_are_broken_off_at_the_next_open_and_the_parent_goes_on() {
    let (room, id) = killed(|room, id| {
        let mut root = room.root(id);
        let mut one = root.spawn(&called("one")).unwrap();
        one.say(user("look at src/main.rs")).unwrap();
        let mut two = one.spawn(&called("two")).unwrap();
        two.say(user("look at src/lib.rs")).unwrap();
        let free = root.spawn_free(&called("free")).unwrap();
        std::mem::forget((root, one, two, free));
    });
    assert_eq!(row(&room.engine, &id, "stelis_1").status, ThreadStatus::Active);
    let mut root = room.root(&id);
    assert_eq!(status(&room, &id, "stelis_1"), ThreadStatus::Aborted);
    assert_eq!(status(&room, &id, "stelis_1_1"), ThreadStatus::Aborted);
    assert_eq!(status(&room, &id, "stelis_2"), ThreadStatus::Active);
    let text = anchor(&root, "stelis_1");
    assert!(text.contains("src/main.rs") && text.contains("(partial)"), "{text}");
    assert!(text.contains("the process that held it ended"), "{text}");
    root.say(model("and on")).unwrap();
    assert!(sees(&root, "and on"));
    check_tree(&room.engine, &id);
}

#[test]
fn opening_the_dead_child_itself_puts_everything_right_as_well() {
    let (room, id) = killed(|room, id| {
        let mut root = room.root(id);
        let mut one = root.spawn(&called("one")).unwrap();
        one.say(user("look")).unwrap();
        std::mem::forget((root, one));
    });
    let child = room.thread(&id, "stelis_1");
    assert_eq!(child.status().unwrap(), ThreadStatus::Aborted);
    check_tree(&room.engine, &id);
    drop(child);
    room.engine.resume_child(&id, &thread_id("stelis_1"), &crate::stelis::kit::resume()).unwrap();
    assert_eq!(room.thread(&id, "stelis_1").status().unwrap(), ThreadStatus::Active);
    check_tree(&room.engine, &id);
}

#[test]
fn a_child_whose_holder_lives_is_left_alone_by_everyone() {
    let room = Room::files();
    let id = begun(&room);
    let mut root = room.root(&id);
    let mut child = root.spawn(&called("x")).unwrap();
    drop(root);
    // Another handle of this process, another engine on the same store, and another process.
    drop(room.root(&id));
    let engine = room.engine_on(room.files.clone().unwrap());
    drop(engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap());
    assert!(engine.recover(&id).unwrap().is_empty());
    let other = Arc::new(FileStore::new(room.base(), crate::stelis::room::holder()));
    let other = room.engine_on(other);
    let busy = other.open(&id, &thread_id("root"), OpenMode::Write).err().unwrap();
    assert!(matches!(busy, komado_engine::Error::Store(StoreError::Busy { .. })), "{busy}");
    child.say(user("I live")).unwrap();
    let mut root = room.root(&id);
    child.end(&mut root, done("lived")).unwrap();
    check_tree(&room.engine, &id);
}

#[test]
fn a_damaged_child_does_not_keep_its_parent_from_going_on() {
    let (room, id) = killed(|room, id| {
        let mut root = room.root(id);
        let mut one = root.spawn(&called("one")).unwrap();
        one.say(user("look")).unwrap();
        let two = root.spawn(&called("two")).unwrap();
        std::mem::forget((root, one, two));
    });
    let journal = room.folder(&id).join("threads/stelis_1/messages.jsonl");
    std::fs::write(&journal, "not a journal\n").unwrap();
    let mut root = room.root(&id);
    root.say(user("on")).unwrap();
    assert_eq!(status(&room, &id, "stelis_2"), ThreadStatus::Aborted);
}

/// Does `deed` with the n-th call of the store failing, for every n; the next open must put everything right.
fn at_every_call(
    prepare: impl Fn(&Engine, &SessionId),
    deed: impl Fn(&Engine, &SessionId) -> Result<()>,
    after: impl Fn(&Engine, &SessionId),
) {
    let mut n = 1;
    loop {
        let memory = MemoryStore::default();
        let room = Room::memory();
        let engine = room.engine_on(Arc::new(memory.clone()));
        let id = engine.create(&meta("s", "2024-01-15T10:30:00.000000Z")).unwrap();
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(user("please look at src/main.rs")).unwrap();
        drop(root);
        prepare(&engine, &id);
        let faulty = Arc::new(Faulty::new(memory.clone(), n));
        let store: Arc<dyn Store> = faulty.clone();
        let through = deed(&room.engine_on(store), &id).is_ok();
        let engine = room.engine_on(Arc::new(memory.clone()));
        drop(engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap());
        // A thread whose parent was busy while the root was looked after is told of now.
        check_tree(&engine, &id);
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(model("the parent goes on")).unwrap();
        drop(root);
        after(&engine, &id);
        if through && faulty.calls() < n {
            assert!(n > 20, "{n} calls");
            return;
        }
        n += 1;
    }
}

#[test]
fn a_fault_at_any_step_of_a_spawn_leaves_a_tree_that_the_next_open_puts_right() {
    at_every_call(
        |_, _| {},
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write)?;
            let mut one = root.spawn(&called("one"))?;
            one.say(user("work"))?;
            let two = one.spawn(&called("two"))?;
            drop(two);
            one.tend()?;
            one.end(&mut root, done("done")).map(|_| ())
        },
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write).unwrap();
            root.spawn_free(&called("afterwards")).unwrap();
            drop(root);
            check_tree(engine, id);
        },
    );
}

#[test]
fn a_fault_at_any_step_of_an_end_leaves_a_tree_that_the_next_open_puts_right() {
    at_every_call(
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write).unwrap();
            let mut one = root.spawn_free(&called("one")).unwrap();
            one.say(user("look at src/lib.rs")).unwrap();
            one.spawn_free(&called("two")).unwrap();
        },
        |engine, id| engine.finish_child(id, &thread_id("stelis_1"), done("the end")).map(|_| ()),
        |engine, id| {
            let child = engine.open(id, &thread_id("stelis_1"), OpenMode::Read).unwrap();
            if child.status().unwrap() == ThreadStatus::Completed {
                let root = engine.open(id, &thread_id("root"), OpenMode::Read).unwrap();
                assert!(anchor(&root, "stelis_1").contains("the end"));
            }
        },
    );
}

#[test]
fn a_fault_at_any_step_of_a_fork_a_pause_and_a_resume_leaves_a_tree_that_the_next_open_puts_right() {
    at_every_call(
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write).unwrap();
            root.spawn_free(&called("one")).unwrap().say(user("look at src/lib.rs")).unwrap();
        },
        |engine, id| {
            let one = thread_id("stelis_1");
            engine.pause_child(id, &one, None)?;
            engine.resume_child(id, &one, &crate::stelis::kit::resume())?;
            let child = engine.open(id, &one, OpenMode::Write)?;
            child.fork(2, thread_id("other"), None)?;
            drop(child);
            engine.finish_child(id, &thread_id("other"), done("other")).map(|_| ())
        },
        |_, _| {},
    );
}
