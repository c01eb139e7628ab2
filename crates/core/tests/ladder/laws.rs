//! A view always fits, or it is said what does not.

use crate::ladder::play::{Play, each, poured};
use crate::ladder::stage::{self, Fitted, budget, fit, fit_well, go_on, latest_instruction, turn};
use komado_core::budget::Budget;
use komado_core::grammar::{self, MessageShape};
use komado_core::head::EntrySource;
use komado_core::journal::Entry;
use komado_core::view::ItemSource;
use komado_core::{Kind, Meter, Seq};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

const QUICK: [Meter; 3] = [Meter::Bytes4, Meter::Chars4, Meter::Bytes4];

fn check_fits(play: &Play, budget: &Budget) {
    let tokens = play.book.view().tokens();
    assert!(tokens <= budget.most(), "{tokens} tokens in a window of {}", budget.window);
}

/// The request as its order of speakers.
fn shapes(play: &Play) -> Vec<MessageShape> {
    poured(&play.book, play.book.view()).iter().map(|(_, message)| MessageShape::of(message)).collect()
}

/// OpenAI takes every request; so does Anthropic, as long as the user's message that began the conversation is shown.
/// The ladder never hides it; a person may.
fn check_valid(play: &Play, begun_by_user: bool) {
    let shapes = shapes(play);
    assert_eq!(grammar::openai(&shapes), Ok(()));
    if begun_by_user {
        assert_eq!(grammar::anthropic(&shapes), Ok(()));
    }
}

/// True when the first thing shown, beside the system's, is a user's message and not a text in place of one.
fn begins_with_user(play: &Play) -> bool {
    let mut first = play.items().into_iter().map(|item| {
        let Ok(head) = play.book.rows().head(item.seq);
        (item.what != ItemSource::Shown, head.kind)
    });
    first.find(|(_, kind)| *kind != Kind::System).is_some_and(|found| found == (true, Kind::User))
}

/// What is hidden lies in a span that an edit in force names; what is shown otherwise names itself.
fn check_reachable(play: &Play) {
    let view = play.book.view();
    let shown: BTreeSet<Seq> =
        play.items().iter().filter(|item| item.what != ItemSource::Shown).map(|item| item.seq).collect();
    for record in play.book.records() {
        let Ok(head) = play.book.rows().head(record.seq);
        if !head.kind.is_item() || !view.on_path(record.seq) || shown.contains(&record.seq) {
            continue;
        }
        let named = view.edits().any(|edit| view.hidden_by(edit).iter().any(|span| span.holds(record.seq)));
        assert!(named, "@{} is hidden by nothing", record.seq);
    }
}

fn rounds(play: &mut Play, meter: Meter) {
    let length = play.dice.between(3, 30);
    go_on(play, meter, length);
    let budget = budget(&mut play.dice, play.book.view().tokens());
    let mut before: Vec<_> = Vec::new();
    for _ in 0..3 {
        let begun_by_user = begins_with_user(play);
        let kept = (play.book.view().setup(), play.book.view().pins().to_vec(), latest_instruction(play));
        match fit(play, meter, &budget) {
            Fitted::Floor(floor) => {
                assert!(floor.tokens > budget.most(), "a floor although it fits: {floor}");
                assert!(floor.floor > budget.usable, "a floor below what is usable: {floor}");
                return;
            }
            Fitted::Yes(steps) => {
                check_fits(play, &budget);
                check_valid(play, begun_by_user);
                check_reachable(play);
                let now =
                    (play.book.view().setup(), play.book.view().pins().to_vec(), latest_instruction(play));
                assert_eq!(kept, now, "setup, pins or the latest instruction are gone");
                let request = poured(&play.book, play.book.view());
                if steps == 0 && !before.is_empty() {
                    assert_eq!(request[..before.len()], before, "the prefix changed without an edit");
                }
                before = request;
            }
        }
        turn(play, meter);
    }
}

#[test]
fn every_view_fits_its_window_or_the_floor_says_what_takes_how_much() {
    each(3_000_000, 60_000, |play| {
        let meter = *play.dice.pick(&QUICK).unwrap();
        rounds(play, meter);
    });
}

#[test]
fn the_same_holds_for_tokens_counted_exactly() {
    each(5_000_000, 1_500, |play| {
        let meter = if play.dice.chance(50) { Meter::O200k } else { Meter::O200kTimes15 };
        rounds(play, meter);
    });
}

#[test]
fn right_after_a_round_nothing_more_is_done_and_the_count_is_the_real_one() {
    each(6_000_000, 10_000, |play| {
        go_on(play, Meter::Bytes4, 30);
        let budget = budget(&mut play.dice, play.book.view().tokens());
        if matches!(fit_well(play, &budget, &mut |_| {}), Fitted::Yes(_)) {
            let Fitted::Yes(again) = fit_well(play, &budget, &mut |_| {}) else {
                panic!("a floor after a fit")
            };
            assert_eq!(again, 0, "it was done again at once");
            let setup = play.book.view().weight().setup;
            let real: u64 = play.items().iter().map(|item| u64::from(item.tokens)).sum();
            assert_eq!(play.book.view().tokens(), setup + real);
        }
    });
}

#[test]
fn random_journals_reach_every_rung_and_the_floor() {
    let seen = RefCell::new(BTreeMap::<&str, u32>::new());
    let floors = Cell::new(0);
    each(9_000_000, 3_000, |play| {
        go_on(play, Meter::Bytes4, 30);
        let budget = budget(&mut play.dice, play.book.view().tokens());
        let fitted = fit_well(play, &budget, &mut |rung| {
            *seen.borrow_mut().entry(rung.name()).or_default() += 1;
        });
        floors.set(floors.get() + u32::from(matches!(fitted, Fitted::Floor(_))));
    });
    let seen = seen.into_inner();
    assert!(seen.len() == 4 && seen.values().all(|count| *count >= 50), "{seen:?}");
    assert!(floors.get() >= 20, "{} floors", floors.get());
}

#[test]
fn undoing_every_edit_brings_every_message_back_as_it_was_said() {
    each(7_000_000, 10_000, |play| {
        for _ in 0..8 {
            turn(play, Meter::Bytes4);
        }
        let full = poured(&play.book, play.book.view());
        let budget = budget(&mut play.dice, play.book.view().tokens());
        let _ = fit(play, Meter::Bytes4, &budget);
        while let Some(edit) = play.book.view().edits().last() {
            play.push(Entry::Revert { target: edit }, 0).unwrap();
        }
        assert_eq!(poured(&play.book, play.book.view()), full);
    });
}

#[test]
fn the_first_request_and_the_newest_are_shown_through_any_number_of_rounds() {
    each(8_000_000, 3_000, |play| {
        let meter = Meter::Bytes4;
        let first = komado_core::Message::text(komado_core::Role::User, "please fix the parser");
        let first = stage::push(play, meter, Entry::Message(first, None)).unwrap();
        for _ in 0..20 {
            turn(play, meter);
            let budget = budget(&mut play.dice, 4_000);
            if matches!(fit(play, meter, &budget), Fitted::Floor(_)) {
                return;
            }
            let shown = poured(&play.book, play.book.view());
            assert!(shown.iter().any(|(seq, m)| *seq == first && stage::is_user(m)), "the request is gone");
        }
    });
}
