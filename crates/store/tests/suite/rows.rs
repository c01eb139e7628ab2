//! A session's row: found by its times, and carried over from another store.

use super::{make, meta, root, sid};
use komado_core::session::{Counters, Session, State};
use komado_store::{Error, OpenMode, SessionChange, SessionQuery, Store};

fn ids(store: &dyn Store, query: &SessionQuery) -> Vec<String> {
    store.sessions(query).unwrap().into_iter().map(|session| session.meta.uuid).collect()
}

fn at(minute: u32) -> String {
    meta("x", minute).created_at
}

pub(crate) fn sessions_are_found_by_when_they_were_made_and_changed(store: &dyn Store) {
    for (id, minute) in [("a", 10), ("b", 20), ("c", 30)] {
        store.create(&meta(id, minute)).unwrap();
    }
    let count = SessionChange::Count { by: Counters::default(), at: at(40) };
    store.change(&sid("a"), &count).unwrap();
    let changed = |minute| SessionQuery { changed_from: Some(at(minute)), ..SessionQuery::default() };
    assert_eq!(ids(store, &changed(10)), ["a", "b", "c"]);
    assert_eq!(ids(store, &changed(21)), ["a", "c"]);
    assert_eq!(ids(store, &changed(40)), ["a"], "then or later");
    assert_eq!(ids(store, &changed(41)), Vec::<String>::new());
    let made = |minute| SessionQuery { made_before: Some(at(minute)), ..SessionQuery::default() };
    assert_eq!(ids(store, &made(10)), Vec::<String>::new(), "before, not then");
    assert_eq!(ids(store, &made(21)), ["a", "b"]);
    assert_eq!(ids(store, &SessionQuery { made_before: Some(at(30)), ..changed(25) }), ["a"]);
    assert_eq!(ids(store, &SessionQuery { limit: 1, ..changed(10) }), ["a"]);
    let after = Some((at(10), sid("a")));
    assert_eq!(ids(store, &SessionQuery { after, ..changed(10) }), ["b", "c"]);
}

/// What another store may have known of a session.
fn elsewhere(id: &str) -> Session {
    let mut session = Session::new(&meta(id, 0));
    session.enter(State::Running, &at(1), None);
    session.enter(State::Failed, &at(50), Some("窓が閉じた"));
    session.counters = Counters {
        llm_call_count: 3,
        tool_call_count: 5,
        total_tokens: 1 << 40,
        compression_count: 7,
        input_tokens: 11,
        cached_tokens: 13,
        cache_write_tokens: 17,
        output_tokens: 19,
        saved_tokens: 23,
    };
    session.updated_at = at(55);
    session
}

pub(crate) fn a_row_of_another_store_is_taken_over_but_for_what_it_was_made_with(store: &dyn Store) {
    let id = make(store, "s");
    let mut other = elsewhere("s");
    other.meta.hostname = "elsewhere".into();
    other.meta.user = Some("bob".into());
    let kept = Session { meta: meta("s", 0), ..other.clone() };
    assert_eq!(store.change(&id, &SessionChange::Row(Box::new(other.clone()))).unwrap(), kept);
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), std::slice::from_ref(&kept));
    let failed =
        SessionQuery { status: Some(State::Failed), ended_before: Some(at(51)), ..SessionQuery::default() };
    assert_eq!(ids(store, &failed), ["s"]);
    // Twice is once, and a row of one that lives opens it again.
    assert_eq!(store.change(&id, &SessionChange::Row(Box::new(other))).unwrap(), kept);
    let refused = store.open(&id, &komado_core::ThreadId::root(), OpenMode::Write).err();
    assert!(matches!(refused, Some(Error::Ended(..))), "{refused:?}");
    let fresh = Session::new(&meta("s", 0));
    assert_eq!(store.change(&id, &SessionChange::Row(Box::new(fresh.clone()))).unwrap(), fresh);
    drop(root(store, &id, OpenMode::Write));
}

pub(crate) fn a_row_does_not_end_a_session_that_is_being_written(store: &dyn Store) {
    let id = make(store, "s");
    let journal = root(store, &id, OpenMode::Write);
    let row = SessionChange::Row(Box::new(elsewhere("s")));
    assert!(matches!(store.change(&id, &row), Err(Error::Busy { .. })));
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), [Session::new(&meta("s", 0))]);
    drop(journal);
    store.change(&id, &row).unwrap();
    let none = store.change(&sid("none"), &row);
    assert!(matches!(none, Err(Error::NoSession(id)) if id == sid("none")));
}
