//! Sessions: made, listed, changed, ended, removed.

use super::{make, meta, root, sid, tid};
use crate::suite::play::{self, said};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::{Role, SessionId, ThreadId};
use komado_store::{Error, OpenMode, SessionChange, SessionQuery, Store};
use komado_testkit::Book;

fn ids(store: &dyn Store, query: &SessionQuery) -> Vec<String> {
    store.sessions(query).unwrap().into_iter().map(|session| session.meta.uuid).collect()
}

fn enter(store: &dyn Store, id: &SessionId, to: State, at: &str) -> Session {
    store.change(id, &SessionChange::State { to, at: at.into(), why: None }).unwrap()
}

pub(crate) fn a_session_is_listed_as_it_was_made(store: &dyn Store) {
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), []);
    let mut made = meta("s", 3);
    made.user = Some("ann".into());
    made.config.llm_provider = Some("openai".into());
    made.config.context_length = Some(128_000);
    made.config.compression_threshold = Some(0.7);
    store.create(&made).unwrap();
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), [Session::new(&made)]);
    let queued = Meta { queued: true, ..meta("q", 4) };
    store.create(&queued).unwrap();
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap()[1], Session::new(&queued));
    let threads = store.threads(&sid("s")).unwrap();
    assert_eq!(threads.len(), 1);
    assert!(threads[0].thread.is_root() && threads[0].base.is_none() && threads[0].session == sid("s"));
    assert_eq!(threads[0].timestamp, made.created_at);
}

pub(crate) fn an_id_is_given_once(store: &dyn Store) {
    let id = make(store, "s");
    play::write(&mut Book::default(), &mut *root(store, &id, OpenMode::Write), said(Role::User, "kept"), 1);
    assert!(matches!(store.create(&meta("s", 1)), Err(Error::SessionExists(taken)) if taken == id));
    enter(store, &id, State::Completed, "2024-01-15T11:00:00Z");
    assert!(matches!(store.create(&meta("s", 1)), Err(Error::SessionExists(_))));
    assert_eq!(root(store, &id, OpenMode::Read).last(), 1);
    assert_eq!(ids(store, &SessionQuery::default()), ["s"]);
}

pub(crate) fn nothing_is_made_under_an_id_that_is_none(store: &dyn Store) {
    for id in
        ["", "..", "../x", "a/b", "/etc", ".hidden", "-x", "a b", "a\u{202e}b", "a\0b", &"x".repeat(129)]
    {
        let bad = Meta { uuid: id.into(), ..meta("good", 0) };
        assert!(store.create(&bad).is_err(), "{id:?}");
    }
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), []);
}

pub(crate) fn sessions_come_in_the_order_they_were_made_page_by_page(store: &dyn Store) {
    for (id, minute) in [("c", 1), ("a", 2), ("b", 2), ("e", 0), ("d", 2)] {
        store.create(&meta(id, minute)).unwrap();
    }
    assert_eq!(ids(store, &SessionQuery::default()), ["e", "c", "a", "b", "d"]);
    let mut query = SessionQuery { limit: 2, ..SessionQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = store.sessions(&query).unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        query.after = Some((last.meta.created_at.clone(), sid(&last.meta.uuid)));
        seen.extend(page.into_iter().map(|session| session.meta.uuid));
        // What is made while someone turns pages disturbs no page.
        if seen.len() == 2 {
            store.create(&meta("late", 59)).unwrap();
        }
    }
    assert_eq!(seen, ["e", "c", "a", "b", "d", "late"]);
}

