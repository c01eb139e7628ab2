//! What the model sees, whatever happened.

use crate::fold::dice::Dice;
use crate::fold::elders::{each, each_journal};
use crate::fold::play::{self, Play, items, poured};
use crate::fold::reference::{Naive, is_item};
use komado_core::head::EntrySource;
use komado_core::journal::{Cause, Edit, EditKind, Entry, Show, ShowKind};
use komado_core::view::ItemSource;
use komado_core::{Head, Kind, Message, Role, Seq, Span};
use komado_testkit::Book;
use std::collections::BTreeSet;

#[test]
fn taking_in_one_entry_gives_the_same_view_as_folding_the_whole_journal() {
    each(0, 12_000, |play| {
        play.go_on(|play| assert_eq!(*play.book.view(), play.book.view_at(play.last())));
        let at = play.dice.below(play.last());
        let shorter = play.book.fork(at);
        assert_eq!(*shorter.view(), play.book.view_at(at), "a later entry changed what was seen at {at}");
    });
}

#[test]
fn a_naive_fold_written_from_the_rules_sees_the_same_items_and_tokens() {
    each_journal(100_000, 12_000, |play| {
        let last = play.last();
        for at in [last, play.dice.below(last), play.dice.below(last)] {
            let (view, naive) = (play.book.view_at(at), Naive::at(play.book.records(), at));
            assert_eq!(items(&play.book, &view), naive.items(), "at {at}");
            assert_eq!(view.tokens(), naive.tokens(), "at {at}");
            assert_eq!(view.pins(), naive.pins(), "at {at}");
            assert_eq!(view.setup(), naive.setup().map(|record| record.seq), "at {at}");
            assert_eq!(view.share(), naive.share().map(|(seq, _)| seq), "at {at}");
            let Ok(share) = view.share_in(play.book.rows());
            assert_eq!(share.as_ref(), naive.share().map(|(_, share)| share), "at {at}");
            assert_eq!(view.weight().above, naive.above(), "at {at}");
            assert_eq!(view.chronicle(), naive.chronicle(), "at {at}");
            assert!((1..=at).all(|seq| view.on_path(seq) == naive.path().contains(&seq)), "at {at}");
            let own = naive.items().into_iter().filter(|item| item.what != ItemSource::Shown);
            let shown: BTreeSet<Seq> = own.map(|item| item.seq).collect();
            let said = play.book.records().take(at as usize).filter(|record| is_item(&record.entry));
            for seq in said.map(|record| record.seq) {
                assert_eq!(view.shows(seq), shown.contains(&seq), "entry {seq} at {at}");
                let pinned = naive.pins().iter().any(|pin| pin.holds(seq));
                assert_eq!(view.is_pinned(seq), pinned, "entry {seq} at {at}");
            }
        }
    });
}

#[test]
fn where_edits_overlap_that_nobody_admitted_the_latest_over_a_place_speaks() {
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let mut book = Book::default();
        let entries = dice.between(3, 24);
        for seq in 1..=entries {
            book.push(Entry::Message(Message::text(Role::User, format!("{seq}")), None), 10, "t").unwrap();
        }
        for n in 0..dice.between(1, 9) {
            let (a, b) = (dice.between(1, entries), dice.between(1, entries));
            let mut hide = vec![Span::new(a.min(b), a.max(b))];
            if a.max(b) + 2 <= entries && dice.chance(40) {
                hide.push(Span::new(a.max(b) + 2, dice.between(a.max(b) + 2, entries)));
            }
            let show = vec![Show { kind: ShowKind::Summary, text: format!("{n}"), tokens: n }];
            let edit =
                Edit { kind: EditKind::Condense, hide, show, replace: vec![], cause: Cause::default() };
            book.push_unchecked(Entry::Edit(edit), n, "t");
            let naive = Naive::at(book.records(), book.view().last());
            assert_eq!(items(&book, book.view()), naive.items(), "seed {seed}");
        }
    }
}

#[test]
fn the_table_of_heads_says_what_the_entries_say() {
    each_journal(200_000, 8_000, |play| {
        let mut before = Head::START;
        let mut last_op = 0;
        for record in play.book.records() {
            let Ok(head) = play.book.rows().head(record.seq);
            let kind = Kind::of(&record.entry);
            let mut sums = before.sums;
            if let Some(class) = kind.class() {
                sums[class] += u64::from(record.tokens);
            }
            assert_eq!(head.kind, kind);
            assert_eq!(head.sums, sums, "sums at {}", record.seq);
            assert_eq!(
                head.items,
                before.items + u32::from(is_item(&record.entry)),
                "items at {}",
                record.seq
            );
            assert_eq!(head.prev_op, last_op, "the last operation before {}", record.seq);
            assert_eq!(head.unit, unit_of(play, record.seq), "the unit of {}", record.seq);
            if kind.is_op() {
                last_op = record.seq;
            }
            before = head;
        }
    });
}

