//! What every edit leaves: the task, the latest instruction, and what the model has not answered yet.

use super::{ask, fit, ours, read, run, tell, text};
use crate::engine::room::{Room, call, calls, result, setup, user, words};
use komado_core::budget::{Budget, BudgetRule, Policy, Preset, ToolBudget};
use komado_core::ladder::Rung;
use komado_engine::Thread;

/// The line of the view that begins with `start`, or that begins so after the speaker.
fn line<'v>(view: &'v [String], start: &str) -> Option<&'v String> {
    view.iter().find(|line| line.split_once(": ").is_some_and(|(_, words)| words.starts_with(start)))
}

fn shows(root: &Thread<'_>, words_of_it: &str) -> bool {
    words(root).iter().any(|line| line.contains(words_of_it))
}

#[test]
fn beside_a_fixed_prompt_of_up_to_nine_tenths_the_newest_result_and_the_task_are_always_visible() {
    for fixed in [4_200, 4_900, 5_600, 6_300] {
        for result in [350, 700, 1_400, 2_100] {
            let room = Room::memory();
            let id = room.session("s");
            let mut root = room.root(&id);
            root.set_up(setup(&text("You are", fixed))).unwrap();
            ask(&mut root, "please mend the parser", 10);
            let task = words(&root)[1].clone();
            for n in 0..12 {
                let name = format!(r#"{{"path":"f{n}.rs"}}"#);
                let seq = run(&mut root, "read_file", &name, result);
                let fitted = fit(&mut root, &ours(|_| {}));
                let view = words(&root);
                assert_eq!(view[1], task, "{fixed}, {result}, {n}");
                let newest = view.last().unwrap();
                assert!(
                    newest.contains(&format!("output of read_file {name}")),
                    "{fixed}, {result}: {newest}"
                );
                // In part only where the whole would not fit.
                let whole = u64::from(root.record(seq).unwrap().tokens);
                let shown = root.view().items(root.source()).unwrap().last().unwrap().tokens;
                let is_tight = fitted.after + 100 > 7_000;
                assert!(u64::from(shown) == whole || is_tight, "{shown} of {whole}, {} in all", fitted.after);
            }
        }
    }
}

#[test]
fn a_long_transcript_leaves_three_fifths_of_a_small_window_in_use() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    ask(&mut root, "please", 60);
    for n in 0..54 {
        tell(&mut root, &format!("step {n}"), 60);
        read(&mut root, &format!("f{n}.rs"), 300 + 150 * (n % 9));
    }
    assert!(root.view().tokens() > 48_000, "{}", root.view().tokens());
    let budget = Budget::new(Preset::Komado.policy(), 16_000, &[]);
    let fitted = fit(&mut root, &budget);
    assert!((6_720..=8_500).contains(&fitted.after), "{} of 11200", fitted.after);
    for n in 51..54 {
        assert!(shows(&root, &format!(r#"output of read_file {{"path":"f{n}.rs"}}"#)), "read {n} is hidden");
    }
}

#[test]
fn in_a_chat_without_tools_a_file_pasted_before_the_question_stays_and_old_replies_go() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    ask(&mut root, "I will show you files", 20);
    for n in 0..12 {
        tell(&mut root, &format!("old reply {n}"), 500);
        ask(&mut root, &format!("question {n}"), 20);
    }
    tell(&mut root, "go on", 10);
    ask(&mut root, "here is the file", 3_000);
    tell(&mut root, "a long reply", 2_500);
    ask(&mut root, "now change line 3", 20);
    let fitted = fit(&mut root, &ours(|_| {}));
    assert_eq!(fitted.verdict.rule, BudgetRule::HardGate);
    let view = words(&root);
    let file = line(&view, "here is the file").expect("the file is shown");
    assert_eq!(file, &format!("user: {}", text("here is the file", 3_000)));
    assert_eq!((line(&view, "old reply 11"), line(&view, "go on")), (None, None));
    assert!(line(&view, "a long reply").is_none_or(|line| line.contains("left out")));
    assert!(fitted.after >= 4_200, "{}", fitted.after);
}

#[test]
fn a_pasted_file_that_is_too_large_is_shown_in_part() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    ask(&mut root, "I will show you files", 20);
    for n in 0..4 {
        tell(&mut root, &format!("old reply {n}"), 400);
    }
    ask(&mut root, "here is the file", 6_500);
    tell(&mut root, "Ok.", 4);
    ask(&mut root, "now change line 3", 20);
    let fitted = fit(&mut root, &ours(|_| {}));
    let view = words(&root);
    let file = line(&view, "here is the file").expect("the file is shown");
    assert!(file.contains("left out") && file.len() > 10_000, "{} bytes", file.len());
    assert!((4_100..=5_300).contains(&fitted.after), "{}", fitted.after);
}

#[test]
fn an_answer_of_our_own_tools_is_not_hidden_before_the_model_has_seen_it() {
    for tool in ["tool_output_cache", "recall"] {
        let room = Room::memory();
        let id = room.session("s");
        let mut root = room.root(&id);
        ask(&mut root, "please", 10);
        let policy = Policy { tools: ToolBudget::Tokens(1_000), ..Preset::Komado.policy() };
        let budget = Budget::new(policy, 10_000, &[]);
        let early = read(&mut root, "a.rs", 900);
        run(&mut root, tool, r#"{"ref_id":"@3"}"#, 1_500);
        let fitted = fit(&mut root, &budget);
        assert_eq!((fitted.verdict.rule, fitted.done.len()), (BudgetRule::ToolBudget, 0));
        // Neither at the hard mark.
        tell(&mut root, "so", 4_000);
        let seq = run(&mut root, tool, r#"{"ref_id":"@4"}"#, 1_500);
        fit(&mut root, &budget);
        let shown = root.view().items(root.source()).unwrap().last().copied().unwrap();
        assert_eq!((shown.seq, shown.tokens), (seq, root.record(seq).unwrap().tokens), "{tool}");
        assert!(early < seq);
    }
}

#[test]
fn a_projects_instructions_before_the_task_stay_with_it_until_there_is_no_other_way() {
    let instructions =
        format!("# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\n{}\n</INSTRUCTIONS>", text("Be", 500));
    let environment = "<environment_context>\n<cwd>/app</cwd>\n</environment_context>";
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(user(&instructions)).unwrap();
    root.say(user(environment)).unwrap();
    ask(&mut root, "please mend the parser", 10);
    for n in 0..20 {
        read(&mut root, &format!("f{n}.rs"), 700);
        fit(&mut root, &ours(|_| {}));
        let view = words(&root);
        assert!(view[0].contains("AGENTS.md") && view[1].contains("<cwd>"), "{n}: {view:?}");
        assert!(view[2].starts_with("user: please mend the parser"), "{n}");
    }
    // A result for which they have to give way: the task does not.
    let seq = run(&mut root, "run", "{}", 6_800);
    let fitted = fit(&mut root, &ours(|_| {}));
    assert!(!shows(&root, "AGENTS.md") && shows(&root, "please mend the parser"));
    assert!(fitted.done.iter().any(|done| done.rung == Rung::Truncate), "{fitted:?}");
    let shown = root.view().items(root.source()).unwrap().last().copied().unwrap();
    assert!(shown.seq == seq && shown.tokens > 5_900, "{}", shown.tokens);
}

#[test]
fn parallel_results_share_the_room_fairly_and_small_ones_stay_whole() {
    for sizes in [[3_000, 6_000, 9_000], [1_000, 6_000, 9_000], [200, 300, 9_000]] {
        let room = Room::memory();
        let id = room.session("s");
        let mut root = room.root(&id);
        root.set_up(setup(&text("You are", 990))).unwrap();
        ask(&mut root, "please", 10);
        let names = ["a", "b", "c"];
        root.say(calls(names.map(|name| call(name, "read_file", "{}")).to_vec())).unwrap();
        for (name, size) in names.iter().zip(sizes) {
            root.say(result(name, &text(&format!("file {name}"), size))).unwrap();
        }
        let fitted = fit(&mut root, &ours(|_| {}));
        let items = root.view().items(root.source()).unwrap();
        let shown: Vec<u32> = items[items.len() - 3..].iter().map(|item| item.tokens).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(shows(&root, &format!("file {name}")), "{name} of {sizes:?}");
            let fair = 5_900 / 3;
            let size = u32::try_from(sizes[i]).unwrap();
            assert!(shown[i] == size || shown[i] > fair, "{shown:?} of {sizes:?}");
            assert!(size > fair || shown[i] == size, "{shown:?} of {sizes:?}");
        }
        assert!((7_000..=7_100).contains(&fitted.after), "{} for {sizes:?}", fitted.after);
    }
}

#[test]
fn a_task_of_less_than_half_is_never_cut_and_calls_that_do_not_fit_are_the_floor() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    ask(&mut root, "please", 3_400);
    let arguments = format!(r#"{{"text":"{}"}}"#, "word ".repeat(6_000));
    run(&mut root, "write_file", &arguments, 500);
    let seen = words(&root);
    let mut by = komado_engine::condense::ByDigest::new(root.meter());
    let settings = komado_engine::condense::CondenseSettings::default();
    let mut ladder = komado_engine::fit::Ladder { budget: ours(|_| {}), settings, by: &mut by };
    let Err(komado_engine::Error::Floor(floor)) = root.fit(&mut ladder) else { panic!("it was done") };
    assert!(floor.requests >= 3_400 && floor.newest > 7_000, "{floor}");
    assert!(floor.to_string().contains("what is not answered yet"), "{floor}");
    assert_eq!(words(&root), seen);
}
