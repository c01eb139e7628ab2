//! What each kind of node does.

use crate::playbook::kit::{World, begin, calls, id, playbook, why, words};
use komado_agent::playbook::Playbook;
use komado_core::ThreadId;
use komado_store::{BranchFilter, BranchTable, OpenMode, Store};
use serde_json::json;

#[test]
fn an_llm_node_says_its_prompt_and_keeps_the_words() {
    let world = World::new(|news| words(if news.contains("計画") { "まず見ます" } else { "?" }));
    let ended = world.run(&playbook(json!([
        {"id": "plan", "type": "LLM", "prompt": "計画: {{task.title}}", "save_as": "plan", "next": "done"},
        {"id": "done", "type": "end", "result": "{{plan}} / {{last}} / {{calls}} / {{finish}}"}
    ])));
    let ended = ended.unwrap();
    assert_eq!(ended.result, "まず見ます / まず見ます / 0 / stop");
    assert!(ended.is_good);
    let said = world.said("root");
    assert_eq!(said, ["user: はじめます: a task", "user: 計画: 窓を直す", "assistant: まず見ます"]);
}

#[test]
fn the_default_playbook_works_until_nothing_is_called_any_more() {
    let world = World::new(|news| match news {
        news if news.contains("a task") => calls("見ます", &[("look", "{}"), ("push", "{\"a\":1}")]),
        news if news.contains("push ok") => calls("", &[("nothing_of_the_kind", "{}")]),
        _ => words("できました"),
    });
    let ended = world.run(&Playbook::built_in()).unwrap();
    assert_eq!((ended.node.as_str(), ended.result.as_str()), ("done", "できました"));
    assert_eq!(world.calls(), ["look {}", "push {\"a\":1}"]);
    let said = world.said("root");
    assert!(said.iter().any(|line| line.contains("there is no tool \"nothing_of_the_kind\"")), "{said:?}");
}

#[test]
fn the_default_playbook_asks_an_empty_answer_to_go_on_and_then_lets_it_be() {
    let world = World::new(|_| words(" "));
    let ended = world.run(&Playbook::built_in()).unwrap();
    assert_eq!((ended.node.as_str(), ended.vars["nudges"].as_u64()), ("done", Some(3)));
    let world =
        World::new(|news| words(if news.contains("Go on where you stopped") { "終わり" } else { "" }));
    assert_eq!(world.run(&Playbook::built_in()).unwrap().result, "終わり");
}

#[test]
fn a_tool_node_makes_its_own_call_with_what_the_variables_hold() {
    let world = World::new(|_| words("unasked"));
    let ended = world.run(&playbook(json!([
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 2]}, "who": "{{task.title}}"}, "next": "push"},
        {"id": "push", "type": "tool", "tool": "push", "args": {"n": "{{n}}", "text": "for {{who}}"}, "save_as": "out",
         "next": "done"},
        {"id": "done", "type": "end", "result": "{{out}} {{error}}"}
    ])));
    assert_eq!(ended.unwrap().result, "push ok false");
    assert_eq!(world.calls(), ["push {\"n\":2,\"text\":\"for 窓を直す\"}"]);
    assert_eq!(
        world.said("root")[1..],
        ["assistant:  push({\"n\":2,\"text\":\"for 窓を直す\"})", "tool: push ok"]
    );
}

#[test]
fn an_answer_that_says_that_it_went_wrong_leads_where_on_error_says() {
    let world = World::new(|_| words("unasked"));
    let ended = world.run(&playbook(json!([
        {"id": "try", "type": "tool", "tool": "fail", "next": "good", "on_error": "bad"},
        {"id": "good", "type": "end"},
        {"id": "bad", "type": "end", "status": "failed", "result": "{{output}}"}
    ])));
    let ended = ended.unwrap();
    assert_eq!(
        (ended.node.as_str(), ended.is_good, ended.result.as_str()),
        ("bad", false, "うまくいきません")
    );
}

#[test]
fn a_long_output_goes_to_the_cache_and_its_beginning_to_the_variable() {
    let world = World::new(|_| words("unasked"));
    let ended = world.run(&playbook(json!([
        {"id": "read", "type": "tool", "tool": "long", "next": "done"},
        {"id": "done", "type": "end", "result": "{{output}}"}
    ])));
    let result = ended.unwrap().result;
    assert!(result.starts_with("0123456789 長い出力") && result.len() <= 8 * 1024, "{}", result.len());
    let engine = world.engine();
    let root = engine.open(&id(), &ThreadId::root(), OpenMode::Read).unwrap();
    let outcome = (1..=root.last()).find_map(|seq| match root.record(seq).unwrap().entry {
        komado_core::journal::Entry::Message(message, _) => message.outcome().cloned(),
        _ => None,
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.output_ref.unwrap().byte_size, Some(24 * 20_000));
    assert!(outcome.duration_ms.is_some());
}

#[test]
fn a_loop_is_bounded_by_what_it_counts() {
    let world = World::new(|_| words("もっと"));
    let ended = world.run(&playbook(json!([
        {"id": "ask", "type": "llm", "prompt": "go {{n}}", "next": "count"},
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 1]}}, "next": "enough"},
        {"id": "enough", "type": "branch", "cases": [{"if": {"var": "n", "lt": 5}, "next": "ask"}], "else": "done"},
        {"id": "done", "type": "end", "result": "{{n}}"}
    ])));
    assert_eq!(ended.unwrap().result, "5");
    assert_eq!(world.said("root").iter().filter(|line| line.starts_with("user: go")).count(), 5);
}

