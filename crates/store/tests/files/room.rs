//! A file store in a folder of its own, with one session.

use crate::files::play::{self, said};
use crate::files::shares::{share, slice};
use komado_core::journal::{Cause, Edit, EditKind, Entry, Show, ShowKind};
use komado_core::message::{Call, CallKind, MessagePart};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::thread::{Header, Moment};
use komado_core::{Message, Role, Seq, SessionId, Span, ThreadId};
use komado_store::files::FileJournal;
use komado_store::{FileStore, Holder, Journal, OpenMode, Store};
use komado_testkit::Book;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) fn sid(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) fn tid(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

pub(crate) fn open_store(base: &Path) -> FileStore {
    let (host, program, since) = ("here".into(), "the tests".into(), "now".into());
    FileStore::new(base, Holder { pid: std::process::id(), host, program, since })
}

pub(crate) fn meta(id: &str) -> Meta {
    Meta {
        uuid: id.into(),
        task_key: TaskKey::parse("github:ann/tool/issue/27").unwrap(),
        created_at: "2024-01-15T10:30:00.000000Z".into(),
        process_id: 12345,
        hostname: "worker-node-1".into(),
        config: MetaConfig {
            llm_provider: Some("openai".into()),
            model: Some("gpt-4o".into()),
            context_length: Some(128_000),
            compression_threshold: Some(0.7),
            window_from: None,
            meter: "o200k".into(),
            ..MetaConfig::default()
        },
        user: Some("ann".into()),
        queued: false,
    }
}

pub(crate) struct Room {
    dir: TempDir,
    pub(crate) store: FileStore,
    pub(crate) id: SessionId,
    /// What was said in the first thread.
    pub(crate) book: Book,
}

impl Room {
    /// A store with one empty session `s`.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(&dir.path().join("contexts"));
        store.create(&meta("s")).unwrap();
        Self { dir, store, id: sid("s"), book: Book::default() }
    }

    /// The same with a random conversation of `count` entries in it.
    pub(crate) fn with(seed: u64, count: u32) -> Self {
        let mut room = Self::new();
        room.book = play::book(seed, count);
        room.write().append(0, &play::rows(&room.book, 0)).unwrap();
        room
    }

    /// The same, at a moment when the user may go on.
    pub(crate) fn ready(seed: u64, count: u32) -> Self {
        let goes_on = |seed: &u64| {
            let view = play::book(*seed, count).view().clone();
            view.last() == count && view.open().calls.is_empty() && view.closed().is_none()
        };
        Self::with((seed..).step_by(1000).find(goes_on).unwrap(), count)
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().join("contexts")
    }

    /// A path in the session's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.store.folder(&self.id).unwrap().join(name)
    }

    /// Another process's view of the same folder, as far as one process can have it.
    pub(crate) fn elsewhere(&self) -> FileStore {
        open_store(&self.base())
    }

    pub(crate) fn open(&self, mode: OpenMode) -> komado_store::Result<FileJournal> {
        self.store.open_file(&self.id, &ThreadId::root(), mode)
    }

    pub(crate) fn write(&self) -> FileJournal {
        self.open(OpenMode::Write).unwrap()
    }

    pub(crate) fn read(&self) -> FileJournal {
        self.open(OpenMode::Read).unwrap()
    }

    /// Appends to the first thread.
    pub(crate) fn say(&mut self, journal: &mut FileJournal, entry: Entry) -> Seq {
        play::write(&mut self.book, journal, entry, 10)
    }

    /// Makes a fork of the first thread.
    pub(crate) fn fork(&self, name: &str, base: &str, seq: Seq) -> FileJournal {
        let header = Header {
            session: self.id.clone(),
            thread: tid(name),
            base: Some(Moment { thread: tid(base), seq }),
            parent: None,
            label: None,
            timestamp: play::NOW.into(),
        };
        self.store.spawn(&header).unwrap();
        self.store.open_file(&self.id, &tid(name), OpenMode::Write).unwrap()
    }
}

/// A line of spawned threads, each with a slice of all above it, and their books.
pub(crate) struct Line(pub(crate) Vec<(String, Book)>);

impl Room {
    /// Says `text` in the first thread, and spawns `depth` threads from one another, each saying it too.
    pub(crate) fn line(&mut self, depth: usize, text: &str) -> Line {
        let mut journal = self.write();
        self.say(&mut journal, said(Role::User, text));
        let mut line = Line(vec![("root".to_owned(), self.book.clone())]);
        for n in 1..=depth {
            let name = format!("stelis{}", "_1".repeat(n));
            let (mut book, mut journal) = self.child(&name, &line);
            play::write(&mut book, &mut journal, said(Role::User, &format!("{text} {n}")), 10);
            line.0.push((name, book));
        }
        line
    }

    /// Spawns a thread from the last of `line`, with a slice of the last item of each.
    pub(crate) fn child(&self, name: &str, line: &Line) -> (Book, FileJournal) {
        let (parent, last) = line.0.last().unwrap();
        let header = Header {
            thread: tid(name),
            parent: Some(Moment { thread: tid(parent), seq: last.view().last() }),
            label: Some("調査".into()),
            ..Header::root(self.id.clone(), play::NOW)
        };
        self.store.spawn(&header).unwrap();
        let mut journal = self.store.open_file(&self.id, &tid(name), OpenMode::Write).unwrap();
        let mut book = Book::default();
        let mut slices = Vec::new();
        for (thread, above) in &line.0 {
            let at = above.view().last();
            slices.push(slice(thread, at, &[(at, at)]));
            book.below(tid(thread), above);
        }
        play::write(&mut book, &mut journal, Entry::Share(share(name, slices)), 0);
        (book, journal)
    }
}

/// Changes `from` in a thread's journal to `to`, which is as long: the index does not notice.
pub(crate) fn spoil(room: &Room, thread: &str, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let folder = if thread == "root" { String::new() } else { format!("threads/{thread}/") };
    let path = room.path(&format!("{folder}messages.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{thread} has no {from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

/// Every line and head is that of the book.
pub(crate) fn same(journal: &FileJournal, book: &Book) {
    assert_eq!(Journal::last(journal), book.view().last());
    for (row, seq) in play::rows(book, 0).iter().zip(1..) {
        assert_eq!(Journal::head(journal, seq).unwrap(), row.head, "head @{seq}");
        assert_eq!(journal.line(seq).unwrap(), row.line, "line @{seq}");
    }
}

pub(crate) fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// The lines of a file as JSON.
pub(crate) fn json_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything under a folder.
pub(crate) fn walk(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        found.extend(paths.iter().flat_map(|path| walk(path)));
    }
    found
}

/// The model calls `tool`.
pub(crate) fn called(id: &str, tool: &str, arguments: &str) -> Entry {
    let (id, name, arguments) = (id.into(), tool.into(), arguments.into());
    let call = Call { id, name, arguments, kind: CallKind::Function, extra: None };
    Entry::Message(Message::of(Role::Assistant, vec![MessagePart::Call(call)]), None)
}

/// `text` stands for `from..=to`.
pub(crate) fn condensed(from: Seq, to: Seq, text: &str) -> Entry {
    Entry::Edit(Edit {
        kind: EditKind::Condense,
        hide: vec![Span::new(from, to)],
        show: vec![Show { kind: ShowKind::Summary, text: text.into(), tokens: 5 }],
        replace: Vec::new(),
        cause: Cause { rule: "by_hand".into(), before: 105, after: 10, ..Cause::default() },
    })
}
