//! A slice: never too large, whole, and counted as it is sent.

use crate::shares::line::{Line, own_setup, ratio, share};
use crate::shares::play::{Play, each, items, poured};
use crate::shares::stage::{self, go_on};
use komado_core::grammar::{self, MessageShape};
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Ratio, Setup, Slice};
use komado_core::slice::{SliceCut, SliceTooLarge, SliceTools, counted, cut};
use komado_core::view::{ItemSource, ShownItem};
use komado_core::{Kind, Message, Meter, Role, Seq, ThreadId, View};
use komado_testkit::notation;
use std::cell::Cell;
use std::collections::BTreeMap;

const METERS: [Meter; 4] = [Meter::Bytes4, Meter::Chars4, Meter::O200k, Meter::O200kTimes15];

/// A unit of a view, as this test sees it.
#[derive(Debug)]
struct Unit {
    items: Vec<Seq>,
    tokens: u64,
    must: bool,
    is_user: bool,
}

/// The units of a view, without calls that wait; written to be read, not to be fast.
fn units(play: &Play, view: &View) -> Vec<Unit> {
    let rows = play.book.rows();
    let mut units: BTreeMap<usize, Unit> = BTreeMap::new();
    let mut place: BTreeMap<Seq, usize> = BTreeMap::new();
    let all: Vec<(ShownItem, Kind, Seq)> = items(&play.book, view)
        .into_iter()
        .map(|item| {
            let Ok(head) = rows.head(item.seq);
            let shown = item.what == ItemSource::Shown;
            (item, head.kind, if shown { item.seq } else { head.unit })
        })
        .collect();
    let leading = all
        .iter()
        .take_while(|(item, kind, _)| *kind == Kind::System && item.what != ItemSource::Shown)
        .count();
    for (i, (item, kind, of)) in all.iter().enumerate() {
        if view.open().unit > 0 && *of == view.open().unit {
            continue;
        }
        let shown = item.what == ItemSource::Shown;
        let at = *place.entry(*of).or_insert(i);
        let unit = units.entry(at).or_insert(Unit {
            items: Vec::new(),
            tokens: 0,
            must: false,
            is_user: *kind == Kind::User && !shown,
        });
        unit.items.push(item.seq);
        unit.tokens += u64::from(item.tokens);
        unit.must |= i < leading || (!shown && view.is_pinned(item.seq));
    }
    units.into_values().collect()
}

fn cut_at(play: &Play, meter: Meter, at: Seq, most: u64) -> Result<Slice, SliceTooLarge> {
    let (thread, nobody) = (ThreadId::root(), |_: &ThreadId| false);
    let (ratio, head) = (Ratio::new(0.8).unwrap(), "[ここまでの会話]".to_owned());
    let tools = SliceTools::Offered;
    let wanted = SliceCut { thread: &thread, at, ratio, most, head, tools, within: &nobody };
    let Ok(slice) = cut(play.book.rows(), meter, wanted);
    slice
}

/// The newest request is there, whole or in part, unless not even a line in its place fits. Gives how many are in part,
/// and counts them as they are shown.
fn check_request(
    play: &Play,
    meter: Meter,
    units: &mut [Unit],
    slice: &Slice,
    before: u64,
    most: u64,
) -> usize {
    let room = most - before - units.iter().filter(|unit| unit.must).map(|unit| unit.tokens).sum::<u64>();
    let Some(request) = units.iter_mut().rfind(|unit| unit.is_user) else { return slice.replace.len() };
    let Ok(record) = play.book.rows().record(request.items[0]);
    let Entry::Message(message, _) = record.entry else { panic!("{record:?}") };
    if !slice.keeps(request.items[0]) {
        let line = u64::from(meter.message(&message.saying(&"x".repeat(100))));
        assert!(request.tokens > room && line > room, "the request is not there: {room} {request:?}");
    }
    match &slice.replace[..] {
        [] => {}
        [swap] => {
            assert_eq!(vec![swap.seq], request.items);
            assert!(!request.must && request.tokens > room, "it fits whole: {room} {request:?}");
            assert_eq!(swap.tokens, meter.message(&message.saying(&swap.text)));
            request.tokens = u64::from(swap.tokens);
        }
        more => panic!("{more:?}"),
    }
    slice.replace.len()
}

/// What is taken, unit by unit, newest first and whole.
fn check_choice(units: &[Unit], slice: &Slice, before: u64, most: u64) {
    let taken = |unit: &Unit| slice.keeps(unit.items[0]);
    let mut tokens = before;
    for unit in units {
        assert!(unit.items.iter().all(|seq| slice.keeps(*seq) == taken(unit)), "a unit was split: {unit:?}");
        assert!(taken(unit) || !unit.must, "it must stay: {unit:?}");
        tokens += if taken(unit) { unit.tokens } else { 0 };
    }
    assert_eq!(u64::from(slice.tokens), tokens);
    assert!(tokens <= most, "{tokens} of {most}");
    let must: u64 = before + units.iter().filter(|unit| unit.must).map(|unit| unit.tokens).sum::<u64>();
    let request = units.iter().rposition(|unit| unit.is_user);
    if let Some(request) = request.map(|i| &units[i]).filter(|unit| !unit.must) {
        assert!(taken(request) || must + request.tokens > most, "the request fits and is not there");
    }
    // What is left out did not fit, or is older than what did not.
    let chosen = |i: usize| taken(&units[i]) && !units[i].must && Some(i) != request;
    let ended = (0..units.len()).rev().find(|&i| !taken(&units[i]) && units[i].tokens <= most / 4);
    if let Some(ended) = ended {
        assert!(!(0..ended).any(chosen), "something older than what did not fit was taken");
    }
}

