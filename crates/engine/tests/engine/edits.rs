//! What changes the view and never the journal.

use crate::engine::room::{
    Room, call, calls, check, counted, everywhere, meta, model, result, setup, user, words,
};
use komado_core::journal::{Edit, Entry};
use komado_core::{Meter, Seq, Span};
use komado_engine::{Error, Thread};

/// A question, a call with two results, an answer: entries 1 to 5, then small talk up to `last`.
fn talk(root: &mut Thread<'_>, last: Seq) {
    root.say(user("how many tests are there?")).unwrap();
    root.say(calls(vec![call("a", "read", r#"{"path":"a"}"#), call("b", "read", r#"{"path":"b"}"#)]))
        .unwrap();
    root.say(result("a", &"a long output ".repeat(20))).unwrap();
    root.say(result("b", &"another output ".repeat(20))).unwrap();
    root.say(model("forty-two")).unwrap();
    for seq in 6..=last {
        let message =
            if seq % 2 == 0 { user(&format!("question {seq}")) } else { model(&format!("answer {seq}")) };
        root.say(message).unwrap();
    }
}

fn edit_at(thread: &Thread<'_>, seq: Seq) -> Edit {
    match thread.record(seq).unwrap().entry {
        Entry::Edit(edit) => edit,
        other => panic!("{other:?}"),
    }
}

fn span(from: Seq, to: Seq) -> Vec<Span> {
    vec![Span::new(from, to)]
}

#[test]
fn right_after_an_edit_the_reported_count_is_the_real_one() {
    for meter in [Meter::O200k, Meter::Chars4] {
        let room = Room::memory();
        let mut meta = meta("s", "2024-01-15T10:00:00Z");
        meta.config.meter = meter.name().into();
        let id = room.engine.create(&meta).unwrap();
        let mut root = room.root(&id);
        root.set_up(setup("You are 親切.")).unwrap();
        let before = |root: &mut Thread<'_>, edit: &mut dyn FnMut(&mut Thread<'_>) -> Seq| {
            let before = root.view().tokens();
            let seq = edit(root);
            let cause = edit_at(root, seq).cause;
            assert_eq!((cause.before, cause.after), (before, root.view().tokens()));
            assert_eq!(cause.after, counted(root));
            assert!(cause.after < cause.before, "{cause:?}");
            check(root);
        };
        root.say(user("how many tests are there?")).unwrap();
        root.say(calls(vec![call("a", "read", r#"{"path":"a"}"#)])).unwrap();
        root.say(result("a", &"a long output, 長い出力 ".repeat(20))).unwrap();
        root.say(model("forty-two, as far as I can see, but let me look again")).unwrap();
        before(&mut root, &mut |root| root.trim(vec![(4, "[trimmed]".into())], "by_hand").unwrap());
        before(&mut root, &mut |root| root.condense(span(2, 5), "They counted.", "soft_mark").unwrap());
        for n in 0..6 {
            root.say(user(&format!("and what about the tests of crate number {n}?"))).unwrap();
        }
        before(&mut root, &mut |root| root.truncate(span(8, 11), "[…]", "hard_mark").unwrap());
        before(&mut root, &mut |root| {
            root.condense(span(2, 12), "They went on counting.", "soft_mark").unwrap()
        });
        let edit = edit_at(&root, root.last());
        assert_eq!(edit.cause.rule, "soft_mark");
    }
}

#[test]
fn a_truncation_after_a_condensation_counts_only_what_is_visible() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 24);
        root.condense(span(1, 20), "S", "by_hand").unwrap();
        let shown = root.view().weight().items;
        assert_eq!(shown, 5);
        let seq = root.truncate(span(1, 22), "M", "by_hand").unwrap();
        assert_eq!(words(&root), ["user: M", "assistant: answer 23", "user: question 24"]);
        assert_eq!(edit_at(&root, seq).cause.after, root.view().tokens());
        check(&root);
    });
}

#[test]
fn rewind_restores_exactly_and_removes_nothing() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 9);
        let (then, tokens) = (words(&root), root.view().tokens());
        root.condense(span(1, 5), "short", "by_hand").unwrap();
        root.say(user("wrong way")).unwrap();
        let later = words(&root);
        assert_eq!(root.rewind(9).unwrap(), 12);
        assert_eq!((words(&root), root.view().tokens()), (then, tokens));
        root.rewind(11).unwrap();
        assert_eq!(words(&root), later);
        assert_eq!(root.last(), 13);
        for seq in 1..=13 {
            assert_eq!(root.record(seq).unwrap().seq, seq);
        }
        check(&root);
        for bad in [13, 14] {
            root.rewind(bad).unwrap_err();
        }
    });
}

#[test]
fn a_rewind_that_is_followed_by_a_crash_is_still_a_rewind() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 9);
        root.settle().unwrap();
        root.rewind(1).unwrap();
        drop(root);
        let room = room.again();
        let mut root = room.root(&id);
        assert_eq!(words(&root), ["user: how many tests are there?"]);
        assert_eq!(root.last(), 10);
        check(&root);
        root.settle().unwrap();
        if room.files.is_some() {
            let current = std::fs::read_to_string(room.folder(&id).join("current.jsonl")).unwrap();
            assert_eq!(current.lines().count(), 1);
        }
    });
}

