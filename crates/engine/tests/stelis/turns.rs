//! What reaches the model: children and siblings are looked after before each request, and a child that works far beyond
//! its share stays in it.

use crate::stelis::kit::{anchor, done, sees};
use crate::stelis::room::words;
use crate::stelis::talk::{Talk, id};
use komado_core::message::{Message, Role};
use komado_core::thread::ThreadStatus;
use komado_engine::stelis::Spawn;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

const WINDOW: u64 = 8_192;

#[test]
fn before_each_request_a_thread_hears_what_it_was_told_and_sees_how_its_children_stand() {
    let talk = Talk::new(Dialect::Chat, WINDOW, ScriptedOptions::default());
    let mut root = talk.thread();
    root.say(Message::text(Role::User, "please start the work")).unwrap();
    let spawn = Spawn { label: Some("work".into()), ..Spawn::new(WINDOW) };
    let mut child = root.spawn(&spawn).unwrap();
    child.tell(root.id(), "the tests are green").unwrap();
    child.finish(done("made everything green")).unwrap();
    drop(child);
    talk.server.add(ScriptStep::say("good"));
    let (turned, _) = talk.ask(&mut root, "how is it?");
    assert_eq!(turned.message.words(), "good");
    let last = words(&root);
    let reply = last.iter().position(|line| line == "assistant: good").unwrap();
    let heard = last.iter().position(|line| line.contains("the tests are green")).unwrap();
    assert!(heard < reply && sees(&root, "made everything green"), "{last:?}");
}

#[test]
fn a_child_that_works_far_beyond_its_share_keeps_its_parents_slice_and_its_parent_goes_on() {
    let talk = Talk::new(Dialect::Chat, WINDOW, ScriptedOptions::default());
    let mut root = talk.thread();
    root.say(Message::text(Role::User, "Rule: never touch config.toml. Build the parser.")).unwrap();
    let before = root.view().tokens();
    let spawn = Spawn { label: Some("parser".into()), ..Spawn::new(WINDOW) };
    let mut child = root.spawn(&spawn).unwrap();
    let mut edits = 0;
    for n in 0..40 {
        talk.server.add(ScriptStep::say(format!(
            "step {n}: {}",
            "I wrote a little more of the parser. ".repeat(20)
        )));
        let (_, told) = talk.ask(&mut child, &format!("go on with part {n} of src/parser.rs"));
        edits += told.edits;
        assert!(sees(&child, "never touch config.toml"), "round {n}");
        let own = child.view().tokens() - child.view().weight().above;
        let room = child.shares(WINDOW).unwrap().unwrap().room();
        assert!(own <= room, "round {n}: {own} tokens in a room of {room}");
    }
    assert!(edits > 0, "forty rounds are more than the share holds");
    child.abort(&mut root, None).unwrap();
    let text = anchor(&root, "stelis_1");
    assert!(text.contains("- Messages: 80") && text.contains("src/parser.rs"), "{text}");
    assert!(root.view().tokens() <= before + 1_000);
    talk.server.add(ScriptStep::say("the parent goes on"));
    talk.ask(&mut root, "and now?");
    assert!(sees(&root, "the parent goes on"));
    let tree = talk.engine.tree(&id(), None).unwrap();
    assert_eq!(tree.nodes[0].children[0].status, ThreadStatus::Aborted);
}
