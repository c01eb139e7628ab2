//! Beginnings, endings and new beginnings.

use crate::engine::room::{
    Room, call, calls, check, everywhere, meta, model, result, thread_id, used, user, words,
};
use komado_core::journal::{Anchor, Ending, Entry};
use komado_core::session::{Counters, Session, State};
use komado_core::{SessionId, Span};
use komado_engine::{Engine, Error};
use komado_store::{Error as StoreError, OpenMode, SessionQuery};

type End = fn(&Engine, &SessionId) -> komado_engine::Result<Session>;

const COMPLETE: End = |engine, id| engine.complete(id, Some("result".into()));
const FAIL: End = |engine, id| engine.fail(id, "the disk is full");
const STOP: End = |engine, id| engine.stop(id, Some("enough".into()));
const PAUSE: End = |engine, id| engine.pause(id, Some("lunch".into()));

fn begun(room: &Room, name: &str) -> SessionId {
    let id = room.session(name);
    let mut root = room.root(&id);
    root.say(user("hello")).unwrap();
    root.reply(model("hi"), used(10, 5)).unwrap();
    root.settle().unwrap();
    id
}

#[test]
fn each_ending_is_in_the_journal_in_the_table_and_in_the_folder() {
    everywhere(|room| {
        let endings: [(&str, End, State, Option<&str>, bool); 4] = [
            ("completed", COMPLETE, State::Completed, None, true),
            ("failed", FAIL, State::Failed, Some("the disk is full"), true),
            ("stopped", STOP, State::Stopped, Some("enough"), true),
            ("paused", PAUSE, State::Paused, None, false),
        ];
        for (name, end, state, why, ended) in endings {
            let id = begun(room, name);
            let session = end(&room.engine, &id).unwrap();
            assert_eq!((session.status, session.error_message.as_deref()), (state, why));
            assert_eq!(room.engine.session(&id).unwrap(), session);
            let root = room.look(&id, "root");
            let close = root.record(3).unwrap();
            let Entry::Close(entry) = close.entry else { panic!() };
            assert_eq!(entry.ending.name(), name);
            assert_eq!(session.completed_at, ended.then_some(close.timestamp));
            assert_eq!(words(&root), ["user: hello", "assistant: hi"]);
            if room.files.is_some() {
                let half = if ended { "completed" } else { "running" };
                assert_eq!(room.folder(&id), room.base().join(half).join(name));
            }
        }
    });
}

#[test]
fn an_ended_session_refuses_writing_and_a_second_end_and_says_what_to_do() {
    everywhere(|room| {
        for (name, end) in [("c", COMPLETE), ("f", FAIL), ("s", STOP)] {
            let id = begun(room, name);
            end(&room.engine, &id).unwrap();
            let writing = room.engine.open(&id, &thread_id("root"), OpenMode::Write).err().unwrap();
            for error in [writing, end(&room.engine, &id).unwrap_err(), PAUSE(&room.engine, &id).unwrap_err()]
            {
                assert!(matches!(error, Error::Store(StoreError::Ended(..))), "{error}");
                assert!(error.to_string().contains(&format!("komado session resume {name}")), "{error}");
            }
        }
        let id = begun(room, "p");
        PAUSE(&room.engine, &id).unwrap();
        let why = room.root(&id).say(user("wait")).unwrap_err().to_string();
        assert!(why.contains("closed at @3; resume it"), "{why}");
        PAUSE(&room.engine, &id).unwrap_err();
    });
}

#[test]
fn resume_brings_back_the_view_and_the_folder_and_the_journal_keeps_both() {
    everywhere(|room| {
        for (name, end) in [("c", COMPLETE), ("f", FAIL), ("s", STOP), ("p", PAUSE)] {
            let id = begun(room, name);
            let before = words(&room.look(&id, "root"));
            end(&room.engine, &id).unwrap();
            let session = room.engine.resume(&id).unwrap();
            assert_eq!(
                (session.status, session.completed_at, session.error_message),
                (State::Running, None, None)
            );
            let mut root = room.root(&id);
            assert_eq!(words(&root), before);
            assert!(matches!(root.record(3).unwrap().entry, Entry::Close(_)));
            assert_eq!(root.record(4).unwrap().entry, Entry::Rewind { to: 2 });
            root.say(user("again")).unwrap();
            check(&root);
            drop(root);
            if room.files.is_some() {
                assert_eq!(room.folder(&id), room.base().join("running").join(name));
            }
            let why = room.engine.resume(&id).unwrap_err().to_string();
            assert!(why.contains("is running") && why.contains("nothing to resume"), "{why}");
            COMPLETE(&room.engine, &id).unwrap();
            room.engine.resume(&id).unwrap();
            assert_eq!(words(&room.look(&id, "root")).len(), before.len() + 1);
        }
    });
}

