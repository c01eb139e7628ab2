//! A secret in the label of a child is taken out like any other, and does not come back with its anchor.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, resume, row};
use crate::stelis::room::{Room, everywhere, thread_id, user};
use komado_core::SessionId;
use komado_engine::redact::RedactTarget;
use regex::Regex;
use std::path::Path;

const SECRET: &str = "hunter2";

fn holds(path: &Path) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().any(|entry| holds(&entry.unwrap().path()));
    }
    std::fs::read(path).unwrap().windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes())
}

fn check_gone(room: &Room, id: &SessionId) {
    if room.files.is_some() {
        assert!(!holds(&room.folder(id)), "it is in a file");
    }
    let headers = room.engine.store().threads(id).unwrap();
    assert!(headers.iter().all(|header| !format!("{header:?}").contains(SECRET)), "{headers:?}");
    assert!(!format!("{:?}", row(&room.engine, id, "stelis_1")).contains(SECRET));
    assert!(!anchor(&room.look(id, "root"), "stelis_1").contains(SECRET));
}

#[test]
fn a_secret_in_a_label_is_gone_and_stays_gone_when_the_anchor_changes() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("log in with hunter2 please")).unwrap();
        child.say(user("begin")).unwrap();
        child.end(&mut root, done("logged in")).unwrap();
        drop(root);
        let pattern = Regex::new(SECRET).unwrap();
        assert_eq!(room.engine.redact_leaves(&id, &pattern).unwrap(), ["a thread's label"]);
        room.engine.redact(&id, &RedactTarget::Matching(pattern.clone()), "x").unwrap();
        assert_eq!(room.engine.redact_leaves(&id, &pattern).unwrap(), Vec::<String>::new());
        check_gone(room, &id);
        let label = row(&room.engine, &id, "stelis_1").label;
        assert_eq!(label.as_deref(), Some("log in with [redacted] please"));
        // Every change of state says the anchor anew.
        let child = thread_id("stelis_1");
        room.engine.resume_child(&id, &child, &resume()).unwrap();
        room.engine.pause_child(&id, &child, None).unwrap();
        room.root(&id).tend().unwrap();
        check_gone(room, &id);
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("log in with [redacted] please"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn an_anchor_that_was_emptied_does_not_say_the_label_again() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("log in with hunter2 please")).unwrap();
        child.say(user("begin")).unwrap();
        let first = (1..=root.last())
            .find(|seq| matches!(root.record(*seq).unwrap().entry, komado_core::Entry::Anchor(_)))
            .unwrap();
        drop((root, child.detach().unwrap()));
        let root = komado_core::ThreadId::root();
        room.engine.redact(&id, &RedactTarget::Entry(root, first), "x").unwrap();
        check_gone(room, &id);
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("logged in")).unwrap();
        check_gone(room, &id);
    });
}
