//! Plans, and the way back: what is planned is what is done, and each edit can be undone by itself.

use super::{ask, begin, explained, fit, fit_by, ours, read, tell};
use crate::engine::room::{Room, check, counted, everywhere, words};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Edit, EditKind, Entry};
use komado_core::{Seq, SessionId};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::{DoneEdit, Ladder};
use komado_testkit::Scripted;

/// A session that was fitted again and again while it grew: reads, talk, a pin in the middle.
fn grown(room: &Room, preset: Preset, turns: u64) -> (SessionId, Vec<DoneEdit>) {
    let id = begin(room);
    let mut root = room.root(&id);
    let budget = Budget::new(preset.policy(), 10_000, &[]);
    let mut done = Vec::new();
    for n in 0..turns {
        match n % 4 {
            0 => drop(ask(&mut root, &format!("question {n}"), 60)),
            1 => drop(tell(&mut root, &format!("step {n}"), 200)),
            _ => drop(read(&mut root, &format!("f{n}.rs"), 400)),
        }
        if n == 20 {
            let last = root.last();
            root.pin(last).unwrap();
        }
        done.extend(fit(&mut root, &budget).done);
    }
    root.settle().unwrap();
    (id, done)
}

fn edits(done: &[DoneEdit]) -> Vec<&Edit> {
    done.iter().map(|done| &done.edit).collect()
}

#[test]
fn a_plan_is_what_is_then_done_and_writes_nothing() {
    for preset in Preset::ALL {
        everywhere(|room| {
            let mut root = room.root(&begin(room));
            let budget = Budget::new(preset.policy(), 10_000, &[]);
            let mut acted = 0;
            for n in 0..90 {
                read(&mut root, &format!("f{}.rs", n % 30), 300);
                tell(&mut root, &format!("step {n}"), 90);
                let mut by = ByDigest::new(root.meter());
                let mut ladder =
                    Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by: &mut by };
                let (seen, last) = (words(&root), root.last());
                let plan = root.plan(&mut ladder).unwrap();
                assert_eq!((words(&root), root.last()), (seen, last));
                check(&root);
                let fitted = root.fit(&mut ladder).unwrap();
                explained(&fitted, &root);
                assert_eq!((plan.verdict, plan.after), (fitted.verdict, fitted.after));
                assert_eq!(edits(&plan.done), edits(&fitted.done));
                let places = |done: &[DoneEdit]| done.iter().map(|d| (d.seq, d.rung)).collect::<Vec<_>>();
                assert_eq!(places(&plan.done), places(&fitted.done));
                assert_eq!(plan.declined, fitted.declined);
                acted += usize::from(!fitted.done.is_empty());
            }
            assert!(acted >= 3, "{}: {acted}", preset.name());
        });
    }
}

#[test]
fn a_plan_with_a_model_asks_it_and_still_writes_nothing() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    for n in 0..75 {
        tell(&mut root, &format!("step {n}"), 100);
    }
    let last = root.last();
    let mut by =
        Scripted::new(root.meter()).fails("busy").says("<summary>steps, one after another</summary>");
    let mut ladder = Ladder { budget: ours(|_| {}), settings: CondenseSettings::default(), by: &mut by };
    let refused = root.plan(&mut ladder).unwrap();
    let digest = Some("digest".to_owned());
    assert_eq!((refused.declined.len(), &refused.done[0].edit.cause.model), (1, &digest));
    let plan = root.plan(&mut ladder).unwrap();
    assert_eq!((plan.done[0].edit.kind, root.last()), (EditKind::Condense, last));
    check(&root);
}

#[test]
fn a_larger_window_takes_edits_back_as_far_as_they_fit() {
    everywhere(|room| {
        let (id, done) = grown(room, Preset::Komado, 60);
        let mut root = room.root(&id);
        assert!(done.len() >= 3, "{}", done.len());
        let all: u64 = (1..=root.last())
            .filter_map(|seq| {
                let record = root.record(seq).unwrap();
                matches!(record.entry, Entry::Message(..)).then_some(u64::from(record.tokens))
            })
            .sum();
        // The same window gives nothing back.
        assert_eq!(root.relax(&ours(|_| {})).unwrap(), [0; 0]);
        // A somewhat larger one gives something back, and then needs no edit itself.
        let middle = Budget::new(Preset::Komado.policy(), 18_000, &[]);
        let some = root.relax(&middle).unwrap();
        assert!(!root.will_manage(&middle).unwrap().will_manage);
        check(&root);
        // A large one gives back everything.
        let large = Budget::new(Preset::Komado.policy(), 128_000, &[]);
        let rest = root.relax(&large).unwrap();
        assert!(!some.is_empty() && !rest.is_empty(), "{some:?}, then {rest:?}");
        assert_eq!((root.view().edits().count(), root.view().tokens(), counted(&root)), (0, all, all));
        assert!(words(&root).iter().all(|line| !line.contains("[Summary") && !line.contains("trimmed")));
        // And back into the small one: as if nothing had happened, every step is there to be taken again.
        assert!(fit(&mut root, &ours(|_| {})).after <= 7_000);
    });
}

