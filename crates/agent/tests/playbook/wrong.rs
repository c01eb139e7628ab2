//! What is wrong with a playbook is told before it runs: all of it, with its place.

use komado_agent::playbook::{Playbook, PlaybookProblemFound};
use serde_json::{Value, json};

fn problems(text: &str) -> Vec<PlaybookProblemFound> {
    match Playbook::parse("p.json", text) {
        Ok(_) => Vec::new(),
        Err(why) => why.problems(),
    }
}

fn of(nodes: Value) -> Vec<PlaybookProblemFound> {
    problems(&json!({"name": "t", "nodes": nodes}).to_string())
}

/// One problem, at this place, in words that hold these.
fn one(nodes: Value, place: &str, words: &str) {
    let found = of(nodes.clone());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place, place, "{found:?}");
    assert!(found[0].why.contains(words), "{found:?}");
}

#[test]
fn the_built_in_playbook_and_the_examples_are_right() {
    let built_in = Playbook::built_in();
    assert_eq!((built_in.name.as_str(), built_in.len()), ("default", 6));
    for (name, text) in [
        ("coding", include_str!("../../../../docs/playbooks/coding.json")),
        ("review", include_str!("../../../../docs/playbooks/review.json")),
        ("default", komado_agent::playbook::BUILT_IN),
    ] {
        let playbook = Playbook::parse(name, text).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((playbook.name.as_str(), playbook.warnings()), (name, Vec::new()));
    }
}

#[test]
fn what_is_no_playbook_at_all_is_told_with_its_line() {
    let found = problems("{\n  \"name\": \"x\",\n  oops\n}");
    assert!(found[0].why.contains("line 3"), "{found:?}");
    for (text, words) in [
        ("[]", "a playbook is a JSON object"),
        ("{\"name\":\"x\"}", "there are no nodes"),
        ("{\"name\":\"x\",\"nodes\":[]}", "there are no nodes"),
        ("{\"nodes\":[{\"id\":\"a\",\"type\":\"end\"}]}", "\"name\" is missing"),
        (
            "{\"name\":\"x\",\"node\":1,\"nodes\":[{\"id\":\"a\",\"type\":\"end\"}]}",
            "did you mean \"nodes\"?",
        ),
        (
            "{\"name\":\"x\",\"start\":\"b\",\"nodes\":[{\"id\":\"a\",\"type\":\"end\"}]}",
            "\"start\" names a node",
        ),
        (
            "{\"name\":\"x\",\"vars\":{\"last\":1},\"nodes\":[{\"id\":\"a\",\"type\":\"end\"}]}",
            "set by the run itself",
        ),
    ] {
        let found = problems(text);
        assert!(found.iter().any(|problem| problem.why.contains(words)), "{found:?}");
    }
}

