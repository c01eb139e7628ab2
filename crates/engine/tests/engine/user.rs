//! Users: their standing session, what they said lately, their habits, and that they can be forgotten.

use crate::engine::room::{Room, call, calls, everywhere, meta, model, used, user};
use komado_core::SessionId;
use komado_core::journal::{Entry, Reply, Sent};
use komado_core::session::Meta;
use komado_engine::user::{SpokenPlace, standing};
use komado_store::{Holder, Job, SessionQuery};
use std::time::Duration;

fn session_of(room: &Room, name: &str, whose: &str) -> SessionId {
    let at = room.engine.now();
    room.engine.create(&Meta { user: Some(whose.to_owned()), ..meta(name, &at) }).unwrap()
}

#[test]
fn a_standing_session_of_that_name_that_is_somebody_elses_is_refused() {
    everywhere(|room| {
        assert!(room.engine.standing("ann").unwrap().1.is_none());
        session_of(room, "session_ann", "ann");
        assert_eq!(room.engine.standing("ann").unwrap().1.unwrap().meta.user.as_deref(), Some("ann"));
        session_of(room, "session_bob", "ann");
        let why = room.engine.standing("bob").unwrap_err().to_string();
        assert!(why.contains("session_bob") && why.contains("not this user's"), "{why}");
    });
}

#[test]
fn users_are_listed_by_name_a_page_at_a_time() {
    everywhere(|room| {
        for (i, whose) in ["花子", "ann", "bob", "ann", "花子", "ann"].iter().enumerate() {
            session_of(room, &format!("s{i}"), whose);
        }
        let mut seen: Vec<(String, u64)> = Vec::new();
        loop {
            let page = room.engine.users(seen.last().map(|(user, _)| user.as_str()), 2).unwrap();
            if page.is_empty() {
                break;
            }
            seen.extend(page.into_iter().map(|user| (user.user, user.sessions)));
        }
        assert_eq!(seen, [("ann".to_owned(), 3), ("bob".to_owned(), 1), ("花子".to_owned(), 2)]);
        assert_eq!(room.engine.user("ann").unwrap().unwrap().sessions, 3);
        assert_eq!(room.engine.user("eve").unwrap(), None);
    });
}

#[test]
fn what_was_said_lately_is_told_over_all_sessions_and_page_by_page() {
    everywhere(|room| {
        let ids: Vec<SessionId> = (0..3).map(|i| session_of(room, &format!("s{i}"), "ann")).collect();
        let other = session_of(room, "other", "bob");
        for n in 0..9 {
            let mut root = room.root(&ids[n % 3]);
            root.say(user(&format!("質問 {n}"))).unwrap();
            root.reply(model(&format!("答え {n}")), used(1, 1)).unwrap();
            root.settle().unwrap();
            drop(root);
            room.root(&other).say(user("not hers")).unwrap();
        }
        let mut said = Vec::new();
        let mut before: Option<SpokenPlace> = None;
        loop {
            let page = room.engine.recent("ann", before.as_ref(), 4).unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.clone());
            said.extend(page.into_iter().map(|place| room.engine.spoken(place).unwrap().text));
        }
        let all: Vec<String> =
            (0..9).rev().flat_map(|n| [format!("答え {n}"), format!("質問 {n}")]).collect();
        assert_eq!(said, all);
        assert!(room.engine.recent("eve", None, 4).unwrap_err().to_string().contains("eve"));
    });
}

#[test]
fn a_session_that_changed_before_the_newest_words_is_not_opened() {
    let room = Room::memory();
    let ids: Vec<SessionId> = (0..40).map(|i| session_of(&room, &format!("s{i:02}"), "ann")).collect();
    for id in &ids {
        let mut root = room.root(id);
        root.say(user("質問")).unwrap();
        root.settle().unwrap();
    }
    // The rows are one call, and each session that is opened some more: with all forty it would have to fail.
    let engine =
        room.engine_on(std::sync::Arc::new(komado_testkit::Faulty::down_from(room.memory.clone(), 40)));
    let places = engine.recent("ann", None, 3).unwrap();
    let sessions: Vec<&str> = places.iter().map(|place| place.session.as_str()).collect();
    assert_eq!(sessions, ["s39", "s38", "s37"]);
}

