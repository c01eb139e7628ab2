//! A run that is cut off at every single call of the store, and taken up by another process.

use crate::playbook::kit::{World, calls, engine, id, playbook, words};
use komado_agent::playbook::Playbook;
use komado_core::ThreadId;
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_store::{OpenMode, Store};
use komado_testkit::Faulty;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every kind of node, with calls in the root and in a child.
fn whole() -> Playbook {
    playbook(json!([
        {"id": "plan", "type": "llm", "prompt": "Plan {{task.title}}", "save_as": "plan", "next": "look"},
        {"id": "look", "type": "branch", "cases": [{"if": {"var": "calls", "gt": 0}, "next": "work"}], "else": "begin"},
        {"id": "work", "type": "tool", "next": "on"},
        {"id": "on", "type": "llm", "save_as": "plan", "next": "look"},
        {"id": "begin", "type": "STELIS_START", "label": "作業", "next": "code"},
        {"id": "code", "type": "llm", "prompt": "Code {{plan}}", "next": "more"},
        {"id": "more", "type": "branch", "cases": [{"if": {"var": "calls", "gt": 0}, "next": "do"}], "else": "mark"},
        {"id": "do", "type": "tool", "next": "again"},
        {"id": "again", "type": "llm", "next": "more"},
        {"id": "mark", "type": "tool", "tool": "push", "args": {"from": "child"}, "next": "leave"},
        {"id": "leave", "type": "STELIS_END", "next": "count"},
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 1]}}, "next": "send"},
        {"id": "send", "type": "tool", "tool": "push", "args": {"n": "{{n}}"}, "save_as": "sent", "next": "tell"},
        {"id": "tell", "type": "llm", "prompt": "Report {{n}}", "next": "done"},
        {"id": "done", "type": "end"}
    ]))
}

fn answers(news: &str) -> Message {
    match news {
        news if news.contains("Plan") => {
            calls("", &[("look", "{\"a\":1}"), ("push", "{\"a\":2}"), ("push", "{\"a\":3}")])
        }
        news if news.contains("Code") => calls("書く", &[("push", "{\"c\":1}")]),
        news if news.contains("Report") => words("すべて終わりました"),
        _ => words("src/main.rs を見ました"),
    }
}

/// The threads of the session, the live ones and those that a cut spawn left behind.
fn threads(world: &World) -> Vec<ThreadId> {
    world.store.threads(&id()).unwrap().into_iter().map(|header| header.thread).collect()
}

/// What must be true of a run, however often it was cut off.
fn check(world: &World, cut: &str) {
    let mut prompts: BTreeMap<String, usize> = BTreeMap::new();
    let engine = world.engine();
    for name in threads(world) {
        let thread = engine.open(&id(), &name, OpenMode::Read).unwrap();
        assert!(thread.view().open().calls.is_empty(), "{cut}: calls wait in {name}");
        for seq in (1..=thread.last()).filter(|seq| thread.view().on_path(*seq)) {
            if let Entry::Message(message, _) = thread.record(seq).unwrap().entry
                && message.role == Role::User
            {
                *prompts.entry(message.words()).or_default() += 1;
            }
        }
        if !name.is_root() {
            assert!(!thread.status().unwrap().is_open(), "{cut}: {name} is still open");
        }
    }
    let expected = ["Code src/main.rs を見ました", "Plan 窓を直す", "Report 1", "はじめます: a task"];
    let expected: BTreeMap<String, usize> = expected.into_iter().map(|text| (text.to_owned(), 1)).collect();
    assert_eq!(prompts, expected, "{cut}");
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    world.calls().into_iter().for_each(|call| *made.entry(call).or_default() += 1);
    for (call, times) in &made {
        assert!(call.starts_with("look") || *times == 1, "{cut}: {call} was made {times} times");
    }
    assert!(made.contains_key("look {\"a\":1}"), "{cut}: {made:?}");
}

/// Runs it until the store fails at its `n`-th call; true when it came to its end before.
fn cut_at(world: &World, n: u64) -> bool {
    let store = Faulty::down_from(world.store.clone(), n);
    world.run_on(&engine(Arc::new(store)), &whole()).0.is_ok()
}

#[test]
fn a_run_that_is_cut_off_at_any_call_of_the_store_comes_to_the_same_end() {
    let mut n = 1;
    loop {
        let world = World::new(answers);
        let is_whole = cut_at(&world, n);
        let ended = world.run(&whole()).unwrap_or_else(|why| panic!("cut at {n}: {why}"));
        assert_eq!(
            (ended.node.as_str(), ended.result.as_str()),
            ("done", "すべて終わりました"),
            "cut at {n}"
        );
        assert_eq!(ended.vars["n"], 1, "cut at {n}");
        check(&world, &format!("cut at {n}"));
        if is_whole {
            break;
        }
        n += 1;
    }
    assert!(n > 300, "{n}");
}

#[test]
fn a_run_that_is_cut_off_again_and_again_comes_to_the_same_end() {
    for step in [40, 61, 97, 151, 233] {
        let world = World::new(answers);
        let mut n = 0;
        // Each process comes a little further than the one before.
        while !cut_at(&world, n + step) {
            n += step / 2;
            assert!(n < 100_000, "it does not come on with steps of {step}");
        }
        let ended = world.run(&whole()).unwrap();
        assert_eq!(ended.result, "すべて終わりました");
        check(&world, &format!("cut each {step}"));
    }
}

#[test]
fn a_run_that_nothing_cuts_makes_every_call_once() {
    let world = World::new(answers);
    world.run(&whole()).unwrap();
    check(&world, "whole");
    let made =
        ["look {\"a\":1}", "push {\"a\":2}", "push {\"a\":3}", "push {\"c\":1}", "push {\"from\":\"child\"}"];
    assert_eq!(world.calls(), [&made[..], &["push {\"n\":1}"]].concat());
}

#[test]
fn a_call_that_was_running_is_told_to_be_in_doubt_and_the_ones_after_it_are_made() {
    // The store goes down when the answer of the first `push` is to be written.
    let mut found = 0;
    for n in 1.. {
        let world = World::new(answers);
        let is_whole = cut_at(&world, n);
        let before = world.calls();
        if is_whole {
            break;
        }
        if before != ["look {\"a\":1}", "push {\"a\":2}"] {
            continue;
        }
        let is_answered = world.said("root").iter().any(|line| line == "tool: push ok");
        world.run(&whole()).unwrap();
        let in_doubt = world.said("root").iter().filter(|line| line.contains("It may have taken")).count();
        assert!(world.calls().contains(&"push {\"a\":3}".to_owned()) || is_answered, "cut at {n}");
        if !is_answered {
            assert_eq!(in_doubt, 1, "cut at {n}");
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn whoever_rests_between_calls_leaves_none_of_them_in_doubt() {
    let mut world = World::new(|news| match news {
        news if news.contains("a task") => calls("", &[("push", "{\"a\":1}"), ("push", "{\"a\":2}")]),
        _ => words("終わり"),
    });
    world.limits.turns = Some(1);
    let built_in = Playbook::built_in();
    assert!(crate::playbook::kit::why(world.run(&built_in)).contains("took its 1 turn"));
    assert!(world.calls().is_empty());
    world.limits.turns = Some(9);
    assert_eq!(world.run(&built_in).unwrap().result, "終わり");
    assert_eq!(world.calls(), ["push {\"a\":1}", "push {\"a\":2}"]);
    assert!(!world.said("root").iter().any(|line| line.contains("It may have taken")));
}
