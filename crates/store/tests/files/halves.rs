//! `running` and `completed`: one rename apart, and put right when a process ended in between.

use crate::files::play::{NOW, said};
use crate::files::room::{Room, inode, json_lines, meta, same, sid, tid, walk};
use komado_core::journal::{Close, Ending, Entry};
use komado_core::session::State;
use komado_core::thread::Header;
use komado_core::{Role, ThreadId};
use komado_store::{Blobs, Error, Journal, OpenMode, SessionChange, SessionQuery, Store};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn enter(room: &Room, to: State) -> komado_store::Result<komado_core::session::Session> {
    room.store.change(&room.id, &SessionChange::State { to, at: NOW.into(), why: None })
}

fn close(room: &mut Room, ending: Ending) {
    let mut journal = room.write();
    room.say(&mut journal, Entry::Close(Close { ending, result: None }));
}

/// Names relative to `base`, with inodes.
fn census(base: &Path) -> Vec<(PathBuf, u64)> {
    let keep = |path: &PathBuf| !path.ends_with("lock");
    let found = walk(base).into_iter().filter(keep);
    found.map(|path| (path.strip_prefix(base).unwrap().to_owned(), inode(&path))).collect()
}

#[test]
fn a_session_moves_by_rename_alone_there_and_back() {
    let room = Room::with(41, 30);
    room.store.put_blob(&room.id, &mut &b"bytes"[..]).unwrap();
    drop(room.fork("fork", "root", 9));
    let (running, completed) = (room.base().join("running/s"), room.base().join("completed/s"));
    let before = census(&running);
    for _ in 0..2 {
        assert_eq!(enter(&room, State::Completed).unwrap().status, State::Completed);
        assert!(!running.exists());
        assert_eq!(census(&completed), before);
        assert!(matches!(room.open(OpenMode::Write), Err(Error::Ended(..))));
        same(&room.read(), &room.book);
        enter(&room, State::Failed).unwrap();
        assert_eq!(census(&completed), before, "one that has ended stays where it is");
        enter(&room, State::Running).unwrap();
        assert!(!completed.exists());
        assert_eq!(census(&running), before);
        enter(&room, State::Paused).unwrap();
        assert_eq!(census(&running), before);
    }
    same(&room.write(), &room.book);
}

#[test]
fn a_session_whose_last_word_came_before_its_move_is_moved_by_a_check() {
    for (ending, status) in
        [(Ending::Completed, "completed"), (Ending::Failed, "failed"), (Ending::Aborted, "stopped")]
    {
        let mut room = Room::with(42, 0);
        let mut journal = room.write();
        room.say(&mut journal, said(Role::User, "one"));
        drop(journal);
        close(&mut room, ending);
        let folder = inode(&room.path(""));
        room.store.check(&room.id).unwrap();
        assert!(room.base().join("completed/s").is_dir() && !room.base().join("running/s").exists());
        assert_eq!(inode(&room.path("")), folder);
        let findings = room.store.take_findings();
        assert_eq!(findings[0], "session s: its folder was moved to completed/, as its journal says");
        let changed = &findings[1];
        assert!(changed.starts_with("session s: the table said running,"), "{changed}");
        assert!(changed.contains(&format!(", it is {status}")), "{changed}");
        assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap()[0].status.name(), status);
        room.store.check(&room.id).unwrap();
        assert_eq!(room.store.take_findings(), [""; 0]);
        same(&room.read(), &room.book);
    }
}

#[test]
fn a_session_that_goes_on_is_moved_back_by_a_check() {
    let mut room = Room::new();
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "one"));
    drop(journal);
    enter(&room, State::Completed).unwrap();
    room.store.check(&room.id).unwrap();
    assert!(room.base().join("running/s").is_dir());
    assert!(
        room.store
            .take_findings()
            .contains(&"session s: its folder was moved to running/, as its journal says".into())
    );
    assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap()[0].status, State::Running);
    // Closed, then opened again: the rewind says that it goes on.
    close(&mut room, Ending::Completed);
    enter(&room, State::Completed).unwrap();
    room.store.check(&room.id).unwrap();
    assert_eq!(room.store.take_findings(), [""; 0]);
    enter(&room, State::Running).unwrap();
    let mut journal = room.write();
    room.say(&mut journal, Entry::Rewind { to: 1 });
    drop(journal);
    room.store.check(&room.id).unwrap();
    assert!(room.base().join("running/s").is_dir());
    // A pause ends nothing.
    close(&mut room, Ending::Paused);
    room.store.check(&room.id).unwrap();
    assert!(room.base().join("running/s").is_dir());
    assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap()[0].status, State::Paused);
}

