//! Sessions from store to store: the same bytes, whatever breaks off on the way.

use crate::engine::export::export;
use crate::engine::family;
use crate::engine::room::{Room, holder, meta, model, thread_id, user};
use crate::engine::story::{SECRET, tell};
use komado_core::SessionId;
use komado_core::session::{Meta, State};
use komado_engine::migrate::{CopyProgress, Error, LiveSessions, Migration, SessionDigest, SourceJob};
use komado_engine::redact::RedactTarget;
use komado_store::{
    BranchFilter, FileStore, Job, JobOutcome, JobStage, MemoryStore, OpenMode, SessionQuery, Store,
};
use komado_testkit::Faulty;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn refusing<'s>(from: &'s dyn Store, to: &'s dyn Store) -> Migration<'s> {
    Migration::new(from, to, LiveSessions::Refuse)
}

fn copy(from: &Room, to: &Room, id: &SessionId) {
    refusing(from.engine.store(), to.engine.store()).session(id, &mut |_| {}).unwrap();
}

/// What the tables say beside the journals.
fn beside(room: &Room, id: &SessionId) -> Vec<String> {
    let store = room.engine.store();
    let mut all = vec![format!("{:?}", room.engine.session(id).unwrap())];
    all.push(format!("{:?}", store.branches(id, BranchFilter::All).unwrap()));
    for header in store.threads(id).unwrap() {
        all.push(format!("{:?}", store.mail(id, &header.thread).unwrap()));
    }
    all
}

/// Sessions in every state a session can be in.
fn stories(room: &Room) -> Vec<SessionId> {
    let engine = &room.engine;
    let mut all: Vec<SessionId> = ["running", "paused", "completed", "failed", "resumed", "redacted"]
        .iter()
        .map(|name| tell(room, name))
        .collect();
    engine.pause(&all[1], Some("昼".into())).unwrap();
    engine.complete(&all[2], Some("done".into())).unwrap();
    engine.fail(&all[3], "no space").unwrap();
    engine.fail(&all[4], "no space").unwrap();
    engine.resume(&all[4]).unwrap();
    let pattern = regex::Regex::new(&regex::escape(SECRET)).unwrap();
    engine.redact(&all[5], &RedactTarget::Matching(pattern), "a secret").unwrap();
    all.push(family::tell(room, "family"));
    all.push(engine.create(&Meta { queued: true, ..meta("queued", "2024-01-15T10:00:00Z") }).unwrap());
    all
}

#[test]
fn sessions_go_from_files_to_memory_and_on_to_files_as_the_same_bytes() {
    let (first, memory, last) = (Room::files(), Room::memory(), Room::files());
    for id in stories(&first) {
        copy(&first, &memory, &id);
        copy(&memory, &last, &id);
        for room in [&memory, &last] {
            assert!(export(room, &id) == export(&first, &id), "{id}: other bytes");
            assert_eq!(beside(room, &id), beside(&first, &id), "{id}");
        }
        let moved = refusing(first.engine.store(), last.engine.store()).session(&id, &mut |_| {}).unwrap();
        assert_eq!((moved.added, moved.rounds), (CopyProgress::default(), 1), "{id} was there already");
        assert_eq!(SessionDigest::of(first.engine.store(), &id).unwrap(), moved.seal);
    }
}

#[test]
fn a_transcript_is_found_at_the_target_where_it_stood_at_the_source() {
    let (from, to) = (Room::memory(), Room::memory());
    let mut made = meta("s", "2024-01-15T10:00:00Z");
    made.config.alias = Some("alias of s".into());
    let id = from.engine.create(&made).unwrap();
    let mut reply = crate::engine::room::used(5, 5);
    reply.id = Some("reply of s".into());
    let mut root = from.root(&id);
    root.say(user("窓")).unwrap();
    let seq = root.reply(model("はい"), reply).unwrap();
    drop(root);
    copy(&from, &to, &id);
    let found = |name: &str| to.engine.store().spots(name).unwrap();
    assert_eq!((found("alias of s")[0].seq, found("reply of s")[0].seq), (0, seq));
    copy(&from, &to, &id);
    assert_eq!((found("alias of s").len(), found("reply of s").len()), (1, 1));
}

