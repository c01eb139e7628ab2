//! Conversations that outgrow the window: the client never hears of it, and what is kept is kept byte for byte.

use super::kit::{Agent, Ear, World, seen_list, words};
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_engine::lesson;
use komado_provider::Dialect;
use komado_provider::scripted::{OnOverflow, ScriptStep, ScriptedOptions, ScriptedReply, SeenRequest};
use komado_store::MemoryStore;
use komado_testkit::Faulty;
use std::sync::Arc;

fn window(tokens: u64, overflow: OnOverflow) -> ScriptedOptions {
    ScriptedOptions { window: Some(tokens), overflow, ..ScriptedOptions::default() }
}

/// The longest beginning that two lists share.
fn shared(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn grow(dialect: Dialect, stream: bool, believed: u64, overflow: OnOverflow) -> (u32, u32) {
    let world = World::new(dialect, believed, window(4_096, overflow));
    let mut agent = Agent::new(dialect);
    agent.stream = stream;
    let (mut edits, mut refused) = (0, 0);
    let mut before: Option<SeenRequest> = None;
    for n in 1..=40 {
        agent.say(&words(n));
        let sent = agent.elements.clone();
        let (_, ear) = agent.ask(&world);
        edits += ear.notes.edits;
        refused += ear.notes.attempts - 1;
        let seen = world.last_seen();
        assert_eq!(seen.status, 200);
        let list = seen_list(&seen);
        // Whatever is not the client's own is a summary or a marker.
        let own = list.iter().filter(|element| sent.contains(element)).count();
        assert!(own + 4 >= list.len(), "{dialect:?} {n}: {own} of {}", list.len());
        assert_eq!(list.last(), sent.last(), "{dialect:?} {n}: the question stays as it is");
        if let Some(before) = before.filter(|_| ear.notes.edits == 0) {
            let old = seen_list(&before);
            assert_eq!(shared(&old, &list), old.len(), "{dialect:?} {n}: the prefix is stable");
        }
        before = Some(seen);
    }
    (edits, refused)
}

#[test]
fn a_conversation_outgrows_its_window_in_every_dialect_and_form() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let (edits, refused) = grow(dialect, stream, 4_096, OnOverflow::Refuse);
            assert!(edits > 0, "{dialect:?}");
            assert_eq!(refused, 0, "{dialect:?}: it fits before it is sent");
        }
    }
}

#[test]
fn a_window_smaller_than_believed_is_learned_and_the_client_never_hears_of_it() {
    for dialect in Dialect::ALL {
        for overflow in [OnOverflow::Refuse, OnOverflow::RefuseInStream] {
            let (edits, refused) = grow(dialect, true, 16_384, overflow);
            assert!(edits > 0 && (1..=4).contains(&refused), "{dialect:?} {overflow:?}: {refused}");
        }
    }
}

#[test]
fn a_window_that_nobody_knows_is_learned_from_the_first_refusal() {
    let (edits, refused) = grow(Dialect::Chat, true, 0, OnOverflow::Refuse);
    assert!(edits > 0 && (1..=3).contains(&refused), "{refused}");
}

#[test]
fn when_nothing_helps_the_client_hears_the_words_it_knows() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let world = World::new(dialect, 50_000, ScriptedOptions::default());
            let mut agent = Agent::new(dialect);
            agent.stream = stream;
            (1..=6).for_each(|n| drop(agent.turn(&world, &words(n))));
            (0..4).for_each(|_| world.server.add(ScriptStep::overflow()));
            agent.say("What now?");
            let mut ear = Ear::default();
            agent.send(&world, &mut ear).unwrap();
            let text = ear.text();
            let known = ["context_length_exceeded", "prompt is too long", "context"];
            assert!(known.iter().any(|words| text.contains(words)), "{dialect:?}: {text}");
            if dialect != Dialect::Responses || !stream {
                assert_eq!(ear.status, 400, "{dialect:?}");
            }
            assert!(ear.ended);
            // And it goes on.
            world.server.add(ScriptStep::say("better"));
            let (message, _) = agent.ask(&world);
            assert_eq!(message.words(), "better");
        }
    }
}

