//! One process writes a session at a time, and who repairs is in nobody's way for long.

use crate::files::play::said;
use crate::files::room::{Room, same, sid, tid};
use komado_core::session::State;
use komado_core::{Role, ThreadId};
use komado_store::{Error, FileStore, Holder, Journal, OpenMode, SessionChange, Store};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

fn other(room: &Room, pid: u32) -> FileStore {
    let (host, program, since) = ("far".into(), "komado task work".into(), "2024-01-15".into());
    FileStore::new(&room.base(), Holder { pid, host, program, since })
}

fn holder(error: Option<Error>) -> Holder {
    match error {
        Some(Error::Busy { holder, .. }) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_second_process_is_told_who_the_first_is_whatever_thread_it_wants() {
    let room = Room::with(51, 5);
    drop(room.fork("fork", "root", 3));
    let (a, b) = (other(&room, 11), other(&room, 22));
    let root = ThreadId::root();
    let writer = a.open_file(&room.id, &root, OpenMode::Write).unwrap();
    for thread in [&root, &tid("fork")] {
        let found = holder(b.open_file(&room.id, thread, OpenMode::Write).err());
        assert_eq!((found.pid, found.host.as_str(), found.program.as_str()), (11, "far", "komado task work"));
        let text = b.open_file(&room.id, thread, OpenMode::Amend).err().unwrap().to_string();
        assert!(text.contains("process 11 (komado task work) on far since 2024-01-15"), "{text}");
    }
    assert_eq!(holder(b.remove(&room.id).err()).pid, 11);
    let end = SessionChange::State { to: State::Stopped, at: "t".into(), why: None };
    assert_eq!(holder(b.change(&room.id, &end).err()).pid, 11);
    // The first may have as many threads open as it likes, and holds the session until the last is closed.
    let second = a.open_file(&room.id, &tid("fork"), OpenMode::Write).unwrap();
    drop(writer);
    assert_eq!(holder(b.open_file(&room.id, &root, OpenMode::Write).err()).pid, 11);
    drop(second);
    let writer = b.open_file(&room.id, &root, OpenMode::Write).unwrap();
    assert_eq!(holder(a.open_file(&room.id, &root, OpenMode::Write).err()).pid, 22);
    drop(writer);
    b.change(&room.id, &end).unwrap();
}

#[test]
fn what_stands_in_the_lock_file_is_only_for_people() {
    let room = Room::with(52, 3);
    for text in ["", "garbage", "{\"pid\":1}", &"x".repeat(100_000)] {
        fs::write(room.path("lock"), text).unwrap();
        let writer = room.write();
        assert_eq!(
            holder(other(&room, 9).open_file(&room.id, &ThreadId::root(), OpenMode::Write).err()).program,
            "the tests"
        );
        // Spoilt while it is held, it still holds.
        fs::write(room.path("lock"), text).unwrap();
        holder(other(&room, 9).open_file(&room.id, &ThreadId::root(), OpenMode::Write).err());
        drop(writer);
    }
}

#[test]
fn a_writer_that_comes_after_the_last_one_has_gone_is_never_refused() {
    let room = Room::with(53, 3);
    let turn = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let turn = turn.lock().unwrap();
                    drop(room.store.open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap());
                    drop(turn);
                }
            });
        }
    });
}

/// A store that stops in the middle of reading a journal until it is told to go on.
fn slow(room: &Room) -> (FileStore, Arc<Barrier>, Arc<Barrier>) {
    let (there, on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (first, barriers) = (Mutex::new(true), (Arc::clone(&there), Arc::clone(&on)));
    let progress = move |_: u64, _: u64| {
        if std::mem::take(&mut *first.lock().unwrap()) {
            barriers.0.wait();
            barriers.1.wait();
        }
    };
    (other(room, 33).with_progress(Arc::new(progress)), there, on)
}

#[test]
fn who_writes_waits_for_who_repairs_in_the_same_process() {
    let mut room = Room::with(54, 40);
    fs::remove_file(room.path("index")).unwrap();
    let (store, there, on) = slow(&room);
    let (done, came) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(store.open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap()));
        there.wait();
        scope.spawn(|| {
            let writer = store.open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap();
            done.send(Journal::last(&writer)).unwrap();
        });
        assert!(came.recv_timeout(Duration::from_millis(100)).is_err(), "it waits");
        // Another reader does not.
        same(&room.store.open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap(), &room.book);
        on.wait();
        assert_eq!(came.recv_timeout(Duration::from_secs(20)).unwrap(), 40);
    });
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "on"));
    same(&journal, &room.book);
}

#[test]
fn who_looks_while_a_writer_makes_the_index_again_sees_everything() {
    let room = Room::with(55, 40);
    fs::remove_file(room.path("index")).unwrap();
    let (store, there, on) = slow(&room);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            same(&store.open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap(), &room.book)
        });
        there.wait();
        same(&room.read(), &room.book);
        on.wait();
    });
}

#[test]
fn leases_of_sessions_that_were_closed_are_forgotten() {
    let room = Room::new();
    for n in 0..50 {
        let id = format!("s{n}");
        room.store.create(&crate::files::room::meta(&id)).unwrap();
        drop(room.store.open_file(&sid(&id), &ThreadId::root(), OpenMode::Write).unwrap());
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let base = room.base();
    let held: Vec<_> =
        open.filter(|path| path.starts_with(&base) && !path.to_string_lossy().contains("tasks.db")).collect();
    assert_eq!(held, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_child_process_that_is_just_being_started_keeps_no_lock() {
    let room = Room::with(56, 3);
    let writer = room.write();
    // The child says that it was forked, and goes on to its program when it is told to.
    let ((mut forked, there), (mut on, mut go)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut child = Command::new("true");
            // SAFETY: between fork and exec this only reads and writes a byte.
            unsafe {
                child.pre_exec(move || {
                    (&there).write_all(b".")?;
                    on.read_exact(&mut [0])
                });
            }
            assert!(child.status().unwrap().success());
        });
        forked.read_exact(&mut [0]).unwrap();
        drop(writer);
        drop(room.elsewhere().open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap());
        room.store.remove(&room.id).unwrap();
        go.write_all(b".").unwrap();
    });
}