/// A result belongs to the model's last message before it on the path; everything else to itself.
fn unit_of(play: &Play, seq: Seq) -> Seq {
    let naive = Naive::at(play.book.records(), seq);
    let role = |seq: Seq| match play::entry(&play.book, seq) {
        Some(Entry::Message(message, _)) => Some(message.role),
        _ => None,
    };
    if let Some(Entry::Message(late, _)) = play::entry(&play.book, seq)
        && let Some(first) = late.replaces()
    {
        return unit_of(play, first);
    }
    if role(seq) != Some(Role::Tool) {
        return seq;
    }
    naive.path().iter().rev().copied().find(|&at| role(at) == Some(Role::Assistant)).unwrap()
}

#[test]
fn no_view_parts_a_call_from_its_result() {
    each(300_000, 12_000, |play| {
        play.go_on(|play| {
            let said = matches!(play::entry(&play.book, play.last()), Some(Entry::Message(..)));
            if !said {
                check_pairs(play);
            }
        });
        check_pairs(play);
    });
}

fn check_pairs(play: &Play) {
    let mut open: Vec<String> = Vec::new();
    for (seq, message) in poured(&play.book, play.book.view()) {
        match message.outcome() {
            Some(outcome) => {
                let call = open.iter().position(|id| *id == outcome.call_id);
                open.remove(call.unwrap_or_else(|| panic!("the result at {seq} has no call before it")));
            }
            None => {
                assert!(open.is_empty(), "{} speaks at {seq} while {open:?} wait", message.role.name());
                open = message.calls().map(|call| call.id.clone()).collect();
            }
        }
    }
    let waiting: Vec<String> = play.book.view().open().calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!(open, waiting, "only the last calls may wait");
}

#[test]
fn nothing_is_shown_twice_and_nothing_is_stood_for_twice() {
    each(400_000, 10_000, |play| play.go_on(|play| check_once(play)));
}

fn check_once(play: &Play) {
    let mut seen: BTreeSet<Seq> = BTreeSet::new();
    let mut told: BTreeSet<Seq> = BTreeSet::new();
    let mut before = 0;
    for item in play.items() {
        assert!(seen.insert(item.seq), "{} is shown twice", item.seq);
        if item.what != ItemSource::Shown {
            assert!(item.seq > before, "{} comes after {before}", item.seq);
            before = item.seq;
            continue;
        }
        let Some(Entry::Edit(edit)) = play::entry(&play.book, item.seq) else {
            panic!("{} shows nothing", item.seq)
        };
        for seq in edit.hide.iter().flat_map(|span| span.from..=span.to) {
            assert!(told.insert(seq), "{seq} is stood for by {} and by another", item.seq);
        }
    }
}

#[test]
fn pins_survive_every_edit_byte_for_byte() {
    each(500_000, 12_000, |play| {
        play.go_on(|play| {
            if matches!(play::entry(&play.book, play.last()), Some(Entry::Edit(_) | Entry::Revert { .. })) {
                check_pins(play);
            }
        });
        check_pins(play);
    });
}

fn check_pins(play: &Play) {
    let view = play.book.view();
    let pinned = |seq: Seq| view.on_path(seq) && view.pins().iter().any(|pin| pin.holds(seq));
    let said: Vec<_> = play.book.records().filter(|r| pinned(r.seq) && is_item(&r.entry)).collect();
    if said.is_empty() {
        return;
    }
    let poured = poured(&play.book, view);
    for record in said {
        let mut shown = poured.iter().filter(|(seq, _)| *seq == record.seq).map(|(_, message)| message);
        let (first, second) = (shown.next(), shown.next());
        assert!(first.is_some() && second.is_none(), "{} is pinned", record.seq);
        match &record.entry {
            Entry::Message(message, _) => assert_eq!(first, Some(message)),
            Entry::Anchor(anchor) => assert_eq!(first.map(|m| m.words()).as_ref(), Some(&anchor.text)),
            _ => {}
        }
    }
}

#[test]
fn the_tokens_of_a_view_are_those_of_its_items_and_its_setup() {
    each(600_000, 10_000, |play| {
        play.go_on(|play| {
            let weight = play.book.view().weight();
            let items = play.items();
            let sum: u64 = items.iter().map(|item| u64::from(item.tokens)).sum();
            assert_eq!(play.book.view().tokens(), sum + weight.setup + weight.above);
            assert_eq!(weight.items, items.len() as u64);
            let shown = items.iter().filter(|item| !matches!(item.what, ItemSource::Said(_)));
            assert_eq!(weight.shown, shown.map(|item| u64::from(item.tokens)).sum::<u64>());
        });
    });
}

