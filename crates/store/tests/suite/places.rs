//! Where a client's transcript may go on.

use super::{make, sid, tid};
use komado_store::{Store, TranscriptPlace};

fn spot(name: &str, session: &str, thread: &str, seq: u32) -> TranscriptPlace {
    TranscriptPlace { name: name.into(), session: sid(session), thread: tid(thread), seq }
}

pub(crate) fn a_moment_is_found_by_its_name_and_noted_once(store: &dyn Store) {
    assert_eq!(store.spots("n").unwrap(), []);
    make(store, "s");
    let (one, other) = (spot("n", "s", "root", 3), spot("窓", "s", "root", 3));
    store.note(&[]).unwrap();
    store.note(std::slice::from_ref(&one)).unwrap();
    store.note(&[one.clone(), one.clone(), other.clone()]).unwrap();
    assert_eq!(store.spots("n").unwrap(), [one]);
    assert_eq!(store.spots("窓").unwrap(), [other]);
    assert_eq!(store.spots("N").unwrap(), []);
    assert_eq!(store.spots("").unwrap(), []);
}

pub(crate) fn of_moments_with_one_name_the_newest_comes_first(store: &dyn Store) {
    make(store, "s");
    make(store, "t");
    let all = [
        spot("n", "t", "root", 9),
        spot("n", "s", "side_1", 2),
        spot("n", "s", "root", 4),
        spot("n", "s", "root", 3),
    ];
    store.note(&all[..1]).unwrap();
    store.note(&all[1..]).unwrap();
    // Noted again it stays where it was.
    store.note(&all[..1]).unwrap();
    let newest: Vec<TranscriptPlace> = all.iter().rev().cloned().collect();
    assert_eq!(store.spots("n").unwrap(), newest);
}

pub(crate) fn moments_go_with_their_session(store: &dyn Store) {
    let id = make(store, "s");
    make(store, "t");
    let kept = spot("n", "t", "root", 1);
    store.note(&[kept.clone(), spot("n", "s", "root", 1), spot("n2", "s", "root", 0)]).unwrap();
    store.remove(&id).unwrap();
    assert_eq!(store.spots("n").unwrap(), [kept]);
    assert_eq!(store.spots("n2").unwrap(), []);
    make(store, "s");
    assert_eq!(store.spots("n2").unwrap(), []);
}

pub(crate) fn of_very_many_moments_with_one_name_only_the_newest_are_given(store: &dyn Store) {
    make(store, "s");
    let most = komado_store::MOST_SPOTS as u32;
    let all: Vec<TranscriptPlace> = (1..=most + 9).map(|seq| spot("n", "s", "root", seq)).collect();
    store.note(&all).unwrap();
    store.note(&all[..5]).unwrap();
    let newest: Vec<TranscriptPlace> = all.iter().rev().take(most as usize).cloned().collect();
    assert_eq!(store.spots("n").unwrap(), newest);
}