/// Fails call number `n` of a store: once, or with all that follow.
type Breaking = fn(MemoryStore, u64) -> Faulty<MemoryStore>;

/// Copies with a call of one side failing, then again with none; true when none failed.
fn interrupted(first: &Room, id: &SessionId, at_source: bool, (breaking, n): (Breaking, u64)) -> bool {
    let last = Room::memory();
    let (source, target) = match at_source {
        true => (breaking(first.memory.clone(), n), Faulty::new(last.memory.clone(), 0)),
        false => (Faulty::new(first.memory.clone(), 0), breaking(last.memory.clone(), n)),
    };
    let done = refusing(&source, &target).session(id, &mut |_| {});
    copy(first, &last, id);
    assert!(export(&last, id) == export(first, id), "call {n}: other bytes");
    assert_eq!(beside(&last, id), beside(first, id), "call {n}");
    done.is_ok()
}

#[test]
fn whatever_call_fails_a_second_run_finishes_what_the_first_began() {
    let first = Room::memory();
    let mut stories = [tell(&first, "story"), family::tell(&first, "family")];
    first.engine.complete(&stories[0], None).unwrap();
    stories.sort();
    for id in &stories {
        for (at_source, breaking) in [
            (false, Faulty::new as Breaking),
            (false, Faulty::down_from as Breaking),
            (true, Faulty::down_from as Breaking),
        ] {
            let calls = (1..).step_by(3).find(|n| interrupted(&first, id, at_source, (breaking, *n)));
            assert!(calls.is_some_and(|calls| calls > 30), "{calls:?}");
        }
    }
}

#[test]
fn a_copy_that_broke_off_in_a_folder_is_finished_there() {
    let first = Room::memory();
    let id = family::tell(&first, "family");
    let mut n = 1;
    loop {
        let last = Room::files();
        let target = Faulty::down_from(FileStore::new(last.base(), holder()), n);
        let done = refusing(first.engine.store(), &target).session(&id, &mut |_| {}).is_ok();
        drop(target);
        copy(&first, &last, &id);
        assert!(export(&last, &id) == export(&first, &id), "call {n}: other bytes");
        assert_eq!(beside(&last, &id), beside(&first, &id), "call {n}");
        if done {
            return assert!(n > 20, "{n}");
        }
        n += 9;
    }
}

#[test]
fn what_the_target_says_otherwise_is_named_and_left_as_it_is() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = from.session("s");
    from.root(&id).say(user("one")).unwrap();
    copy(&from, &to, &id);
    from.root(&id).say(user("two")).unwrap();
    to.root(&id).say(user("something else")).unwrap();
    let before = export(&to, &id);
    let why = refusing(from.engine.store(), to.engine.store()).session(&id, &mut |_| {}).unwrap_err();
    assert!(matches!(&why, Error::Differs { thread, seq: 2, .. } if thread.is_root()), "{why}");
    assert!(why.to_string().contains("s/root@2"), "{why}");
    // The other way round the target has fewer entries, and they are other ones.
    from.root(&id).say(user("three")).unwrap();
    let why = refusing(from.engine.store(), to.engine.store()).verify(&id).unwrap_err();
    assert!(matches!(why, Error::Unequal { .. }), "{why}");
    assert!(export(&to, &id) == before);
}

#[test]
fn another_session_of_the_same_name_is_refused() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = from.session("s");
    to.engine.create(&Meta { user: Some("bob".into()), ..meta("s", "2024-01-15T10:00:00Z") }).unwrap();
    let why = refusing(from.engine.store(), to.engine.store()).session(&id, &mut |_| {}).unwrap_err();
    assert!(matches!(why, Error::Taken(_)), "{why}");
    assert_eq!(to.engine.session(&id).unwrap().meta.user.as_deref(), Some("bob"));
}

