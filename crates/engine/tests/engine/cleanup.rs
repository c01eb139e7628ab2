//! Retention: what goes, what stays.

use crate::engine::room::{Room, call, calls, everywhere, meta, model, result_with_output, user};
use komado_core::SessionId;
use komado_core::session::State;
use komado_engine::cleanup::{CleanupMode, CleanupResult};
use komado_store::{BlobSweep, SessionQuery};

const FAR: &str = "2025-01-01T00:00:00Z";

/// One session in each state, every one with something said.
fn all_states(room: &Room) {
    let engine = &room.engine;
    for name in ["completed", "failed", "stopped", "running", "paused", "resumed"] {
        let id = room.session(name);
        room.root(&id).say(user("hello")).unwrap();
        match name {
            "completed" | "resumed" => engine.complete(&id, None).unwrap(),
            "failed" => engine.fail(&id, "why").unwrap(),
            "stopped" => engine.stop(&id, None).unwrap(),
            "paused" => engine.pause(&id, None).unwrap(),
            _ => engine.session(&id).unwrap(),
        };
        if name == "resumed" {
            engine.resume(&id).unwrap();
        }
    }
    let mut queued = meta("queued", "2020-01-01T00:00:00Z");
    queued.queued = true;
    engine.create(&queued).unwrap();
}

fn names(cleaned: &CleanupResult) -> Vec<&str> {
    cleaned.sessions.iter().map(|session| session.meta.uuid.as_str()).collect()
}

fn left(room: &Room) -> Vec<String> {
    room.engine.store().sessions(&SessionQuery::default()).unwrap().into_iter().map(|s| s.meta.uuid).collect()
}

#[test]
fn only_what_has_ended_goes_and_a_dry_run_tells_the_same_and_changes_nothing() {
    everywhere(|room| {
        all_states(room);
        let before = left(room);
        let mut told = Vec::new();
        let dry = room
            .engine
            .cleanup(FAR, CleanupMode::Dry, |session| told.push(session.meta.uuid.clone()))
            .unwrap();
        assert_eq!(names(&dry), ["completed", "failed", "stopped"]);
        assert_eq!(told, names(&dry));
        assert_eq!(left(room), before);
        let real = room.engine.cleanup(FAR, CleanupMode::Real, |_| {}).unwrap();
        assert_eq!(names(&real), names(&dry));
        assert_eq!(left(room), ["queued", "running", "paused", "resumed"]);
        assert_eq!(names(&room.engine.cleanup(FAR, CleanupMode::Real, |_| {}).unwrap()), Vec::<&str>::new());
        let states: Vec<State> = left(room)
            .iter()
            .map(|name| room.engine.session(&SessionId::new(name.as_str()).unwrap()).unwrap().status)
            .collect();
        assert_eq!(states, [State::Queued, State::Running, State::Paused, State::Running]);
        if room.files.is_some() {
            assert_eq!(std::fs::read_dir(room.base().join("completed")).unwrap().count(), 0);
        }
    });
}

#[test]
fn what_ended_later_than_the_limit_stays() {
    everywhere(|room| {
        all_states(room);
        let failed = room.engine.session(&SessionId::new("failed").unwrap()).unwrap();
        let at = failed.completed_at.unwrap();
        let cleaned = room.engine.cleanup(&at, CleanupMode::Real, |_| {}).unwrap();
        assert_eq!(names(&cleaned), ["completed"]);
    });
}

#[test]
fn blobs_of_what_stays_go_only_when_nothing_names_them() {
    everywhere(|room| {
        let ids: Vec<SessionId> = ["ended", "running"].iter().map(|name| room.session(name)).collect();
        for id in &ids {
            let mut root = room.root(id);
            root.say(calls(vec![call("a", "read", "{}")])).unwrap();
            root.say(result_with_output(room, id, "a", "head", b"named")).unwrap();
            root.say(calls(vec![call("b", "read", "{}")])).unwrap();
            root.say(result_with_output(room, id, "b", "head", b"rewound, but the journal names it"))
                .unwrap();
            root.rewind(2).unwrap();
            room.engine.store().put_blob(id, &mut &b"nobody's"[..]).unwrap();
        }
        room.engine.complete(&ids[0], None).unwrap();
        let early = "2000-01-01T00:00:00Z";
        let dry = room.engine.cleanup(early, CleanupMode::Dry, |_| {}).unwrap();
        assert_eq!((dry.sessions.len(), dry.swept), (0, BlobSweep { blobs: 1, bytes: 8 }));
        assert_eq!(room.engine.cleanup(early, CleanupMode::Dry, |_| {}).unwrap().swept, dry.swept);
        assert_eq!(room.engine.cleanup(early, CleanupMode::Real, |_| {}).unwrap().swept, dry.swept);
        assert_eq!(
            room.engine.cleanup(early, CleanupMode::Real, |_| {}).unwrap().swept,
            BlobSweep::default()
        );
        for id in &ids {
            for blob in room.engine.named_blobs(id).unwrap() {
                room.engine.store().blob(id, &blob).unwrap();
            }
        }
        // A session that goes on may be about to name it.
        assert_eq!(room.engine.sweep(&ids[1], CleanupMode::Dry).unwrap().blobs, 1);
    });
}

#[test]
fn more_sessions_than_a_page_are_all_found() {
    let room = Room::memory();
    let total = 1_200;
    for n in 0..total {
        // Many were made in the same moment; the order must hold all the same.
        let id =
            room.engine.create(&meta(&format!("s{n}"), &format!("2024-01-15T0{}:00:00Z", n % 3))).unwrap();
        if n % 12 != 0 {
            room.engine.complete(&id, None).unwrap();
        }
    }
    let mut seen = std::collections::HashSet::new();
    room.engine
        .each_session(SessionQuery::default(), |session| {
            assert!(seen.insert(session.meta.uuid.clone()), "{} twice", session.meta.uuid);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen.len(), total);
    assert_eq!(room.engine.cleanup(FAR, CleanupMode::Dry, |_| {}).unwrap().sessions.len(), 1_100);
    assert_eq!(room.engine.cleanup(FAR, CleanupMode::Real, |_| {}).unwrap().sessions.len(), 1_100);
    assert_eq!(left(&room).len(), 100);
}

#[test]
fn one_session_that_cannot_be_removed_does_not_keep_the_others() {
    let room = Room::files();
    for name in ["a", "b", "c"] {
        let id = room.session(name);
        room.root(&id).say(model("x")).unwrap();
        room.engine.complete(&id, None).unwrap();
    }
    let b = SessionId::new("b").unwrap();
    let held =
        room.engine.open(&b, &crate::engine::room::thread_id("root"), komado_store::OpenMode::Amend).unwrap();
    let cleaned = room.engine.cleanup(FAR, CleanupMode::Real, |_| {}).unwrap();
    assert_eq!(names(&cleaned), ["a", "c"]);
    assert_eq!(cleaned.failed.len(), 1);
    assert!(
        cleaned.failed[0].0 == "b" && cleaned.failed[0].1.contains("is being written"),
        "{:?}",
        cleaned.failed
    );
    drop(held);
    assert_eq!(names(&room.engine.cleanup(FAR, CleanupMode::Real, |_| {}).unwrap()), ["b"]);
}
