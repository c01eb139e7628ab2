//! A model that makes a call again, because what it answered was hidden from it.

use super::kit::{Talk, result, setup};
use komado_core::Seq;
use komado_core::budget::{Budget, Preset};
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::exchange::ExchangeEvent;
use komado_engine::fit::Ladder;
use komado_engine::repeat::{RepeatedCall, WARN_AT};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

/// What the model looks for in the two files, in the middle of each; it must see both at once.
const LANTERN: &str = "the lantern is number 7421";
const DRAWER: &str = "the drawer is number 88";

/// More requests than any of these conversations may take.
const MOST: usize = 20;

/// A window in which much must leave, and what may be used of it.
const WINDOW: u64 = 8_192;

/// So many hundredths of what may be used of the window, in tokens.
fn part(percent: u64) -> u64 {
    Budget::new(Preset::Komado.policy(), WINDOW, &[]).usable * percent / 100
}

/// Lines of so many tokens around what the model looks for.
fn listing(what: &str, tokens: u64) -> String {
    let line = |n: usize| format!("{n}: shelf {} holds crate {} from week {n}\n", n % 7, n * 31);
    let mut lines: Vec<String> = Vec::new();
    let mut sum = 0;
    while sum < tokens {
        lines.push(line(lines.len()));
        sum += super::kit::tokens(&lines[lines.len() - 1]);
    }
    lines.insert(lines.len() / 2, format!("{what}\n"));
    lines.concat()
}

/// A conversation in which so many tokens were said, and then a question that takes a tool.
fn begun<'t>(talk: &'t Talk, tokens: u64) -> Thread<'t> {
    let mut thread = talk.thread().clipping(None);
    thread.set_up(setup()).unwrap();
    let mut n = 0;
    while thread.view().tokens() < tokens {
        n += 1;
        let said = format!("Note {n}: team {} meets in room {} about plan {n}. ", n % 5, n * 3).repeat(6);
        thread.say(Message::text(Role::User, said)).unwrap();
        thread.say(Message::text(Role::Assistant, format!("Noted: plan {n}."))).unwrap();
    }
    thread.say(Message::text(Role::User, "Which number has the lantern? Read stock.txt.")).unwrap();
    thread
}

