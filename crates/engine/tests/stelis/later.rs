//! What comes later: forks that follow, marks that stay, faults that last.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, row, sees, status};
use crate::stelis::room::{Room, everywhere, meta, model, thread_id, user};
use komado_core::journal::Ending;
use komado_core::thread::{Branch, ThreadStatus};
use komado_core::{Meter, SessionId, Span};
use komado_engine::condense::{CondenseSettings, Summariser, SummaryAnswer, SummaryFailure, SummaryRequest};
use komado_engine::stelis::{ChronicleBy, Finish};
use komado_engine::{Engine, Error, Result, Thread};
use komado_store::{Error as StoreError, MemoryStore, OpenMode};
use komado_testkit::Faulty;
use komado_testkit::Scripted;
use std::sync::Arc;

#[test]
fn a_fork_of_a_parent_is_told_what_became_of_the_children_it_shares() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.spawn_free(&called("one")).unwrap();
        root.spawn_free(&called("two")).unwrap();
        let at = root.last();
        root.fork(at, thread_id("alt"), None).unwrap();
        drop(root);
        let mut kept = room.thread(&id, "alt");
        kept.say(user("another way")).unwrap();
        assert!(anchor(&kept, "stelis_1").contains("in progress"));
        let last = kept.last();
        assert!(kept.tend().unwrap().is_empty() && kept.last() == last);
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("the first is done")).unwrap();
        // A handle that was open all the time learns it at its next turn.
        let tended = kept.tend().unwrap();
        assert_eq!((tended.len(), tended[0].status), (1, ThreadStatus::Completed));
        assert!(anchor(&kept, "stelis_1").contains("the first is done"));
        assert!(anchor(&kept, "stelis_2").contains("in progress"));
        assert!(kept.tend().unwrap().is_empty(), "it is told once");
        drop(kept);
        room.engine.finish_child(&id, &thread_id("stelis_2"), done("the second is done")).unwrap();
        // And one that is opened to be written, by being opened.
        let mut alt = room.thread(&id, "alt");
        assert!(sees(&alt, "the second is done") && !sees(&alt, "in progress"));
        alt.rewind(at).unwrap();
        assert!(sees(&alt, "the first is done") && sees(&alt, "the second is done"));
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("the first is done"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_fork_leaves_the_mark_to_the_parent_and_a_fork_of_a_child_follows_its_grandchildren() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("one")).unwrap();
        one.spawn_free(&called("below")).unwrap();
        drop(root);
        one.fork(one.last(), thread_id("other"), None).unwrap();
        // The parent is at work elsewhere: only the fork can be told now.
        room.engine.finish_child(&id, &thread_id("stelis_1_1"), done("far below")).unwrap();
        let other = room.thread(&id, "other");
        assert!(anchor(&other, "stelis_1_1").contains("far below"));
        assert!(!row(&room.engine, &id, "stelis_1_1").told);
        one.tend().unwrap();
        assert!(anchor(&one, "stelis_1_1").contains("far below"));
        assert!(row(&room.engine, &id, "stelis_1_1").told);
    });
}

/// A summariser during whose answer the parent goes on.
struct Meanwhile<'a, 'e>(&'a mut Thread<'e>);

impl Summariser for Meanwhile<'_, '_> {
    fn name(&self) -> &str {
        "slow"
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn summarise(&mut self, request: &SummaryRequest) -> std::result::Result<SummaryAnswer, SummaryFailure> {
        self.0.tend().unwrap();
        Scripted::new(Meter::Bytes4).always("<summary>told slowly</summary>").summarise(request)
    }
}

#[test]
fn a_parent_that_looks_while_the_chronicle_is_written_does_not_wipe_the_mark() {
    at_every_call_on(
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write).unwrap();
            let mut one = root.spawn_free(&called("one")).unwrap();
            one.say(user("look at src/lib.rs")).unwrap();
        },
        |down, healthy, id| {
            let mut root = healthy.open(id, &thread_id("root"), OpenMode::Write)?;
            let mut by = Meanwhile(&mut root);
            let telling = ChronicleBy::By { by: &mut by, settings: CondenseSettings::default() };
            let finish = Finish { ending: Ending::Completed, result: None, telling };
            down.finish_child(id, &thread_id("stelis_1"), finish).map(|_| ())
        },
    );
}