#[test]
fn revert_undoes_one_edit_and_keeps_what_was_said_since() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 9);
        let mut before = words(&root);
        let edit = root.condense(span(1, 5), "short", "by_hand").unwrap();
        root.say(user("since")).unwrap();
        let condensed = words(&root);
        let revert = root.revert(edit).unwrap();
        before.push("user: since".into());
        assert_eq!(words(&root), before);
        root.revert(revert).unwrap();
        assert_eq!(words(&root), condensed);
        root.revert(edit).unwrap();
        root.revert(edit).unwrap_err();
        root.revert(1).unwrap_err();
        assert_eq!(words(&root), before);
        check(&root);
    });
}

#[test]
fn system_prompt_and_pins_survive_any_number_of_condensations_and_old_facts_stay_in_reach() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.set_up(setup("Be kind.")).unwrap();
        root.say(user("the password is 合言葉")).unwrap();
        root.say(calls(vec![call("a", "read", "{}"), call("b", "ls", "{}")])).unwrap();
        root.say(result("a", "pinned output")).unwrap();
        root.say(result("b", "pinned, too")).unwrap();
        let pin = root.pin(4).unwrap();
        assert_eq!(root.view().pins(), [Span::new(3, 5)]);
        root.pin(5).unwrap_err();
        for round in 1..=3 {
            root.say(user(&format!("round {round}"))).unwrap();
            root.say(model("done")).unwrap();
            let last = root.last();
            root.condense(span(2, last), &format!("summary {round}"), "by_hand").unwrap();
            check(&root);
        }
        assert_eq!(
            words(&root),
            [
                "system: Be kind.",
                "assistant:  read({})#a ls({})#b",
                "tool #a: pinned output",
                "tool #b: pinned, too",
                "user: summary 3",
            ]
        );
        let Entry::Message(fact, _) = root.record(2).unwrap().entry else { panic!() };
        assert_eq!(fact.words(), "the password is 合言葉");
        assert_eq!(edit_at(&root, 9).show[0].text, "summary 1");

        root.unpin(4).unwrap();
        assert_eq!(words(&root), ["system: Be kind.", "user: summary 3"]);
        root.unpin(4).unwrap_err();
        root.rewind(pin).unwrap();
        assert_eq!(words(&root).len(), 5);
        check(&root);
    });
}

#[test]
fn appending_to_a_small_view_keeps_the_whole_history() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 1..=40 {
            root.say(user(&format!("message {n}"))).unwrap();
            if n % 10 == 0 {
                root.truncate(span(1, root.last()), "[…]", "by_hand").unwrap();
            }
        }
        root.say(user("the last")).unwrap();
        drop(root);
        let room = room.again();
        let root = room.look(&id, "root");
        assert_eq!(words(&root), ["user: […]", "user: the last"]);
        let said = (1..=root.last()).filter_map(|seq| match root.record(seq).unwrap().entry {
            Entry::Message(message, _) => Some(message.words()),
            _ => None,
        });
        assert_eq!(said.count(), 41);
        let all = root.view_at(9).unwrap();
        assert_eq!(all.weight().items, 9);
    });
}

#[test]
fn a_trim_replaces_content_keeps_pairs_and_says_what_it_cannot_replace() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 6);
        root.trim(vec![(2, "looked".into()), (3, "[a]".into())], "tool_budget").unwrap();
        let now = words(&root);
        assert_eq!(now[1], r#"assistant: looked read({"path":"a"})#a read({"path":"b"})#b"#);
        assert_eq!(now[2], "tool #a: [a]");
        check(&root);
        let why = root.trim(vec![(4, "x".into()), (7, "an edit".into())], "by_hand").unwrap_err().to_string();
        assert!(why.contains("@7") && why.contains("not shown"), "{why}");
        root.pin(5).unwrap();
        let why = root.trim(vec![(5, "x".into())], "by_hand").unwrap_err().to_string();
        assert!(why.contains("pinned"), "{why}");
        assert!(matches!(root.trim(vec![(99, "x".into())], "by_hand"), Err(Error::NoMoment { .. })));
        root.trim(vec![], "by_hand").unwrap_err();
        assert_eq!(words(&root), now);
    });
}

#[test]
fn an_edit_that_would_split_a_pair_or_change_nothing_is_refused_and_nothing_is_written() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 6);
        let now = words(&root);
        for bad in [span(1, 2), span(3, 6), span(5, 99), span(0, 1), vec![], vec![Span::new(4, 3)]] {
            root.condense(bad, "x", "by_hand").unwrap_err();
        }
        root.condense(span(1, 5), "x", "by_hand").unwrap();
        root.condense(span(5, 6), "y", "by_hand").unwrap_err();
        root.revert(7).unwrap();
        assert_eq!((words(&root), root.last()), (now, 8));
    });
}

#[test]
fn a_moment_that_is_not_there_is_an_error_that_says_where_the_thread_ends() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("one")).unwrap();
        for why in [root.record(0).err(), root.record(2).err(), root.view_at(2).err()] {
            let why = why.unwrap().to_string();
            assert!(why.starts_with("s/root has 1 entry; @") && why.contains(" is not there; "), "{why}");
        }
        assert_eq!(root.view_at(0).unwrap().weight().items, 0);
    });
}
