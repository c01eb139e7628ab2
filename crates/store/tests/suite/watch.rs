//! News: what is done is heard, whoever did it. They may come twice or be summed up, never not at all.

use super::threads::header;
use super::{make, root, sid, tid};
use crate::suite::play::{self, said};
use komado_core::session::State;
use komado_core::{Role, Seq, ThreadId};
use komado_store::{OpenMode, SessionChange, Store, ThreadNews, WatchEvent, Watcher};
use komado_testkit::Book;
use std::time::{Duration, Instant};

/// Listens until `wanted` was heard; gives false when somebody said that everything is to be looked at instead.
fn hear(watcher: &mut dyn Watcher, wanted: impl Fn(&ThreadNews) -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        match watcher.next(Duration::from_millis(500)).unwrap() {
            WatchEvent::News(news) if wanted(&news) => return true,
            WatchEvent::Gap => return false,
            WatchEvent::News(_) | WatchEvent::Quiet => {}
        }
    }
    panic!("nothing was heard")
}

fn grew(thread: &str, last: Seq) -> impl Fn(&ThreadNews) -> bool {
    let thread = tid(thread);
    move |news| news.session == sid("s") && news.thread == thread && news.last >= last
}

fn changed(news: &ThreadNews) -> bool {
    news.session == sid("s") && news.thread == ThreadId::root() && news.last == 0
}

/// Does something of each kind in `store` and listens for it in between.
fn all_is_heard(store: &dyn Store, watcher: &mut dyn Watcher) {
    let id = make(store, "s");
    let mut book = Book::default();
    let mut journal = root(store, &id, OpenMode::Write);
    for n in 1..=3 {
        play::write(&mut book, &mut *journal, said(Role::User, "聞こえますか"), 1);
        assert!(hear(watcher, grew("root", n)), "entry {n}");
    }
    store.spawn(&header(&id, "branch", Some(("root", 2)), 1)).unwrap();
    assert!(hear(watcher, grew("branch", 0)));
    drop(journal);
    let at = "2024-01-15T11:00:00Z".to_owned();
    store.change(&id, &SessionChange::State { to: State::Completed, at, why: None }).unwrap();
    assert!(hear(watcher, changed));
}

pub(crate) fn what_is_done_is_heard(store: &dyn Store) {
    let mut watcher = store.watch().unwrap();
    all_is_heard(store, &mut *watcher);
}

pub(crate) fn nothing_is_heard_where_nothing_is_done(store: &dyn Store) {
    let mut first = store.watch().unwrap();
    make(store, "before");
    // News may come a moment after what they tell of: nothing is under way once they were heard.
    hear(&mut *first, |news| news.session == sid("before"));
    let mut watcher = store.watch().unwrap();
    assert_eq!(watcher.next(Duration::from_millis(50)).unwrap(), WatchEvent::Quiet);
    assert_eq!(watcher.next(Duration::ZERO).unwrap(), WatchEvent::Quiet);
}

pub(crate) fn what_is_done_through_another_handle_is_heard(store: &dyn Store, other: &dyn Store) {
    let mut watcher = store.watch().unwrap();
    all_is_heard(other, &mut *watcher);
}

pub(crate) fn everyone_hears(store: &dyn Store, other: &dyn Store) {
    let mut watchers = [store, store, other].map(|store| store.watch().unwrap());
    make(store, "s");
    for watcher in &mut watchers {
        assert!(hear(&mut **watcher, changed));
    }
    drop(watchers);
    let mut late = other.watch().unwrap();
    let at = "2024-01-15T11:00:00Z".to_owned();
    store.change(&sid("s"), &SessionChange::State { to: State::Paused, at, why: None }).unwrap();
    assert!(hear(&mut *late, changed));
}

/// Every last entry is heard of, or that one has to look: nothing is missed without a word.
pub(crate) fn of_many_entries_the_last_is_heard_or_that_something_was_missed(store: &dyn Store) {
    let id = make(store, "s");
    let mut watcher = store.watch().unwrap();
    let mut book = Book::default();
    let mut journal = root(store, &id, OpenMode::Write);
    for _ in 0..1500 {
        play::write(&mut book, &mut *journal, said(Role::User, "x"), 1);
    }
    hear(&mut *watcher, grew("root", 1500));
    play::write(&mut book, &mut *journal, said(Role::User, "x"), 1);
    assert!(hear(&mut *watcher, grew("root", 1501)) || hear(&mut *watcher, grew("root", 1501)));
}
