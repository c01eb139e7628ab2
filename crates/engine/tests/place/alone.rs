//! What is left when something is gone: the table, a row of it, a session, the end of a journal; and what others wrote.

use crate::place::kit::{Room, client, mark, named, rooms};
use komado_core::journal::{Entry, Reply, Sent, TranscriptMark};
use komado_core::message::{Call, CallKind, MessagePart, ToolOutcome};
use komado_core::{Message, Role, SessionId, ThreadId};
use komado_engine::place::Placement;
use komado_provider::Dialect;
use komado_store::{OpenMode, TranscriptPlace};

#[test]
fn a_lost_table_loses_no_place() {
    for dialect in Dialect::ALL {
        let room = Room::in_files(dialect);
        let (ann, bob) = (client("ann"), named("key", "bob"));
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        room.ask(&bob, "u a", "a b");
        let room = room.without_table();
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e", "a f"), "extends s1/root 4");
        assert_eq!(room.ask(&bob, "u a|a b|u c", "a d"), "extends s2/root 2");
    }
}

#[test]
fn a_row_that_is_missing_is_made_up_for_by_the_journal() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        room.forgets.set(true);
        room.ask(&ann, "u a|a b|u c", "a d");
        room.ask(&ann, "u a|a b|u c|a d|u e", "a f");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e|a f|u g", "a h"), "extends s1/root 6");
    }
}

#[test]
fn places_that_lead_nowhere_are_passed_over() {
    for room in rooms() {
        let ann = client("ann");
        let done = room.send(&ann, "u a");
        room.answer(&done, "a b");
        let (skim, _) = room.arrive(&ann, "u a");
        let spot = |session: &str, thread: &str, seq| TranscriptPlace {
            name: skim.digest(1).unwrap(),
            session: SessionId::new(session).unwrap(),
            thread: ThreadId::new(thread).unwrap(),
            seq,
        };
        let own = done.placed.session.as_str();
        let odd = [
            spot("gone", "root", 2),
            spot(own, "gone", 2),
            spot(own, "root", 99),
            spot(own, "root", 1),
            spot(own, "root", 0),
        ];
        room.engine.store().note(&odd).unwrap();
        assert_eq!(room.ask(&ann, "u a|a b|u c", "a d"), "extends s1/root 2");
        room.engine.store().remove(&done.placed.session).unwrap();
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e", "a f"), "new s2/root 0");
    }
}

#[test]
fn words_that_were_taken_in_and_never_sent_are_not_taken_in_twice() {
    for room in rooms() {
        let ann = client("ann");
        let done = room.send(&ann, "u a");
        room.answer(&done, "a b");
        // The process ended here, before `Sent`.
        room.open(&done).say(Message::text(Role::User, "c")).unwrap();
        let again = room.send(&ann, "u a|a b|u c");
        assert_eq!(again.told, "again s1/root 2");
        assert_eq!(room.seen(&again.placed.session, &again.thread), ["u a", "a b", "u c"]);
        // What somebody else put there stays.
        room.answer(&again, "a d");
        room.open(&again).say(Message::text(Role::User, "by hand")).unwrap();
        let next = room.send(&ann, "u a|a b|u c|a d|u e");
        assert_eq!(next.told, "extends s1/root 4");
        assert_eq!(room.seen(&next.placed.session, &next.thread)[4..], ["u by hand", "u e"]);
    }
}

#[test]
fn a_request_that_was_sent_several_times_is_one_place() {
    for room in rooms() {
        let ann = client("ann");
        let done = room.send(&ann, "u a");
        // Refused as too large, made smaller, and sent again.
        let (skim, _) = room.arrive(&ann, "u a");
        let mut thread = room.open(&done);
        let refused = Reply { to: Some(done.sent), finish: "refused".into(), ..Reply::default() };
        thread.append(Entry::Lost(refused)).unwrap();
        let again = Sent {
            digest: "e".into(),
            model: "m".into(),
            context_tokens: 0,
            purpose: None,
            mark: Some(mark(&skim, 1, vec![])),
        };
        let seq = thread.append(Entry::Sent(again)).unwrap();
        drop(thread);
        room.answer(&crate::place::kit::Done { sent: seq, ..done }, "a b");
        assert_eq!(room.ask(&ann, "u a|a b|u c", "a d"), "extends s1/root 2");
    }
}

