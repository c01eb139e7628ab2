//! A session as one stream, and back: the same bytes, wherever it went.

use crate::engine::family;
use crate::engine::room::{Room, everywhere, meta, result, thread_id, user, words};
use crate::engine::story::tell;
use komado_core::SessionId;
use komado_core::journal::Entry;
use komado_core::message::{MessagePart, OutputRef, Role, ToolOutcome};
use komado_core::session::State;
use komado_core::thread::{Branch, Header, Moment};
use komado_store::BranchFilter;
use std::io::Read;

/// The session as an export.
pub(crate) fn export(room: &Room, id: &SessionId) -> Vec<u8> {
    let mut out = Vec::new();
    room.engine.export(id, &mut out, |_| {}).unwrap();
    out
}

fn import(room: &Room, bytes: &[u8], name: Option<&str>) -> SessionId {
    let name = name.map(|name| SessionId::new(name).unwrap());
    room.engine.import(&mut &bytes[..], name, |_| {}).unwrap()
}

/// Brings a session to some end.
type End = fn(&Room, &SessionId);

/// All that can be asked of a session, in every thread.
fn everything(room: &Room, id: &SessionId) -> Vec<String> {
    let session = room.engine.session(id).unwrap();
    let mut all = vec![format!(
        "{:?} {:?} {:?} {:?} {:?}",
        session.meta, session.status, session.completed_at, session.error_message, session.counters
    )];
    for header in room.engine.store().threads(id).unwrap() {
        let thread = room.look(id, header.thread.as_str());
        all.push(format!("{header:?} {} {:?}", thread.last(), thread.view()));
        all.extend(words(&thread));
    }
    let mut blobs: Vec<String> = room.engine.named_blobs(id).unwrap().into_iter().collect();
    blobs.sort();
    for blob in blobs {
        let mut bytes = Vec::new();
        room.engine.store().blob(id, &blob).unwrap().read_to_end(&mut bytes).unwrap();
        all.push(format!("{blob} {} {:?}", bytes.len(), bytes.first()));
    }
    all
}

#[test]
fn an_export_goes_from_store_to_store_and_comes_back_as_the_same_bytes() {
    let ends: [(&str, End); 6] = [
        ("running", |_, _| {}),
        ("paused", |room, id| drop(room.engine.pause(id, Some("昼".into())).unwrap())),
        ("completed", |room, id| drop(room.engine.complete(id, Some("done".into())).unwrap())),
        ("failed", |room, id| drop(room.engine.fail(id, "no space").unwrap())),
        ("stopped", |room, id| drop(room.engine.stop(id, Some("enough".into())).unwrap())),
        ("resumed", |room, id| {
            room.engine.fail(id, "no space").unwrap();
            room.engine.resume(id).unwrap();
        }),
    ];
    let (first, memory, files) = (Room::files(), Room::memory(), Room::files());
    for (name, end) in ends {
        let id = tell(&first, name);
        end(&first, &id);
        let bytes = export(&first, &id);
        for room in [&memory, &files] {
            assert_eq!(import(room, &bytes, None), id);
            assert_eq!(everything(room, &id), everything(&first, &id), "{name}");
            assert!(export(room, &id) == bytes, "{name}: other bytes");
        }
        let state = State::named(name).unwrap_or(State::Running);
        assert_eq!(files.engine.session(&id).unwrap().status, state);
        let half = if state.is_ended() { "completed" } else { "running" };
        assert_eq!(files.folder(&id), files.base().join(half).join(name));
    }
}

#[test]
fn what_waits_in_a_queue_waits_after_the_journey_too() {
    everywhere(|room| {
        let mut meta = meta("q", "2024-01-15T10:00:00Z");
        meta.queued = true;
        let id = room.engine.create(&meta).unwrap();
        let bytes = export(room, &id);
        let other = Room::memory();
        import(&other, &bytes, None);
        assert_eq!(other.engine.session(&id).unwrap().status, State::Queued);
        assert_eq!(export(&other, &id), bytes);
    });
}

#[test]
fn an_import_can_take_another_name_and_a_taken_one_is_refused() {
    everywhere(|room| {
        let id = tell(room, "s");
        let bytes = export(room, &id);
        let before = everything(room, &id);
        let why = room.engine.import(&mut &bytes[..], None, |_| {}).unwrap_err().to_string();
        assert!(why.contains("session s exists already"), "{why}");
        assert_eq!(everything(room, &id), before);
        let copy = import(room, &bytes, Some("copy"));
        assert_eq!(copy.as_str(), "copy");
        let back = String::from_utf8(export(room, &copy)).unwrap();
        let of = |text: &str| {
            text.lines().filter(|l| !l.starts_with("{\"end\"")).map(str::to_owned).collect::<Vec<_>>()
        };
        let renamed = String::from_utf8(bytes).unwrap().replace("\"uuid\":\"s\"", "\"uuid\":\"copy\"");
        assert_eq!(of(&back), of(&renamed.replace("\"session\":\"s\"", "\"session\":\"copy\"")));
    });
}

