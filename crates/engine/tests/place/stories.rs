//! Clients without a name: the transcript itself leads to its thread.

use crate::place::kit::{Room, client, rooms};
use komado_core::journal::{Ending, Reply};
use komado_core::message::MessagePart;
use komado_engine::place::Placement;
use komado_provider::Dialect;

#[test]
fn a_conversation_goes_on_in_its_thread() {
    for room in rooms() {
        let ann = client("ann");
        assert_eq!(room.ask(&ann, "u 窓を開けて", "a はい"), "new s1/root 0");
        assert_eq!(room.ask(&ann, "u 窓を開けて|a はい|u もっと", "a 開けた"), "extends s1/root 2");
        let third = "u 窓を開けて|a はい|u もっと|a 開けた|u 閉めて|u 今すぐ";
        let done = room.send(&ann, third);
        assert_eq!(done.told, "extends s1/root 4");
        let seen = ["u 窓を開けて", "a はい", "u もっと", "a 開けた", "u 閉めて", "u 今すぐ"];
        assert_eq!(room.seen(&done.placed.session, &done.thread), seen);
        assert_eq!(done.placed.fork, None);
    }
}

#[test]
fn calls_and_results_go_on_too() {
    for room in rooms() {
        let ann = client("ann");
        let first = r#"u list|c c1 read {"path":"a b"}"#;
        assert_eq!(room.ask(&ann, "u list", r#"c c1 read {"path":"a b"}"#), "new s1/root 0");
        assert_eq!(room.ask(&ann, &format!("{first}|r c1 main.rs"), "a one file"), "extends s1/root 2");
        let third = format!("{first}|r c1 main.rs|a one file|u thanks");
        assert_eq!(room.ask(&ann, &third, "a ok"), "extends s1/root 4");
        // The same call with other arguments is another past.
        let other = r#"u list|c c1 read {"path":"c"}|r c1 main.rs"#;
        assert_eq!(room.ask(&ann, other, "a none"), "forks s1/fork_1 1");
    }
}

#[test]
fn two_clients_with_equal_first_words_are_not_mixed() {
    for room in rooms() {
        let ann = client("shared");
        assert_eq!(room.ask(&ann, "u hello", "a hi"), "new s1/root 0");
        assert_eq!(room.ask(&ann, "u hello", "a hi"), "new s2/root 0");
        assert_eq!(room.ask(&ann, "u hello", "a good day"), "new s3/root 0");
        // Each goes on where its own reply was given; of two with the same the newer one.
        assert_eq!(room.ask(&ann, "u hello|a good day|u x", "a y"), "extends s3/root 2");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s2/root 2");
        // The other client was told the same and says the same: it does not go back for the first.
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x|a y|u z", "a w"), "extends s1/root 4");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x|a y|u z", "a w"), "extends s2/root 4");
    }
}

#[test]
fn a_request_that_was_never_answered_does_not_draw_others_in() {
    for room in rooms() {
        let ann = client("shared");
        room.ask(&ann, "u hello", "a hi");
        room.ask(&ann, "u hello|a hi|u x", "a y");
        // Begun, lost, and never asked again.
        let lost = room.send(&ann, "u hello");
        assert_eq!(lost.told, "new s2/root 0");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x|a y|u z", "a w"), "extends s1/root 4");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x|a Y|u z", "a w"), "forks s1/fork_1 3");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x2", "a w"), "forks s1/fork_2 2");
    }
}

#[test]
fn twins_that_ask_at_the_same_moment_are_two_sessions() {
    for room in rooms() {
        let ann = client("shared");
        let one = room.send(&ann, "u hello");
        room.mark_busy(&one);
        let two = room.send(&ann, "u hello");
        room.mark_busy(&two);
        assert_eq!((one.told.as_str(), two.told.as_str()), ("new s1/root 0", "new s2/root 0"));
        room.busy.borrow_mut().clear();
        room.answer(&one, "a hi");
        room.answer(&two, "a hi");
        let next = room.send(&ann, "u hello|a hi|u next");
        room.mark_busy(&next);
        assert_eq!(next.told, "extends s2/root 2");
        let last = room.send(&ann, "u hello|a hi|u next");
        room.mark_busy(&last);
        assert_eq!(last.told, "extends s1/root 2");
        // Both are at work: a third with the same words stands beside neither.
        assert_eq!(room.send(&ann, "u hello|a hi|u third").told, "new s3/root 0");
    }
}