/// The model calls a tool of ours, is answered, and goes on; the client is told both replies as one.
#[test]
fn calls_of_our_own_tools_are_not_the_clients() {
    for room in rooms() {
        let ann = client("ann");
        let done = room.send(&ann, "u a");
        let call = |id: &str, name: &str| {
            let (id, name, arguments) = (id.into(), name.into(), "{}".into());
            MessagePart::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
        };
        let mut thread = room.open(&done);
        let first = Message::of(Role::Assistant, vec![MessagePart::text("I look."), call("o1", "recall")]);
        thread.reply(first, Reply { to: Some(done.sent), ..Reply::default() }).unwrap();
        let outcome = ToolOutcome {
            call_id: "o1".into(),
            name: Some("recall".into()),
            content: vec![MessagePart::text("found")],
            is_error: false,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
            replaces: None,
        };
        thread.say(Message::of(Role::Tool, vec![MessagePart::Result(outcome)])).unwrap();
        let (skim, _) = room.arrive(&ann, "u a");
        let inner = TranscriptMark { inner: true, ..mark(&skim, 1, vec![]) };
        let sent = Sent {
            digest: "e".into(),
            model: "m".into(),
            context_tokens: 0,
            purpose: None,
            mark: Some(inner),
        };
        let sent = thread.append(Entry::Sent(sent)).unwrap();
        let second = Message::text(Role::Assistant, "There.");
        let end = thread.reply(second, Reply { to: Some(sent), ..Reply::default() }).unwrap();
        drop(thread);
        let placed = room.place(&ann, "u a|a I look.There.|u c").unwrap();
        assert_eq!((placed.how, placed.at, placed.known), (Placement::Extends, end, 2));
        let placed = room.place(&ann, "u a|a Something else.|u c").unwrap();
        assert_eq!((placed.how, placed.at, placed.known), (Placement::Forks, done.sent, 1));
    }
}

#[test]
fn a_fork_that_shares_the_request_goes_on_where_the_thread_would_have_to_part() {
    for room in rooms() {
        let ann = client("ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        let fork = room.send(&ann, "u a|a b|u c2");
        assert_eq!(fork.told, "forks s1/fork_1 2");
        // Somebody takes the fork back to where it began.
        let at = fork.placed.at;
        room.open(&fork).rewind(at).unwrap();
        assert_eq!(room.ask(&ann, "u a|a b|u c3", "a d"), "extends s1/fork_1 2");
    }
}

#[test]
fn placing_writes_nothing() {
    for room in rooms() {
        let ann = named("key", "ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        let before = room.everything();
        for script in ["u a", "u a|a b|u c", "u a|a b|u c|a d|u e", "u a|a b|u x", "u new", "u a|a b", ""] {
            room.place(&ann, script).unwrap();
            room.place(&client("ann"), script).unwrap();
        }
        assert_eq!(room.everything(), before);
        let mode = OpenMode::Write;
        assert!(room.engine.open(&before[0].0, &before[0].1, mode).is_ok());
    }
}

#[test]
fn a_tool_of_the_clients_that_has_the_name_of_ours_is_the_clients() {
    for dialect in [Dialect::Chat, Dialect::Messages, Dialect::Responses] {
        for room in [Room::in_memory(dialect), Room::in_files(dialect)] {
            let ann = client("ann");
            room.ask(&ann, "u a", "c c1 recall {}");
            let told = "u a|c c1 recall {}|r c1 found";
            assert_eq!(room.ask(&ann, told, "a b"), "extends s1/root 2");
            assert_eq!(room.ask(&ann, &format!("{told}|a b|u c"), "a d"), "extends s1/root 4");
            // Another result is another past, from the call on.
            let other = room.send(&ann, "u a|c c1 recall {}|r c1 something else");
            assert_eq!(other.told, "forks s1/fork_1 2");
            assert_eq!(room.seen(&other.placed.session, &other.thread)[2..], ["t something else"]);
        }
    }
}

#[test]
fn a_batch_with_one_prompt_is_looked_through_no_further_than_a_few() {
    let room = Room::in_files(Dialect::Chat);
    let ann = client("ann");
    let lost = room.send(&ann, "u a");
    room.mark_busy(&lost);
    for n in 2..10 {
        assert_eq!(room.ask(&ann, "u a", "a b"), format!("new s{n}/root 0"));
        room.busy.borrow_mut().clear();
        if n < 9 {
            assert_eq!(room.place(&ann, "u a").unwrap().how, Placement::Again, "{n}");
        }
        room.mark_busy(&lost);
    }
    room.busy.borrow_mut().clear();
    assert_eq!(room.place(&ann, "u a").unwrap().how, Placement::New);
}

#[test]
fn the_next_of_a_long_row_of_forks_is_found() {
    let room = Room::in_memory(Dialect::Chat);
    let ann = named("key", "ann");
    room.ask(&ann, "u a", "a b");
    for n in 1..20 {
        assert_eq!(room.ask(&ann, &format!("u other {n}"), "a b"), format!("forks s1/fork_{n} 0"));
    }
}
