//! Bars 2, 3 and 10: what must stay stays, what left can be reached, and nothing is ever lost by looking.

use crate::bars::room::{Room, call, calls, check, everywhere, model, result, seen, setup, user, words};
use crate::bars::talk::{budget, edit, exchange, fit, fit_by, prose, read, request, said, session};
use komado_core::budget::Preset;
use komado_core::journal::{EditKind, ShowKind};
use komado_core::message::MessagePart;
use komado_core::{Meter, Seq, Span};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_testkit::Scripted;

/// Bar 2.
#[test]
fn system_prompt_pins_and_first_request_survive_any_number_of_compactions() {
    for preset in Preset::ALL {
        everywhere(|room| survives(room, preset));
    }
}

fn survives(room: &Room, preset: Preset) {
    let mut root = room.root(&session(room, Meter::O200k));
    root.set_up(setup("You are careful. 丁寧に。")).unwrap();
    root.say(user("最初の依頼: make `src/lexer.rs` faster, and do not touch the tests")).unwrap();
    exchange(&mut root, 1, 20);
    let pin = root.say(user("never use unsafe")).unwrap();
    root.pin(pin).unwrap();
    root.say(calls(vec![
        MessagePart::text("the rules"),
        call("rules", "read_file", r#"{"path":"RULES.md"}"#),
    ]))
    .unwrap();
    let rules = root.say(result("rules", &prose(77, 60))).unwrap();
    root.pin(rules).unwrap();
    let begun = request(&root);
    // System prompt and first request; the pinned message; the pinned call with its result.
    let kept = [&begun[..2], &begun[4..7]].concat();
    let budget = budget(preset, 5_000);
    let mut edits = 0;
    for n in 10..120 {
        if n % 2 == 0 {
            read(&mut root, n, 180);
        } else {
            exchange(&mut root, n, 60);
        }
        edits += fit(&mut root, &budget).done.len();
        let now = request(&root);
        assert_eq!(now[..2], begun[..2], "{}: turn {n}", preset.name());
        let mut rest = now.iter();
        assert!(kept.iter().all(|line| rest.any(|own| own == line)), "{}: turn {n}: {now:#?}", preset.name());
    }
    assert!(edits >= 6, "{}: {edits} edits", preset.name());
}

const FACT: &str = "QX-7741-ZETA";

/// What happens between two requests.
type Goes = fn(&mut Thread<'_>, u64);

/// Mostly the model works: it reads, and says what it found.
fn works(root: &mut Thread<'_>, n: u64) {
    read(root, n, 40);
    root.say(model(&format!("step {n}: {}", prose(n + 500, 110)))).unwrap();
}

/// Mostly people talk.
fn talks(root: &mut Thread<'_>, n: u64) {
    exchange(root, n, 110);
}

/// Says the fact once, early, and goes on until three summaries have stood in the view one after another.
fn three_summaries(
    root: &mut Thread<'_>,
    goes_on: Goes,
    mut by: impl FnMut(&mut Thread<'_>, u64) -> Option<Seq>,
) -> Seq {
    root.say(user("please look after the release")).unwrap();
    exchange(root, 1, 30);
    let told =
        root.say(user(&format!("the ticket is {FACT}, and the host is eu-north-7.example.com"))).unwrap();
    root.say(model("noted")).unwrap();
    // The last few messages of the user stay by themselves; this one is not to be among them.
    for _ in 0..4 {
        root.say(user("and?")).unwrap();
        root.say(model("on it")).unwrap();
    }
    root.say(user("now go through all parts of the parser")).unwrap();
    let mut summaries = Vec::new();
    for n in 2..400 {
        goes_on(root, n);
        summaries.extend(by(root, n));
        if summaries.len() == 3 {
            break;
        }
    }
    assert_eq!(summaries.len(), 3);
    // The last stands for all that the others stood for, the fact too.
    let last = edit(root, summaries[2]);
    assert!(last.hide.iter().any(|span| span.holds(told)), "{:?}", last.hide);
    assert!(!root.view().shows(told));
    told
}

/// The condensations among what was done.
fn condensed(fitted: &komado_engine::fit::FitResult) -> Option<Seq> {
    fitted.done.iter().find(|done| done.edit.kind == EditKind::Condense).map(|done| done.seq)
}

/// Bar 3.
#[test]
fn a_fact_from_before_the_first_compaction_is_reached_after_the_third() {
    everywhere(|room| {
        let mut root = room.root(&session(room, Meter::O200k));
        let budget = budget(Preset::Komado, 12_000);
        let told = three_summaries(&mut root, works, |root, _| condensed(&fit(root, &budget)));
        // The model need not even ask: the summary tells it.
        let summary = reaches(&root, told);
        assert!(summary.contains(FACT), "{summary}");
    });
}

/// Bar 3, where people talk so much that a short summary cannot tell it all.
#[test]
fn a_fact_that_the_summary_has_no_room_for_is_reached_under_the_numbers_it_names() {
    for preset in Preset::ALL {
        let room = Room::memory();
        let mut root = room.root(&session(&room, Meter::O200k));
        let budget = budget(preset, 5_000);
        let told = three_summaries(&mut root, talks, |root, _| condensed(&fit(root, &budget)));
        reaches(&root, told);
    }
}

/// The heading of the summary names a span with the fact in it, and the entry still says every word.
fn reaches(root: &Thread<'_>, told: Seq) -> String {
    let view = words(root);
    let summary = view.iter().find(|line| line.contains("[Summary of earlier messages")).unwrap();
    let (_, from) = summary.split_once("messages @").unwrap();
    let (from, rest) = from.split_once("–@").unwrap();
    let to = rest.split_once('.').unwrap().0;
    assert!(Span::new(from.parse().unwrap(), to.parse().unwrap()).holds(told), "{summary}");
    assert_eq!(said(root, told), format!("the ticket is {FACT}, and the host is eu-north-7.example.com"));
    let then = root.view_at(told).unwrap();
    assert!(seen(&then, root).last().unwrap().contains(FACT));
    summary.clone()
}

/// Bar 3, with a model that forgets.
#[test]
fn a_fact_that_every_summary_forgets_is_still_in_the_ledger_after_the_third() {
    let room = Room::memory();
    let mut root = room.root(&session(&room, Meter::O200k));
    let budget = budget(Preset::Komado, 12_000);
    let told = three_summaries(&mut root, works, |root, n| {
        let text = format!("<summary>They talked about the parser, round {n}, and went on.</summary>");
        condensed(&fit_by(root, &budget, &mut Scripted::new(root.meter()).always(text)))
    });
    let summary = reaches(&root, told);
    assert!(summary.contains("They talked about the parser") && summary.contains(FACT), "{summary}");
}

/// Bar 3, word for word.
#[test]
fn what_is_to_be_kept_word_for_word_is_carried_from_summary_to_summary() {
    let room = Room::memory();
    let mut root = room.root(&session(&room, Meter::O200k));
    let settings =
        CondenseSettings { retain_prompt: Some("Keep tickets.".into()), ..CondenseSettings::default() };
    let mut first = true;
    three_summaries(&mut root, works, |root, _| {
        let keeps = if std::mem::take(&mut first) { "<retain>- ticket: 猫-7741</retain>" } else { "" };
        let text = format!("{keeps}<summary>They talked about the parser and went on.</summary>");
        let mut by = Scripted::new(root.meter()).always(text);
        let budget = budget(Preset::Komado, 6_000);
        let done =
            condensed(&root.fit(&mut Ladder { budget, settings: settings.clone(), by: &mut by }).unwrap());
        // Not asked, not answered: the next one is the first.
        first |= done.is_none() && !keeps.is_empty();
        done
    });
    let last = root.view().edits().last().unwrap();
    let show = edit(&root, last).show;
    assert_eq!(show.iter().map(|s| s.kind).collect::<Vec<_>>(), [ShowKind::Retain, ShowKind::Summary]);
    assert!(show[0].text.ends_with("- ticket: 猫-7741"), "{}", show[0].text);
    check(&root);
}

/// Bar 10.
#[test]
fn reading_with_a_small_window_and_appending_keeps_the_whole_history() {
    everywhere(|room| {
        let id = session(room, Meter::O200k);
        let mut root = room.root(&id);
        root.set_up(setup("be brief")).unwrap();
        for n in 0..12 {
            exchange(&mut root, n, 60);
            read(&mut root, n, 120);
        }
        root.settle().unwrap();
        let (whole, last) = (request(&root), root.last());
        drop(root);
        // Somebody with a small window looks, and plans; that changes nothing.
        let looking = room.look(&id, "root");
        let small = budget(Preset::Komado, 3_000);
        let mut by = ByDigest::new(looking.meter());
        let mut ladder = Ladder { budget: small.clone(), settings: CondenseSettings::default(), by: &mut by };
        assert!(!looking.plan(&mut ladder).unwrap().done.is_empty());
        assert_eq!((request(&looking), looking.last()), (whole.clone(), last));
        drop(looking);
        // Then somebody with a small window works.
        let mut root = room.root(&id);
        assert!(!fit(&mut root, &small).done.is_empty());
        assert!(request(&root).len() < whole.len() / 2);
        exchange(&mut root, 99, 10);
        root.settle().unwrap();
        drop(root);
        let later = room.again();
        let mut root = later.root(&id);
        let entries: Vec<String> = (2..=last).map(|seq| said(&root, seq)).collect();
        assert_eq!(entries.len(), whole.len() - 1);
        assert!(entries[0].starts_with("question 0: "));
        // And somebody with a large one sees it all, with what was said since.
        let back = root.relax(&budget(Preset::Komado, 100_000)).unwrap();
        assert!(!back.is_empty());
        let now = request(&root);
        assert_eq!((&now[..whole.len()], now.len()), (&whole[..], whole.len() + 2));
        check(&root);
    });
}
