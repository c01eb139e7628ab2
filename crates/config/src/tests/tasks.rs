//! What do tasks work with, and who hears how they end?

use super::{World, line};
use komado_agent::mcp::McpTransport;
use komado_agent::sandbox::{Network, ProcessLimits};
use std::time::Duration;

const SECRET: &str = "ghp-very-secret";

#[test]
fn a_worker_without_settings_has_the_built_in_tools_and_no_tracker() {
    let agent = World::new().load().agent;
    assert_eq!(agent.tools.enabled, ["read", "list", "grep", "edit", "shell"]);
    assert_eq!(agent.tools.allow, komado_agent::builtin::ALLOW);
    assert!(agent.servers.is_empty() && agent.trackers.is_empty());
    let hours = Some(Duration::from_secs(8 * 3600));
    let limits = agent.limits;
    assert_eq!((limits.turns, limits.time, limits.tokens), (Some(5_000), hours, Some(50_000_000)));
    let of_commands = ProcessLimits { memory: 8 << 30, cpu: 3_600, processes: 1_024, disk: 20 << 30 };
    assert_eq!((agent.tools.network, agent.tools.limits), (Network::default(), of_commands));
    let none = World::new().flag("agent.max_turns", "0").flag("agent.max_minutes", "0");
    let none = none.flag("agent.max_total_tokens", "0").load().agent.limits;
    assert_eq!((none.turns, none.time, none.tokens), (None, None, None));
}

#[test]
fn a_server_is_a_command_line_or_a_program_with_arguments_or_an_address() {
    let world = World::with_file(
        "mcp_servers:\n  a: {command: \"uvx 'my server' --x\"}\n  b: {command: /opt/my server, args: [--y, z w]}\n  \
         c: {url: 'https://mcp.example/mcp', headers: ['Authorization: Bearer a=b']}\n",
    );
    let servers = world.load().agent.servers;
    let started = |at: usize| match &servers[at].how {
        McpTransport::Command { program, args, .. } => (program.clone(), args.clone()),
        McpTransport::Http { url, .. } => panic!("{url}"),
    };
    assert_eq!(started(0), ("uvx".into(), vec!["my server".into(), "--x".into()]));
    assert_eq!(started(1), ("/opt/my server".into(), vec!["--y".into(), "z w".into()]));
    let headers = vec![("Authorization".to_owned(), "Bearer a=b".to_owned())];
    assert!(servers[2].how == McpTransport::Http { url: "https://mcp.example/mcp".into(), headers });
    assert_eq!((servers[2].call, servers[2].start), (Duration::from_secs(60), Duration::from_secs(30)));
}

#[test]
fn a_server_that_cannot_be_reached_as_it_is_written_is_named_with_its_place() {
    let cases = [
        (
            "mcp_servers:\n  a:\n    command: x\n    url: http://h/\n",
            "4:10: mcp_servers.a has a command and a url; keep one of the two",
        ),
        (
            "mcp_servers:\n  a:\n    args: [x]\n",
            "3:11: mcp_servers.a has neither a command nor a url; write `command: PROGRAM ARGUMENTS` or `url: https://HOST/PATH`",
        ),
        (
            "mcp_servers: {時計: {}}\n",
            "1:15: mcp_servers.時計 has neither a command nor a url; write `command: PROGRAM ARGUMENTS` or `url: https://HOST/PATH`",
        ),
        (
            "mcp_servers:\n  a: {command: x}\n  b:\n    command:\n",
            "3:3: mcp_servers.b has neither a command nor a url; write `command: PROGRAM ARGUMENTS` or `url: https://HOST/PATH`",
        ),
        (
            "mcp_servers:\n  b:\n",
            "2:3: mcp_servers.b has neither a command nor a url; write `command: PROGRAM ARGUMENTS` or `url: https://HOST/PATH`",
        ),
        (
            "mcp_servers: {a: {command: \"x 'y\"}}\n",
            "1:28: mcp_servers.a has a command with a quote that is not closed; close it",
        ),
        (
            "mcp_servers: {a: {command: x, env: [PATH]}}\n",
            "1:36: mcp_servers.a.env must be NAME=VALUE, one per line, not: (set)",
        ),
    ];
    for (yaml, message) in cases {
        assert_eq!(World::with_file(yaml).error(), format!("komado.yaml:{message}"));
    }
    let error = World::new().env("KOMADO_MCP_SERVERS_A_TOOLS", "x").error();
    assert!(error.starts_with("env KOMADO_MCP_SERVERS_A_TOOLS: mcp_servers.a has neither"), "{error}");
    assert!(
        World::new().flag("mcp_servers.a.command", "").load().agent.servers.is_empty(),
        "unset is not a server"
    );
    let off = World::with_file("mcp_servers: {a: {command: '${GONE:-}'}}\n").load().agent.servers;
    assert!(off.is_empty(), "one that is switched off is none");
    let named = World::with_file("mcp_servers: {a: {}}\n").env("KOMADO_MCP_SERVERS_A_COMMAND", "x");
    assert_eq!(named.load().agent.servers.len(), 1, "the rest may be said elsewhere");
}

#[test]
fn a_tracker_is_there_when_it_has_repositories_and_its_labels_are_seed_000s() {
    let world =
        World::with_file("github: {repos: [ann/tool, ann/道具], token: '${T}'}\ngitlab: {user: bot}\n");
    let config = world.env("T", SECRET).load();
    let [github] = config.agent.trackers.as_slice() else { panic!("one tracker") };
    assert_eq!(github.repos, ["ann/tool", "ann/道具"]);
    assert_eq!((github.base_url.as_str(), github.token.as_deref()), ("https://api.github.com", Some(SECRET)));
    assert_eq!(
        [&github.label, &github.running, &github.done],
        ["coding agent", "coding agent processing", "coding agent done"]
    );
    let config = World::new().env("GITLAB_TOKEN", SECRET).flag("gitlab.projects", "a/b").load();
    assert_eq!(config.agent.trackers[0].token.as_deref(), Some(SECRET));
    assert_eq!(line(&config, "gitlab.token"), "(set) (env GITLAB_TOKEN)");
}

#[test]
fn keys_variables_and_headers_are_never_shown_and_never_taken_from_a_flag() {
    let config = World::with_file(&format!(
        "github: {{token: {SECRET}}}\nmcp_servers: {{a: {{command: x, env: [K={SECRET}]}}, \
         b: {{url: 'http://h', headers: ['k: {SECRET}']}}}}\n"
    ))
    .load();
    let shown = format!("{config:?} {:?} {:?}", config.rows(), config.notes);
    assert!(!shown.contains(SECRET) && shown.contains("mcp_servers.b.headers"), "{shown}");
    for key in ["github.token", "mcp_servers.a.env", "mcp_servers.a.headers"] {
        let error = World::new().flag(key, SECRET).error();
        assert!(error.contains(key) && error.contains("KOMADO_") && !error.contains(SECRET), "{error}");
        assert!(!error.contains("_file"), "no such setting: {error}");
    }
    let error =
        World::with_file(&format!("mcp_servers: {{a: {{url: 'http://h', headers: [{SECRET}]}}}}\n")).error();
    assert!(error.contains("NAME:VALUE or NAME=VALUE") && !error.contains(SECRET), "{error}");
}
