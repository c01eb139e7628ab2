//! A spawned thread is kept inside its share, and what it sees of the threads above it is never touched.

use crate::ladder::line::{Line, ratio, share};
use crate::ladder::play::{Play, each, poured};
use crate::ladder::stage::{self, Fitted, fit, turn};
use komado_core::budget::{Budget, Preset};
use komado_core::grammar::{self, MessageShape};
use komado_core::journal::{Anchor, Ending, Entry, Ratio};
use komado_core::share::Shares;
use komado_core::{Message, Meter, Role, Seq, ThreadId};
use std::cell::Cell;

/// A budget for the share in force.
fn budget(play: &mut Play, window: u64) -> Budget {
    let shares = Shares::of(&share(&play.book).unwrap(), window);
    let mut policy = play.dice.pick(&Preset::ALL).unwrap().policy();
    policy.rungs.condense &= play.dice.chance(80);
    policy.rungs.trim &= play.dice.chance(80);
    Budget::shared(policy, &shares, window, &[])
}

/// How many of the messages that are sent belong to the threads above, the system prompt aside.
fn seen_above(play: &Play) -> Vec<Message> {
    let share = play.book.view().share().unwrap();
    let all = poured(&play.book, play.book.view()).into_iter();
    all.filter(|(seq, message)| *seq == share && message.role != Role::System)
        .map(|(_, message)| message)
        .collect()
}

fn check_fits(play: &Play, budget: &Budget) {
    let (view, used) = (play.book.view(), budget.above);
    assert_eq!(view.weight().above, used);
    let own = view.tokens() - used;
    assert!(view.tokens() <= budget.most(), "{} tokens, most {}", view.tokens(), budget.most());
    assert!(own <= budget.room, "{own} tokens in a room of {}", budget.room);
    assert!(view.tokens() <= budget.window, "{} tokens in a window of {}", view.tokens(), budget.window);
    let shapes: Vec<MessageShape> =
        poured(&play.book, view).iter().map(|(_, message)| MessageShape::of(message)).collect();
    assert_eq!(grammar::anthropic(&shapes), Ok(()));
}

#[test]
fn a_child_stays_in_its_share_and_no_step_touches_what_it_sees_of_the_threads_above() {
    let (fits, floors) = (Cell::new(0), Cell::new(0));
    each(11_000_000, 5_000, |play| {
        let meter = *play.dice.pick(&[Meter::Bytes4, Meter::Chars4]).unwrap();
        let mut line = Line::new(u64::from(play.dice.between(2_000, 60_000)));
        for _ in 0..play.dice.between(1, 3) {
            let length = play.dice.between(2, 12);
            line.go_on(play, meter, length);
            let ratio = ratio(play);
            if line.descend(play, meter, ratio).is_err() {
                return;
            }
        }
        let length = play.dice.between(3, 30);
        line.go_on(play, meter, length);
        for _ in 0..3 {
            let (budget, before) = (budget(play, line.window), seen_above(play));
            match fit(play, meter, &budget) {
                Fitted::Floor(floor) => {
                    assert_eq!(floor.above, budget.above);
                    assert!(floor.tokens > budget.most(), "a floor although it fits: {floor}");
                    assert!(floor.floor > budget.usable, "a floor below what is usable: {floor}");
                    floors.set(floors.get() + 1);
                    return;
                }
                Fitted::Yes(steps) => fits.set(fits.get() + steps),
            }
            check_fits(play, &budget);
            assert_eq!(seen_above(play), before, "what is seen of the threads above has changed");
            turn(play, meter);
        }
    });
    assert!(fits.get() > 1_000 && floors.get() > 20, "{} steps, {} floors", fits.get(), floors.get());
}

fn anchor(name: &str, ending: Option<Ending>, first: Option<Seq>) -> Entry {
    Entry::Anchor(Anchor {
        thread: ThreadId::new(name).unwrap(),
        label: None,
        ending,
        text: format!("[thread {name}]"),
        brief: None,
        first,
    })
}

#[test]
fn the_anchor_of_a_thread_that_has_not_ended_stays_through_any_number_of_rounds() {
    each(12_000_000, 1_500, |play| {
        let meter = Meter::Bytes4;
        turn(play, meter);
        let open = stage::push(play, meter, anchor("stelis_1", None, None)).unwrap();
        let ended = stage::push(play, meter, anchor("stelis_2", None, None)).unwrap();
        let paused = stage::push(play, meter, anchor("stelis_3", None, None)).unwrap();
        stage::push(play, meter, anchor("stelis_2", Some(Ending::Completed), Some(ended))).unwrap();
        stage::push(play, meter, anchor("stelis_3", Some(Ending::Paused), Some(paused))).unwrap();
        for _ in 0..12 {
            turn(play, meter);
            let budget = stage::budget(&mut play.dice, 4_000);
            if matches!(fit(play, meter, &budget), Fitted::Floor(_)) {
                return;
            }
            let view = play.book.view();
            assert!(view.shows(open) && view.shows(paused), "an anchor of an open thread is gone");
        }
    });
}

#[test]
fn the_anchor_of_an_ended_thread_may_leave_like_anything_else() {
    let gone = Cell::new(0);
    each(13_000_000, 200, |play| {
        let meter = Meter::Bytes4;
        turn(play, meter);
        let first = stage::push(play, meter, anchor("stelis_1", None, None)).unwrap();
        stage::push(play, meter, anchor("stelis_1", Some(Ending::Completed), Some(first))).unwrap();
        for _ in 0..12 {
            turn(play, meter);
            let budget = stage::budget(&mut play.dice, 4_000);
            if matches!(fit(play, meter, &budget), Fitted::Floor(_)) {
                return;
            }
        }
        gone.set(gone.get() + u32::from(!play.book.view().shows(first)));
    });
    assert!(gone.get() > 10, "{}", gone.get());
}

#[test]
fn the_floor_of_a_child_names_what_it_sees_of_the_threads_above() {
    each(14_000_000, 1, |play| {
        let meter = Meter::Bytes4;
        stage::push(play, meter, Entry::Message(Message::text(Role::User, "x".repeat(6_000)), None)).unwrap();
        let mut line = Line::new(4_000);
        line.descend(play, meter, Ratio::new(0.1).unwrap()).unwrap();
        let pinned = Entry::Message(Message::text(Role::User, "pinned ".repeat(2_000)), None);
        let seq = stage::push(play, meter, pinned).unwrap();
        play.push(Entry::Pin { span: komado_core::Span::new(seq, seq) }, 0).unwrap();
        let budget = budget(play, line.window);
        let Fitted::Floor(floor) = fit(play, meter, &budget) else { panic!("it fits") };
        let text = floor.to_string();
        assert!(floor.above > 1_000, "{text}");
        let named = format!("what is seen of the threads above {}", floor.above);
        assert!(text.contains(&named) && text.contains("balance"), "{text}");
    });
}
