//! Who tells what was done, and what becomes of it.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, row};
use crate::stelis::room::{Room, everywhere, model, thread_id, user};
use komado_core::Meter;
use komado_core::journal::{Ending, Entry};
use komado_engine::condense::CondenseSettings;
use komado_engine::stelis::{ChronicleBy, Finish, Spawn};
use komado_testkit::Scripted;

fn by(summariser: &mut Scripted) -> Finish<'_> {
    let telling = ChronicleBy::By { by: summariser, settings: CondenseSettings::default() };
    Finish { ending: Ending::Completed, result: None, telling }
}

/// A child in which something was done.
fn worked<'e>(root: &mut komado_engine::Thread<'e>, spawn: &Spawn) -> komado_engine::Child<'e> {
    let mut child = root.spawn(spawn).unwrap();
    for n in 0..40 {
        child
            .say(user(&format!("please change file src/part{n}.rs and tell me what you did there")))
            .unwrap();
        child.say(model(&format!("I changed src/part{n}.rs; {}", "it is better now. ".repeat(10)))).unwrap();
    }
    child
}

#[test]
fn a_model_tells_the_whole_thread_in_parts_under_the_threads_own_prompt_and_its_cost_is_counted() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let prompt = "このセッションで行った作業を要約してください";
        let spawn = Spawn { chronicle_prompt: Some(prompt.into()), ..called("x") };
        let mut child = worked(&mut root, &spawn);
        child.condense(vec![komado_core::Span::new(2, 9)], "EARLIER SUMMARY", "by_hand").unwrap();
        child.pin(20).unwrap();
        let last = child.last();
        let mut scripted = Scripted::new(Meter::Bytes4)
            .within(2_000)
            .always("<summary>All parts were made better.</summary>");
        let finished = child.end(&mut root, by(&mut scripted)).unwrap();
        let chronicle = finished.chronicle.unwrap();
        assert!(chronicle.text.starts_with("All parts were made better."), "{}", chronicle.text);
        assert_eq!((chronicle.covers, chronicle.partial), ([2, last - 2], false));
        assert_eq!(chronicle.model.as_deref(), Some("scripted"));
        assert!(scripted.requests.len() > 1, "{} parts", scripted.requests.len());
        let asked: String = scripted.requests.iter().map(|request| request.text.clone()).collect();
        assert!(scripted.requests.iter().all(|request| request.text.contains(prompt)));
        for part in ["EARLIER SUMMARY", "src/part9.rs", "src/part39.rs"] {
            assert!(asked.contains(part), "{part}");
        }
        // What is pinned here is pinned nowhere else: it is told, too.
        let Entry::Message(pinned, _) = room.look(&id, "stelis_1").record(20).unwrap().entry else {
            panic!()
        };
        assert!(asked.contains(&pinned.words()));
        let counters = room.engine.session(&id).unwrap().counters;
        assert_eq!(counters.total_tokens, chronicle.usage.unwrap().total());
        assert!(anchor(&root, "stelis_1").contains("All parts were made better."));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_model_that_fails_is_replaced_by_the_digest_and_paid_for() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let child = worked(&mut root, &called("x"));
        let mut scripted = Scripted::new(Meter::Bytes4).fails("the line is dead");
        let finished = child.end(&mut root, by(&mut scripted)).unwrap();
        let why = finished.declined.unwrap();
        assert!(why.contains("the line is dead"), "{why}");
        let chronicle = finished.chronicle.unwrap();
        assert_eq!(chronicle.model.as_deref(), Some("digest"));
        assert!(chronicle.text.contains("src/part"), "{}", chronicle.text);
        let child = room.look(&id, "stelis_1");
        let lost = (1..=child.last()).any(|seq| matches!(child.record(seq).unwrap().entry, Entry::Lost(_)));
        assert!(lost && room.engine.session(&id).unwrap().counters.total_tokens > 0);
    });
}

#[test]
fn without_a_prompt_of_its_own_a_thread_is_told_by_the_usual_one_in_its_language() {
    let room = Room::memory();
    let id = begun(&room);
    let mut root = room.root(&id);
    for (words, sign) in [("do it please", "side thread"), ("やってください。", "作業スレッド")]
    {
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user(words)).unwrap();
        let mut scripted = Scripted::new(Meter::Bytes4).always("Done.");
        child.end(&mut root, by(&mut scripted)).unwrap();
        assert!(scripted.requests[0].text.contains(sign), "{}", scripted.requests[0].text);
        assert!(scripted.requests[0].text.contains(words));
    }
}

#[test]
fn a_thread_in_which_little_or_nothing_was_said_ends_all_the_same() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let child = root.spawn(&called("empty")).unwrap();
        let finished =
            child.end(&mut root, Finish { ending: Ending::Completed, ..Finish::aborted(None) }).unwrap();
        assert_eq!(finished.chronicle, None);
        let mut child = root.spawn(&called("short")).unwrap();
        child.say(user("hm")).unwrap();
        let mut scripted = Scripted::new(Meter::Bytes4).always("They said hm.");
        let finished = child.end(&mut root, by(&mut scripted)).unwrap();
        assert_eq!(finished.chronicle.unwrap().text, "They said hm.");
        let child = root.spawn(&called("untold")).unwrap();
        let finish = Finish { telling: ChronicleBy::Nothing, ..done("x") };
        assert_eq!(child.end(&mut root, finish).unwrap().chronicle, None);
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_chronicle_is_written_anew_by_hand_or_told_again_and_the_anchor_follows() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("read /etc/motd")).unwrap();
        child.end(&mut root, done("first words")).unwrap();
        drop(root);
        let name = thread_id("stelis_1");
        let edited = room
            .engine
            .write_chronicle(&id, &name, ChronicleBy::Words("  better words ".into()))
            .unwrap()
            .chronicle;
        assert_eq!((edited.text.as_str(), edited.model.as_deref()), ("better words", Some("by_hand")));
        let text = anchor(&room.look(&id, "root"), "stelis_1");
        assert!(text.contains("better words") && !text.contains("first words"), "{text}");
        assert_eq!(row(&room.engine, &id, "stelis_1").chronicle_summary.as_deref(), Some("better words"));
        let again = room.engine.write_chronicle(&id, &name, ChronicleBy::Digest).unwrap().chronicle;
        assert!(again.text.contains("/etc/motd") && !again.partial, "{}", again.text);
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("/etc/motd"));
        for bad in [ChronicleBy::Words("  ".into()), ChronicleBy::Nothing] {
            room.engine.write_chronicle(&id, &name, bad).unwrap_err();
        }
        check_tree(&room.engine, &id);
    });
}
