//! Servers that are processes, and misbehave.

use crate::mcp::ground::{Rogue, by_command, refusal, right, said, words, wrong};
use komado_agent::mcp::{McpServers, McpTransport};
use komado_agent::tools::{Repeatability, ToolProvider};
use komado_provider::Cancel;
use serde_json::json;
use std::time::{Duration, Instant};

/// Long enough for an answer on a machine that has other things to do.
const SHORT: Duration = Duration::from_secs(5);

fn with_secret(rogue: &mut Rogue) {
    if let McpTransport::Command { env, .. } = &mut rogue.server.how {
        env.push(("LICENCE".to_owned(), "sesame-open".to_owned()));
    }
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_to_do() {
    let mut server = by_command("time", &[]);
    if let McpTransport::Command { program, .. } = &mut server.how {
        *program = "no-such-program".to_owned();
    }
    let why = refusal(&[server]);
    assert!(
        why.starts_with("the MCP server time cannot be used: \"no-such-program\" does not start"),
        "{why}"
    );
    assert!(why.contains("PATH"), "{why}");
}

#[test]
fn a_server_that_ends_at_once_is_refused_with_its_last_words_but_not_its_secrets() {
    let mut rogue = Rogue::new("exits");
    with_secret(&mut rogue);
    let why = rogue.refusal();
    let wanted = "it ended (exit 3); its last words: starting up\nno licence: ***";
    assert!(why.ends_with(wanted), "{why}");
    rogue.assert_gone();
}

#[test]
fn a_server_that_hangs_at_its_start_is_given_up_in_time() {
    let mut rogue = Rogue::new("hangs");
    // Long enough for a Python to begin, on a machine that has other things to do.
    rogue.server.start = Duration::from_secs(10);
    let why = rogue.refusal();
    assert!(why.contains("start_seconds") && why.ends_with("its last words: waiting for the moon"), "{why}");
    rogue.assert_gone();
}

#[test]
fn a_server_that_floods_at_its_start_is_given_up() {
    let rogue = Rogue::new("floods");
    let why = rogue.refusal();
    assert!(why.contains("it sent a message of more than 8 MiB"), "{why}");
    rogue.assert_gone();
}

#[test]
fn one_bad_server_closes_the_good_ones_too() {
    let (good, bad) = (Rogue::new("well"), Rogue::new("exits"));
    let why = refusal(&[good.server.clone(), bad.server.clone()]);
    assert!(why.contains("exit 3"), "{why}");
    good.assert_gone();
}

#[test]
fn a_start_that_is_no_longer_wanted_ends_at_once() {
    let rogue = Rogue::new("hangs");
    let cancel = Cancel::default();
    let result = std::thread::scope(|scope| {
        let opening =
            scope.spawn(|| McpServers::open(std::slice::from_ref(&rogue.server), &cancel).map(drop));
        while rogue.starts() == 0 {
            std::thread::yield_now();
        }
        cancel.cancel();
        opening.join().unwrap()
    });
    assert!(result.unwrap_err().to_string().contains("no longer wanted"));
    rogue.assert_gone();
}

#[test]
fn garbage_before_and_among_messages_is_passed_over() {
    let rogue = Rogue::new("garbage");
    let mut servers = rogue.open();
    for _ in 0..3 {
        assert_eq!(right(&mut servers, "rogue_go", "{}"), "gone");
    }
    assert_eq!(rogue.starts(), 1);
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_by_the_next_one_and_keeps_its_tools() {
    let mut rogue = Rogue::new("dies");
    with_secret(&mut rogue);
    let mut servers = rogue.open();
    let before = servers.definitions().to_vec();
    let why = wrong(&mut servers, "rogue_go", "{}");
    assert_eq!(why, "the MCP server rogue: it ended (exit 3); its last words: だめでした: key *** refused");
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
    assert_eq!((rogue.starts(), servers.definitions()), (2, &before[..]));
}

#[test]
fn a_server_that_always_dies_is_started_again_three_times_and_then_left_alone() {
    let rogue = Rogue::new("dies");
    let mut servers = rogue.open();
    for _ in 0..4 {
        assert!(wrong(&mut servers, "rogue_go", "{}").contains("exit 3"));
    }
    for _ in 0..2 {
        let why = wrong(&mut servers, "rogue_rest", "{}");
        assert!(why.contains("started again 3 times"), "{why}");
    }
    assert_eq!(rogue.starts(), 4);
}

#[test]
fn half_a_line_and_a_death_is_an_end_like_any_other() {
    let rogue = Rogue::new("half");
    let mut servers = rogue.open();
    assert_eq!(wrong(&mut servers, "rogue_go", "{}"), "the MCP server rogue: it ended (exit 0)");
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
}

#[test]
fn a_server_that_closes_its_output_and_stays_is_ended() {
    let rogue = Rogue::new("closes");
    let mut servers = rogue.open();
    assert_eq!(wrong(&mut servers, "rogue_go", "{}"), "the MCP server rogue: it was ended");
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
}

#[test]
fn a_message_of_two_hundred_megabytes_is_not_read_and_the_server_given_up() {
    let rogue = Rogue::new("huge");
    let mut servers = rogue.open();
    let why = wrong(&mut servers, "rogue_go", "{}");
    assert!(why.contains("it sent a message of more than 8 MiB"), "{why}");
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
}

#[test]
fn a_call_that_is_never_answered_is_taken_back_and_the_server_kept() {
    let mut rogue = Rogue::new("never");
    rogue.server.call = SHORT;
    let mut servers = rogue.open();
    let why = wrong(&mut servers, "rogue_go", "{}");
    assert_eq!(why, "the MCP server rogue: it did not answer within 5 s");
    // The server reads in order: it has heard of the end of the first call when it answers the second one.
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
    assert!(rogue.notes().ends_with("cancelled\n"), "{}", rogue.notes());
    assert_eq!(rogue.starts(), 1);
}

#[test]
fn a_call_that_is_no_longer_wanted_is_taken_back() {
    let rogue = Rogue::new("never");
    let mut servers = rogue.open();
    let cancel = Cancel::default();
    cancel.cancel();
    let (why, is_error) = words(servers.call("rogue_go", "{}", &cancel));
    assert_eq!((why.as_str(), is_error), ("the MCP server rogue: the call was cancelled", true));
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
    assert!(rogue.notes().ends_with("cancelled\n"), "{}", rogue.notes());
}

#[test]
fn an_answer_to_something_else_is_no_answer() {
    let mut rogue = Rogue::new("wrong-id");
    rogue.server.call = SHORT;
    let mut servers = rogue.open();
    assert!(wrong(&mut servers, "rogue_go", "{}").ends_with("did not answer within 5 s"));
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
}

#[test]
fn a_server_that_no_longer_reads_holds_nobody_up() {
    let mut rogue = Rogue::new("deaf");
    rogue.server.call = SHORT;
    let mut servers = rogue.open();
    assert!(wrong(&mut servers, "rogue_go", "{}").contains("did not answer"));
    // More than a pipe holds: what takes the call back cannot be said any more, so the server is ended.
    let arguments = json!({"text": "x".repeat(1 << 20)}).to_string();
    let why = wrong(&mut servers, "rogue_go", &arguments);
    assert_eq!(why, "the MCP server rogue: it did not answer within 5 s; it was ended");
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
    assert_eq!(rogue.starts(), 2);
}

#[test]
fn what_a_server_asks_of_us_is_refused_politely_and_the_call_goes_on() {
    let rogue = Rogue::new("asks");
    let mut servers = rogue.open();
    let said = right(&mut servers, "rogue_go", "{}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("sampling/createMessage: {") && lines[0].contains("-32601"), "{said}");
    assert!(lines[1].contains(r#"{"action": "decline"}"#), "{said}");
    assert_eq!(lines[2], r#"roots/list: {"roots": []}"#);
}

#[test]
fn a_server_that_changes_its_tools_changes_nothing_that_was_offered() {
    let rogue = Rogue::new("changes");
    let mut servers = rogue.open();
    let before = servers.definitions().to_vec();
    assert_eq!(right(&mut servers, "rogue_go", "{}"), "gone");
    assert_eq!(servers.definitions(), &before[..]);
}

#[test]
fn what_the_protocol_refuses_is_told_to_the_model() {
    let rogue = Rogue::new("refuses");
    let mut servers = rogue.open();
    assert_eq!(wrong(&mut servers, "rogue_go", "{}"), "the MCP server rogue: it refused: 引数が違います");
    let rogue = Rogue::new("no-result");
    let mut servers = rogue.open();
    let (_, is_error) = said(&mut servers, "rogue_go", "{}");
    assert!(is_error);
}

#[test]
fn arguments_that_are_no_object_never_reach_the_server() {
    let rogue = Rogue::new("dies");
    let mut servers = rogue.open();
    for arguments in ["[1]", "{", "null", "\"go\"", "{} {}"] {
        let why = wrong(&mut servers, "rogue_go", arguments);
        assert!(why.starts_with("rogue_go: the arguments are no JSON object"), "{why}");
    }
    assert_eq!(wrong(&mut servers, "rogue_fly", "{}"), "there is no tool \"rogue_fly\"");
    assert_eq!(rogue.starts(), 1);
}

#[test]
fn a_list_of_tools_that_does_not_end_is_refused() {
    let rogue = Rogue::new("endless");
    assert!(rogue.refusal().contains("a list of them that does not end"));
    rogue.assert_gone();
}

#[test]
fn a_list_of_tools_whose_pages_are_too_much_together_is_refused() {
    let rogue = Rogue::new("heavy");
    let why = rogue.refusal();
    assert!(why.contains("its list of tools has more than 8 MiB"), "{why}");
    rogue.assert_gone();
}

#[test]
fn every_page_of_tools_is_read_in_order() {
    let rogue = Rogue::new("pages");
    let servers = rogue.open();
    let names: Vec<&str> = servers.definitions().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["rogue_page-0", "rogue_page-1", "rogue_page-2", "rogue_page-3", "rogue_page-4"]);
}

#[test]
fn odd_names_and_schemas_are_made_safe_and_each_tool_is_offered_once() {
    let rogue = Rogue::new("odd");
    let mut servers = rogue.open();
    let tools = servers.definitions().to_vec();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names[0], names[2], names[3]), ("rogue_do_it_", "rogue___", "rogue_bare"));
    assert!(names[1].starts_with("rogue_do_it__") && names.len() == 4, "{names:?}");
    assert_eq!(tools[3].schema, json!({"type": "object", "properties": {}}));
    assert!(tools.iter().all(|tool| tool.again == Repeatability::Unsafe), "nothing was said about them");
    for name in names {
        assert_eq!(right(&mut servers, name, ""), "gone");
    }
}

#[test]
fn only_the_tools_that_are_chosen_are_offered_and_one_that_is_not_there_is_named() {
    let mut rogue = Rogue::new("well");
    rogue.server.only = vec!["rest".to_owned()];
    let names: Vec<String> = rogue.open().definitions().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["rogue_rest"]);
    rogue.server.only.push("fly".to_owned());
    let why = rogue.refusal();
    assert!(
        why.ends_with("it has no tool \"fly\", which mcp_servers.rogue.tools names; it has: go, rest"),
        "{why}"
    );
    rogue.assert_gone();
}

#[test]
fn a_server_that_will_not_leave_goes_with_all_that_it_started() {
    let rogue = Rogue::new("stays");
    let mut servers = rogue.open();
    assert_eq!(right(&mut servers, "rogue_rest", "{}"), "rested");
    drop(servers);
    assert_eq!(rogue.starts(), 2, "itself and its child");
    rogue.assert_gone();
}

#[test]
fn servers_start_at_the_same_time() {
    let rogues = [Rogue::new("hangs"), Rogue::new("hangs"), Rogue::new("hangs")];
    let servers = rogues.each_ref().map(|rogue| rogue.server.clone());
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| McpServers::open(&servers, &cancel).map(drop));
        let until = Instant::now() + Duration::from_secs(60);
        // None of them ever says a word: all three are only there if none waits for another one.
        while rogues.iter().any(|rogue| rogue.starts() == 0) && Instant::now() < until {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert!(opening.join().unwrap().is_err());
    });
    for rogue in &rogues {
        rogue.assert_gone();
    }
}
