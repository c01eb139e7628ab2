//! What is shown while summaries and markers stand, and after somebody has gone back.

use crate::roo::facts::HISTORY;
use crate::roo::room::{Room, calls, check, everywhere, model, result, user};
use crate::roo::story::{self, play, said};
use komado_core::journal::Entry;
use komado_core::{Message, Role, admit::EntryRefusal};
use komado_engine::{Error, OnOpenCalls};

#[test]
fn what_is_seen_is_what_the_original_shows() {
    for past in HISTORY {
        everywhere(|room| {
            let told = play(room, past.story);
            let root = room.root(&told.session);
            assert_eq!(story::seen(&root), past.seen, "{}", past.id);
            check(&root);
            // Another process sees the same.
            drop(root);
            assert_eq!(story::seen(&room.again().look(&told.session, "root")), past.seen, "{}", past.id);
        });
    }
}

#[test]
fn going_back_removes_nothing() {
    for past in HISTORY.iter().filter(|past| past.story.contains('<')) {
        let room = Room::memory();
        let told = play(&room, past.story);
        let root = room.root(&told.session);
        // Every message is still in the journal, and the moment before can be seen again.
        for word in past.story.split_whitespace().filter(|word| word.starts_with(['u', 'a'])) {
            let Entry::Message(message, _) = root.record(told.at[word]).unwrap().entry else {
                panic!("{word}")
            };
            assert_eq!(message.words(), said(word), "{}: {word}", past.id);
        }
        assert!(root.view_at(root.last() - 1).unwrap().tokens() > root.view().tokens(), "{}", past.id);
    }
}

#[test]
fn rw_03_a_moment_that_never_was_is_refused() {
    everywhere(|room| {
        let told = play(room, "u1 a2");
        let mut root = room.root(&told.session);
        let Err(Error::NoMoment { seq: 999, .. }) = root.rewind(999) else { panic!("RW-03: @999 was found") };
        assert_eq!((story::seen(&root).as_str(), root.last()), ("u1 a2", 2), "RW-03");
    });
}

#[test]
fn rw_13_going_back_in_an_empty_session_writes_nothing() {
    everywhere(|room| {
        let told = play(room, "");
        let mut root = room.root(&told.session);
        // The original says nothing; we say that nothing would change.
        assert!(matches!(root.rewind(0), Err(Error::Refused(EntryRefusal::NoEffect { .. }))), "RW-13");
        assert_eq!((story::seen(&root).as_str(), root.last()), ("", 0), "RW-13");
    });
}

#[test]
fn kt_03_a_result_long_after_its_call_takes_the_place_of_the_interrupted_one() {
    // The original searches three messages for the call and leaves an orphan when it finds none.
    let room = Room::memory();
    let told = play(&room, "u1");
    let mut root = room.root(&told.session);
    root.say(calls(vec![crate::roo::room::call("t1", "read_file", r#"{"path":"a.txt"}"#)])).unwrap();
    root.say(user("never mind")).unwrap();
    root.say(model("as you like")).unwrap();
    // The call was answered before anyone else could speak, and the true answer takes the place of that.
    let Entry::Message(Message { role: Role::Tool, .. }, _) = root.record(3).unwrap().entry else {
        panic!("KT-03: the call was left open")
    };
    let late = root.say(result("t1", "ok")).unwrap();
    assert_eq!(root.view().result(3), late, "KT-03");
    let orphan = root.say(result("t0", "ok"));
    assert!(matches!(orphan, Err(Error::Refused(EntryRefusal::NoSuchCall { .. }))), "KT-03: {orphan:?}");
    check(&root);
    // Or nobody may speak before the result.
    let mut root = root.on_open_calls(OnOpenCalls::Refuse);
    root.say(calls(vec![crate::roo::room::call("t2", "read_file", "{}")])).unwrap();
    let early = root.say(user("never mind"));
    assert!(matches!(early, Err(Error::Refused(EntryRefusal::CallsOpen { .. }))), "KT-03: {early:?}");
}
