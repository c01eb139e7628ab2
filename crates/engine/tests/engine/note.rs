//! Notes: kept with the words they go with, seen by no model, undone with what they are about.

use crate::engine::room::{call, calls, check, everywhere, model, result, user, words};
use komado_core::journal::Entry;
use komado_core::raw::RawJson;
use komado_engine::Thread;
use komado_engine::redact::RedactTarget;

fn at(node: &str) -> RawJson {
    RawJson::parse(format!(r#"{{"node":"{node}"}}"#)).unwrap()
}

fn noted(thread: &Thread<'_>, about: &str) -> Option<(u32, String)> {
    thread.noted(about).unwrap().map(|(seq, value)| (seq, value.get().to_owned()))
}

#[test]
fn the_last_note_about_a_thing_counts_and_no_model_sees_any() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        assert_eq!(root.noted("playbook").unwrap(), None);
        root.say(user("fix it")).unwrap();
        root.note("playbook", at("ask")).unwrap();
        root.note("task", at("other")).unwrap();
        root.note("playbook", at("tools")).unwrap();
        assert_eq!(noted(&root, "playbook"), Some((4, r#"{"node":"tools"}"#.into())));
        assert_eq!(noted(&root, "task"), Some((3, r#"{"node":"other"}"#.into())));
        assert_eq!(words(&root), ["user: fix it"]);
        assert_eq!(root.view().tokens(), u64::from(root.record(1).unwrap().tokens));
        check(&root);
        drop(root);
        assert_eq!(noted(&room.root(&id), "playbook"), Some((4, r#"{"node":"tools"}"#.into())));
    });
}

#[test]
fn a_note_and_its_words_are_one_write_or_none() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        assert_eq!(root.say_noting("task", at("begun"), vec![user("a"), user("b")]).unwrap(), [2, 3]);
        let refused = root.say_noting("task", at("lost"), vec![user("c"), result("nobody", "x")]);
        assert!(refused.is_err());
        assert_eq!((root.last(), noted(&root, "task").unwrap().0), (3, 1));
        check(&root);
    });
}

#[test]
fn a_rewind_passes_over_the_notes_that_it_abandons_and_calls_may_wait_meanwhile() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say_noting("playbook", at("ask"), vec![user("fix it")]).unwrap();
        root.say(calls(vec![call("c", "read", "{}")])).unwrap();
        root.note("playbook", at("tools")).unwrap();
        root.say(result("c", "fn main() {}")).unwrap();
        check(&root);
        root.say(model("done")).unwrap();
        root.rewind(2).unwrap();
        assert_eq!(noted(&root, "playbook"), Some((1, r#"{"node":"ask"}"#.into())));
        check(&root);
    });
}

#[test]
fn a_secret_in_a_note_can_be_taken_out() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.note("task", RawJson::parse(r#"{"vars":{"key":"hunter2"}}"#).unwrap()).unwrap();
        drop(root);
        let pattern = RedactTarget::Matching(regex::Regex::new("hunter2").unwrap());
        assert_eq!(room.engine.redact(&id, &pattern, "r").unwrap().entries, 1);
        let Entry::Note { about, value } = room.root(&id).record(1).unwrap().entry else { panic!() };
        assert!(about == "task" && !value.get().contains("hunter2"), "{}", value.get());
    });
}