#[test]
fn what_one_key_said_is_not_found_by_another() {
    for room in rooms() {
        let (ann, bob) = (client("ann"), client("bob"));
        room.ask(&ann, "u hello", "a hi");
        assert_eq!(room.ask(&bob, "u hello|a hi|u x", "a y"), "new s2/root 0");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
    }
}

#[test]
fn a_request_that_was_not_answered_is_asked_again_in_its_place() {
    for room in rooms() {
        let ann = client("ann");
        assert_eq!(room.send(&ann, "u hello").told, "new s1/root 0");
        let again = room.send(&ann, "u hello");
        assert_eq!(again.told, "again s1/root 1");
        room.answer(&again, "a hi");
        assert_eq!(room.send(&ann, "u hello|a hi|u x").told, "extends s1/root 2");
        assert_eq!(room.send(&ann, "u hello|a hi|u x").told, "again s1/root 3");
        // It goes on without an answer, or with one that we never saw.
        assert_eq!(room.send(&ann, "u hello|a hi|u x|u are you there?").told, "extends s1/root 3");
        let done = room.send(&ann, "u hello|a hi|u x|u are you there?|a yes|u good");
        assert_eq!(done.told, "extends s1/root 4");
        let seen = ["u hello", "a hi", "u x", "u are you there?", "a yes", "u good"];
        assert_eq!(room.seen(&done.placed.session, &done.thread), seen);
    }
}

#[test]
fn an_answer_that_was_not_liked_is_asked_for_again() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u hello", "a hi");
        room.ask(&ann, "u hello|a hi|u joke", "a knock");
        let again = room.send(&ann, "u hello|a hi|u joke");
        assert_eq!(again.told, "again s1/root 3");
        assert_eq!(room.seen(&again.placed.session, &again.thread), ["u hello", "a hi", "u joke"]);
        room.answer(&again, "a other");
        assert_eq!(room.ask(&ann, "u hello|a hi|u joke|a other|u ha", "a :)"), "extends s1/root 4");
        // Back to the first version, which the thread has left.
        let back = room.send(&ann, "u hello|a hi|u joke|a knock|u who?");
        assert_eq!(back.told, "forks s1/fork_1 4");
        let seen = ["u hello", "a hi", "u joke", "a knock", "u who?"];
        assert_eq!(room.seen(&back.placed.session, &back.thread), seen);
    }
}

#[test]
fn an_answer_that_is_asked_for_again_and_again_leaves_one_gap() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u hello", "a hi");
        room.ask(&ann, "u hello|a hi|u joke", "a joke 0");
        for n in 1..=5 {
            let again = room.send(&ann, "u hello|a hi|u joke");
            assert_eq!(again.told, "again s1/root 3");
            room.answer(&again, &format!("a joke {n}"));
            assert!(room.open(&again).view().path().len() <= 2, "{:?}", room.open(&again).view().path());
        }
        // An earlier one is known all the same.
        let back = room.send(&ann, "u hello|a hi|u joke|a joke 2|u who?");
        assert_eq!(back.told, "forks s1/fork_1 4");
        let done = room.send(&ann, "u hello|a hi|u joke|a joke 5|u ha");
        assert_eq!(done.told, "extends s1/root 4");
        let seen = ["u hello", "a hi", "u joke", "a joke 5", "u ha"];
        assert_eq!(room.seen(&done.placed.session, &done.thread), seen);
    }
}

#[test]
fn a_reply_that_says_nothing_may_be_left_out() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        let done = room.send(&ann, "u a|a b|u c");
        let silent = komado_core::Message::of(komado_core::Role::Assistant, vec![MessagePart::text(" ")]);
        let reply = Reply { to: Some(done.sent), ..Reply::default() };
        room.open(&done).reply(silent, reply).unwrap();
        assert_eq!(room.place(&ann, "u a|a b|u c").unwrap().how, Placement::Again);
        assert_eq!(room.send(&ann, "u a|a b|u c|u d").told, "extends s1/root 3");
    }
}

