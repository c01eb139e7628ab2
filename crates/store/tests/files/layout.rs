//! Names and permissions: what people find with `ls`, and what nobody else may read.

use crate::files::play::{self, NOW, said};
use crate::files::room::{Room, json_lines, sid, tid, walk};
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, MessagePart};
use komado_core::session::{Meta, State};
use komado_core::thread::{Header, Moment};
use komado_core::{Message, Role, SessionId, ThreadId};
use komado_store::{Blobs, Error, Journal, OpenMode, SessionChange, SessionQuery, Store};
use komado_testkit::Book;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A session with a child, a fork, a blob, and everything settled.
fn furnished() -> Room {
    let mut room = Room::with(11, 20);
    let mut journal = room.write();
    room.store.put_blob(&room.id, &mut &b"output"[..]).unwrap();
    journal.settle(room.book.view()).unwrap();
    let parent = Some(Moment { thread: ThreadId::root(), seq: 1 });
    let child = Header { thread: tid("child"), parent, ..Header::root(room.id.clone(), NOW) };
    room.store.spawn(&child).unwrap();
    let mut child = room.store.open_file(&room.id, &tid("child"), OpenMode::Write).unwrap();
    let mut book = Book::default();
    play::write(&mut book, &mut child, said(Role::User, "hello"), 2);
    child.settle(book.view()).unwrap();
    let mut fork = room.fork("fork", "root", 5);
    let book = room.book.fork(5);
    fork.settle(book.view()).unwrap();
    drop((journal, child, fork));
    room.book = book;
    room
}

