//! Bars 4 and 5: the question fits the window of whoever is asked, and a failure changes nothing.

use crate::bars::room::{Room, everywhere, setup, user};
use crate::bars::talk::{budget, exchange, fit_by, read, request, session};
use komado_core::budget::{BudgetRule, Preset};
use komado_core::journal::Entry;
use komado_core::ladder::Rung;
use komado_core::{Meter, Seq, SessionId};
use komado_engine::Thread;
use komado_testkit::Scripted;

/// Bar 4.
#[test]
fn the_summary_request_fits_the_summarisers_own_window() {
    for window in [1_500, 3_000, 6_000] {
        let room = Room::memory();
        let mut root = room.root(&session(&room, Meter::O200k));
        root.say(user("tell me all about it")).unwrap();
        let budget = budget(Preset::Komado, 20_000);
        let mut rounds = 0;
        for n in 0..200 {
            exchange(&mut root, n, 150);
            if n % 5 == 0 {
                read(&mut root, n, 900);
            }
            let answer = "<summary>They went through the parser, file by file, and found it slow.</summary>";
            let mut by = Scripted::new(root.meter()).within(window).always(answer);
            let fitted = fit_by(&mut root, &budget, &mut by);
            // Over its window it would have failed.
            assert_eq!(fitted.declined, [""; 0]);
            let took = |text: &str| u64::from(Meter::O200k.said(text));
            for request in &by.requests {
                let asked = took(&request.text) + request.system.as_deref().map_or(0, took);
                assert!(asked + request.max_tokens <= window, "{asked} + {}", request.max_tokens);
            }
            if !by.requests.is_empty() {
                rounds += 1;
                // What left was larger than the window, so it was read in parts.
                assert!(by.requests.len() > 1, "one request for {window}");
            }
        }
        assert!(rounds >= 3, "{rounds} rounds");
    }
}

/// A session at its soft mark, with nothing that could be trimmed.
fn at_soft_mark(room: &Room, preset: Preset, window: u64) -> (SessionId, Seq) {
    let id = session(room, Meter::O200k);
    let mut root = room.root(&id);
    root.set_up(setup("be brief")).unwrap();
    let budget = budget(preset, window);
    for n in 0.. {
        exchange(&mut root, n, 12);
        // Far enough above that a summary is worth it, and not over the gate.
        if root.view().tokens() + 100 > budget.usable {
            break;
        }
    }
    root.settle().unwrap();
    (id, root.last())
}

/// What people and models see of a session on disk.
fn files(room: &Room, id: &SessionId) -> Option<Vec<u8>> {
    room.files.is_some().then(|| std::fs::read(room.folder(id).join("current.jsonl")).unwrap())
}

/// Bar 5.
#[test]
fn a_failing_summariser_leaves_every_visible_byte_as_it_was() {
    everywhere(|room| {
        let budget = budget(Preset::Komado, 12_000);
        let (id, last) = at_soft_mark(room, Preset::Komado, 12_000);
        let mut root = room.root(&id);
        let (seen, tokens, disk) = (request(&root), root.view().tokens(), files(room, &id));
        assert_eq!(root.will_manage(&budget).unwrap().rule, BudgetRule::SoftMark);
        let failing = |root: &Thread<'_>| {
            Scripted::new(root.meter()).within(2_000).says("<summary>one</summary>").fails("HTTP 529")
        };
        {
            let mut by = failing(&root);
            let fitted = fit_by(&mut root, &budget, &mut by);
            assert!(fitted.done.is_empty() && fitted.after == tokens, "{fitted:?}");
            assert_eq!(fitted.declined.len(), 1);
            assert!(
                fitted.declined[0].contains("HTTP 529") && fitted.declined[0].contains("nothing was changed")
            );
            assert_eq!((request(&root), root.view().tokens()), (seen.clone(), tokens));
            // The attempt is in the journal, with what it cost, and in no request.
            assert_eq!(root.last(), last + 2);
            paid(&root, by.requests.len());
            // Nothing was said since: it is not asked, and paid, again.
            let mut by = failing(&root);
            let fitted = fit_by(&mut root, &budget, &mut by);
            assert!(
                by.requests.is_empty() && fitted.done.is_empty() && fitted.declined.is_empty(),
                "{fitted:?}"
            );
            assert_eq!((root.last(), request(&root)), (last + 2, seen.clone()));
        }
        root.settle().unwrap();
        assert_eq!(files(room, &id), disk);
        drop(root);
        assert_eq!(request(&room.again().root(&id)), seen);
    });
}

/// The last two entries: a question to a model, and what it cost for nothing.
fn paid(root: &Thread<'_>, asked: usize) {
    assert_eq!(asked, 2);
    let (Entry::Sent(sent), Entry::Lost(lost)) =
        (root.record(root.last() - 1).unwrap().entry, root.record(root.last()).unwrap().entry)
    else {
        panic!("the attempt is not journaled")
    };
    assert_eq!((sent.model.as_str(), sent.purpose.as_deref()), ("scripted", Some("condense")));
    assert_eq!(sent.context_tokens, root.view().tokens());
    assert_eq!((lost.to, lost.finish.as_str()), (Some(root.last() - 1), "declined"));
    assert!(lost.error.unwrap().contains("HTTP 529"));
    let usage = lost.usage.unwrap();
    assert!(usage.input_tokens > 1_000 && usage.output_tokens > 0, "{usage:?}");
}

/// Bar 5, when the window is full: the next rung is taken, and the failure leaves no trace in the view.
#[test]
fn a_failing_summariser_over_the_limit_leaves_the_work_to_the_next_rung() {
    let room = Room::memory();
    for preset in Preset::ALL {
        let budget = budget(preset, 8_000);
        let room = if preset == Preset::Komado { &room } else { &Room::memory() };
        let (id, _) = at_soft_mark(room, preset, 8_000);
        let mut root = room.root(&id);
        exchange(&mut root, 99, 150);
        assert_eq!(root.will_manage(&budget).unwrap().rule, BudgetRule::HardGate);
        let mut by = Scripted::new(root.meter()).fails("no such model");
        let fitted = fit_by(&mut root, &budget, &mut by);
        assert_eq!((by.requests.len(), fitted.declined.len()), (1, 1), "{}", preset.name());
        // Ours has a summary that needs no model; the others go on to the marker, as their originals do.
        let next = if preset == Preset::Komado { Rung::Condense } else { Rung::Truncate };
        assert_eq!(fitted.done[0].rung, next, "{}", preset.name());
        assert_eq!(fitted.done[0].edit.cause.usage, None);
        assert!(!request(&root).iter().any(|line| line.contains("no such model")));
    }
}