/// Turns until the model says something. It reads stock.txt until it sees the lantern, then list.txt until it sees the drawer
/// and the lantern still; gives the requests that it took, and the repetitions that were told.
fn until_found(talk: &Talk, thread: &mut Thread<'_>, stock: u64, list: u64) -> (usize, Vec<RepeatedCall>) {
    let both = ScriptStep::say("7421 in drawer 88.").when_contains(DRAWER);
    talk.server.add(both.when_anywhere(LANTERN).always());
    talk.server.add(ScriptStep::call("read", r#"{"path":"list.txt"}"#).when_anywhere(LANTERN).always());
    talk.server.add(ScriptStep::call("read", r#"{"path":"stock.txt"}"#).always());
    let mut told = Vec::new();
    for requests in 1..=MOST {
        let mut by = ByDigest::new(thread.meter());
        let mut ladder = Ladder { budget: talk.budget(), settings: CondenseSettings::default(), by: &mut by };
        let turned = thread.turn(&talk.asking, &mut ladder, &mut |news| {
            if let ExchangeEvent::Repeated(repeated) = news {
                told.push(repeated.clone());
            }
        });
        let message = turned.unwrap().message;
        let Some(call) = message.calls().next() else { return (requests, told) };
        let text = match call.arguments.contains("stock") {
            true => listing(LANTERN, stock),
            false => listing(DRAWER, list),
        };
        thread.say(result(&call.id, &text)).unwrap();
    }
    (MOST + 1, told)
}

fn unpins(thread: &Thread<'_>) -> usize {
    (1..=thread.last())
        .filter(|seq| matches!(thread.record(*seq).unwrap().entry, Entry::Unpin { .. }))
        .count()
}

#[test]
fn a_model_whose_first_answer_leaves_for_the_second_reads_each_once_more_and_is_done() {
    for (said, stock, list) in [(75, 10, 62), (20, 9, 70), (200, 10, 65)] {
        let wide = Talk::new(Dialect::Chat, 200_000, ScriptedOptions::default());
        let (needed, told) = until_found(&wide, &mut begun(&wide, part(said)), part(stock), part(list));
        assert!(needed == 3 && told.is_empty(), "nothing is hidden");
        let narrow = Talk::new(
            Dialect::Chat,
            WINDOW,
            ScriptedOptions { window: Some(WINDOW), ..ScriptedOptions::default() },
        );
        let mut thread = begun(&narrow, part(said));
        let (took, told) = until_found(&narrow, &mut thread, part(stock), part(list));
        assert!(!told.is_empty(), "{said} {stock} {list}: the first answer was hidden");
        assert_eq!(took, needed + 2, "{said} {stock} {list}: {told:?}");
    }
}

#[test]
fn the_second_same_call_pins_its_answer_and_says_why_and_unpin_undoes_it() {
    let talk = Talk::new(Dialect::Chat, WINDOW, ScriptedOptions::default());
    let mut thread = begun(&talk, part(75));
    let (_, told) = until_found(&talk, &mut thread, part(10), part(62));
    let repeated = told[0].clone();
    assert_eq!((repeated.tool.as_str(), repeated.times), ("read", 2));
    assert_eq!(repeated.pins, [repeated.unit]);
    assert!(thread.view().edits().any(|edit| edit == repeated.hidden_by));
    let [from, to]: [Seq; 2] = repeated.unit;
    assert_eq!(thread.spared().unwrap(), [komado_core::Span::new(from, to)]);
    // The second file is larger than what pins may take: it is counted, and not pinned.
    let last = thread.repeated().unwrap().unwrap();
    assert_eq!((Some(&last), last.times, &last.pins), (told.last(), 2, &repeated.pins));
    thread.unpin(from).unwrap();
    assert!(!thread.view().is_pinned(from) && thread.spared().unwrap().is_empty());
}

#[test]
fn an_answer_that_no_pin_can_hold_is_counted_until_it_is_told_loudly() {
    let talk = Talk::new(Dialect::Chat, WINDOW, ScriptedOptions::default());
    let mut thread = begun(&talk, part(75));
    // Larger than the window: only a part can be shown.
    let (requests, told) = until_found(&talk, &mut thread, part(250), 0);
    assert_eq!(requests, MOST + 1, "the model never sees it");
    let times: Vec<u32> = told.iter().map(|repeated| repeated.times).collect();
    assert_eq!(times[..4], [2, 3, 4, WARN_AT]);
    assert!(thread.view().pins().is_empty());
    // The count is in the journal: another process goes on with it.
    drop(thread);
    let thread = talk.thread();
    assert!(thread.repeated().unwrap().unwrap().times > WARN_AT);
}

#[test]
fn pins_of_repetitions_are_given_back_when_they_take_too_much() {
    let talk = Talk::new(Dialect::Chat, WINDOW, ScriptedOptions::default());
    let mut thread = begun(&talk, part(75));
    until_found(&talk, &mut thread, part(10), part(62));
    assert_eq!(thread.spared().unwrap().len(), 1);
    drop(thread);
    let small = Talk { window: 3_000, ..talk };
    let mut thread = small.thread().clipping(None);
    thread.say(Message::text(Role::User, "And the chair?")).unwrap();
    small.turn(&mut thread).0.unwrap();
    assert!(thread.spared().unwrap().is_empty() && thread.view().pins().is_empty());
    assert_eq!(unpins(&thread), 1);
}

#[test]
fn a_call_made_again_while_its_answer_is_shown_is_no_repetition() {
    let talk = Talk::new(Dialect::Chat, 200_000, ScriptedOptions::default());
    let mut thread = begun(&talk, 300);
    thread.condense(vec![komado_core::Span::new(2, 5)], "Two notes.", "by_hand").unwrap();
    talk.server.add(ScriptStep::call("read", r#"{"path":"a"}"#).always());
    for _ in 0..3 {
        let (turned, _) = talk.turn(&mut thread);
        let id = turned.unwrap().message.calls().next().unwrap().id.clone();
        thread.say(result(&id, "one two three")).unwrap();
    }
    assert_eq!(thread.repeated().unwrap(), None);
}