#[test]
fn a_check_moves_nothing_while_someone_writes() {
    let mut room = Room::new();
    let mut journal = room.write();
    room.say(&mut journal, Entry::Close(Close { ending: Ending::Completed, result: None }));
    room.elsewhere().check(&room.id).unwrap();
    room.store.check(&room.id).unwrap();
    assert!(room.base().join("running/s").is_dir());
    drop(journal);
    room.elsewhere().check(&room.id).unwrap();
    assert!(room.base().join("completed/s").is_dir());
}

/// Puts files and folders where a process might have left them.
fn litter(room: &Room) -> Vec<PathBuf> {
    drop(room.fork("fork", "root", 0));
    let base = room.base();
    fs::create_dir_all(base.join("completed")).unwrap();
    let folders =
        ["running/.new-abc", "running/.gone-x.1", "completed/.gone-s.1", "running/s/threads/.new-q"];
    let files = [
        "running/s/outputs/.new-1",
        "running/s/messages.jsonl.new",
        "running/s/current.jsonl.new",
        "running/s/threads/fork/current.jsonl.new",
    ];
    for folder in folders {
        fs::create_dir(base.join(folder)).unwrap();
        fs::write(base.join(folder).join("messages.jsonl"), "left").unwrap();
    }
    for file in files {
        fs::write(base.join(file), "left").unwrap();
    }
    folders.iter().chain(&files).map(|name| base.join(name)).collect()
}

#[test]
fn what_was_left_behind_is_removed_by_a_check_and_told() {
    let room = Room::with(43, 5);
    let litter = litter(&room);
    assert!(litter.iter().all(|path| path.exists()));
    assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap().len(), 1);
    room.store.check_base().unwrap();
    room.store.check(&room.id).unwrap();
    for path in &litter {
        assert!(!path.exists(), "{}", path.display());
    }
    let told = room.store.take_findings();
    for path in &litter {
        assert!(
            told.contains(&format!("removed what an earlier run left behind: {}", path.display())),
            "{}",
            path.display()
        );
    }
    assert!(told[0].to_string().contains("left behind"));
    same(&room.read(), &room.book);
    room.store.check_base().unwrap();
    room.store.check(&room.id).unwrap();
    assert_eq!(room.store.take_findings(), [""; 0]);
}

#[test]
fn what_is_in_use_is_not_taken_for_left_behind() {
    let room = Room::with(44, 5);
    let litter = litter(&room);
    let held: Vec<File> = litter[..5]
        .iter()
        .map(|path| {
            let file = File::open(path).unwrap();
            file.lock().unwrap();
            file
        })
        .collect();
    let writer = room.write();
    room.store.check_base().unwrap();
    room.store.check(&room.id).unwrap();
    room.store.sweep(&room.id, &|_| true).unwrap();
    let is_gone =
        |path: &PathBuf| path.components().any(|c| c.as_os_str().to_string_lossy().starts_with(".gone-"));
    for path in &litter {
        assert_eq!(path.exists(), !is_gone(path), "{}", path.display());
    }
    drop((held, writer));
    room.store.sweep(&room.id, &|_| true).unwrap();
    assert!(!litter[4].exists(), "a blob that never came to its end");
}

#[test]
fn a_session_can_be_removed_and_made_again_where_an_earlier_one_was_left() {
    let room = Room::new();
    for name in [".gone-s.1", ".gone-s.2"] {
        fs::create_dir(room.base().join("running").join(name)).unwrap();
        fs::write(room.base().join("running").join(name).join("x"), "").unwrap();
    }
    room.store.remove(&room.id).unwrap();
    assert_eq!(room.store.folders().unwrap(), []);
    room.store.create(&meta("s")).unwrap();
    assert_eq!(room.store.folders().unwrap(), [sid("s")]);
    assert_eq!(json_lines(&room.path("messages.jsonl")).len(), 1);
}