pub(crate) fn each_filter_keeps_what_it_names_and_they_add_up(store: &dyn Store) {
    for (minute, (id, user)) in
        [("ab1", "ann"), ("ab2", "bob"), ("b_1", "ann"), ("bx1", "ann")].iter().enumerate()
    {
        let user = Some((*user).to_owned());
        store.create(&Meta { user, ..meta(id, u32::try_from(minute).unwrap()) }).unwrap();
    }
    enter(store, &sid("ab2"), State::Completed, "2024-02-01T00:00:00Z");
    enter(store, &sid("b_1"), State::Failed, "2024-03-01T00:00:00Z");
    let prefix = |p: &str| SessionQuery { prefix: Some(p.into()), ..SessionQuery::default() };
    assert_eq!(ids(store, &prefix("ab")), ["ab1", "ab2"]);
    assert_eq!(ids(store, &prefix("ab1")), ["ab1"]);
    assert_eq!(ids(store, &prefix("b_")), ["b_1"], "`_` and `%` are letters here");
    assert_eq!(ids(store, &prefix("%")), Vec::<String>::new());
    assert_eq!(ids(store, &prefix("")).len(), 4);
    let status = |s| SessionQuery { status: Some(s), ..SessionQuery::default() };
    assert_eq!(ids(store, &status(State::Running)), ["ab1", "bx1"]);
    assert_eq!(ids(store, &status(State::Failed)), ["b_1"]);
    let user = |u: &str| SessionQuery { user: Some(u.into()), ..SessionQuery::default() };
    assert_eq!(ids(store, &user("ann")), ["ab1", "b_1", "bx1"]);
    assert_eq!(ids(store, &user("an")), Vec::<String>::new());
    let ended = |t: &str| SessionQuery { ended_before: Some(t.into()), ..SessionQuery::default() };
    assert_eq!(ids(store, &ended("2024-02-01T00:00:00Z")), Vec::<String>::new());
    assert_eq!(ids(store, &ended("2024-02-01T00:00:01Z")), ["ab2"]);
    assert_eq!(ids(store, &ended("2025")), ["ab2", "b_1"]);
    let both = SessionQuery { limit: 1, prefix: Some("b".into()), ..user("ann") };
    assert_eq!(ids(store, &both), ["b_1"]);
    let after = Some((meta("b_1", 2).created_at, sid("b_1")));
    assert_eq!(ids(store, &SessionQuery { after, ..both }), ["bx1"]);
}

pub(crate) fn ids_are_of_any_script(store: &dyn Store) {
    for (n, id) in ["小窓-1", "小窓-2", "小路", "été", "a"].into_iter().enumerate() {
        store.create(&meta(id, n as u32)).unwrap();
        let mut journal = root(store, &sid(id), OpenMode::Write);
        play::write(&mut Book::default(), &mut *journal, said(Role::User, id), 1);
        assert_eq!((journal.header().session.as_str(), journal.last()), (id, 1));
    }
    let prefix = |p: &str| SessionQuery { prefix: Some(p.into()), ..SessionQuery::default() };
    assert_eq!(ids(store, &prefix("小窓")), ["小窓-1", "小窓-2"]);
    assert_eq!(ids(store, &prefix("小")), ["小窓-1", "小窓-2", "小路"]);
    assert_eq!(ids(store, &prefix("é")), ["été"]);
    let exact = SessionQuery { id: Some(sid("小路")), ..SessionQuery::default() };
    assert_eq!(ids(store, &exact), ["小路"]);
    enter(store, &sid("小路"), State::Completed, "2024-01-15T11:00:00Z");
    assert_eq!(root(store, &sid("小路"), OpenMode::Read).last(), 1);
    store.remove(&sid("小路")).unwrap();
    assert_eq!(ids(store, &exact), Vec::<String>::new());
}

pub(crate) fn states_change_and_counters_add_up(store: &dyn Store) {
    let queued = Meta { queued: true, ..meta("s", 0) };
    store.create(&queued).unwrap();
    let id = sid("s");
    let mut expect = Session::new(&queued);
    let steps = [
        (State::Running, "2024-01-15T11:00:00Z", None),
        (State::Paused, "2024-01-15T11:01:00Z", None),
        (State::Running, "2024-01-15T11:02:00Z", None),
        (State::Failed, "2024-01-15T11:03:00Z", Some("no 窓")),
        (State::Running, "2024-01-15T11:04:00Z", None),
        (State::Stopped, "2024-01-15T11:05:00Z", Some("enough")),
        (State::Completed, "2024-01-15T11:06:00Z", None),
    ];
    for (to, at, why) in steps {
        expect.enter(to, at, why);
        let why = why.map(str::to_owned);
        assert_eq!(store.change(&id, &SessionChange::State { to, at: at.into(), why }).unwrap(), expect);
        let by = Counters {
            llm_call_count: 1,
            tool_call_count: 2,
            total_tokens: 1 << 40,
            compression_count: 3,
            input_tokens: 1 << 39,
            cached_tokens: 5,
            cache_write_tokens: 6,
            output_tokens: 7,
            saved_tokens: 8,
        };
        let at = "2024-01-15T12:00:00Z";
        expect.counters += by;
        expect.updated_at = at.into();
        assert_eq!(store.change(&id, &SessionChange::Count { by, at: at.into() }).unwrap(), expect);
        assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), [expect.clone()]);
    }
}

