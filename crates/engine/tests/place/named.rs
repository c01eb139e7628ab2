//! Clients that name their session, by our header or by one of their own, and those that name the reply they go on from.

use crate::place::kit::{Client, Room, client, meta, named, rooms};
use komado_core::session::State;
use komado_core::{Message, Role, SessionId, ThreadId};
use komado_engine::place::{Placement, TranscriptCaller, VisibleSessions, alias, reply_name};
use komado_provider::Dialect;
use komado_store::OpenMode;

fn ours(name: &str) -> Client {
    let mut client = client(name);
    client.caller.session = Some(SessionId::new(name).unwrap());
    client
}

#[test]
fn the_name_that_a_client_gives_leads_to_its_session() {
    for room in rooms() {
        let (ann, other) = (named("key", "ann"), named("key", "other"));
        let done = room.send(&ann, "u hello");
        assert_eq!((done.told.as_str(), done.placed.alias.clone()), ("new s1/root 0", alias(&ann.caller)));
        room.answer(&done, "a hi");
        assert_eq!(room.ask(&other, "u hello", "a hi"), "new s2/root 0");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
        assert_eq!(room.ask(&other, "u hello|a hi|u x", "a y"), "extends s2/root 2");
        // The same name under another key is another session.
        assert_eq!(room.ask(&named("key2", "ann"), "u hello|a hi|u x", "a y"), "new s3/root 0");
        // First words once more, in a session that is named: asked again, not begun anew.
        let again = room.send(&ann, "u hello");
        assert_eq!(again.told, "rewinds s1/root 1");
        room.answer(&again, "a hi");
        assert_eq!(room.ask(&ann, "u hello", "a hi"), "again s1/root 1");
    }
}

#[test]
fn a_client_that_makes_its_own_summary_goes_on_in_a_fork_from_the_beginning() {
    for room in rooms() {
        let ann = named("key", "ann");
        room.ask(&ann, "u a", "a b");
        room.ask(&ann, "u a|a b|u c", "a d");
        let anew = room.send(&ann, "u summary of all that|u e");
        assert_eq!(anew.told, "forks s1/fork_1 0");
        assert_eq!(room.seen(&anew.placed.session, &anew.thread), ["u summary of all that", "u e"]);
        room.answer(&anew, "a f");
        assert_eq!(room.ask(&ann, "u summary of all that|u e|a f|u g", "a h"), "extends s1/fork_1 3");
        // A helper of the same session with another beginning, and a title.
        assert_eq!(room.ask(&ann, "u explore", "a done"), "forks s1/fork_2 0");
        let plain = Client { tools: false, ..ann.clone() };
        assert_eq!(room.ask(&plain, "u title for this", "a T"), "beside s1/side_1 0");
        assert_eq!(room.ask(&ann, "u a|a b|u c|a d|u e", "a f"), "extends s1/root 4");
    }
}

#[test]
fn a_title_that_comes_first_leaves_the_root_to_the_conversation() {
    for room in rooms() {
        let ann = named("key", "ann");
        let plain = Client { tools: false, ..ann.clone() };
        assert_eq!(room.ask(&plain, "u title for this", "a T"), "new s1/side_1 0");
        assert_eq!(room.ask(&ann, "u hello", "a hi"), "extends s1/root 0");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
        assert_eq!(room.ask(&plain, "u title for this|a T|u a shorter one", "a t"), "extends s1/side_1 2");
    }
}

