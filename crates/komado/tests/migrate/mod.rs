//! `komado admin migrate` and `komado import` as a person meets them: what is copied, what is refused, what a kill leaves, and
//! real servers.
mod brought;
use crate::run;
use crate::servers;
mod travel;

use komado_core::message::{Message, Role};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::{Clock, Engine};
use komado_store::{FileStore, Holder, Job, JobOutcome, JobStage, OpenMode};
use run::Place;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> String {
        "2024-01-15T12:00:00.000000Z".into()
    }
}

fn engine(base: &Path) -> Engine {
    let holder = Holder { pid: 7, host: "山".into(), program: "test".into(), since: "noon".into() };
    Engine::new(Arc::new(FileStore::new(base, holder)), Arc::new(Noon))
}

/// So many sessions in `base`, of two users; every third one has ended, every fifth has a fork.
fn fill(base: &Path, sessions: usize) -> Vec<SessionId> {
    let engine = engine(base);
    (0..sessions).map(|n| story(&engine, n)).collect()
}

fn story(engine: &Engine, n: usize) -> SessionId {
    let id = SessionId::new(format!("s{n:04}")).unwrap();
    let meta = Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(&id),
        created_at: format!("2024-01-15T10:{:02}:{:02}.000000Z", n / 60 % 60, n % 60),
        process_id: 7,
        hostname: "山".into(),
        config: MetaConfig { meter: "bytes4".into(), ..MetaConfig::default() },
        user: Some(if n.is_multiple_of(2) { "花子" } else { "ann" }.into()),
        queued: false,
    };
    engine.create(&meta).unwrap();
    let mut root = engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    for i in 0..4 {
        root.say(Message::text(Role::User, format!("窓 {n}.{i}"))).unwrap();
        root.say(Message::text(Role::Assistant, "はい ".repeat(1 + n % 7))).unwrap();
    }
    if n.is_multiple_of(5) {
        root.fork(4, ThreadId::new("other").unwrap(), Some("別案".into())).unwrap();
    }
    root.settle().unwrap();
    drop(root);
    if n.is_multiple_of(3) {
        engine.complete(&id, Some("終わり".into())).unwrap();
    }
    id
}

/// The exports of all sessions in a folder.
fn exports(base: &Path, ids: &[SessionId]) -> Vec<Vec<u8>> {
    let engine = engine(base);
    let export = |id: &SessionId| {
        let mut bytes = Vec::new();
        engine.export(id, &mut bytes, |_| {}).unwrap();
        bytes
    };
    ids.iter().map(export).collect()
}

fn url(folder: &Path) -> String {
    format!("file:{}", folder.display())
}

#[test]
fn a_folder_becomes_another_one_and_a_second_run_finds_everything_there() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 7);
    let args = ["admin", "migrate", "--from", &url(&from), "--to", &url(&to)];
    let dry = place.json_lines(&[&args[..], &["--dry-run"]].concat());
    assert_eq!((&dry[0]["outcome"], &dry[7]["summary"]["sessions"]), (&"would copy".into(), &7.into()));
    assert!(!to.exists() || exports_nothing(&to));
    let rows = place.json_lines(&args);
    assert!(rows[..7].iter().all(|row| row["outcome"] == "copied"), "{rows:?}");
    assert_eq!(exports(&to, &ids), exports(&from, &ids));
    let again = place.json_lines(&args);
    assert!(again[..7].iter().all(|row| row["outcome"] == "there"), "{again:?}");
    let verified = place.json_lines(&[&args[..], &["--verify-only"]].concat());
    for (row, now) in rows.iter().zip(&verified) {
        assert_eq!(row["digest"], now["digest"]);
    }
    assert_eq!(rows[7]["summary"]["digest"], verified[7]["summary"]["digest"]);
    let said = place.ok(&args);
    assert!(said.contains("7 sessions") && said.contains("the same; digest"), "{said}");
}

fn exports_nothing(base: &Path) -> bool {
    engine(base).store().sessions(&komado_store::SessionQuery::default()).unwrap().is_empty()
}

#[test]
fn only_the_wanted_sessions_are_moved_and_removed() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 6);
    let (source, target) = (url(&from), url(&to));
    let base = ["admin", "migrate", "--from", source.as_str(), "--to", target.as_str()];
    place.ok(&[&base[..], &["--session", "s0001", "s0002"]].concat());
    let before = exports(&from, &ids);
    let moved = place.json_lines(&[&base[..], &["--user", "花子", "--delete-source"]].concat());
    assert_eq!(moved.last().unwrap()["summary"]["removed"], 3);
    let left: Vec<String> = engine(&from)
        .store()
        .sessions(&komado_store::SessionQuery::default())
        .unwrap()
        .into_iter()
        .map(|s| s.meta.uuid)
        .collect();
    assert_eq!(left, ["s0001", "s0003", "s0005"]);
    for (id, bytes) in [(0, &before[0]), (1, &before[1]), (2, &before[2]), (4, &before[4])] {
        assert_eq!(exports(&to, &ids[id..=id])[0], *bytes);
    }
}