#[test]
fn a_row_without_a_folder_goes_and_a_folder_without_a_row_gets_one() {
    let room = Room::with(45, 5);
    room.store.create(&meta("lost")).unwrap();
    fs::remove_dir_all(room.base().join("running/lost")).unwrap();
    let db = rusqlite::Connection::open(room.base().join("tasks.db")).unwrap();
    db.execute("DELETE FROM tasks WHERE uuid = 's'", []).unwrap();
    assert!(matches!(room.store.check(&sid("lost")), Err(Error::NoSession(_))));
    room.store.check_base().unwrap();
    room.store.check(&room.id).unwrap();
    let rows = room.store.sessions(&SessionQuery::default()).unwrap();
    assert_eq!(rows.iter().map(|row| row.meta.uuid.as_str()).collect::<Vec<_>>(), ["s"]);
    let told = room.store.take_findings();
    assert!(
        told.iter().any(|f| f.starts_with("session lost: the table said ") && f.ends_with(", it is gone"))
    );
    assert!(told.iter().any(|f| f.contains(": the table said nothing, it is ")));
    // A half that cannot be listed is not an empty one.
    fs::rename(room.base().join("running"), room.base().join("away")).unwrap();
    fs::write(room.base().join("running"), "").unwrap();
    assert!(room.store.rebuild().is_err() && room.store.check_base().is_err());
    assert_eq!(room.store.sessions(&SessionQuery::default()).unwrap().len(), 1);
}

#[test]
fn who_reads_a_session_reads_on_while_it_is_moved_and_removed() {
    let room = Room::with(46, 10);
    let reader = room.read();
    enter(&room, State::Completed).unwrap();
    same(&reader, &room.book);
    room.store.remove(&room.id).unwrap();
    same(&reader, &room.book);
    assert!(matches!(room.open(OpenMode::Read), Err(Error::NoSession(_))));
}

#[test]
fn opening_and_moving_at_once_ends_in_one_or_the_other() {
    let room = Room::with(47, 10);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let reader = room.store.open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap();
                    assert_eq!(Journal::last(&reader), 10);
                    match room.store.open_file(&room.id, &ThreadId::root(), OpenMode::Write) {
                        Ok(writer) => assert_eq!(Journal::last(&writer), 10),
                        Err(Error::Busy { .. } | Error::Ended(..)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        scope.spawn(|| {
            for n in 0..100u32 {
                let thread = tid(&format!("t{n}"));
                let header = Header { thread, ..Header::root(room.id.clone(), NOW) };
                // Whole or not at all, however often it takes.
                while let Err(error) = room.store.spawn(&header) {
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                }
                match room.store.put_blob(&room.id, &mut &n.to_le_bytes()[..]) {
                    Ok(blob) => drop(room.store.blob(&room.id, &blob.id).unwrap()),
                    Err(Error::Io { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        for n in 0..60 {
            let to = if n % 2 == 0 { State::Completed } else { State::Running };
            match enter(&room, to) {
                Ok(_) | Err(Error::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let halves = ["running/s", "completed/s"].map(|half| room.base().join(half).exists());
    assert!(halves[0] != halves[1], "no folder was begun again where it had been");
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 101);
    same(&room.read(), &room.book);
}

/// Ends the session while its bytes are read.
struct Leaving<'a>(&'a Room, &'static [u8]);

impl std::io::Read for Leaving<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        enter(self.0, State::Completed).unwrap();
        self.1.read(to)
    }
}

#[test]
fn a_blob_of_a_session_that_was_moved_meanwhile_is_refused_and_leaves_nothing() {
    let room = Room::with(48, 3);
    assert!(matches!(room.store.put_blob(&room.id, &mut Leaving(&room, b"bytes")), Err(Error::Io { .. })));
    assert!(!room.base().join("running/s").exists());
    room.store.sweep(&room.id, &|_| true).unwrap();
    assert_eq!(fs::read_dir(room.path("outputs")).unwrap().count(), 0);
    assert_eq!(room.store.put_blob(&room.id, &mut &b"bytes"[..]).unwrap().byte_size, 5);
}