#[test]
fn a_slice_is_never_too_large_and_holds_what_must_stay_and_the_newest_whole() {
    let (cuts, refused, clips) = (Cell::new(0), Cell::new(0), Cell::new(0));
    each(20_000_000, 20_000, |play| {
        let meter = Meter::Bytes4;
        let length = play.dice.between(1, 30);
        go_on(play, meter, length);
        // Also in the middle of calls, and at moments that were rewound.
        let at = if play.dice.chance(50) { play.last() } else { play.dice.below(play.last() + 1) };
        let view = play.book.view_at(at);
        let most = u64::from(play.dice.below(u32::try_from(view.tokens()).unwrap() * 2 + 40));
        let mut units = units(play, &view);
        let setup = own_setup(&play.book, &view).map_or(0, |setup| meter.setup(&setup));
        let before = u64::from(setup + meter.said("[ここまでの会話]"));
        match cut_at(play, meter, at, most) {
            Ok(slice) => {
                clips.set(clips.get() + check_request(play, meter, &mut units, &slice, before, most));
                check_choice(&units, &slice, before, most);
                cuts.set(cuts.get() + 1);
            }
            Err(why) => {
                let must = before + units.iter().filter(|u| u.must).map(|u| u.tokens).sum::<u64>();
                assert_eq!(why, SliceTooLarge { thread: ThreadId::root(), must, most });
                assert!(must > most, "{why}");
                let text = why.to_string();
                assert!(text.contains(&must.to_string()) && text.contains(&most.to_string()), "{text}");
                refused.set(refused.get() + 1);
            }
        }
    });
    assert!(cuts.get() > 5_000 && refused.get() > 1_000, "{} cuts, {} refused", cuts.get(), refused.get());
    assert!(clips.get() > 20, "{} requests in part", clips.get());
}

/// System prompt and tools, each thread's part counted by itself; the tools of the nearest thread that has any.
fn setup_tokens(line: &Line, play: &Play, meter: Meter) -> (u64, u64) {
    let share = share(&play.book).unwrap();
    let mut setups: Vec<Option<Setup>> = line
        .above
        .iter()
        .zip(&share.slices)
        .map(|(book, slice)| own_setup(book, &book.view_at(slice.at)))
        .collect();
    setups.push(own_setup(&play.book, play.book.view()));
    let nearest = setups.iter().rposition(|setup| setup.as_ref().is_some_and(|setup| setup.tools.is_some()));
    let own = |(i, setup): (usize, Option<Setup>)| {
        let mut setup = setup.unwrap_or_default();
        setup.tools = setup.tools.filter(|_| Some(i) == nearest);
        u64::from(meter.setup(&setup))
    };
    let parts = setups.into_iter().enumerate().map(own).sum();
    let Ok(joined) = play.book.view().setup_in(play.book.rows());
    (parts, u64::from(meter.setup(&joined)))
}

fn check_count(line: &Line, play: &Play, meter: Meter) {
    let view = play.book.view();
    let mut said = Vec::new();
    let Ok(()) = view.pour_said(play.book.rows(), &mut |_: Seq, message: &Message| {
        said.push(message.clone());
        Ok::<(), std::convert::Infallible>(())
    });
    let words: u64 = said.iter().map(|message| u64::from(meter.message(message))).sum();
    let (parts, joined) = setup_tokens(line, play, meter);
    assert_eq!(view.tokens(), words + parts, "what is stated is not what is sent");
    // Two line breaks between the prompts, less what each would cost as a message of its own.
    assert!(joined <= parts + 1 + line.above.len() as u64, "{joined} against {parts}");
}

fn check_seen(line: &Line, play: &Play) {
    let all = poured(&play.book, play.book.view());
    let shapes: Vec<MessageShape> = all.iter().map(|(_, message)| MessageShape::of(message)).collect();
    assert_eq!(grammar::anthropic(&shapes), Ok(()));
    for depth in 1..=line.above.len() {
        let child = crate::shares::line::name(depth);
        let says = |text: &str| all.iter().any(|(_, message)| message.words() == text);
        assert!(says(&format!("[{child} が開始しました]")), "{child} is not told how it came to be");
        assert!(!says(&format!("[thread {child}: in progress]")), "{child} is told more than that");
        assert!(says(&format!("[from {}]", crate::shares::line::name(depth - 1))), "a heading is gone");
    }
}