#[test]
fn a_session_that_is_written_or_differs_is_named_and_the_others_go() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 4);
    let writer = engine(&from);
    let held = writer.open(&ids[1], &ThreadId::root(), OpenMode::Write).unwrap();
    let other = engine(&to);
    other.create(&Meta { user: None, ..writer.session(&ids[2]).unwrap().meta }).unwrap();
    let args = ["admin", "migrate", "--from", &url(&from), "--to", &url(&to)];
    let said = place.run(&args);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("s0001 is being written by process 7"), "{}", said.err);
    assert!(said.err.contains("another session s0002") && said.err.contains("2 not moved"), "{}", said.err);
    assert_eq!(exports(&to, &ids[3..]), exports(&from, &ids[3..]));
    let said = place.run(&[&args[..], &["--live", "catch-up", "--session", "s0001"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    drop(held);
    assert_eq!(exports(&to, &ids[1..2]), exports(&from, &ids[1..2]));
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_done() {
    let place = Place::new();
    let from = place.path().join("from");
    fill(&from, 1);
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&from, &link).unwrap();
    for (source, target, code, word) in [
        (url(&from), url(&from), 2, "the same store"),
        (url(&from), url(&link), 2, "the same store"),
        (url(&place.path().join("nowhere")), url(&from), 3, "nowhere"),
        (url(&from), "mysql://ann:geheim@db/x".to_owned(), 2, "--to cannot be mysql://***@db/x"),
    ] {
        let said = place.run(&["admin", "migrate", "--from", &source, "--to", &target]);
        assert_eq!(said.code, code, "{source} {target}: {}", said.err);
        assert!(said.err.contains(word) && !said.err.contains("geheim"), "{}", said.err);
    }
    assert!(!place.path().join("nowhere").exists());
    let said = place.run(&["admin", "migrate", "--from", &url(&from), "--to", "memory:", "--delete-source"]);
    assert!(said.code == 2 && said.err.contains("memory"), "{}", said.err);
    assert!(!exports_nothing(&from));
}

fn queue(base: &Path, ids: &[SessionId]) {
    for id in ids {
        let (key, user, at) = (format!("key of {id}"), None, "2024-01-15T12:00:00Z".to_owned());
        let job = Job { session: id.clone(), key, user, body: "{}".into(), at };
        assert!(engine(base).store().enqueue(&job).unwrap());
    }
}

fn queued(base: &Path) -> Vec<String> {
    let all = engine(base).store().jobs(None, 0).unwrap();
    all.into_iter().map(|queued| queued.job.session.to_string()).collect()
}

#[test]
fn a_job_goes_with_its_session_and_stays_with_one_that_was_refused() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 3);
    queue(&from, &ids);
    let other = Meta { user: None, ..engine(&from).session(&ids[1]).unwrap().meta };
    engine(&to).create(&other).unwrap();
    let args = ["admin", "migrate", "--from", &url(&from), "--to", &url(&to)];
    let said = place.run(&args);
    assert!(said.code == 5 && said.err.contains("another session s0001"), "{}", said.err);
    assert_eq!((queued(&from).len(), queued(&to)), (3, vec!["s0000".to_owned(), "s0002".to_owned()]));
    let said = place.run(&[&args[..], &["--delete-source"]].concat());
    assert!(said.code == 5 && said.out.contains("removed 2 sessions"), "{}{}", said.out, said.err);
    assert_eq!((queued(&from), queued(&to).len()), (vec!["s0001".to_owned()], 2));
}

#[test]
fn a_job_that_was_laid_aside_is_so_at_the_target_and_one_that_is_worked_on_is_named() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 2);
    queue(&from, &ids);
    let (source, hour) = (engine(&from), Duration::from_secs(3600));
    let holder =
        Holder { pid: 8, host: "谷".into(), program: "komado task work".into(), since: "noon".into() };
    let resting = source.store().take(&holder, hour).unwrap().unwrap();
    source.store().finish(&resting, &JobOutcome::Dead { why: "it rests".into() }).unwrap();
    source.store().take(&holder, hour).unwrap().unwrap();
    let args = ["admin", "migrate", "--from", &url(&from), "--to", &url(&to)];
    let said = place.run(&args);
    assert!(said.code == 5 && said.err.contains("is being worked on by process 8"), "{}", said.err);
    let there = engine(&to).store().jobs(None, 0).unwrap();
    assert_eq!((there.len(), &there[0].job.session, &there[0].stage), (1, &ids[0], &JobStage::Dead));
    assert_eq!((there[0].tries, there[0].why.as_deref()), (1, Some("it rests")));
}

#[test]
fn a_migration_that_is_killed_goes_on_where_it_was() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, 30);
    let args = ["admin", "migrate", "--from", &url(&from), "--to", &url(&to), "--json"];
    for lines in [1, 4, 9] {
        let mut command = place.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..lines {
            out.read_line(&mut line).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let rows = place.json_lines(&args[..6]);
    assert!(rows.iter().any(|row| row["outcome"] == "there"), "nothing was done before it was killed");
    assert_eq!(rows[30]["summary"]["left"], 0);
    assert_eq!(exports(&to, &ids), exports(&from, &ids));
}