#[test]
fn habits_count_what_was_said_with_whom_and_how_it_went() {
    everywhere(|room| {
        let ids = [session_of(room, "s0", "ann"), session_of(room, "s1", "ann")];
        for id in &ids {
            let mut root = room.root(id);
            root.say(user("設定を直して")).unwrap();
            let reply = Reply { model: Some("gpt-4o".into()), ..used(10, 5) };
            root.reply(calls(vec![call("a", "read", "{}")]), reply).unwrap();
            root.say(crate::engine::room::result("a", "long")).unwrap();
            root.reply(model("直した"), used(1, 1)).unwrap();
            let sent =
                Sent { digest: "d".into(), model: "m".into(), context_tokens: 9, purpose: None, mark: None };
            let to = Some(root.append(Entry::Sent(sent)).unwrap());
            root.append(Entry::Lost(Reply { to, finish: "overflow".into(), ..Reply::default() })).unwrap();
        }
        room.engine.complete(&ids[0], None).unwrap();
        let habits = room.engine.habits("ann").unwrap();
        assert_eq!((habits.sessions, habits.turns, habits.replies, habits.overflows), (2, 2, 2, 2));
        assert_eq!((habits.tool_calls, habits.hours[10], habits.overflow_rate), (2, 2, 1.0));
        assert_eq!((habits.by_status["completed"], habits.by_status["running"]), (1, 1));
        let names = |all: &[komado_engine::user::NameCount]| {
            all.iter().map(|share| (share.name.clone(), share.count)).collect::<Vec<_>>()
        };
        assert_eq!(names(&habits.models), [("gpt-4o".to_owned(), 2)]);
        assert_eq!(names(&habits.tools), [("read".to_owned(), 2)]);
        assert_eq!(names(&habits.words), [("設定".to_owned(), 2)]);
        assert_eq!(names(&habits.questions), [("設定を直して".to_owned(), 2)]);
        assert_eq!((habits.mean_turn_chars, habits.mean_reply_chars), (6.0, 3.0));
    });
}

#[test]
fn only_what_was_kept_and_has_not_changed_is_erased() {
    everywhere(|room| {
        let id = crate::engine::story::tell(room, "s");
        let folder = tempfile::tempdir().unwrap();
        let kept = room.engine.keep(&id, folder.path()).unwrap();
        let bytes = std::fs::read(&kept.path).unwrap();
        assert_eq!(
            (kept.bytes, kept.digest),
            (bytes.len() as u64, blake3::hash(&bytes).to_hex().to_string())
        );
        room.root(&id).say(user("wait")).unwrap();
        assert!(!room.engine.erase(&id, folder.path()).unwrap());
        room.engine.keep(&id, folder.path()).unwrap();
        let writing = room.root(&id);
        let why = room.engine.erase(&id, folder.path()).unwrap_err().to_string();
        assert!(why.contains("is being written"), "{why}");
        drop(writing);
        assert!(room.engine.erase(&id, folder.path()).unwrap());
        assert!(room.engine.store().sessions(&SessionQuery::default()).unwrap().is_empty());
        let mut file = std::io::BufReader::new(std::fs::File::open(&kept.path).unwrap());
        assert_eq!(room.engine.import(&mut file, None, |_| {}).unwrap(), id);
    });
}

#[test]
fn of_very_many_jobs_the_users_own_are_withdrawn_and_held_ones_named() {
    let room = Room::memory();
    let store = room.engine.store();
    for n in 0..450 {
        let whose = if n % 3 == 1 { "bob" } else { "ann" };
        let session = SessionId::new(format!("j{n}")).unwrap();
        let (user, at) = (Some(whose.to_owned()), "2024-01-15T10:00:00Z".to_owned());
        store.enqueue(&Job { key: format!("k{n}"), session, user, body: "{}".into(), at }).unwrap();
    }
    let holder = Holder { pid: 1, host: "h".into(), program: "p".into(), since: "s".into() };
    store.take(&holder, Duration::from_secs(3600)).unwrap().unwrap();
    let mut held = Vec::new();
    assert_eq!(room.engine.withdraw_jobs("ann", |id| held.push(id.to_string())).unwrap(), 299);
    assert_eq!(held, ["j0"]);
    assert_eq!(store.jobs(None, 0).unwrap().len(), 151);
    assert_eq!(standing("ann").unwrap().as_str(), "session_ann");
}