#[test]
fn less_room_for_the_answer_comes_before_less_of_the_conversation() {
    let world = World::new(Dialect::Chat, 16_384, window(4_096, OnOverflow::Refuse));
    let mut agent = Agent::new(Dialect::Chat);
    agent.max_tokens = Some(3_000);
    let mut lowered = false;
    for n in 1..=12 {
        let (_, ear) = agent.turn(&world, &words(n));
        let seen: serde_json::Value = serde_json::from_slice(&world.last_seen().body).unwrap();
        let most = seen["max_tokens"].as_u64().unwrap();
        assert!(most <= 3_000);
        lowered |= most < 3_000 && ear.notes.edits == 0;
    }
    assert!(lowered);
}

#[test]
fn a_silent_truncation_is_noticed() {
    let world = World::new(Dialect::Ollama, 16_384, window(2_048, OnOverflow::Truncate));
    let mut agent = Agent::new(Dialect::Ollama);
    let mut seen = 0;
    for n in 1..=40 {
        let (_, ear) = agent.turn(&world, &words(n));
        seen += usize::from(ear.notes.truncated.is_some());
    }
    assert!(seen > 0);
    let lesson = lesson::known(world.relay.engine().store(), &world.asking.about()).unwrap();
    let [own] = &lesson.sessions[..] else { panic!("one session: {lesson:?}") };
    assert!(own.window.is_some_and(|window| window <= 2_100), "{lesson:?}");
    assert_eq!(lesson.window, None, "as yet it is that session's alone");
}

#[test]
fn every_refusal_is_in_the_journal_and_the_edits_with_their_reasons() {
    let world = World::new(Dialect::Messages, 16_384, window(4_096, OnOverflow::Refuse));
    let mut agent = Agent::new(Dialect::Messages);
    let (mut refused, mut last) = (0, None);
    for n in 1..=30 {
        let (_, ear) = agent.turn(&world, &words(n));
        refused += ear.notes.attempts - 1;
        last = Some(ear.notes);
    }
    let thread = world.thread(&last.unwrap());
    let count = |is: &dyn Fn(&Entry) -> bool| {
        (1..=thread.last()).filter(|seq| is(&thread.record(*seq).unwrap().entry)).count()
    };
    let lost = count(&|entry| matches!(entry, Entry::Lost(reply) if reply.finish == "overflow"));
    assert_eq!(lost as u32, refused);
    assert!(count(&|entry| matches!(entry, Entry::Edit(edit) if edit.cause.after < edit.cause.before)) > 0);
}

#[test]
fn a_compacted_transcript_is_smaller_and_goes_on_as_another() {
    let world = World::new(Dialect::Responses, 100_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Responses).whole();
    (1..=20).for_each(|n| drop(agent.turn(&world, &words(n))));
    let mut ear = Ear::default();
    agent.compact(&world, &mut ear).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&ear.body).unwrap();
    assert_eq!(body["object"], "response.compaction");
    let output = body["output"].as_array().unwrap();
    assert!(!output.is_empty() && output.len() < agent.elements.len(), "{}", output.len());
    assert!(ear.notes.after < ear.notes.before && ear.notes.edits == 1);
    assert_eq!(ear.notes.rungs, [("condense", 1)]);
    let thread = world.thread(&ear.notes);
    let sent = |seq: &u32| matches!(thread.record(*seq).unwrap().entry, Entry::Sent(_));
    assert_eq!((1..=thread.last()).filter(sent).count(), 20, "what does not leave is not announced");
    drop(thread);
    agent.elements = output.iter().map(ToString::to_string).collect();
    let (_, ear) = agent.turn(&world, "go on");
    assert!(ear.notes.untouched);
}