#[test]
fn a_shortened_transcript_goes_back() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        room.ask(&ann, "u a|a b|u c|a d|u e", "a f");
        let back = room.send(&ann, "u a|a b|u c");
        assert_eq!(back.told, "rewinds s1/root 3");
        assert_eq!(room.seen(&back.placed.session, &back.thread), ["u a", "a b", "u c"]);
        room.answer(&back, "a d");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u g", "a h"), "extends s1/root 4");
        // With the reply at its end, too.
        let back = room.send(&ann, "u a|a b");
        assert_eq!(back.told, "rewinds s1/root 2");
        assert_eq!(room.seen(&back.placed.session, &back.thread), ["u a", "a b"]);
    }
}

#[test]
fn an_edited_past_is_a_fork() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        room.ask(&ann, "u a|a b|u c|a d|u e", "a f");
        let fork = room.send(&ann, "u a|a b|u C|a d|u e");
        assert_eq!(fork.told, "forks s1/fork_1 2");
        assert_eq!(room.seen(&fork.placed.session, &fork.thread), ["u a", "a b", "u C", "a d", "u e"]);
        room.answer(&fork, "a F");
        // Another reply than the one that was given.
        assert_eq!(room.ask(&ann, "u a|a B|u c", "a d"), "forks s1/fork_2 1");
        // The reply left out.
        assert_eq!(room.ask(&ann, "u a|u c2", "a d2"), "new s2/root 0");
        assert_eq!(room.ask(&ann, "u a|a b|u c|u e2", "a f2"), "forks s1/fork_3 3");
        // Each goes on where it is.
        assert_eq!(room.ask(&ann, "u a|a b|u C|a d|u e|a F|u g", "a h"), "extends s1/fork_1 6");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e|a f|u g", "a h"), "extends s1/root 6");
        assert_eq!(room.ask(&ann, "u a|a b|u c|u e2|a f2|u g", "a h"), "extends s1/fork_3 5");
        assert_eq!(room.ask(&ann, "u a|a b|u C|a d|u e|a F|u G", "a H"), "forks s1/fork_4 6");
    }
}

#[test]
fn a_branch_that_was_left_and_is_taken_up_again_is_a_fork() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        room.ask(&ann, "u a|a b", "a b2");
        let back = room.send(&ann, "u a|a b|u c|a d|u e");
        assert_eq!(back.told, "forks s1/fork_1 4");
        assert_eq!(room.seen(&back.placed.session, &back.thread), ["u a", "a b", "u c", "a d", "u e"]);
        room.answer(&back, "a f");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e|a f|u g", "a h"), "extends s1/fork_1 6");
    }
}

#[test]
fn a_request_beside_the_conversation_leaves_it_alone() {
    for room in rooms() {
        let ann = client("ann");
        let plain = crate::place::kit::Client { tools: false, ..ann.clone() };
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        let before = room.everything();
        // A summary with the same beginning and no tools.
        let side = room.send(&plain, "u a|a b|u c|a d|u summarise");
        assert_eq!(side.told, "beside s1/side_1 4");
        assert_eq!(
            room.seen(&side.placed.session, &side.thread),
            ["u a", "a b", "u c", "a d", "u summarise"]
        );
        room.answer(&side, "a short");
        assert_eq!(room.everything()[..1], before, "the thread has not one entry more");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e", "a f"), "extends s1/root 4");
        assert_eq!(room.ask(&plain, "u a|a b|u c|a d|u e|a f|u summarise", "a s"), "beside s1/side_2 6");
        // A title has other words: it is a session of its own, and so is the next.
        assert_eq!(room.ask(&plain, "s title|u a", "a A title"), "new s2/root 0");
        // A client that never has tools is never beside itself.
        let bob = crate::place::kit::Client { tools: false, ..client("bob") };
        room.ask(&bob, "u a", "a b");
        assert_eq!(room.ask(&bob, "u a|a b|u c", "a d"), "extends s3/root 2");
        assert_eq!(room.ask(&bob, "u a|a b|u c", "a d"), "again s3/root 3");
    }
}

#[test]
fn another_system_prompt_without_tools_is_beside() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let room = Room::in_memory(dialect);
        let mut ann = crate::place::kit::Client { tools: false, ..client("ann") };
        ann.system = Some("x-anthropic-billing-header: 1\nBe brief.".into());
        room.ask(&ann, "u a", "a b");
        ann.system = Some("x-anthropic-billing-header: 2\nBe brief.".into());
        assert_eq!(room.ask(&ann, "u a|a b|u c", "a d"), "extends s1/root 2");
        ann.system = Some("Write a title.".into());
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e", "a f"), "beside s1/side_1 4");
    }
}