#[test]
fn folders_and_files_have_the_names_people_know() {
    let room = furnished();
    let blob = blake3::hash(b"output").to_hex()[..32].to_owned();
    let names = |base: &std::path::Path| -> Vec<String> {
        let found = walk(base);
        let names =
            found.iter().skip(1).map(|path| path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
        names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect()
    };
    let thread = ["current.jsonl", "index", "messages.jsonl", "summaries.jsonl", "tools.jsonl"];
    let mut expect = vec!["running".into(), "running/s".into(), "tasks.db".into()];
    let own = ["lock", "metadata.json", "outputs", "threads", &format!("outputs/{blob}")];
    expect.extend(thread.iter().chain(&own.map(|name| name as _)).map(|name| format!("running/s/{name}")));
    for name in ["child", "fork"] {
        expect.push(format!("running/s/threads/{name}"));
        expect.extend(thread.map(|file| format!("running/s/threads/{name}/{file}")));
    }
    expect.sort();
    let mut found = names(&room.base());
    found.sort();
    assert_eq!(found, expect);
    let end = SessionChange::State { to: State::Completed, at: NOW.into(), why: None };
    room.store.change(&room.id, &end).unwrap();
    let mut found: Vec<String> = names(&room.base()).into_iter().filter(|name| name.contains("/s")).collect();
    found.sort();
    let moved: Vec<String> = expect.iter().map(|name| name.replace("running/s", "completed/s")).collect();
    assert_eq!(found, moved.into_iter().filter(|name| name.contains("/s")).collect::<Vec<_>>());
}

#[test]
fn a_new_session_has_its_files_before_anything_is_said() {
    let room = Room::new();
    let metadata: Meta = serde_json::from_slice(&fs::read(room.path("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata, crate::files::room::meta("s"));
    let text = fs::read_to_string(room.path("metadata.json")).unwrap();
    assert!(text.starts_with("{\n") && text.ends_with("}\n") && !text.contains("queued"), "{text}");
    let lines = json_lines(&room.path("messages.jsonl"));
    assert_eq!((lines.len(), &lines[0]["op"], &lines[0]["version"]), (1, &"journal".into(), &1.into()));
    assert_eq!((&lines[0]["session"], &lines[0]["thread"]), (&"s".into(), &"root".into()));
    for name in ["current.jsonl", "summaries.jsonl", "tools.jsonl"] {
        assert_eq!(fs::read(room.path(name)).unwrap(), b"");
    }
    assert!(room.path("outputs").is_dir());
    // A reader needs nothing repaired, so it is in nobody's way.
    assert_eq!(Journal::last(&room.read()), 0);
    assert!(!room.path("lock").exists());
}

#[test]
fn nobody_else_may_read_anything() {
    let room = furnished();
    // Held open, so that the table's own files are there, too.
    let _journal = room.write();
    room.store.sessions(&SessionQuery::default()).unwrap();
    assert!(room.base().join("tasks.db-wal").exists());
    let found = walk(&room.base());
    assert!(found.len() > 20);
    for path in found {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn an_id_leads_to_no_other_folder() {
    let room = Room::new();
    fs::write(room.base().join("secret"), "secret").unwrap();
    for id in ["../s", "..", ".", "s/../s", "running/s", "s/", "/s", ".new-x", ".gone-s.1", "s\0"] {
        assert!(SessionId::new(id).is_err(), "{id:?}");
        assert!(ThreadId::new(id).is_err(), "{id:?}");
        let bad = Meta { uuid: id.into(), ..crate::files::room::meta("x") };
        assert!(room.store.create(&bad).is_err(), "{id:?}");
        assert!(matches!(room.store.blob(&room.id, id), Err(Error::NoBlob(..))), "{id:?}");
    }
    assert!(matches!(room.store.blob(&room.id, "../../../secret"), Err(Error::NoBlob(..))));
    assert_eq!(room.store.folders().unwrap(), [sid("s")]);
}

#[test]
fn an_image_that_names_a_file_elsewhere_shows_nothing_of_it() {
    let mut room = Room::new();
    fs::write(room.base().join("secret"), "secret").unwrap();
    let mut journal = room.write();
    let source = ImageSource::Blob {
        blob: "../../../secret".into(),
        media_type: "image/png".into(),
        byte_size: 6,
        pixels: None,
    };
    let message = Message::of(Role::User, vec![MessagePart::Image { source, detail: None }]);
    room.say(&mut journal, Entry::Message(message, None));
    let error = journal.settle(room.book.view()).unwrap_err();
    assert!(error.to_string().contains("there is no output"), "{error}");
    let shown = walk(&room.base()).into_iter().filter(|path| path.is_file() && !path.ends_with("secret"));
    for path in shown {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(8).any(|w| w == b"c2VjcmV0"), "{}", path.display());
    }
}

#[test]
fn what_is_unfinished_or_left_behind_is_no_session_and_no_thread() {
    let room = furnished();
    for name in [".new-abc", ".gone-s.1", "no folder"] {
        fs::create_dir(room.base().join("running").join(name)).unwrap();
        fs::create_dir(room.path("threads").join(name)).unwrap();
    }
    fs::write(room.base().join("running/file"), "").unwrap();
    assert_eq!(room.store.folders().unwrap(), [sid("s")]);
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 3);
    assert_eq!(room.store.rebuild().unwrap().sessions, 1);
    assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap().len(), 1);
}

#[test]
fn a_copied_folder_is_not_taken_for_another_session() {
    let room = furnished();
    let copy = room.base().join("running/copy");
    fs::create_dir(&copy).unwrap();
    for name in ["messages.jsonl", "metadata.json"] {
        fs::copy(room.path(name), copy.join(name)).unwrap();
    }
    let error =
        room.store.open_file(&sid("copy"), &ThreadId::root(), OpenMode::Write).err().unwrap().to_string();
    assert!(error.contains("copy/messages.jsonl") && error.contains("s/root"), "{error}");
    let name = room.path("threads/fork2");
    fs::create_dir(&name).unwrap();
    fs::copy(room.path("threads/fork/messages.jsonl"), name.join("messages.jsonl")).unwrap();
    let error = room.store.open_file(&room.id, &tid("fork2"), OpenMode::Read).err().unwrap().to_string();
    assert!(error.contains("s/fork"), "{error}");
}

#[test]
fn forks_that_go_round_in_a_circle_are_told_so() {
    let room = Room::new();
    for (name, base) in [("a", "b"), ("b", "a")] {
        let folder = room.path("threads").join(name);
        fs::create_dir_all(&folder).unwrap();
        let base = Some(Moment { thread: tid(base), seq: 0 });
        let header = Header { thread: tid(name), base, ..Header::root(room.id.clone(), NOW) };
        fs::write(folder.join("messages.jsonl"), header.encode()).unwrap();
    }
    for mode in [OpenMode::Read, OpenMode::Write] {
        let error = room.store.open_file(&room.id, &tid("a"), mode).err().unwrap();
        assert!(error.to_string().contains("circle"), "{error}");
    }
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 3);
}

#[test]
fn many_forks_stand_on_one_another() {
    let mut room = Room::new();
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "one"));
    drop(journal);
    let mut parent = "root".to_owned();
    for n in 2..=120u32 {
        let name = format!("f{n}");
        let mut fork = room.fork(&name, &parent, n - 1);
        room.say(&mut fork, said(Role::User, "one more"));
        parent = name;
    }
    let last = room.store.open_file(&room.id, &tid(&parent), OpenMode::Read).unwrap();
    crate::files::room::same(&last, &room.book);
}