#[test]
fn lessons_are_written_when_they_teach_something_and_not_with_every_answer() {
    let folder = tempfile::tempdir().unwrap();
    let world = super::crowd::on_files(folder.path(), 100_000);
    let mut agent = Agent::new(Dialect::Chat).whole();
    let inode = || {
        use std::os::unix::fs::MetadataExt;
        let found = walk(folder.path()).into_iter().find(|path| path.ends_with("learned.json"));
        found.map(|path| std::fs::metadata(path).unwrap().ino())
    };
    let (mut writes, mut last) = (0, None);
    for n in 1..=60 {
        agent.turn(&world, &words(n).repeat(3));
        writes += usize::from(inode() != last);
        last = inode();
    }
    assert!(last.is_some() && (2..=30).contains(&writes), "{writes}");
    let mut late = 0;
    for _ in 0..10 {
        agent.turn(&world, "And?");
        late += usize::from(inode() != last);
        last = inode();
    }
    assert_eq!(late, 0);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_provider_that_counts_otherwise_does_not_make_each_answer_read_the_whole_view() {
    let store = Arc::new(Faulty::new(MemoryStore::default(), 0));
    let world = World::on(store.clone(), Dialect::Chat, 1_000_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat).whole();
    let mut costs = Vec::new();
    for n in 1..=60 {
        // Thoughts that the server counts in its own way, so that nothing is ever learned of how it counts.
        let reply = ScriptedReply {
            text: "ok".into(),
            reasoning: Some(words(n).repeat(4)),
            ..ScriptedReply::default()
        };
        world.server.add(ScriptStep { reply, ..ScriptStep::default() });
        let before = store.calls();
        agent.turn(&world, &words(n));
        costs.push(store.calls() - before);
    }
    let near = |range: std::ops::Range<usize>| costs[range].iter().sum::<u64>();
    assert!(near(50..60) <= near(10..20) + 20, "{costs:?}");
}

#[test]
fn a_bound_on_turns_holds_whether_the_window_is_known_or_not() {
    for believed in [0, 100_000] {
        let mut world = World::new(Dialect::Chat, believed, ScriptedOptions::default());
        world.asking.history = Some(2);
        let mut agent = Agent::new(Dialect::Chat);
        let mut edits = 0;
        for n in 1..=8 {
            edits += agent.turn(&world, &words(n)).1.notes.edits;
        }
        let list = seen_list(&world.last_seen());
        let holds = |n| list.iter().any(|element| element.contains(&words(n)));
        assert!(edits > 0 && list.len() < 8, "{believed}: {edits} edits, {list:?}");
        assert!((7..=8).all(holds) && !(2..=5).any(holds), "{believed}: {list:?}");
    }
}

#[test]
fn a_prompt_of_three_quarters_of_the_window_leaves_the_rest_to_the_conversation() {
    let world = World::new(
        Dialect::Chat,
        8_000,
        ScriptedOptions { window: Some(8_000), ..ScriptedOptions::default() },
    );
    let mut agent = Agent::new(Dialect::Chat).with_tools();
    let rules = "Rule: the relay of the dock comes before the mirror of the kiln. ".repeat(400);
    agent.add(&Message::text(Role::System, rules));
    let (mut edits, mut used) = (0, Vec::new());
    for n in 1..=20 {
        let (_, ear) = agent.turn(&world, &words(n));
        assert!(!ear.text().contains("error"), "{}", ear.text());
        let view = *world.thread(&ear.notes).view().weight();
        assert!((5_500..6_500).contains(&view.instructions()), "{view:?}");
        if ear.notes.edits > 0 {
            edits += ear.notes.edits;
            used.push(ear.notes.after - view.instructions());
        }
        // What the prompt leaves is too little for our tools.
        let body: serde_json::Value = serde_json::from_slice(&world.last_seen().body).unwrap();
        assert_eq!(body["tools"].as_array().unwrap().len(), 1, "{n}");
    }
    // Of some 2,000 tokens a tenth is the buffer, a quarter the reserve, and three fifths of the rest are used after an edit.
    assert!(edits > 0 && used.iter().all(|used| *used > 600), "{used:?}");
}