#[test]
fn what_cannot_be_read_in_another_thread_stops_nobody_and_stays_marked() {
    let room = Room::files();
    let id = begun(&room);
    let mut root = room.root(&id);
    let mut one = root.spawn_free(&called("one")).unwrap();
    let said = one.tell(&thread_id("root"), "the port is 8080").unwrap();
    one.close(Ending::Completed, None).unwrap();
    drop((one, root));
    let journal = room.folder(&id).join("threads/stelis_1/messages.jsonl");
    let whole = std::fs::read(&journal).unwrap();
    let mut lines: Vec<Vec<u8>> = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let line = &mut lines[usize::try_from(said).unwrap()];
    let end = line.len() - 1;
    line[..end].fill(b'#');
    std::fs::write(&journal, lines.concat()).unwrap();
    let mut root = room.root(&id);
    assert!(root.hear().unwrap().is_empty());
    root.say(model("on")).unwrap();
    drop(root);
    let marked = Branch { told: false, ..row(&room.engine, &id, "stelis_1") };
    room.engine.store().put_branch(&marked).unwrap();
    // A folder in the journal's place: the system refuses to read it.
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    let mut root = room.root(&id);
    root.tend().unwrap();
    assert!(root.hear().unwrap().is_empty());
    assert!(!row(&room.engine, &id, "stelis_1").told);
    drop(root);
    std::fs::remove_dir(&journal).unwrap();
    std::fs::write(&journal, whole).unwrap();
    let mut root = room.root(&id);
    assert_eq!(root.hear().unwrap().len(), 1);
    assert!(sees(&root, "the port is 8080"));
    check_tree(&room.engine, &id);
}

#[test]
fn a_rewind_that_takes_a_chronicle_back_is_told_to_row_and_anchor() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn_free(&called("x")).unwrap();
        let at = child.say(user("work")).unwrap();
        drop((child, root));
        let words = ChronicleBy::Words("half of it is done".into());
        room.engine.write_chronicle(&id, &thread_id("stelis_1"), words).unwrap();
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("half of it"));
        room.thread(&id, "stelis_1").rewind(at).unwrap();
        assert_eq!(row(&room.engine, &id, "stelis_1").chronicle_summary, None);
        assert!(!anchor(&room.root(&id), "stelis_1").contains("half of it"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_child_left_under_a_thread_that_ended_is_told_so() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("one")).unwrap();
        let two = one.spawn_free(&called("two")).unwrap();
        drop((root, one));
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("done")).unwrap();
        assert_eq!(status(room, &id, "stelis_1_1"), ThreadStatus::Active);
        drop(two);
        drop(room.root(&id));
        assert_eq!(status(room, &id, "stelis_1_1"), ThreadStatus::Aborted);
        let text = anchor(&room.look(&id, "stelis_1"), "stelis_1_1");
        assert!(text.contains("the thread above it ended") && !text.contains("process"), "{text}");
    });
}

#[test]
fn a_reader_changes_no_row() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.spawn_free(&called("x")).unwrap();
        drop(root);
        let read_only = |error| matches!(error, Error::Store(StoreError::ReadOnly));
        assert!(read_only(room.look(&id, "root").rewind(1).unwrap_err()));
        assert!(read_only(room.look(&id, "stelis_1").close(Ending::Completed, None).unwrap_err()));
        assert!(row(&room.engine, &id, "stelis_1").told);
    });
}

#[test]
fn a_child_whose_guard_could_not_end_it_is_broken_off_by_its_parent_at_work() {
    let spawn_and_drop = |fails_from| {
        let (room, memory) = (Room::memory(), MemoryStore::default());
        let healthy = room.engine_on(Arc::new(memory.clone()));
        let id = healthy.create(&meta("s", "2024-01-15T10:30:00.000000Z")).unwrap();
        let faulty = Arc::new(Faulty::down_from(memory, fails_from));
        let engine = room.engine_on(faulty.clone());
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        let child = root.spawn(&called("x")).unwrap();
        drop(root);
        let calls = faulty.calls();
        let mut root = healthy.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        assert!(root.tend().unwrap().is_empty(), "its holder lives");
        drop(child);
        root.tend().unwrap();
        let text = anchor(&root, "stelis_1");
        drop(root);
        check_tree(&healthy, &id);
        (calls, text)
    };
    let (calls, text) = spawn_and_drop(0);
    assert!(text.contains("the work broke off"), "{text}");
    let (_, text) = spawn_and_drop(calls + 1);
    assert!(text.contains("the process that held it ended"), "{text}");
}