#[test]
fn a_request_while_another_is_under_way_goes_beside_it() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        let slow = room.send(&ann, "u a|a b|u c");
        room.mark_busy(&slow);
        let one = room.send(&ann, "u a|a b|u d");
        assert_eq!(one.told, "beside s1/side_1 2");
        assert_eq!(room.seen(&one.placed.session, &one.thread), ["u a", "a b", "u d"]);
        let same = room.send(&ann, "u a|a b|u c");
        assert_eq!(same.told, "beside s1/side_2 3");
        assert_eq!(room.seen(&same.placed.session, &same.thread), ["u a", "a b", "u c"]);
        let more = room.send(&ann, "u a|a b|u c|u and?");
        assert_eq!(room.seen(&more.placed.session, &more.thread), ["u a", "a b", "u c", "u and?"]);
        room.busy.borrow_mut().clear();
        room.answer(&slow, "a e");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a e|u f", "a g"), "extends s1/root 4");
    }
}

#[test]
fn an_ended_session_is_not_written_to() {
    for room in rooms() {
        let ann = client("ann");
        for ending in [Ending::Completed, Ending::Failed, Ending::Stopped, Ending::Paused] {
            let script = format!("u {}", ending.name());
            let done = room.send(&ann, &script);
            room.answer(&done, "a b");
            let id = &done.placed.session;
            match ending {
                Ending::Completed => room.engine.complete(id, None).unwrap(),
                Ending::Failed => room.engine.fail(id, "why").unwrap(),
                Ending::Paused => room.engine.pause(id, None).unwrap(),
                _ => room.engine.stop(id, None).unwrap(),
            };
            let next = room.send(&ann, &format!("{script}|a b|u c"));
            assert!(next.told.starts_with("new") && next.placed.session != *id, "{}", next.told);
            // From then on the new one is where it goes on.
            room.answer(&next, "a d");
            let third = room.send(&ann, &format!("{script}|a b|u c|a d|u e"));
            assert_eq!((third.placed.session, third.placed.known), (next.placed.session, 4));
        }
    }
}

#[test]
fn a_clock_in_the_system_prompt_makes_no_other_conversation() {
    for dialect in Dialect::ALL {
        let room = Room::in_memory(dialect);
        let mut ann = crate::place::kit::Client { tools: false, ..client("ann") };
        let mut script = String::new();
        for n in 0..6 {
            let prompt = format!("You open windows. It is 2026-11-15T23:{n}{n}:17Z. Be brief.");
            let head = if matches!(dialect, Dialect::Messages | Dialect::Responses) {
                ann.system = Some(prompt);
                String::new()
            } else {
                format!("s {prompt}|")
            };
            script.push_str(&format!("u {n}"));
            let told = room.ask(&ann, &format!("{head}{script}"), "a b");
            let how = if n == 0 { "new" } else { "extends" };
            assert!(told.starts_with(&format!("{how} s1/root ")), "{dialect:?} {n}: {told}");
            script.push_str("|a b|");
        }
        // Another prompt is still another.
        if matches!(dialect, Dialect::Chat | Dialect::Ollama) {
            let other = format!("s You close windows.|{script}u x");
            assert!(room.ask(&ann, &other, "a b").starts_with("new s2/root"), "{dialect:?}");
        }
    }
}

#[test]
fn a_request_beside_that_goes_on_stays_where_it_is() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let room = Room::in_memory(dialect);
        let mut ann = client("ann");
        room.ask(&ann, "u a", "a b");
        ann.tools = false;
        ann.system = Some("Write a title.".into());
        let mut script = "u a|a b|u title".to_owned();
        assert_eq!(room.ask(&ann, &script, "a T"), "beside s1/side_1 2");
        for n in 0..3 {
            ann.system = Some(format!("{n} Another prompt: {}", "x".repeat(n * 50)));
            script.push_str(&format!("|a T|u shorter {n}"));
            assert_eq!(room.ask(&ann, &script, "a T"), format!("extends s1/side_1 {}", 4 + 2 * n));
        }
    }
}
