//! Short ways to spawn, to end and to look.

use crate::stelis::room::{Room, model, thread_id, user, words};
use komado_core::journal::{Ending, Entry, Ratio};
use komado_core::thread::{Branch, ThreadStatus};
use komado_core::{SessionId, ThreadId};
use komado_engine::stelis::{ChronicleBy, Finish, ResumeChild, Spawn};
use komado_engine::{Engine, Thread};
use komado_store::BranchFilter;

pub(crate) const WINDOW: u64 = 100_000;

/// A child with a label, in the usual window.
pub(crate) fn called(label: &str) -> Spawn {
    Spawn { label: Some(label.into()), ..Spawn::new(WINDOW) }
}

pub(crate) fn ratio(of: f64) -> Ratio {
    Ratio::new(of).unwrap()
}

/// Done, with these words for the parent.
pub(crate) fn done(words: &str) -> Finish<'static> {
    Finish { ending: Ending::Completed, result: None, telling: ChronicleBy::Words(words.into()) }
}

pub(crate) fn resume() -> ResumeChild {
    ResumeChild::new(WINDOW)
}

/// A session whose root has said something.
pub(crate) fn begun(room: &Room) -> SessionId {
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(user("please build the calculator")).unwrap();
    root.say(model("I will start a thread for it")).unwrap();
    id
}

/// What the anchor of `child` says in `parent` now, and how many anchors it has there.
pub(crate) fn anchor(parent: &Thread<'_>, child: &str) -> String {
    let child = thread_id(child);
    let mut found = Vec::new();
    for seq in (1..=parent.last()).filter(|seq| parent.view().on_path(*seq)) {
        if let Entry::Anchor(anchor) = parent.record(seq).unwrap().entry
            && anchor.thread == child
            && anchor.first.is_none()
        {
            found.push(seq);
        }
    }
    let [first] = found[..] else { panic!("{} anchors for {child}", found.len()) };
    let Entry::Anchor(now) = parent.record(parent.view().anchor(first)).unwrap().entry else { panic!() };
    now.text
}

pub(crate) fn rows(engine: &Engine, id: &SessionId) -> Vec<Branch> {
    engine.store().branches(id, BranchFilter::All).unwrap()
}

pub(crate) fn row(engine: &Engine, id: &SessionId, thread: &str) -> Branch {
    rows(engine, id).into_iter().find(|row| row.thread == thread_id(thread)).unwrap()
}

pub(crate) fn status(room: &Room, id: &SessionId, thread: &str) -> ThreadStatus {
    room.look(id, thread).status().unwrap()
}

/// True when the model sees `text` somewhere in the thread.
pub(crate) fn sees(thread: &Thread<'_>, text: &str) -> bool {
    words(thread).iter().any(|line| line.contains(text))
}

/// Every thread but the root has a row that says what its journal says and one anchor in its parent, and nothing that is
/// open stands under something that has ended.
pub(crate) fn check_tree(engine: &Engine, id: &SessionId) {
    let headers = engine.store().threads(id).unwrap();
    let open = |thread: &ThreadId| engine.open(id, thread, komado_store::OpenMode::Read).unwrap();
    for header in headers.iter().filter(|header| header.parent.is_some()) {
        let thread = open(&header.thread);
        let row = rows(engine, id).into_iter().find(|row| row.thread == header.thread);
        let row = row.unwrap_or_else(|| panic!("{} has no row", header.thread));
        assert_eq!(row.status, thread.status().unwrap(), "{}", header.thread);
        assert!(row.told, "the parent of {} was not told", header.thread);
        let parent = open(&header.parent.as_ref().unwrap().thread);
        assert!(
            parent.status().unwrap().is_open() || !row.status.is_open(),
            "{} is open under a thread that has ended",
            header.thread
        );
        let text = anchor(&parent, header.thread.as_str());
        let runs = text.contains("in progress") || text.contains("進行中");
        assert_eq!(runs, row.status == ThreadStatus::Active, "{text}");
    }
    for row in rows(engine, id).into_iter().filter(|row| row.parent.is_some()) {
        assert!(headers.iter().any(|header| header.thread == row.thread), "{} has no journal", row.thread);
    }
}