#[test]
fn an_edit_over_the_anchor_of_an_open_child_is_refused_until_it_has_ended() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.spawn_free(&called("x")).unwrap();
        root.say(user("and on")).unwrap();
        root.fork(4, thread_id("alt"), None).unwrap();
        drop(root);
        for name in ["root", "alt"] {
            let mut thread = room.thread(&id, name);
            for why in [
                thread.condense(vec![Span::new(1, 3)], "x", "by_hand").unwrap_err(),
                thread.truncate(vec![Span::new(2, 4)], "x", "by_hand").unwrap_err(),
            ] {
                let said = "@3 is the anchor of stelis_1, which is at work; end or abort it first";
                assert!(why.to_string().starts_with(said), "{why}");
            }
            thread.condense(vec![Span::new(1, 2)], "x", "by_hand").unwrap();
        }
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("THE-RESULT")).unwrap();
        let mut root = room.root(&id);
        assert!(sees(&root, "THE-RESULT"));
        root.condense(vec![Span::new(1, 3)], "x", "by_hand").unwrap();
    });
}

#[test]
fn a_share_said_anew_leaves_the_parent_to_find_out_and_lets_it() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn_free(&called("x")).unwrap();
        let (window, slices) = (crate::stelis::kit::WINDOW, komado_engine::share::SliceRecut::Keep);
        let balance = komado_engine::share::ShareBalance { ratio: None, window, buffer: 0.1, slices };
        child.balance(balance).unwrap();
        assert!(!row(&room.engine, &id, "stelis_1").told, "a mark set meanwhile is never wiped");
        root.tend().unwrap();
        assert!(row(&room.engine, &id, "stelis_1").told);
        drop((root, child));
        room.engine.balance_below(&id, &thread_id("root"), balance).unwrap();
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_child_of_a_dead_process_cannot_be_ended_well() {
    let (room, id) = crate::stelis::crash::killed(|room, id| {
        let mut root = room.root(id);
        let mut one = root.spawn(&called("one")).unwrap();
        one.say(user("look")).unwrap();
        std::mem::forget((root, one));
    });
    let why = room.engine.finish_child(&id, &thread_id("stelis_1"), done("all is well")).unwrap_err();
    assert!(matches!(why, Error::Refused(_)) && why.to_string().contains("closed"), "{why}");
    assert_eq!(status(&room, &id, "stelis_1"), ThreadStatus::Aborted);
    assert!(anchor(&room.root(&id), "stelis_1").contains("the process that held it ended"));
    check_tree(&room.engine, &id);
}

/// Does `deed` with every call of the store failing from the n-th on, for every n; the next open must put everything right.
fn at_every_call_on(
    prepare: impl Fn(&Engine, &SessionId),
    deed: impl Fn(&Engine, &Engine, &SessionId) -> Result<()>,
) {
    for n in 1.. {
        let (room, memory) = (Room::memory(), MemoryStore::default());
        let healthy = room.engine_on(Arc::new(memory.clone()));
        let id = healthy.create(&meta("s", "2024-01-15T10:30:00.000000Z")).unwrap();
        let mut root = healthy.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(user("please look at src/main.rs")).unwrap();
        drop(root);
        prepare(&healthy, &id);
        let faulty = Arc::new(Faulty::down_from(memory.clone(), n));
        let through = deed(&room.engine_on(faulty.clone()), &healthy, &id).is_ok();
        let engine = room.engine_on(Arc::new(memory));
        drop(engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap());
        check_tree(&engine, &id);
        let mut root = engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        root.say(model("the parent goes on")).unwrap();
        root.spawn_free(&called("afterwards")).unwrap();
        if through && faulty.calls() < n {
            assert!(n > 20, "{n} calls");
            return;
        }
    }
}

#[test]
fn a_store_that_goes_away_at_any_step_of_a_spawn_leaves_a_tree_that_the_next_open_puts_right() {
    at_every_call_on(
        |_, _| {},
        |engine, _, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write)?;
            let mut one = root.spawn(&called("one"))?;
            one.say(user("work"))?;
            let two = one.spawn(&called("two"))?;
            drop(two);
            one.end(&mut root, done("done")).map(|_| ())
        },
    );
}

#[test]
fn a_store_that_goes_away_at_any_step_of_an_end_leaves_a_tree_that_the_next_open_puts_right() {
    at_every_call_on(
        |engine, id| {
            let mut root = engine.open(id, &thread_id("root"), OpenMode::Write).unwrap();
            let mut one = root.spawn_free(&called("one")).unwrap();
            one.say(user("look at src/lib.rs")).unwrap();
            one.spawn_free(&called("two")).unwrap();
        },
        |engine, _, id| engine.finish_child(id, &thread_id("stelis_1"), done("the end")).map(|_| ()),
    );
}