#[test]
fn a_paused_session_can_end_and_one_resume_undoes_both() {
    everywhere(|room| {
        let id = begun(room, "s");
        PAUSE(&room.engine, &id).unwrap();
        assert_eq!(COMPLETE(&room.engine, &id).unwrap().status, State::Completed);
        room.engine.resume(&id).unwrap();
        let root = room.look(&id, "root");
        assert_eq!((root.view().closed(), words(&root).len()), (None, 2));
        drop(root);
        room.root(&id).say(user("on")).unwrap();
    });
}

#[test]
fn what_happened_while_a_session_was_paused_is_not_lost_by_resuming() {
    everywhere(|room| {
        let id = begun(room, "s");
        let mut root = room.root(&id);
        let anchor = |ending, text: &str, first| {
            Entry::Anchor(Anchor {
                thread: thread_id("t"),
                label: None,
                ending,
                text: text.into(),
                brief: None,
                first,
            })
        };
        root.append(anchor(None, "t runs", None)).unwrap();
        root.say(model("and on")).unwrap();
        let condense = root.condense(vec![Span::new(1, 2)], "S", "by_hand").unwrap();
        let trim = root.trim(vec![(4, "T".into())], "by_hand").unwrap();
        drop(root);
        PAUSE(&room.engine, &id).unwrap();
        let mut root = room.root(&id);
        root.append(anchor(Some(Ending::Completed), "t is done", Some(3))).unwrap();
        root.pin(1).unwrap();
        root.revert(trim).unwrap();
        let undone = root.revert(condense).unwrap();
        root.revert(undone).unwrap();
        let now = ["user: hello", "user: S", "system: t is done", "assistant: and on"];
        assert_eq!(words(&root), now);
        drop(root);
        STOP(&room.engine, &id).unwrap();
        room.engine.resume(&id).unwrap();
        let root = room.look(&id, "root");
        assert_eq!(words(&root), now);
        assert_eq!(root.view().closed(), None);
        check(&root);
    });
}

#[test]
fn an_end_that_the_table_could_not_follow_is_finished_by_saying_it_again_or_undone_by_resuming() {
    everywhere(|room| {
        for (name, again) in [("end", true), ("resume", false)] {
            let id = begun(room, name);
            room.root(&id).fork(2, thread_id("a"), None).unwrap();
            // Someone still writes a fork, so the session cannot move.
            let fork = room.thread(&id, "a");
            let error = COMPLETE(&room.engine, &id).unwrap_err();
            assert!(matches!(error, Error::Store(StoreError::Busy { .. })), "{error}");
            assert_eq!(room.engine.session(&id).unwrap().status, State::Running);
            drop(fork);
            if again {
                assert!(matches!(FAIL(&room.engine, &id), Err(Error::Refused(_))));
                assert_eq!(COMPLETE(&room.engine, &id).unwrap().status, State::Completed);
                assert_eq!(room.look(&id, "root").last(), 3);
            } else {
                assert_eq!(room.engine.resume(&id).unwrap().status, State::Running);
                room.root(&id).say(user("on")).unwrap();
            }
        }
    });
}