#[test]
fn a_thread_that_only_the_target_has_is_named() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = from.session("s");
    from.root(&id).say(user("one")).unwrap();
    copy(&from, &to, &id);
    to.root(&id).fork(1, thread_id("f"), None).unwrap();
    let why = refusing(from.engine.store(), to.engine.store()).session(&id, &mut |_| {}).unwrap_err();
    assert!(why.to_string().contains("s/f@1"), "{why}");
}

#[test]
fn a_session_that_somebody_writes_is_left_or_caught_up_with() {
    for (from, to) in [(Room::files(), Room::memory()), (Room::memory(), Room::files())] {
        let id = from.session("s");
        let mut root = from.root(&id);
        root.say(user("one")).unwrap();
        let (source, target) = (from.engine.store(), to.engine.store());
        for refused in [
            refusing(source, target).session(&id, &mut |_| {}).map(|_| ()),
            refusing(source, target).look(&id).map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::Live { .. })), "{refused:?}");
        }
        assert!(target.sessions(&SessionQuery::default()).unwrap().is_empty());
        let mut more = 3;
        let live = Migration::new(source, target, LiveSessions::CatchUp { rounds: 9 });
        let moved = live.session(&id, &mut |_| {
            if more > 0 {
                more -= 1;
                root.say(user("and more")).unwrap();
            }
        });
        let moved = moved.unwrap();
        assert_eq!((moved.seal.entries, moved.rounds), (4, 4));
        drop(root);
        assert!(export(&to, &id) == export(&from, &id));
    }
}

#[test]
fn one_who_never_stops_writing_is_told_of_after_some_rounds() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = from.session("s");
    let mut root = from.root(&id);
    root.say(user("one")).unwrap();
    let live = Migration::new(from.engine.store(), to.engine.store(), LiveSessions::CatchUp { rounds: 3 });
    let mut more = |_: &CopyProgress| {
        root.say(user("more")).unwrap();
    };
    let why = live.session(&id, &mut more).unwrap_err();
    assert!(matches!(why, Error::Growing { rounds: 3, .. }), "{why}");
}

#[test]
fn one_store_under_two_names_is_refused() {
    let room = Room::files();
    let id = tell(&room, "s");
    let before = export(&room, &id);
    let other = FileStore::new(room.base(), holder());
    let why = refusing(room.engine.store(), &other).session(&id, &mut |_| {}).unwrap_err();
    assert!(matches!(why, Error::SameStore), "{why}");
    assert!(export(&room, &id) == before);
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_folder_that_is_read_is_not_changed() {
    let (room, to) = (Room::files(), Room::memory());
    let ids = stories(&room);
    let base = room.base().to_owned();
    let _folder = room.again();
    drop(room);
    let mut before = BTreeMap::new();
    files(&base, &mut before);
    let source = FileStore::new(&base, holder());
    let migration = refusing(&source, to.engine.store());
    for id in &ids {
        migration.look(id).unwrap();
        migration.session(id, &mut |_| {}).unwrap();
    }
    migration.lessons().unwrap();
    migration.jobs(SourceJob::Keep, |_| Ok(true), |_| {}).unwrap();
    drop(source);
    let mut after = BTreeMap::new();
    files(&base, &mut after);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    for (name, bytes) in before {
        assert!(after[&name] == bytes, "{name} was changed");
    }
}

#[test]
fn what_was_moved_is_removed_only_while_it_is_the_same() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = tell(&from, "s");
    let migration = refusing(from.engine.store(), to.engine.store());
    let moved = migration.session(&id, &mut |_| {}).unwrap();
    from.root(&id).say(user("wait")).unwrap();
    assert!(!migration.remove(&id, &moved.seal).unwrap());
    let moved = migration.session(&id, &mut |_| {}).unwrap();
    assert!(migration.remove(&id, &moved.seal).unwrap());
    assert!(from.engine.store().sessions(&SessionQuery::default()).unwrap().is_empty());
    assert_eq!(
        migration.verify(&id).unwrap_err().to_string(),
        "there is no session s; `komado sessions` lists them"
    );
}

