//! What happens when the system refuses: a full disk, and a folder that may only be read.
//!
//! Both run in a child process, which is this test binary again, with the test's own name. The full disk is a limit on
//! the size of files, which needs no rights: the system refuses the same calls as a full disk does, with another
//! number. The folder is read by another user when the tests run as root, because root may write everywhere.

use crate::files::play::{self, said};
use crate::files::room::{Room, open_store, same, sid, tid, walk};
use komado_core::session::{Counters, State};
use komado_core::{Role, ThreadId};
use komado_store::files::FileJournal;
use komado_store::{
    Blobs, BranchFilter, BranchTable, Error, FileStore, Journal, OpenMode, SessionChange, SessionQuery,
    Store, ThreadMail,
};
use komado_testkit::Book;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the child finds the store.
const BASE: &str = "KOMADO_TEST_BASE";
const NOBODY: u32 = 65534;

fn base() -> Option<PathBuf> {
    std::env::var_os(BASE).map(PathBuf::from)
}

/// Limits the size of files; `None` for no limit.
fn limit(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
}

fn refused<T>(result: komado_store::Result<T>) -> String {
    match result {
        Err(error @ Error::Io { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was to be refused"),
    }
}

fn message(n: usize) -> komado_core::Entry {
    said(if n.is_multiple_of(2) { Role::User } else { Role::Assistant }, &"窓 ".repeat(15_000))
}

#[test]
fn a_full_disk_loses_nothing_and_is_told() {
    if let Some(base) = base() {
        return on_a_full_disk(&open_store(&base), &base);
    }
    let room = Room::new();
    // The signal that comes with the refusal is ignored, as a real full disk sends none.
    let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut child = Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "files::limits::a_full_disk_loses_nothing_and_is_told", "--nocapture"]);
    let output = child.env(BASE, room.base()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert!(Journal::last(&room.read()) > 20);
}

fn on_a_full_disk(store: &FileStore, base: &Path) {
    let id = sid("s");
    let mut book = Book::default();
    let mut journal = store.open_file(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    fill_up(&mut journal, &mut book, &base.join("running/s/messages.jsonl"));
    journal.settle(book.view()).unwrap();
    drop(journal);
    same(&store.open_file(&id, &ThreadId::root(), OpenMode::Write).unwrap(), &book);

    // No room for the index: nothing can be written, everything read.
    limit(Some(100_000));
    let text = refused(store.open_file(&id, &ThreadId::root(), OpenMode::Write));
    assert!(text.contains("index") && text.contains("nothing was lost"), "{text}");
    same(&store.open_file(&id, &ThreadId::root(), OpenMode::Read).unwrap(), &book);
    fs::remove_file(base.join("running/s/index")).unwrap();
    same(&store.open_file(&id, &ThreadId::root(), OpenMode::Read).unwrap(), &book);

    // No room for a blob, a session or a thread: nothing of it is left.
    let before = walk(base).len();
    let text = refused(store.put_blob(&id, &mut &vec![1; 200_000][..]));
    assert!(text.contains("nothing was lost"), "{text}");
    limit(Some(100));
    refused(store.create(&crate::files::room::meta("new")));
    let header = komado_core::thread::Header {
        thread: tid("t"),
        ..komado_core::thread::Header::root(id.clone(), "t")
    };
    refused(store.spawn(&header));
    limit(None);
    fs::remove_dir(base.join("running/s/threads")).unwrap();
    assert_eq!(walk(base).len(), before);
    store.create(&crate::files::room::meta("new")).unwrap();
    store.spawn(&header).unwrap();
    assert_eq!(store.put_blob(&id, &mut &vec![1; 200_000][..]).unwrap().byte_size, 200_000);
    same(&store.open_file(&id, &ThreadId::root(), OpenMode::Write).unwrap(), &book);
    store.remove(&sid("new")).unwrap();
}

/// Appends until there is no more room, and then goes on.
fn fill_up(journal: &mut FileJournal, book: &mut Book, path: &Path) {
    limit(Some(2_000_000));
    let row = |book: &Book| play::rows(book, book.view().last() - 1);
    let (size, rows) = loop {
        let size = fs::metadata(path).unwrap().len();
        let mut next = book.clone();
        next.push(message(next.view().last() as usize), 9, play::NOW).unwrap();
        match journal.append(book.view().last(), &row(&next)) {
            Ok(()) => *book = next,
            Err(error) => {
                let text = refused::<()>(Err(error));
                assert!(text.contains("messages.jsonl") && text.contains("nothing was lost"), "{text}");
                break (size, row(&next));
            }
        }
    };
    assert!(size > 1_900_000);
    assert_eq!(fs::metadata(path).unwrap().len(), size);
    same(journal, book);
    // What fits is taken; of what does not fit all at once, nothing.
    play::write(book, journal, said(Role::User, "short"), 1);
    let (size, mut many) = (fs::metadata(path).unwrap().len(), book.clone());
    many.push(said(Role::User, "short"), 1, play::NOW).unwrap();
    many.push(message(0), 9, play::NOW).unwrap();
    refused(journal.append(book.view().last(), &play::rows(&many, book.view().last())));
    assert_eq!(fs::metadata(path).unwrap().len(), size);
    same(journal, book);
    // The view is as large as the journal; without room for it, it waits.
    limit(Some(1_500_000));
    refused(journal.settle(book.view()));
    limit(None);
    journal.append(book.view().last(), &play::rows(&many, book.view().last())).unwrap();
    *book = many;
    same(journal, book);
    assert_eq!(rows.len(), 1);
}

/// Makes everything under `path` readable only, and hands it to whom the child will be.
fn lock_up(path: &Path, owner: Option<u32>) {
    for path in walk(path) {
        let mode = if path.is_dir() { 0o500 } else { 0o400 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        if owner.is_some() {
            chown(&path, owner, owner).unwrap();
        }
    }
}

fn unlock(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            unlock(&entry.unwrap().path());
        }
    }
}

#[test]
fn a_folder_that_may_only_be_read_can_be_read() {
    if let Some(base) = base() {
        return in_a_locked_folder(&open_store(&base), &base);
    }
    let mut room = Room::with(61, 30);
    room.store.put_blob(&room.id, &mut &b"bytes"[..]).unwrap();
    drop(room.fork("fork", "root", 7));
    room.store.create(&crate::files::room::meta("grown")).unwrap();
    let book = std::mem::take(&mut room.book);
    room.id = sid("grown");
    room.line(2, "話");
    (room.id, room.book) = (sid("s"), book);
    // One whose index is gone, one whose last line is torn.
    for id in ["gone", "torn"] {
        room.store.create(&crate::files::room::meta(id)).unwrap();
        let mut journal = room.store.open_file(&sid(id), &ThreadId::root(), OpenMode::Write).unwrap();
        journal.append(0, &play::rows(&room.book, 0)).unwrap();
    }
    let running = room.base().join("running");
    fs::remove_file(running.join("gone/index")).unwrap();
    let torn = running.join("torn/messages.jsonl");
    fs::write(&torn, [&fs::read(&torn).unwrap()[..], b"{\"seq\":31,"].concat()).unwrap();
    let base = room.base();
    drop(room.store);
    let root = rustix::process::getuid().is_root();
    // Another user must be able to reach the binary.
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    for path in [dir.path(), base.parent().unwrap()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    for tables in ["kept", "away"] {
        if tables == "away" {
            unlock(&base);
            fs::remove_file(base.join("tasks.db")).unwrap();
        }
        lock_up(&base, root.then_some(NOBODY));
        let mut child = Command::new(&binary);
        child.args(["--exact", "files::limits::a_folder_that_may_only_be_read_can_be_read", "--nocapture"]);
        child.env(BASE, &base).current_dir(dir.path());
        if root {
            child.gid(NOBODY).uid(NOBODY);
        }
        let output = child.output().unwrap();
        unlock(&base);
        assert!(output.status.success(), "{tables}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
}

fn in_a_locked_folder(store: &FileStore, base: &Path) {
    let (id, root) = (sid("s"), ThreadId::root());
    assert!(fs::write(base.join("x"), "").is_err(), "the folder was to be locked");
    let book = play::book(61, 30);
    for id in ["s", "gone", "torn"] {
        same(&store.open_file(&sid(id), &root, OpenMode::Read).unwrap(), &book);
    }
    same(&store.open_file(&id, &tid("fork"), OpenMode::Read).unwrap(), &book.fork(7));
    assert_eq!(store.threads(&id).unwrap().len(), 2);
    let rows = store.sessions(&SessionQuery::default()).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.meta.uuid.as_str()).collect::<Vec<_>>(),
        ["gone", "grown", "s", "torn"]
    );
    // Nobody put the rows of spawned threads into the table that is there; they are what the journals say.
    let branches = store.branches(&sid("grown"), BranchFilter::All).unwrap();
    assert_eq!(branches.iter().map(|row| row.depth).collect::<Vec<_>>(), [1, 2]);
    let child = store.open_file(&sid("grown"), &tid("stelis_1_1"), OpenMode::Read).unwrap();
    assert_eq!(child.above(&tid("stelis_1")).unwrap().last(), 2);
    let blob = blake3::hash(b"bytes").to_hex()[..32].to_owned();
    assert!(store.blob(&id, &blob).is_ok());
    crate::files::shelf::can_be_filled_and_searched(store, &id);

    let count = SessionChange::Count { by: Counters::default(), at: "t".into() };
    let end = SessionChange::State { to: State::Completed, at: "t".into(), why: None };
    let header = komado_core::thread::Header {
        thread: tid("t"),
        ..komado_core::thread::Header::root(id.clone(), "t")
    };
    for (what, text) in [
        ("open", refused(store.open_file(&id, &root, OpenMode::Write))),
        ("amend", refused(store.open_file(&id, &root, OpenMode::Amend))),
        ("create", refused(store.create(&crate::files::room::meta("new")))),
        ("spawn", refused(store.spawn(&header))),
        ("put", refused(store.put_blob(&id, &mut &b"more"[..]))),
        ("count", refused(store.change(&id, &count))),
        ("end", refused(store.change(&id, &end))),
        ("remove", refused(store.remove(&id))),
        ("sweep", refused(store.sweep(&id, &|_| false))),
        ("branch", refused(store.put_branch(&branches[0]))),
        ("post", refused(store.post(&id, &root, &ThreadMail { from: tid("fork"), seq: 1 }))),
    ] {
        assert!(text.contains("nothing was changed") && text.contains("--base-dir"), "{what}: {text}");
    }
    same(&store.open_file(&id, &root, OpenMode::Read).unwrap(), &book);
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), rows);
}