pub(crate) fn an_ended_session_refuses_writers_until_it_is_opened_again(store: &dyn Store) {
    let id = make(store, "s");
    let mut book = Book::default();
    play::write(&mut book, &mut *root(store, &id, OpenMode::Write), said(Role::User, "one"), 1);
    for ending in [State::Completed, State::Failed, State::Stopped] {
        enter(store, &id, ending, "2024-01-15T11:00:00Z");
        assert!(
            matches!(store.open(&id, &ThreadId::root(), OpenMode::Write), Err(Error::Ended(ended, _)) if ended == id)
        );
        let last = book.view().last();
        assert_eq!(root(store, &id, OpenMode::Read).last(), last);
        let mut amended = root(store, &id, OpenMode::Amend);
        assert_eq!(amended.rewrite(&mut |_, _| None).unwrap(), 0);
        assert_eq!(amended.line(last).unwrap(), play::rows(&book, last - 1)[0].line);
        drop(amended);
        enter(store, &id, State::Running, "2024-01-15T11:01:00Z");
        play::write(&mut book, &mut *root(store, &id, OpenMode::Write), said(Role::User, "again"), 1);
    }
    assert_eq!(root(store, &id, OpenMode::Read).last(), 4);
}

pub(crate) fn a_session_that_is_being_written_is_neither_ended_nor_removed(store: &dyn Store) {
    let id = make(store, "s");
    let mut book = Book::default();
    for mode in [OpenMode::Write, OpenMode::Amend] {
        let mut writer = root(store, &id, mode);
        let end = SessionChange::State { to: State::Completed, at: "2024-01-15T11:00:00Z".into(), why: None };
        assert!(matches!(store.change(&id, &end), Err(Error::Busy { .. })));
        assert!(matches!(store.remove(&id), Err(Error::Busy { .. })));
        // What moves nothing is not refused.
        assert_eq!(enter(store, &id, State::Paused, "2024-01-15T11:00:00Z").status, State::Paused);
        assert_eq!(enter(store, &id, State::Running, "2024-01-15T11:00:00Z").completed_at, None);
        play::write(&mut book, &mut *writer, said(Role::User, "still here"), 1);
    }
    // A reader hinders nobody.
    let reader = root(store, &id, OpenMode::Read);
    assert_eq!(enter(store, &id, State::Completed, "2024-01-15T11:00:00Z").status, State::Completed);
    assert_eq!((reader.last(), reader.line(2).unwrap()), (2, play::rows(&book, 1)[0].line.clone()));
}

pub(crate) fn a_removed_session_is_gone_and_its_id_free(store: &dyn Store) {
    for ended in [false, true] {
        let id = make(store, "s");
        play::write(
            &mut Book::default(),
            &mut *root(store, &id, OpenMode::Write),
            said(Role::User, "secret"),
            1,
        );
        let blob = store.put_blob(&id, &mut &b"bytes"[..]).unwrap();
        if ended {
            enter(store, &id, State::Completed, "2024-01-15T11:00:00Z");
        }
        store.remove(&id).unwrap();
        assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), []);
        assert!(matches!(store.remove(&id), Err(Error::NoSession(_))));
        make(store, "s");
        assert_eq!(root(store, &id, OpenMode::Read).last(), 0);
        assert!(matches!(store.blob(&id, &blob.id), Err(Error::NoBlob(..))));
        store.remove(&id).unwrap();
    }
}

pub(crate) fn what_is_not_there_is_named(store: &dyn Store) {
    let (id, none) = (make(store, "s"), sid("none"));
    let count = SessionChange::Count { by: Counters::default(), at: "t".into() };
    let missing = |error: Option<Error>| matches!(error, Some(Error::NoSession(id)) if id == none);
    assert!(missing(store.change(&none, &count).err()));
    assert!(missing(store.remove(&none).err()));
    assert!(missing(store.threads(&none).err()));
    assert!(missing(store.put_blob(&none, &mut &b"x"[..]).err()));
    assert!(missing(store.blob(&none, &"0".repeat(32)).err()));
    assert!(missing(store.sweep(&none, &|_| true).err()));
    for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Amend] {
        assert!(missing(store.open(&none, &ThreadId::root(), mode).err()));
        let error = store.open(&id, &tid("none"), mode).err();
        assert!(matches!(error, Some(Error::NoThread(_, thread)) if thread == tid("none")));
    }
}