#[test]
fn counters_are_told_after_a_models_reply_a_tools_answer_and_an_edit() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        let counters = || {
            let Counters {
                llm_call_count: l, tool_call_count: t, total_tokens: n, compression_count: c, ..
            } = room.engine.session(&id).unwrap().counters;
            [l, t, n, c]
        };
        root.say(user("hello")).unwrap();
        root.settle().unwrap();
        assert_eq!(counters(), [0, 0, 0, 0]);
        root.reply(calls(vec![call("a", "f", "{}"), call("b", "f", "{}")]), used(100, 7)).unwrap();
        assert_eq!(counters(), [0, 0, 0, 0]);
        root.settle().unwrap();
        root.settle().unwrap();
        assert_eq!(counters(), [1, 0, 107, 0]);
        root.say(result("a", "1")).unwrap();
        root.settle().unwrap();
        assert_eq!(counters(), [1, 1, 107, 0]);
        root.say(result("b", "2")).unwrap();
        root.reply(model("so"), used(50, 5)).unwrap();
        root.settle().unwrap();
        assert_eq!(counters(), [2, 2, 162, 0]);
        root.condense(vec![Span::new(1, 4)], "S", "by_hand").unwrap();
        root.settle().unwrap();
        assert_eq!(counters(), [2, 2, 162, 1]);
        // What was abandoned was paid for all the same.
        root.rewind(1).unwrap();
        root.fork(1, thread_id("a"), None).unwrap();
        drop(root);
        let mut fork = room.thread(&id, "a");
        fork.reply(model("elsewhere"), used(1, 1)).unwrap();
        fork.settle().unwrap();
        assert_eq!(counters(), [3, 2, 164, 1]);
    });
}

#[test]
fn the_table_made_again_from_the_folders_has_equal_rows() {
    let room = Room::files();
    crate::engine::story::tell(&room, "story");
    begun(&room, "running");
    room.session("untouched");
    let mut queued = meta("queued", "2024-01-15T10:29:00.000000Z");
    queued.queued = true;
    room.engine.create(&queued).unwrap();
    for (name, end) in [("completed", COMPLETE), ("failed", FAIL), ("stopped", STOP), ("paused", PAUSE)] {
        end(&room.engine, &begun(&room, name)).unwrap();
    }
    for (name, end) in [("resumed", FAIL), ("unpaused", PAUSE)] {
        let id = begun(&room, name);
        end(&room.engine, &id).unwrap();
        room.engine.resume(&id).unwrap();
    }
    let rows = |room: &Room| {
        let mut rows = room.engine.store().sessions(&SessionQuery::default()).unwrap();
        // When something last happened to a session that goes on is known to the table alone.
        rows.iter_mut().filter(|row| !row.status.is_ended()).for_each(|row| row.updated_at.clear());
        rows
    };
    let before = rows(&room);
    assert_eq!(before.len(), 10);
    room.files.as_ref().unwrap().rebuild().unwrap();
    assert_eq!(rows(&room), before);
    std::fs::remove_file(room.base().join("tasks.db")).unwrap();
    let room = room.again();
    assert_eq!(rows(&room), before);
}

#[test]
fn a_session_whose_row_was_lost_is_found_and_keeps_its_meter() {
    let room = Room::files();
    let id = begun(&room, "s");
    let rows = room.engine.session(&id).unwrap();
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = std::fs::remove_file(room.base().join(name));
    }
    let empty = Room::files();
    empty.session("other");
    drop(empty.engine.store().sessions(&SessionQuery::default()).unwrap());
    let other = empty.base().join("tasks.db");
    std::fs::copy(other, room.base().join("tasks.db")).unwrap();
    let room = room.again();
    let found = room.engine.find(&"s".parse().unwrap()).unwrap();
    let root = room.look(&found.session, "root");
    assert_eq!(root.meter(), komado_core::Meter::Bytes4);
    assert_eq!(room.engine.session(&id).unwrap().counters, rows.counters);
    let missing = room.engine.session(&SessionId::new("nobody").unwrap()).unwrap_err();
    assert!(matches!(missing, Error::Store(StoreError::NoSession(_))), "{missing}");
}

#[test]
fn what_a_process_took_that_was_killed_before_it_told_is_counted_by_the_next_one() {
    everywhere(|room| {
        let id = begun(room, "s");
        let mut root = room.root(&id);
        root.reply(calls(vec![call("c", "read", "{}")]), used(20, 5)).unwrap();
        root.say(result("c", "fn main() {}")).unwrap();
        root.fork(3, thread_id("other"), None).unwrap();
        let mut fork = room.thread(&id, "other");
        fork.say(result("c", "in the fork")).unwrap();
        drop((root, fork));
        let told = room.engine.session(&id).unwrap().counters;
        assert_eq!((told.llm_call_count, told.tool_call_count, told.total_tokens), (1, 0, 15));
        for _ in 0..2 {
            let now = room.engine.recount(&id).unwrap().counters;
            assert_eq!((now.llm_call_count, now.tool_call_count, now.total_tokens), (2, 2, 40));
        }
    });
}