#[test]
fn a_node_that_is_wrong_is_named_with_what_to_write() {
    let end = json!({"id": "z", "type": "end"});
    for (node, words) in [
        (json!({"id": "a", "type": "lml", "next": "z"}), "unknown type \"lml\": did you mean \"llm\"?"),
        (json!({"id": "a", "next": "z"}), "\"type\" is missing"),
        (
            json!({"id": "a", "type": "llm", "promt": "x", "next": "z"}),
            "unknown field \"promt\": did you mean \"prompt\"?",
        ),
        (json!({"id": "a", "type": "llm"}), "\"next\" is missing"),
        (json!({"id": "a", "type": "llm", "next": "zz"}), "not there: \"zz\": did you mean \"z\"?"),
        (json!({"id": "a", "type": "llm", "prompt": "{{x", "next": "z"}), "without }}"),
        (json!({"id": "a", "type": "llm", "save_as": "calls", "next": "z"}), "set by the run itself"),
        (json!({"id": "a", "type": "tool", "args": {}, "next": "z"}), "\"args\" without \"tool\""),
        (json!({"id": "a", "type": "tool", "tool": "x", "args": [], "next": "z"}), "\"args\" is an object"),
        (json!({"id": "a", "type": "tool", "next": "z", "on_error": "q"}), "\"on_error\" leads to a node"),
        (json!({"id": "a", "type": "branch", "cases": []}), "\"else\" is missing"),
        (json!({"id": "a", "type": "branch", "else": "z"}), "\"cases\" is missing"),
        (
            json!({"id": "a", "type": "branch", "cases": [{"if": {"var": "n"}, "next": "z"}], "else": "z"}),
            "no operator",
        ),
        (
            json!({"id": "a", "type": "branch", "cases": [{"if": {"var": "n", "matches": "("}, "next": "z"}], "else": "z"}),
            "case 1: \"matches\" is not a regex",
        ),
        (
            json!({"id": "a", "type": "branch", "cases": [{"if": {"var": "n", "eq": 1}}], "else": "z"}),
            "\"next\" is missing",
        ),
        (json!({"id": "a", "type": "set", "vars": {"a.b": 1}, "next": "z"}), "has a dot"),
        (
            json!({"id": "a", "type": "set", "vars": {"a": {"add": [1, 1]}}, "next": "z"}),
            "\"add\" takes a variable",
        ),
        (json!({"id": "a", "type": "end", "status": "good"}), "\"completed\" or \"failed\""),
    ] {
        let found = of(json!([node, end]));
        let told = found.iter().find(|problem| problem.why.contains(words));
        assert!(told.is_some_and(|problem| problem.place == "p.json, node \"a\""), "{node}: {found:?}");
    }
}

#[test]
fn a_child_thread_is_asked_for_what_can_be_given() {
    for (config, words) in [
        (json!({"window_ratio": 1.5}), "1.5"),
        (json!({"window_ratio": "half"}), "from 0.01 to 0.99"),
        (json!({"max_depth": 0}), "from 1 to 100"),
        (json!({"chronicle_promt": ""}), "did you mean \"chronicle_prompt\"?"),
        (json!([]), "is an object"),
    ] {
        let found = of(json!([
            {"id": "a", "type": "STELIS_START", "stelis_config": config, "next": "b"},
            {"id": "b", "type": "STELIS_END", "next": "z"},
            {"id": "z", "type": "end"}
        ]));
        assert!(found.len() == 1 && found[0].why.contains(words), "{found:?}");
    }
}