#[test]
fn our_own_header_names_a_session_that_is_there_or_is_to_be_made() {
    for room in rooms() {
        let ann = ours("ann");
        let done = room.send(&ann, "u hello");
        assert_eq!(done.told, "new s1/root 0");
        assert_eq!((done.placed.session.as_str(), done.placed.alias.clone()), ("ann", None));
        room.answer(&done, "a hi");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
        assert_eq!(room.ask(&ann, "u something else", "a z"), "forks s1/fork_1 0");
        // One that was made by hand and has said nothing takes the first words; one that has does not.
        for (name, says) in [("empty", false), ("spoken", true)] {
            let id = SessionId::new(name).unwrap();
            room.engine.create(&meta(&id, None)).unwrap();
            let mut root = room.engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
            root.set_up(komado_core::journal::Setup { system: Some("s".into()), ..Default::default() })
                .unwrap();
            if says {
                root.say(Message::text(Role::User, "by hand")).unwrap();
            }
            drop(root);
            let placed = room.place(&ours(name), "u hello").unwrap();
            let expected = if says { (Placement::Forks, 0) } else { (Placement::Extends, 1) };
            assert_eq!((placed.how, placed.at), expected, "{name}");
        }
    }
}

#[test]
fn a_header_that_names_an_ended_session_is_an_error_that_says_what_to_do() {
    let room = Room::in_memory(Dialect::Chat);
    let ann = ours("ann");
    room.ask(&ann, "u hello", "a hi");
    room.engine.complete(ann.caller.session.as_ref().unwrap(), None).unwrap();
    let error = room.place(&ann, "u hello|a hi|u x").unwrap_err().to_string();
    assert!(
        error.contains("ann") && error.contains(State::Completed.name()) && error.contains("resume"),
        "{error}"
    );
    // A name of the client's own leads on to a new session.
    let bob = named("key", "bob");
    let first = room.send(&bob, "u hello");
    room.answer(&first, "a hi");
    room.engine.complete(&first.placed.session, None).unwrap();
    let next = room.send(&bob, "u hello|a hi|u x");
    assert_eq!((next.placed.how, next.placed.known), (Placement::New, 0));
    room.answer(&next, "a y");
    let third = room.place(&bob, "u hello|a hi|u x|a y|u z").unwrap();
    assert_eq!((third.how, third.session, third.known), (Placement::Extends, next.placed.session, 4));
}

#[test]
fn a_reply_that_is_only_named_leads_to_its_thread() {
    for room in [Room::in_memory(Dialect::Responses), Room::in_files(Dialect::Responses)] {
        let ann = client("ann");
        let named = |id: &str| Some(reply_name(&ann.caller, id));
        let after = |id: &str| Client { previous: Some(id.into()), ..ann.clone() };
        let first = room.send(&ann, "u hello");
        room.answer_as(&first, "a hi", named("resp_1"));
        let second = room.send(&after("resp_1"), "u x");
        assert_eq!(second.told, "extends s1/root 0");
        room.answer_as(&second, "a y", named("resp_2"));
        assert_eq!(room.seen(&second.placed.session, &second.thread), ["u hello", "a hi", "u x", "a y"]);
        // From an earlier one, or from the same one twice: a fork.
        let other = room.send(&after("resp_1"), "u x2");
        assert_eq!(other.told, "forks s1/fork_1 0");
        assert_eq!(room.seen(&other.placed.session, &other.thread), ["u hello", "a hi", "u x2"]);
        assert_eq!(room.send(&after("resp_2"), "u z").told, "extends s1/root 0");
        // One that nobody knows, or that another was given.
        assert_eq!(room.place(&after("resp_9"), "u z").unwrap().how, Placement::New);
        let bob = Client { previous: Some("resp_1".into()), ..client("bob") };
        assert_eq!(room.place(&bob, "u z").unwrap().how, Placement::New);
        // A part of a transcript is never taken for the beginning of another.
        assert_eq!(room.place(&ann, "u x|a y|u z").unwrap().how, Placement::New);
    }
}

/// A client that may enter the sessions of one user alone.
fn of(user: &str, client: Client) -> Client {
    let sees = Some(VisibleSessions { user: Some(user.into()), sessions: Vec::new() });
    let caller = TranscriptCaller { user: Some(user.into()), sees, ..client.caller };
    Client { caller, ..client }
}

