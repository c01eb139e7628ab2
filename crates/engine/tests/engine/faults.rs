//! Whatever call fails, what was acknowledged is there and the session goes on.

use crate::engine::room::{Room, call, calls, holder, meta, model, result, setup, thread_id, used, user};
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, MessagePart, Role};
use komado_core::{Seq, SessionId, Span, ThreadId, View};
use komado_engine::redact::RedactTarget;
use komado_engine::{Engine, Result, Thread};
use komado_store::{FileStore, OpenMode, SessionQuery, Store};
use komado_testkit::Faulty;
use std::sync::Arc;

/// What was acknowledged: in which thread, under which number.
type Told = Vec<(ThreadId, Seq)>;

/// Notes what was acknowledged; after a failure the handle still shows what its journal holds.
fn step(
    thread: &mut Thread<'_>,
    told: &mut Told,
    verb: impl FnOnce(&mut Thread<'_>) -> Result<Seq>,
) -> Result<()> {
    let done = verb(thread);
    told.extend(done.iter().map(|seq| (thread.header().thread.clone(), *seq)));
    let source = thread.source();
    assert_eq!(thread.view(), &View::fold(source, source.last())?);
    done.map(|_| ())
}

fn picture() -> Message {
    let source = ImageSource::Url { url: "data:image/png;base64,AAEC".into() };
    Message::of(Role::User, vec![MessagePart::text("look"), MessagePart::Image { source, detail: None }])
}

fn work(engine: &Engine, id: &SessionId, told: &mut Told) -> Result<()> {
    engine.create(&meta(id.as_str(), "2024-01-15T10:00:00Z"))?;
    let mut root = engine.open(id, &ThreadId::root(), OpenMode::Write)?;
    step(&mut root, told, |t| t.set_up(setup("Be kind.")))?;
    step(&mut root, told, |t| t.say(picture()))?;
    step(&mut root, told, |t| t.reply(calls(vec![call("a", "f", "{}"), call("b", "f", "{}")]), used(5, 5)))?;
    step(&mut root, told, |t| t.say(result("a", "one, at some length")))?;
    step(&mut root, told, |t| t.say(user("never mind")))?;
    step(&mut root, told, |t| t.pin(2))?;
    step(&mut root, told, |t| t.condense(vec![Span::new(2, 6)], "S", "by_hand"))?;
    step(&mut root, told, |t| t.revert(8))?;
    step(&mut root, told, |t| t.trim(vec![(4, "T".into())], "by_hand"))?;
    step(&mut root, told, |t| t.rewind(7))?;
    step(&mut root, told, |t| t.unpin(2))?;
    root.settle()?;
    step(&mut root, told, |t| Ok(t.say_all(vec![(user("x"), None), (model("y"), None)])?[1]))?;
    root.fork(5, thread_id("f"), None)?;
    drop(root);
    let mut fork = engine.open(id, &thread_id("f"), OpenMode::Write)?;
    step(&mut fork, told, |t| t.say(user("another way")))?;
    fork.settle()?;
    drop(fork);
    engine.pause(id, None)?;
    engine.complete(id, Some("done".into()))?;
    engine.resume(id)?;
    engine.redact(id, &RedactTarget::Matching(regex::Regex::new("kind").unwrap()), "r")?;
    engine.fail(id, "why")?;
    engine.resume(id)?;
    Ok(())
}

/// Everything acknowledged is there, every view is what its journal folds to, and the session goes on.
fn examine(engine: &Engine, id: &SessionId, told: &Told) {
    if engine.store().threads(id).is_err() {
        assert!(told.is_empty());
        return;
    }
    for header in engine.store().threads(id).unwrap() {
        let thread = engine.open(id, &header.thread, OpenMode::Read).unwrap();
        assert_eq!(thread.view(), &View::fold(thread.source(), thread.last()).unwrap());
        for seq in 1..=thread.last() {
            assert_eq!(thread.record(seq).unwrap().seq, seq);
        }
    }
    for (thread, seq) in told {
        engine.open(id, thread, OpenMode::Read).unwrap().record(*seq).unwrap();
    }
    match engine.resume(id) {
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("nothing to resume"), "{error}"),
    }
    let mut root = engine.open(id, &ThreadId::root(), OpenMode::Write).unwrap();
    let seq = root.say(user("on we go")).unwrap();
    assert!(matches!(root.record(seq).unwrap().entry, Entry::Message(..)));
    if root.view_at(seq - 1).unwrap().open().calls.is_empty() {
        assert!(told.iter().all(|(thread, told)| !thread.is_root() || *told < seq));
    }
    root.settle().unwrap();
    drop(root);
    engine.complete(id, None).unwrap();
}

#[test]
fn any_call_may_fail_and_nothing_acknowledged_is_lost() {
    let id = SessionId::new("s").unwrap();
    let mut calls = 1;
    let mut n = 0;
    while n <= calls {
        let room = Room::memory();
        let faulty = Arc::new(Faulty::new(room.memory.clone(), n));
        let mut told = Told::new();
        let done = work(&room.engine_on(faulty.clone()), &id, &mut told);
        match n {
            0 => {
                done.unwrap();
                calls = faulty.calls();
                assert!(calls > 200, "{calls}");
            }
            _ => assert!(done.is_err() || faulty.calls() >= n, "call {n} did not fail"),
        }
        examine(&room.engine, &id, &told);
        n += 1;
    }
}

#[test]
fn the_same_on_disk() {
    let id = SessionId::new("s").unwrap();
    let clock = Room::memory();
    // Each try is a folder with some forty syncs, so not every call is tried.
    for n in (1..400).step_by(23) {
        let base = tempfile::tempdir().unwrap();
        let mut told = Told::new();
        let faulty: Arc<dyn Store> = Arc::new(Faulty::new(FileStore::new(base.path(), holder()), n));
        let _ = work(&clock.engine_on(faulty), &id, &mut told);
        let engine = clock.engine_on(Arc::new(FileStore::new(base.path(), holder())));
        examine(&engine, &id, &told);
    }
}

#[test]
fn an_import_that_fails_anywhere_leaves_nothing_behind() {
    let room = Room::memory();
    let id = crate::engine::story::tell(&room, "s");
    room.engine.fail(&id, "why").unwrap();
    let bytes = crate::engine::export::export(&room, &id);
    let mut n = 1;
    loop {
        let other = Room::memory();
        let faulty = Arc::new(Faulty::new(other.memory.clone(), n));
        let done = other.engine_on(faulty.clone()).import(&mut &bytes[..], None, |_| {});
        if faulty.calls() < n {
            done.unwrap();
            assert_eq!(crate::engine::export::export(&other, &id), bytes);
            break;
        }
        if done.is_err() {
            assert_eq!(other.engine.store().sessions(&SessionQuery::default()).unwrap().len(), 0, "call {n}");
        }
        n += 1;
    }
    assert!(n > 50, "{n}");
}

#[test]
fn an_append_reads_the_row_once_and_writes_once() {
    let room = Room::files();
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Faulty::new(FileStore::new(dir.path(), holder()), 0));
    let engine = room.engine_on(Arc::clone(&store) as Arc<dyn Store>);
    let id = engine.create(&meta("s", "2024-01-15T10:00:00Z")).unwrap();
    let mut root = engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    root.say(user("hello")).unwrap();
    root.settle().unwrap();
    assert_eq!(store.rows_and_appends(), (1, 1));
}
