//! Going back: rewind, revert, fork.

use crate::fold::elders::{each, each_journal};
use crate::fold::play::{self, Play, poured};
use komado_core::journal::{Entry, Record};
use komado_core::message::MessagePart;
use komado_core::view::{ItemSource, ShownItem, WaitingCall};
use komado_core::{Kind, Message, Seq, Span};
use komado_testkit::Book;
use std::sync::Arc;

/// All that can be seen of a view but the number of its last entry.
#[derive(PartialEq, Debug)]
struct Sight {
    items: Vec<ShownItem>,
    tokens: u64,
    setup: Option<Seq>,
    share: Option<Seq>,
    chronicle: Option<Seq>,
    pins: Vec<Span>,
    open: Vec<Arc<WaitingCall>>,
    closed: Option<Seq>,
}

fn sight(play: &Play) -> Sight {
    let view = play.book.view();
    Sight {
        items: play.items(),
        tokens: view.tokens(),
        setup: view.setup(),
        share: view.share(),
        chronicle: view.chronicle(),
        pins: view.pins().to_vec(),
        open: view.open().calls.clone(),
        closed: view.closed(),
    }
}

#[test]
fn rewind_restores_exactly_and_removes_nothing() {
    each(1_000_000, 12_000, |play| {
        let mut past = vec![sight(play)];
        let mut records: Vec<Record> = play.book.records().cloned().collect();
        past.extend(records.iter().map(|_| sight(play)));
        play.go_on(|play| {
            past.push(sight(play));
            records.push(play.book.records().last().unwrap().clone());
        });
        for _ in 0..2 {
            if play.floor() > 0 {
                assert!(play.push(Entry::Rewind { to: 0 }, 0).is_none(), "a spawned thread has its share");
            }
            let to = play.past();
            assert!(play.push(Entry::Rewind { to }, 0).is_some(), "any moment can be gone back to");
            past.push(sight(play));
        }
        for record in play.book.records() {
            if let Entry::Rewind { to } = record.entry {
                assert_eq!(past[record.seq as usize], past[to as usize], "rewind {} to {to}", record.seq);
            }
        }
        let now: Vec<Record> = play.book.records().take(records.len()).cloned().collect();
        assert_eq!(now, records);
    });
}

#[test]
fn revert_restores_what_the_edit_changed_and_keeps_what_was_said_since() {
    each_journal(1_100_000, 12_000, |play| {
        for _ in 0..3 {
            let before = play.items();
            let Some(edit) = any_edit(play) else { continue };
            let edited = play.items();
            let said = talk(play);
            let revert = play.push(Entry::Revert { target: edit }, 0);
            assert!(revert.is_some(), "a fresh edit can be undone");
            assert_eq!(play.items(), [before, said.clone()].concat(), "undone");
            let more = talk(play);
            if play.dice.chance(50) {
                assert!(play.push(Entry::Revert { target: revert.unwrap() }, 0).is_some(), "and done again");
                assert_eq!(play.items(), [edited, said, more].concat(), "done again");
            }
        }
    });
}

/// Appends some edit that the gate lets in.
fn any_edit(play: &mut Play) -> Option<Seq> {
    for _ in 0..8 {
        let (entry, tokens) = play::edit(&play.book, &mut play.dice);
        if let Some(seq) = play.push(entry, tokens) {
            return Some(seq);
        }
    }
    None
}

/// Lets people talk for a while; gives what they said, as items.
fn talk(play: &mut Play) -> Vec<ShownItem> {
    let mut said = Vec::new();
    for _ in 0..play.dice.below(4) {
        let tokens = play.dice.below(90);
        let entry = play::say(&play.book, &mut play.dice);
        let kind = Kind::of(&entry);
        if let Some(seq) = play.push(entry, tokens) {
            said.push(ShownItem { seq, what: ItemSource::Said(kind), tokens });
        }
    }
    said
}

#[test]
fn a_fork_and_a_rewind_go_on_with_the_same_words() {
    each_journal(1_200_000, 10_000, |play| {
        let at = play.past();
        let mut fork = play.book.fork(at);
        let shift = play.last() + 1 - at;
        play.push(Entry::Rewind { to: at }, 0).unwrap();
        check_same(&fork, play, at, shift);
        for _ in 0..12 {
            let (entry, tokens) = play::propose(&fork, &mut play.dice);
            if matches!(entry, Entry::Rewind { to } if to == fork.view().last()) {
                continue;
            }
            let twin = moved(&entry, at, shift);
            let (here, there) = (fork.push(entry, tokens, "").is_ok(), play.push(twin, tokens).is_some());
            assert_eq!(here, there, "both let the same in");
        }
        check_same(&fork, play, at, shift);
    });
}

fn check_same(fork: &Book, play: &Play, at: Seq, shift: Seq) {
    let there = |seq: Seq| if seq > at { seq + shift } else { seq };
    let mut items = play::items(fork, fork.view());
    for item in &mut items {
        item.seq = there(item.seq);
        if let ItemSource::Replaced(by) = &mut item.what {
            *by = there(*by);
        }
    }
    assert_eq!(items, play.items());
    let words =
        |book: &Book| -> Vec<Message> { poured(book, book.view()).into_iter().map(|(_, m)| m).collect() };
    assert_eq!(words(fork), words(&play.book));
    assert_eq!(fork.view().tokens(), play.book.view().tokens());
}

/// The same entry where everything after `at` stands `shift` further on.
fn moved(entry: &Entry, at: Seq, shift: Seq) -> Entry {
    let seq = |seq: &mut Seq| *seq += if *seq > at { shift } else { 0 };
    let span = |span: &mut Span| {
        seq(&mut span.from);
        seq(&mut span.to);
    };
    let mut entry = entry.clone();
    match &mut entry {
        Entry::Edit(edit) => {
            edit.hide.iter_mut().for_each(span);
            edit.replace.iter_mut().for_each(|swap| seq(&mut swap.seq));
        }
        Entry::Revert { target } => seq(target),
        Entry::Rewind { to } => seq(to),
        Entry::Pin { span: pin } | Entry::Unpin { span: pin } => span(pin),
        Entry::Anchor(anchor) => anchor.first.iter_mut().for_each(seq),
        Entry::Message(message, _) => {
            if let [MessagePart::Result(outcome)] = &mut message.parts[..] {
                outcome.replaces.iter_mut().for_each(seq);
            }
        }
        _ => {}
    }
    entry
}