#[test]
fn a_session_that_waits_under_the_name_to_be_is_not_entered() {
    for room in rooms() {
        let ann = of("ann", named("key", "default"));
        let to_be = room.place(&ann, "u hello").unwrap().session;
        // Whoever knows how names are made can make it first; also one who claims to be her, but not for this name.
        for user in ["bob", "ann"] {
            let user = Some(user.to_owned());
            room.engine.create(&komado_core::session::Meta { user, ..meta(&to_be, None) }).unwrap();
            let placed = room.place(&ann, "u hello").unwrap();
            assert!(placed.how == Placement::New && placed.session != to_be, "{placed:?}");
            room.engine.store().remove(&to_be).unwrap();
        }
        assert_eq!(room.ask(&ann, "u hello", "a hi"), "new s1/root 0");
        assert_eq!(room.ask(&ann, "u hello|a hi|u x", "a y"), "extends s1/root 2");
    }
}

#[test]
fn a_key_that_was_given_to_another_does_not_lead_into_the_sessions_of_the_first() {
    for room in rooms() {
        let called = |user: &str| of(user, named("key laptop", "default"));
        let plain = |user: &str| of(user, client("key phone"));
        for by in [called, plain] {
            let (ann, bob) = (by("ann"), by("bob"));
            let hers = room.send(&ann, "u hello");
            room.answer(&hers, "a hi");
            let his = room.send(&bob, "u hello|a hi|u x");
            assert_eq!((his.placed.how, his.placed.known), (Placement::New, 0));
            assert_ne!(his.placed.session, hers.placed.session);
            room.answer(&his, "a y");
            // Each goes on in their own.
            let next = room.send(&bob, "u hello|a hi|u x|a y|u z");
            assert_eq!((next.placed.how, &next.placed.session), (Placement::Extends, &his.placed.session));
            let next = room.send(&ann, "u hello|a hi|u x2");
            assert_eq!((next.placed.how, &next.placed.session), (Placement::Extends, &hers.placed.session));
            // One that is shared by its name is entered.
            let mut guest = bob.clone();
            let shared = vec![hers.placed.session.to_string()];
            guest.caller.sees = Some(VisibleSessions { user: None, sessions: shared });
            guest.caller.named = None;
            guest.caller.session = Some(hers.placed.session.clone());
            assert_eq!(room.place(&guest, "u hello").unwrap().session, hers.placed.session);
            guest.caller.sees = bob.caller.sees.clone();
            let error = room.place(&guest, "u hello").unwrap_err().to_string();
            assert!(error.contains(hers.placed.session.as_str()), "{error}");
        }
    }
}

#[test]
fn a_reply_that_is_named_by_another_user_is_unknown() {
    let room = Room::in_memory(Dialect::Responses);
    let (ann, bob) = (of("ann", client("key")), of("bob", client("key")));
    let first = room.send(&ann, "u hello");
    room.answer_as(&first, "a hi", Some(reply_name(&ann.caller, "resp_1")));
    let after = |client: &Client| Client { previous: Some("resp_1".into()), ..client.clone() };
    assert_eq!(room.place(&after(&bob), "u x").unwrap().how, Placement::New);
    assert_eq!(room.place(&after(&ann), "u x").unwrap().how, Placement::Extends);
}

#[test]
fn two_first_requests_of_one_named_session_at_once_are_one_session() {
    for room in rooms() {
        let ann = named("key", "ann");
        let (one, other) = (room.place(&ann, "u hello").unwrap(), room.place(&ann, "u title").unwrap());
        assert_eq!((one.how, other.how, &one.session), (Placement::New, Placement::New, &other.session));
        // The slower one finds the session there, and looks again.
        let first = room.send(&ann, "u hello");
        room.mark_busy(&first);
        let second = room.send(&ann, "u title");
        assert_eq!((first.told.as_str(), second.told.as_str()), ("new s1/root 0", "forks s1/fork_1 0"));
        assert_eq!(room.seen(&second.placed.session, &second.thread), ["u title"]);
    }
}