#[test]
fn the_one_who_waits_is_told_how_far_it_is() {
    let room = Room::memory();
    let id = tell(&room, "s");
    let mut bytes = Vec::new();
    let mut written = Vec::new();
    room.engine.export(&id, &mut bytes, |n| written.push(n)).unwrap();
    assert_eq!(written, (1..=written.len() as u64).collect::<Vec<_>>());
    let mut read = Vec::new();
    Room::memory().engine.import(&mut &bytes[..], None, |n| read.push(n)).unwrap();
    assert!(read.is_sorted() && !read.is_empty());
}

#[test]
fn a_fork_travels_even_when_the_clock_said_it_is_older_than_its_base() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("one")).unwrap();
        drop(root);
        for (name, base, timestamp) in
            [("young", "root", "2024-03-01T00:00:00Z"), ("a", "young", "2024-02-01T00:00:00Z")]
        {
            let base = Some(Moment { thread: thread_id(base), seq: 1 });
            let header = Header { thread: thread_id(name), base, ..Header::root(id.clone(), timestamp) };
            room.engine.store().spawn(&header).unwrap();
        }
        room.thread(&id, "a").say(user("two")).unwrap();
        let bytes = export(room, &id);
        let other = Room::files();
        import(&other, &bytes, None);
        assert_eq!(words(&other.look(&id, "a")), ["user: one", "user: two"]);
        assert_eq!(export(&other, &id), bytes);
    });
}

#[test]
fn an_output_that_was_never_here_does_not_keep_a_session_from_leaving() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(crate::engine::room::calls(vec![crate::engine::room::call("a", "read", "{}")])).unwrap();
        let output_ref = Some(OutputRef { id: "elsewhere.txt".into(), byte_size: None, line_count: None });
        let outcome = ToolOutcome { output_ref, ..crate::engine::room::outcome("a", None, "head") };
        root.say(komado_core::Message::of(Role::Tool, vec![MessagePart::Result(outcome)])).unwrap();
        root.say(user("go on")).unwrap();
        drop(root);
        let bytes = export(room, &id);
        let other = Room::memory();
        import(&other, &bytes, None);
        assert_eq!(export(&other, &id), bytes);
    });
}

#[test]
fn an_interrupted_call_travels_as_what_it_is() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(crate::engine::room::calls(vec![
        crate::engine::room::call("", "read", "{}"),
        crate::engine::room::call("", "ls", "{}"),
    ]))
    .unwrap();
    root.say(result("call_1_0", "ok")).unwrap();
    root.say(user("stop")).unwrap();
    drop(root);
    let other = Room::files();
    import(&other, &export(&room, &id), None);
    let root = other.look(&id, "root");
    let Entry::Message(message, _) = root.record(3).unwrap().entry else { panic!() };
    assert!(message.outcome().unwrap().interrupted);
}

/// The rows of a session's threads; whether a parent was told is found out by who opens it.
fn rows(room: &Room, id: &SessionId) -> Vec<Branch> {
    let rows = room.engine.store().branches(id, BranchFilter::All).unwrap();
    rows.into_iter().map(|row| Branch { told: false, ..row }).collect()
}

#[test]
fn threads_below_threads_travel_whole_with_their_rows_and_the_words_that_wait() {
    let (first, memory, files) = (Room::files(), Room::memory(), Room::files());
    let id = family::tell(&first, "s");
    let bytes = export(&first, &id);
    for room in [&memory, &files] {
        assert_eq!(import(room, &bytes, None), id);
        assert_eq!(everything(room, &id), everything(&first, &id));
        assert!(export(room, &id) == bytes, "other bytes");
        assert_eq!(rows(room, &id), rows(&first, &id));
        let shape: Vec<_> = rows(room, &id).iter().map(|row| (row.thread.to_string(), row.depth)).collect();
        assert_eq!(shape, [("stelis_1".into(), 1), ("stelis_2".into(), 1), ("stelis_1_1".into(), 2)]);
        assert!(room.engine.store().branches(&id, BranchFilter::All).unwrap().iter().all(|row| !row.told));
        let waits = |room: &Room, name: &str| room.engine.store().mail(&id, &thread_id(name)).unwrap();
        assert_eq!(waits(room, "stelis_2"), waits(&first, "stelis_2"));
        assert_eq!((waits(room, "stelis_2").len(), waits(room, "stelis_1").len()), (1, 0));
        let seen = words(&room.look(&id, "stelis_1_1"));
        assert!(seen.iter().any(|said| said.contains("make calculator_v2")), "{seen:?}");
    }
    let copy = import(&memory, &bytes, Some("copy"));
    assert!(rows(&memory, &copy).iter().all(|row| row.session == copy));
}