fn job(name: &str) -> Job {
    Job {
        session: SessionId::new(name).unwrap(),
        key: format!("key of {name}"),
        user: Some("ann".into()),
        body: "{}".into(),
        at: "2024-01-15T10:00:00Z".into(),
    }
}

#[test]
fn jobs_and_lessons_go_along_and_those_that_cannot_are_named() {
    let (from, to) = (Room::memory(), Room::memory());
    let (source, target) = (from.engine.store(), to.engine.store());
    for name in ["held", "dead", "one", "two", "other"] {
        source.enqueue(&job(name)).unwrap();
    }
    let hour = Duration::from_secs(3600);
    source.take(&holder(), hour).unwrap().unwrap();
    let dead = source.take(&holder(), hour).unwrap().unwrap();
    source.finish(&dead, &JobOutcome::Dead { why: "no".into() }).unwrap();
    source.learn("m", &mut |_| Some("{\"window\":1}".into())).unwrap();
    source.learn("n", &mut |_| Some("{\"window\":2}".into())).unwrap();
    target.learn("n", &mut |_| Some("{\"window\":3}".into())).unwrap();
    let migration = refusing(source, target);
    let mut left = Vec::new();
    let wanted = |job: &Job| Ok(job.session.as_str() != "other");
    let new = migration.jobs(SourceJob::Keep, wanted, |job| left.push(job.session.to_string()));
    assert_eq!((new.unwrap(), left), (3, vec!["held".to_owned()]));
    let there = target.jobs(None, 0).unwrap();
    let jobs: Vec<Job> = there.iter().map(|queued| queued.job.clone()).collect();
    assert_eq!(jobs, [job("dead"), job("one"), job("two")]);
    assert_eq!((&there[0].stage, there[0].tries, there[0].why.as_deref()), (&JobStage::Dead, 1, Some("no")));
    assert_eq!(migration.jobs(SourceJob::Keep, |_| Ok(true), |_| {}).unwrap(), 1);
    assert_eq!(migration.lessons().unwrap(), 1);
    assert_eq!(target.lesson("n").unwrap().as_deref(), Some("{\"window\":3}"));
}

#[test]
fn a_job_that_was_moved_is_at_the_target_alone() {
    let (from, to) = (Room::memory(), Room::memory());
    let (source, target) = (from.engine.store(), to.engine.store());
    let names: Vec<String> = (0..450).map(|n| format!("j{n}")).collect();
    names.iter().for_each(|name| assert!(source.enqueue(&job(name)).unwrap()));
    // One is there from an earlier run, and in the place of another stands something else.
    target.enqueue(&job("j7")).unwrap();
    target.enqueue(&Job { key: "another".into(), ..job("j300") }).unwrap();
    let mut left = Vec::new();
    let wanted = |job: &Job| Ok(job.session.as_str() != "j0");
    let new =
        refusing(source, target).jobs(SourceJob::Withdraw, wanted, |job| left.push(job.session.to_string()));
    assert_eq!((new.unwrap(), left), (447, vec!["j300".to_owned()]));
    let stay: Vec<Job> = source.jobs(None, 0).unwrap().into_iter().map(|queued| queued.job).collect();
    assert_eq!(stay, [job("j0"), job("j300")]);
    assert_eq!(target.jobs(None, 0).unwrap().len(), 449);
}

#[test]
fn a_state_that_changed_since_the_last_run_is_brought_along() {
    let (from, to) = (Room::memory(), Room::memory());
    let id = from.engine.create(&Meta { queued: true, ..meta("q", "2024-01-15T10:00:00Z") }).unwrap();
    copy(&from, &to, &id);
    assert_eq!(to.engine.session(&id).unwrap().status, State::Queued);
    from.root(&id).say(user("begin")).unwrap();
    from.engine.complete(&id, None).unwrap();
    copy(&from, &to, &id);
    assert_eq!(to.engine.session(&id).unwrap(), from.engine.session(&id).unwrap());
    assert!(to.engine.store().open(&id, &thread_id("root"), OpenMode::Write).is_err(), "it has ended");
}