#[test]
fn every_edit_can_be_undone_by_itself_also_after_later_ones() {
    for preset in Preset::ALL {
        everywhere(|room| {
            let (id, done) = grown(room, preset, 70);
            let mut root = room.root(&id);
            let mut undone = 0;
            for DoneEdit { seq, edit, .. } in &done {
                let (seen, tokens) = (words(&root), root.view().tokens());
                if !root.view().edits().any(|live| live == *seq) {
                    // A later edit stands for all that it touched; that one has to go first, and it says so.
                    let refused = root.revert(*seq).unwrap_err().to_string();
                    assert!(refused.contains("lies under a later edit; revert that one first"), "{refused}");
                    continue;
                }
                let revert = root.revert(*seq).unwrap();
                check(&root);
                assert!(root.view().tokens() > tokens, "@{seq} freed nothing");
                assert!(root.view().edits().all(|live| live != *seq));
                assert!(
                    edit.replace.iter().all(|r| !words(&root).iter().any(|line| line.ends_with(&r.text)))
                );
                // And done again, as it was.
                root.revert(revert).unwrap();
                check(&root);
                assert_eq!((words(&root), root.view().tokens()), (seen, tokens));
                undone += 1;
            }
            assert!(undone >= 1 && done.len() >= 3, "{}: {undone} of {}", preset.name(), done.len());
            // Newest first, all of them: every message is back as it was said.
            while let Some(edit) = root.view().edits().last() {
                root.revert(edit).unwrap();
            }
            check(&root);
            assert_eq!(words(&root), said(&root));
        });
    }
}

/// Everything that was said, in order.
fn said(root: &Thread<'_>) -> Vec<String> {
    let record = |seq: Seq| root.record(seq).unwrap().entry;
    let messages = (1..=root.last()).filter_map(|seq| match record(seq) {
        Entry::Message(message, _) => Some(message),
        _ => None,
    });
    let line = |message: komado_core::Message| {
        let calls: String =
            message.calls().map(|c| format!(" {}({})#{}", c.name, c.arguments, c.id)).collect();
        let answers = message.outcome().map(|o| format!(" #{}", o.call_id)).unwrap_or_default();
        format!("{}{answers}: {}{calls}", message.role.name(), message.words())
    };
    messages.map(line).collect()
}

#[test]
fn the_list_of_summaries_has_the_true_ranges() {
    for preset in [Preset::Komado, Preset::Seed000, Preset::Seed002] {
        let room = Room::files();
        let (id, done) = grown(&room, preset, 200);
        let summaries: Vec<&DoneEdit> = done.iter().filter(|d| d.edit.kind == EditKind::Condense).collect();
        assert!(summaries.len() >= 3, "{}: {}", preset.name(), summaries.len());
        let list = std::fs::read_to_string(room.folder(&id).join("summaries.jsonl")).unwrap();
        let rows: Vec<serde_json::Value> =
            list.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows.len(), summaries.len());
        for (n, (row, DoneEdit { seq, edit, .. })) in rows.iter().zip(summaries).enumerate() {
            let number = |key: &str| row[key].as_u64().unwrap();
            assert_eq!((number("id"), number("seq")), (n as u64 + 1, u64::from(*seq)));
            assert_eq!(number("start_seq"), u64::from(edit.hide[0].from));
            assert_eq!(number("end_seq"), u64::from(edit.hide.last().unwrap().to));
            let (shown, cause) = (u64::from(edit.shown_tokens()), &edit.cause);
            assert_eq!(number("summary_tokens"), shown);
            assert_eq!(number("original_tokens"), cause.before - cause.after + shown);
            let (from, to) = (number("start_seq"), number("end_seq"));
            let heading = format!("[Summary of earlier messages @{from}–@{to}.");
            assert!(row["summary"].as_str().unwrap().starts_with(&heading), "{row}");
        }
    }
}

#[test]
fn a_summary_of_nothing_new_is_never_asked_for_in_a_row() {
    // The original condensed three times in a row, because it could not see that it had.
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    let budget = Budget::new(Preset::Seed000.policy(), 10_000, &[]);
    let mut by = Scripted::new(root.meter()).always("<summary>steps, one after another</summary>");
    let mut asked = Vec::new();
    for n in 0..200 {
        tell(&mut root, &format!("step {n}"), 100);
        let before = by.requests.len();
        fit_by(&mut root, &budget, &mut by);
        asked.extend((by.requests.len() > before).then_some(n));
    }
    assert!(asked.len() >= 3, "{asked:?}");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] > 30), "{asked:?}");
}