#[test]
fn a_graph_that_cannot_come_to_a_good_end_is_refused() {
    let llm = |id: &str, next: &str| json!({"id": id, "type": "llm", "next": next});
    let start = |id: &str, next: &str| json!({"id": id, "type": "stelis_start", "next": next});
    let stop = |id: &str, next: &str| json!({"id": id, "type": "stelis_end", "next": next});
    let either = |id: &str, one: &str, other: &str| json!({"id": id, "type": "branch", "cases": [{"if": {"var": "n", "eq": 1}, "next": one}], "else": other});
    let end = json!({"id": "z", "type": "end"});
    one(json!([llm("a", "z"), end, end]), "p.json, node \"z\"", "two nodes have this id");
    one(json!([llm("a", "z"), llm("lost", "z"), end]), "p.json, node \"lost\"", "no way leads here");
    let found = of(json!([either("a", "b", "z"), llm("b", "c"), llm("c", "b"), end]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|problem| problem.why.contains("it would never end")), "{found:?}");
    one(json!([start("a", "z"), end]), "p.json, node \"z\"", "still open here");
    one(json!([stop("a", "z"), end]), "p.json, node \"a\"", "no \"stelis_start\"");
    let found = of(json!([either("a", "b", "c"), start("b", "c"), stop("c", "z"), end]));
    assert!(found.iter().any(|problem| problem.why.contains("no \"stelis_start\"")), "{found:?}");
    one(
        json!([either("a", "b", "c"), start("b", "c"), llm("c", "z"), end]),
        "p.json, node \"c\"",
        "1 deep on the way from \"b\"",
    );
    one(
        json!([{"id": "a", "type": "stelis_start", "next": "b"},
               {"id": "b", "type": "stelis_start", "stelis_config": {"max_depth": 1}, "next": "c"},
               stop("c", "d"), stop("d", "z"), end]),
        "p.json, node \"b\"",
        "2 deep, and \"max_depth\" is 1",
    );
    one(json!([either("a", "a", "z"), end]), "p.json, node \"a\"", "go round without");
    one(
        json!([llm("l", "w"), {"id": "w", "type": "tool", "next": "a"}, either("a", "w", "z"), end]),
        "p.json, node \"a\"",
        "the nodes a, w go round",
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let found = of(json!([
        {"id": "a", "type": "llm", "promt": "x", "nxt": "z"},
        {"id": "b", "type": "wat"},
        {"type": "end"},
        7
    ]));
    assert_eq!(found.len(), 6, "{found:#?}");
    assert_eq!(found[4].place, "p.json, node 3");
}

/// Places and words of all that is wrong, as a person reads it.
fn told(nodes: Value) -> Vec<String> {
    of(nodes).iter().map(|problem| problem.to_string().replace("p.json, ", "")).collect()
}

#[test]
fn what_is_wrong_with_the_graph_is_told_together_with_what_cannot_be_read() {
    let told = told(json!([
        {"id": "a", "type": "llm", "promt": "x", "next": "b"},
        {"id": "b", "type": "branch", "cases": [{"if": {"var": "n"}, "next": "c", "then": 1}], "else": "dd"},
        {"id": "c", "type": "stelis_start", "next": "d"},
        {"id": "d", "type": "end", "status": "good"},
        {"id": "e", "type": "llm", "next": "f"},
        {"id": "f", "type": "llm", "next": "e"}
    ]));
    let expected = [
        "node \"a\": unknown field \"promt\": did you mean \"prompt\"?",
        "node \"b\": case 1: unknown field \"then\": known are if, next",
        "node \"b\": case 1: the condition on \"n\" has no operator: add one of eq, ne, gt, gte, lt, lte, contains, \
         matches, exists",
        "node \"d\": \"status\" is \"completed\" or \"failed\", not \"good\"",
        "node \"b\": \"else\" leads to a node that is not there: \"dd\": did you mean \"d\"?",
        "node \"e\": no way leads from here to an \"end\" node: it would never end",
        "node \"f\": no way leads from here to an \"end\" node: it would never end",
        "node \"d\": a child thread is still open here: put a \"stelis_end\" before it",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_follows_from_a_hole_is_not_told() {
    let end = json!({"id": "z", "type": "end"});
    for (nodes, only) in [
        // Where the way leads that is missing nobody knows: perhaps to the other node.
        (
            json!([{"id": "a", "type": "llm"}, {"id": "b", "type": "llm", "next": "z"}, end]),
            "\"next\" is missing",
        ),
        (
            json!([{"id": "a", "type": "llm", "next": 7}, end]),
            "\"next\" is the id of the node to go to, not 7",
        ),
        (json!([{"id": "a", "type": "wat", "prompt": "x", "next": "z"}, end]), "unknown type"),
        (json!([{"id": "a", "type": "llm", "next": "y"}, {"id": "y", "type": "stop"}, end]), "unknown type"),
        (json!([{"id": "a", "type": "llm", "next": "y"}, {"type": "end"}]), "\"id\" is missing"),
        (
            json!([{"type": "llm", "next": "z"}, {"id": "b", "type": "llm", "next": "z"}, end]),
            "\"id\" is missing",
        ),
        (
            json!([{"id": "a", "type": "branch", "else": "z"}, {"id": "b", "type": "llm", "next": "z"}, end]),
            "\"cases\" is missing",
        ),
        (
            json!([{"id": "a", "type": "llm", "next": "z"}, end, {"id": "z", "type": "stelis_end", "next": "z"}]),
            "two nodes",
        ),
        (
            json!([{"id": "a", "type": "tool", "tool": 7, "next": "b"},
                {"id": "b", "type": "branch", "cases": [{"if": {"var": "n", "eq": 1}, "next": "a"}], "else": "z"}, end]),
            "\"tool\" is a text",
        ),
        (
            json!([{"id": "a", "type": "branch", "cases": [{"if": {"var": "n", "eq": 1}, "next": "b"}], "else": ""},
                {"id": "b", "type": "stelis_start", "next": " "}, end]),
            "is the id of the node to go to",
        ),
    ] {
        let told = told(nodes.clone());
        assert!(!told.is_empty() && told.iter().all(|line| line.contains(only)), "{nodes}: {told:#?}");
    }
}

#[test]
fn a_field_that_is_not_known_is_told_with_each_that_is_once() {
    let told =
        told(json!([{"id": "a", "type": "llm", "temperature": 1, "next": "z"}, {"id": "z", "type": "end"}]));
    assert_eq!(
        told,
        ["node \"a\": unknown field \"temperature\": known are id, type, label, prompt, save_as, next"]
    );
}

#[test]
fn a_name_that_the_run_sets_itself_is_refused_with_all_of_them() {
    let told = told(json!([
        {"id": "a", "type": "set", "vars": {"last": 1}, "next": "b"},
        {"id": "b", "type": "tool", "save_as": "output", "next": "z"},
        {"id": "z", "type": "end"}
    ]));
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told.iter().all(|line| line.contains("last, calls, finish, output, error and task")),
        "{told:#?}"
    );
}

#[test]
fn a_variable_that_nothing_sets_is_a_warning() {
    let playbook = crate::playbook::kit::playbook(json!([
        {"id": "a", "type": "llm", "prompt": "{{who}} {{task.title}} {{n}} {{last}}", "save_as": "x", "next": "z"},
        {"id": "z", "type": "end", "result": "{{x}}"}
    ]));
    let warnings = playbook.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("node \"a\" needs the variable \"who\""),
        "{warnings:?}"
    );
}

/// Threads in threads, so many.
fn nested(deep: usize) -> String {
    let started = (1..=deep).map(|n| {
        let next = if n < deep { format!("s{}", n + 1) } else { format!("e{n}") };
        json!({"id": format!("s{n}"), "type": "stelis_start", "next": next})
    });
    let ended = (1..=deep).rev().map(|n| {
        let next = if n > 1 { format!("e{}", n - 1) } else { "z".to_owned() };
        json!({"id": format!("e{n}"), "type": "stelis_end", "next": next})
    });
    let end = json!({"id": "z", "type": "end", "result": "よし"});
    json!({"name": "深い", "nodes": started.chain(ended).chain([end]).collect::<Vec<_>>()}).to_string()
}

#[test]
fn threads_that_nest_deeper_than_the_settings_allow_are_told_once_with_the_first_that_is_too_deep() {
    assert!(Playbook::parse_within("p.json", &nested(3), 3).is_ok());
    let found = Playbook::parse_within("p.json", &nested(6), 3).unwrap_err().problems();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place, "p.json, node \"s4\"");
    assert!(found[0].why.contains("4 deep, and at most 3 may be nested (threads.max_depth"), "{found:?}");
    let none = Playbook::parse_within("p.json", &nested(1), 0).unwrap_err().to_string();
    assert!(none.contains("node \"s1\"") && none.contains("at most 0"), "{none}");
}

#[test]
fn a_loop_that_begins_a_thread_each_round_and_ends_none_is_told() {
    let found = of(json!([
        {"id": "s", "type": "stelis_start", "next": "a"},
        {"id": "a", "type": "llm", "next": "b"},
        {"id": "b", "type": "branch", "cases": [{"if": {"var": "calls", "gt": 0}, "next": "s"}], "else": "e"},
        {"id": "e", "type": "stelis_end", "next": "z"},
        {"id": "z", "type": "end"}
    ]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place, "p.json, node \"s\"");
    assert!(found[0].why.contains("0 deep on one way here and 1 deep"), "{found:?}");
}
