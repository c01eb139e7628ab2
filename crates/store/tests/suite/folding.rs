//! The view folded from a store is the one folded in memory.

use super::threads::{header, same};
use super::{make, root, tid};
use crate::suite::dice::Dice;
use crate::suite::play;
use komado_core::head::EntrySource;
use komado_core::{Message, Seq, View};
use komado_store::{Journal, OpenMode, Store};
use komado_testkit::Book;

/// Folds at a few moments, the last among them.
fn folds_like(journal: &dyn Journal, book: &Book, dice: &mut Dice) {
    let last = book.view().last();
    assert_eq!(View::fold(journal, last).unwrap(), *book.view());
    for _ in 0..4 {
        let at = dice.below(last + 1);
        assert_eq!(View::fold(journal, at).unwrap(), book.view_at(at), "at @{at}");
    }
    assert_eq!(poured(journal, book.view()), poured_book(book));
}

pub(crate) fn poured(journal: &dyn Journal, view: &View) -> Vec<(Seq, Message)> {
    let mut all = Vec::new();
    let mut pour = |seq: Seq, message: &Message| {
        all.push((seq, message.clone()));
        Ok::<_, komado_store::Error>(())
    };
    view.pour(journal, &mut pour).unwrap();
    all
}

pub(crate) fn poured_book(book: &Book) -> Vec<(Seq, Message)> {
    let mut all = Vec::new();
    let mut pour = |seq: Seq, message: &Message| {
        all.push((seq, message.clone()));
        Ok::<_, std::convert::Infallible>(())
    };
    let Ok(()) = book.view().pour(book.rows(), &mut pour);
    all
}

/// Appends what the book has and the journal has not, in batches of any size.
fn bring(journal: &mut dyn Journal, book: &Book, dice: &mut Dice) {
    let rows = play::rows(book, journal.last());
    let mut rest = &rows[..];
    while !rest.is_empty() {
        let n = (1 + dice.below(6) as usize).min(rest.len());
        journal.append(journal.last(), &rest[..n]).unwrap();
        rest = &rest[n..];
    }
}

fn one_conversation(store: &dyn Store, seed: u64) {
    let id = make(store, &format!("s{seed}"));
    let dice = &mut Dice::new(seed);
    let mut trunk = Book::default();
    let mut journal = root(store, &id, OpenMode::Write);
    let mut live = View::default();
    for _ in 0..3 {
        play::go_on(&mut trunk, dice, 15);
        let before = journal.last();
        bring(&mut *journal, &trunk, dice);
        for seq in before + 1..=journal.last() {
            live.apply(&EntrySource::record(&*journal, seq).unwrap(), &*journal).unwrap();
        }
        assert_eq!(live, *trunk.view());
        folds_like(&*journal, &trunk, dice);
    }
    let mut parent = ("root".to_owned(), trunk.clone());
    for depth in 1..4 {
        let at = dice.below(parent.1.view().last() + 1);
        let name = format!("f{depth}");
        store.spawn(&header(&id, &name, Some((&parent.0, at)), depth)).unwrap();
        let mut fork = parent.1.fork(at);
        play::go_on(&mut fork, dice, 12);
        let mut journal = store.open(&id, &tid(&name), OpenMode::Write).unwrap();
        bring(&mut *journal, &fork, dice);
        drop(journal);
        let journal = store.open(&id, &tid(&name), OpenMode::Read).unwrap();
        same(&*journal, &fork);
        folds_like(&*journal, &fork, dice);
        parent = (name, fork);
    }
    drop(journal);
    folds_like(&*root(store, &id, OpenMode::Read), &trunk, dice);
}

pub(crate) fn a_view_folded_from_the_store_is_that_of_the_book(store: &dyn Store) {
    one_conversation(store, 1);
}

/// Too many calls to fail each of them.
pub(crate) fn so_is_that_of_any_conversation(store: &dyn Store) {
    for seed in 2..22 {
        one_conversation(store, seed);
    }
}
