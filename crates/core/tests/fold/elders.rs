//! Threads above a random one, so that every law is tried on spawned threads, too.

use crate::fold::dice::Dice;
use crate::fold::play::{self, Play, propose};
use komado_core::journal::{Entry, Ratio, Share};
use komado_core::slice::{SliceCut, SliceTools, cut};
use komado_core::{Meter, Seq, ThreadId};
use komado_testkit::Book;

/// Runs `check` on a fresh play for each of `count` seeds; every third is that of a spawned thread.
pub(crate) fn each(from: u64, count: u64, check: impl Fn(&mut Play)) {
    play::each(from, count, |play| {
        if play.seed % 3 == 0 {
            spawn(play);
        }
        check(play);
    });
}

/// Runs `check` on a whole journal for each of `count` seeds.
pub(crate) fn each_journal(from: u64, count: u64, check: impl Fn(&mut Play)) {
    each(from, count, |play| {
        play.go_on(|_| {});
        check(play);
    });
}

/// Begins `play` as a thread spawned from a random root, or from a random child of one.
fn spawn(play: &mut Play) {
    let (me, dice) = (ThreadId::new("me").unwrap(), &mut play.dice);
    let mut slices = Vec::new();
    for (i, name) in ["elder_0", "elder_1"].into_iter().enumerate() {
        let (name, book) = (ThreadId::new(name).unwrap(), elder(dice));
        let part = SliceCut {
            thread: &name,
            at: quiet(&book, dice),
            ratio: Ratio::new(0.8).unwrap(),
            most: u64::from(dice.between(0, 4_000)),
            head: format!("from {name}"),
            tools: SliceTools::Left,
            within: &|thread| thread.as_str() == "me" || thread.as_str().starts_with("elder"),
        };
        let Ok(slice) = cut(book.rows(), Meter::Bytes4, part);
        slices.extend(slice.ok());
        play.book.below(name, &book);
        if i == 0 && dice.chance(50) {
            break;
        }
    }
    let share = Share {
        thread: me,
        window: 100_000,
        slices,
        lends: true,
        chronicle_prompt: None,
        anchor_tokens: None,
        held_by: None,
    };
    let tokens = share.tokens();
    play.push(Entry::Share(share), tokens).unwrap();
}

/// A short random journal.
fn elder(dice: &mut Dice) -> Book {
    let mut book = Book::default();
    for _ in 0..dice.between(0, 20) {
        let (entry, tokens) = propose(&book, dice);
        let _ = book.push(entry, tokens, "2024-01-15T10:30:00Z");
    }
    book
}

/// A moment at which no call waits: only then is a thread spawned.
fn quiet(book: &Book, dice: &mut Dice) -> Seq {
    let mut at = dice.below(book.view().last() + 1);
    while !book.view_at(at).open().calls.is_empty() {
        at -= 1;
    }
    at
}