#[test]
fn what_is_stated_is_what_is_sent_and_every_provider_takes_it() {
    let deepest = Cell::new(0);
    each(21_000_000, 3_000, |play| {
        let meter = *play.dice.pick(&METERS).unwrap();
        let mut line = Line::new(u64::from(play.dice.between(4_000, 200_000)));
        for _ in 0..play.dice.between(1, 6) {
            let length = play.dice.between(1, 12);
            line.go_on(play, meter, length);
            let ratio = ratio(play);
            if line.descend(play, meter, ratio).is_err() {
                break;
            }
        }
        if line.above.is_empty() {
            return;
        }
        check_seen(&line, play);
        let length = play.dice.between(1, 12);
        line.go_on(play, meter, length);
        check_count(&line, play, meter);
        deepest.set(deepest.get().max(line.above.len()));
    });
    assert_eq!(deepest.get(), 6);
}

#[test]
fn one_huge_output_does_not_leave_the_child_blind() {
    each(22_000_000, 1, |play| {
        let meter = Meter::Bytes4;
        let mut say = |role, text: &str| {
            let message = Message::text(role, text);
            let tokens = meter.message(&message);
            play.push(Entry::Message(message, None), tokens).unwrap()
        };
        let old = say(Role::Assistant, "old");
        let request = say(Role::User, "do it");
        let plan = say(Role::Assistant, "the plan");
        let huge = say(Role::Assistant, &"x".repeat(4_000));
        let last = say(Role::Assistant, "done");
        let slice = cut_at(play, meter, last, 300).unwrap();
        assert!(slice.keeps(last) && !slice.keeps(huge), "{slice:?}");
        assert!(slice.keeps(plan) && slice.keeps(request) && slice.keeps(old), "{slice:?}");
        assert_eq!(slice.keep.len(), 2, "{:?}", slice.keep);
    });
}

#[test]
fn a_request_larger_than_the_share_is_shown_in_part_and_what_is_newer_beside_it() {
    each(24_000_000, 1, |play| {
        let meter = Meter::Bytes4;
        let mut say = |role, text: &str| {
            let message = Message::text(role, text);
            let tokens = meter.message(&message);
            play.push(Entry::Message(message, None), tokens).unwrap()
        };
        let words = |n: u32| format!("part {n} of what is asked for\n");
        let request = say(Role::User, &(0..4_000).map(words).collect::<String>());
        let answer = say(Role::Assistant, &"y".repeat(4_000));
        let slice = cut_at(play, meter, answer, 4_000).unwrap();
        assert!(slice.keeps(request) && slice.keeps(answer), "{slice:?}");
        let [swap] = &slice.replace[..] else { panic!("{slice:?}") };
        assert!(swap.seq == request && swap.text.starts_with("part 0 of"), "{swap:?}");
        assert!(swap.text.contains(&format!("@{request}")), "it does not say where the rest is: {swap:?}");
        assert!((1_000..=2_000).contains(&swap.tokens), "{}", swap.tokens);
        assert!(slice.tokens <= 4_000, "{}", slice.tokens);
        let whole = cut_at(play, meter, answer, 1_000_000).unwrap();
        assert!(whole.keeps(request) && whole.replace.is_empty(), "{whole:?}");
    });
}

#[test]
fn a_child_reads_the_part_of_the_request_and_it_is_counted_as_it_is_sent() {
    each(25_000_000, 1, |play| {
        let meter = Meter::Bytes4;
        let request = Message::text(Role::User, (0..4_000).map(|n| format!("行 {n}\n")).collect::<String>());
        let tokens = meter.message(&request);
        play.push(Entry::Message(request, None), tokens).unwrap();
        let mut line = Line::new(10_000);
        line.descend(play, meter, Ratio::new(0.8).unwrap()).unwrap();
        check_seen(&line, play);
        check_count(&line, play, meter);
        let share = share(&play.book).unwrap();
        let swap = &share.slices[0].replace[0];
        let all = poured(&play.book, play.book.view());
        assert!(all.iter().any(|(_, message)| message.words() == swap.text), "{all:?}");
        let Ok(items) = notation::items(play.book.view(), play.book.rows());
        assert!(items.contains("root@1 user clip \"行 0"), "{items}");
        let Ok(counted) = counted(play.book.rows(), meter, &share, SliceTools::Offered);
        assert_eq!(counted, share.slices);
    });
}

#[test]
fn calls_that_wait_are_not_part_of_a_slice() {
    each(23_000_000, 500, |play| {
        let meter = Meter::Bytes4;
        go_on(play, meter, 6);
        while play.book.view().open().calls.is_empty() {
            let entry = crate::shares::play::say(&play.book, &mut play.dice);
            stage::push(play, meter, entry);
        }
        let waits = play.book.view().open().unit;
        let slice = cut_at(play, meter, play.last(), 1_000_000).unwrap();
        assert!(!slice.keeps(waits), "{slice:?}");
    });
}