/// Without this the other laws could hold because nothing ever happens.
#[test]
fn random_journals_reach_every_corner() {
    let seen = std::cell::RefCell::new(std::collections::BTreeMap::<&str, u32>::new());
    each_journal(700_000, 2_000, |play| {
        for record in play.book.records() {
            for corner in corners(play, &record.entry, record.seq) {
                *seen.borrow_mut().entry(corner).or_default() += 1;
            }
        }
    });
    let seen = seen.into_inner();
    let rare: Vec<_> = CORNERS.iter().filter(|c| seen.get(*c).copied().unwrap_or(0) < 100).collect();
    assert!(rare.is_empty(), "seldom or never: {rare:?}\nof {seen:?}");
}

const CORNERS: [&str; 32] = [
    "message",
    "late result",
    "late result after another",
    "late result of a hidden call",
    "late result that was trimmed",
    "revert of a late result",
    "calls at once",
    "setup",
    "condense or truncate",
    "several spans",
    "over an edit",
    "trim",
    "revert",
    "revert of a revert",
    "rewind",
    "rewind to nothing",
    "rewind into a unit",
    "rewind to before a rewind",
    "pin",
    "unpin",
    "anchor",
    "anchor update",
    "anchor with a brief",
    "request",
    "close",
    "first share",
    "share",
    "share that was rewound",
    "chronicle",
    "tell",
    "heard",
    "note",
];

fn corners(play: &Play, entry: &Entry, seq: Seq) -> Vec<&'static str> {
    let book = &play.book;
    match entry {
        Entry::Message(message, _) if message.calls().count() > 1 => vec!["calls at once"],
        Entry::Message(message, _) if message.replaces().is_some() => {
            let first = message.replaces().unwrap();
            let before = book.view_at(seq - 1);
            let mut found = vec!["late result"];
            found.extend((before.result(first) != first).then_some("late result after another"));
            found.extend((!before.shows(first)).then_some("late result of a hidden call"));
            found
        }
        Entry::Message(..) => vec!["message"],
        Entry::Setup(_) => vec!["setup"],
        Entry::Edit(edit) if edit.hide.is_empty() => {
            let before = book.view_at(seq - 1);
            let is_late = edit.replace.iter().any(|swap| before.result(swap.seq) != swap.seq);
            vec![if is_late { "late result that was trimmed" } else { "trim" }]
        }
        Entry::Edit(edit) => {
            let covers = |old: Seq| book.view_at(seq - 1).edits().any(|e| e == old);
            let now: Vec<Seq> = book.view_at(seq).edits().collect();
            let buried = (1..seq).any(|old| covers(old) && !now.contains(&old));
            let mut found = vec!["condense or truncate"];
            found.extend((edit.hide.len() > 1).then_some("several spans"));
            found.extend(buried.then_some("over an edit"));
            found
        }
        Entry::Revert { target } => match play::entry(book, *target) {
            Some(Entry::Revert { .. }) => vec!["revert of a revert"],
            Some(Entry::Message(..)) => vec!["revert of a late result"],
            _ => vec!["revert"],
        },
        Entry::Rewind { to: 0 } => vec!["rewind to nothing"],
        Entry::Rewind { to } => {
            let mut found = vec!["rewind"];
            found.extend((!book.view_at(*to).open().calls.is_empty()).then_some("rewind into a unit"));
            let jump = |at: Seq| matches!(play::entry(book, at), Some(Entry::Rewind { .. }));
            found.extend((*to + 1..seq).any(jump).then_some("rewind to before a rewind"));
            found
        }
        Entry::Pin { .. } => vec!["pin"],
        Entry::Unpin { .. } => vec!["unpin"],
        Entry::Anchor(anchor) if anchor.first.is_some() => vec!["anchor update"],
        Entry::Anchor(anchor) if anchor.brief.is_some() => vec!["anchor with a brief"],
        Entry::Anchor(_) => vec!["anchor"],
        Entry::Sent(_) | Entry::Lost(_) => vec!["request"],
        Entry::Close(_) => vec!["close"],
        Entry::Share(_) if seq == 1 => vec!["first share"],
        Entry::Share(_) => {
            let undone = play.book.view().share().is_some_and(|now| now < seq);
            vec![if undone { "share that was rewound" } else { "share" }]
        }
        Entry::Chronicle(_) => vec!["chronicle"],
        Entry::Tell { .. } => vec!["tell"],
        Entry::Heard { .. } => vec!["heard"],
        Entry::Note { .. } => vec!["note"],
    }
}