#[test]
fn set_makes_all_its_values_from_the_old_ones() {
    let world = World::new(|_| words("unasked"));
    let ended = world.run(&playbook(json!([
        {"id": "first", "type": "set", "vars": {"a": 1, "b": {"list": [1, "{{n}}"]}}, "next": "swap"},
        {"id": "swap", "type": "set", "vars": {"a": "{{b}}", "b": "{{a}}", "c": {"add": ["half", 0.5]}}, "next": "done"},
        {"id": "done", "type": "end", "result": "{{a.list.1}} {{b}} {{c}}"}
    ])));
    assert_eq!(ended.unwrap().result, "0 1 0.5");
}

#[test]
fn what_goes_wrong_while_it_runs_names_the_node_and_the_variable() {
    let world = World::new(|_| words(""));
    for (node, expected) in [
        (
            json!({"id": "問", "type": "llm", "prompt": "{{nobody}}", "next": "done"}),
            "node \"問\": the variable \"nobody\"",
        ),
        (
            json!({"id": "問", "type": "llm", "prompt": "{{task.no}}", "next": "done"}),
            "the variable \"task.no\" is not set",
        ),
        (json!({"id": "問", "type": "set", "vars": {"e": ""}, "next": "then"}), "its prompt is empty"),
        (
            json!({"id": "問", "type": "set", "vars": {"n": {"add": ["task", 1]}}, "next": "done"}),
            "1 cannot be added",
        ),
    ] {
        let mut nodes = vec![node.clone(), json!({"id": "done", "type": "end"})];
        if node["next"] == "then" {
            nodes.insert(1, json!({"id": "then", "type": "llm", "prompt": "{{e}}", "next": "done"}));
        }
        let told = why(world.run(&playbook(json!(nodes))));
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn variables_that_grow_without_end_are_refused_by_name() {
    let world = World::new(|_| words("つづく"));
    let told = why(world.run(&playbook(json!([
        {"id": "begin", "type": "set", "vars": {"all": "0123456789abcdef"}, "next": "grow"},
        {"id": "grow", "type": "set", "vars": {"all": "{{all}}{{all}}{{all}}{{all}}"}, "next": "ask"},
        {"id": "ask", "type": "llm", "next": "more"},
        {"id": "more", "type": "branch", "cases": [{"if": {"var": "stop", "exists": true}, "next": "done"}], "else": "grow"},
        {"id": "done", "type": "end"}
    ]))));
    assert!(told.contains("\"all\" alone takes"), "{told}");
}

#[test]
fn a_limit_ends_a_playbook_that_does_not() {
    let world = World::new(|_| calls("", &[("look", "{}")]));
    let told = why(world.run(&Playbook::built_in()));
    assert!(told.contains("took its 60 turns"), "{told}");
}

#[test]
fn children_nest_each_with_its_own_prompt_and_the_root_hears_of_all() {
    let world = World::new(|news| words(&format!("heard {}", news.lines().last().unwrap_or_default())));
    let ended = world.run(&playbook(json!([
        {"id": "one", "type": "stelis_start", "label": "Outer", "system": "You are {{task.title}}.", "next": "a"},
        {"id": "a", "type": "llm", "prompt": "in one", "next": "two"},
        {"id": "two", "type": "stelis_start", "stelis_config": {"window_ratio": 0.5}, "next": "b"},
        {"id": "b", "type": "llm", "prompt": "in two", "next": "back"},
        {"id": "back", "type": "stelis_end", "generate_chronicle": false, "next": "c"},
        {"id": "c", "type": "llm", "prompt": "in one again", "next": "home"},
        {"id": "home", "type": "stelis_end", "next": "d"},
        {"id": "d", "type": "llm", "prompt": "at home", "next": "done"},
        {"id": "done", "type": "end"}
    ])));
    assert_eq!(ended.unwrap().result, "heard at home");
    assert_eq!(world.said("stelis_1_1"), ["user: in two", "assistant: heard in two"]);
    assert_eq!(world.said("stelis_1")[0], "setup: You are 窓を直す.");
    assert_eq!(world.said("stelis_1")[1..].len(), 4);
    assert!(!world.said("root").iter().any(|line| line.contains("in one")));
    let rows = world.store.branches(&id(), BranchFilter::All).unwrap();
    assert!(rows.iter().all(|row| !row.status.is_open() && row.told), "{rows:?}");
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_playbook_that_was_changed_goes_on_where_the_node_still_is_and_tells_where_it_is_not() {
    let nodes = |prompt: &str, last: &str| {
        playbook(json!([
            {"id": "ask", "type": "llm", "prompt": prompt, "next": last},
            {"id": last, "type": "tool", "tool": "push", "args": {"v": "{{nobody}}"}, "next": "done"},
            {"id": "done", "type": "end"}
        ]))
    };
    let world = World::new(|_| words("yes"));
    // The variable is not there, so it stops before the node has acted: the note is that of `ask`.
    assert!(why(world.run(&nodes("first", "send"))).contains("nobody"));
    assert!(why(world.run(&nodes("second", "send"))).contains("nobody"));
    let said = world.said("root");
    assert!(
        said.iter().any(|line| line.contains("first")) && !said.iter().any(|line| line.contains("second"))
    );
    let other = playbook(json!([
        {"id": "begin", "type": "llm", "next": "done"},
        {"id": "done", "type": "end"}
    ]));
    let told = why(world.run(&other));
    assert!(told.contains("stands at the node \"ask\", which this playbook does not have"), "{told}");
}

#[test]
fn a_session_that_ended_and_was_opened_again_begins_anew() {
    let world = World::new(|news| words(&format!("heard {}", news.lines().last().unwrap_or_default())));
    let short = playbook(json!([
        {"id": "ask", "type": "llm", "prompt": "go", "next": "done"},
        {"id": "done", "type": "end", "status": "failed"}
    ]));
    let engine = world.engine();
    begin(&engine).unwrap();
    assert!(!world.run(&short).unwrap().is_good);
    // Ended, but nothing says so yet: it ends the same way, without another word.
    world.run(&short).unwrap();
    assert_eq!(world.said("root").iter().filter(|line| *line == "user: go").count(), 1);
    engine.fail(&id(), "it failed").unwrap();
    engine.resume(&id()).unwrap();
    world.run(&short).unwrap();
    assert_eq!(world.said("root").iter().filter(|line| *line == "user: go").count(), 2);
}

#[test]
fn a_task_that_failed_inside_a_child_goes_on_in_the_same_child() {
    let mut world = World::new(|news| words(&format!("heard {}", news.lines().last().unwrap_or_default())));
    let nested = playbook(json!([
        {"id": "in", "type": "stelis_start", "next": "a"},
        {"id": "a", "type": "llm", "prompt": "one", "next": "b"},
        {"id": "b", "type": "llm", "prompt": "two", "next": "out"},
        {"id": "out", "type": "stelis_end", "next": "done"},
        {"id": "done", "type": "end"}
    ]));
    world.limits.turns = Some(1);
    assert!(why(world.run(&nested)).contains("took its 1 turn"));
    let engine = world.engine();
    engine.fail(&id(), "too many turns").unwrap();
    engine.resume(&id()).unwrap();
    world.limits.turns = Some(9);
    assert_eq!(world.run(&nested).unwrap().result, "heard two");
    let said = ["user: one", "assistant: heard one", "user: two", "assistant: heard two"];
    assert_eq!(world.said("stelis_1"), said);
    assert_eq!(world.store.threads(&id()).unwrap().len(), 2);
}

#[test]
fn a_loop_of_calls_that_go_well_ends_though_no_model_is_asked() {
    let world = World::new(|_| words("unasked"));
    let told = why(world.run(&playbook(json!([
        {"id": "回る", "type": "tool", "tool": "look", "next": "more"},
        {"id": "more", "type": "branch", "cases": [{"if": {"var": "error", "eq": false}, "next": "回る"}], "else": "done"},
        {"id": "done", "type": "end"}
    ]))));
    assert!(told.contains("回る") && told.contains("never asked the model"), "{told}");
    assert_eq!(world.calls().len(), 5_000);
}

#[test]
fn a_chain_that_doubles_a_text_is_refused_where_it_grows() {
    let double = |n: usize| json!({"id": format!("d{n}"), "type": "set", "vars": {"x": "{{x}}{{x}}"}, "next": format!("d{}", n + 1)});
    let mut nodes = vec![json!({"id": "d", "type": "set", "vars": {"x": "窓"}, "next": "d0"})];
    nodes.extend((0..40).map(double));
    nodes.push(json!({"id": "d40", "type": "end"}));
    let world = World::new(|_| words("unasked"));
    let told = why(world.run(&playbook(json!(nodes))));
    assert!(told.contains("d16") && told.contains("may take 262144"), "{told}");
}
