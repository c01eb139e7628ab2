//! Servers that behave: one made with the official SDK, over pipes and at an address, and a ready-made one.

use crate::mcp::ground::{
    ALONE, Rogue, Served, alone, at, await_end, by_command, open, program, refusal, right, said, words, wrong,
};
use komado_agent::mcp::McpTransport;
use komado_agent::tools::{Repeatability, ToolBody, ToolProvider};
use komado_provider::Cancel;
use serde_json::json;

fn ours() -> komado_agent::mcp::McpServer {
    by_command("tests", &[&program("server.py")])
}

#[test]
fn the_sdk_s_server_over_pipes_is_listed_and_called() {
    let mut server = ours();
    server.name = "sdk".to_owned();
    let mut servers = open(&[server]);
    let tools = servers.definitions();
    let add = &tools[0];
    assert_eq!(
        (add.name.as_str(), add.description.as_str(), add.again),
        ("sdk_add", "Adds two numbers.", Repeatability::Safe)
    );
    assert_eq!(add.schema["properties"]["a"]["type"], "integer");
    assert_eq!((tools[1].again, tools[2].again), (Repeatability::Safe, Repeatability::Unsafe));
    assert_eq!(right(&mut servers, "sdk_add", r#"{"a": 2, "b": 40}"#), "42");
    let words = json!({"text": "こんにちは 🦀\n\"quoted\""});
    assert_eq!(right(&mut servers, "sdk_echo", &words.to_string()), "こんにちは 🦀\n\"quoted\"");
    assert!(wrong(&mut servers, "sdk_fail", r#"{"why": "no luck"}"#).contains("no luck"));
    assert!(wrong(&mut servers, "sdk_add", r#"{"a": "x"}"#).contains("add"));
}

#[test]
fn a_long_answer_is_in_a_file_and_one_beyond_all_bounds_is_refused() {
    let mut servers = open(&[ours()]);
    let answer = servers.call("tests_big", r#"{"size": 3000000}"#, &Cancel::default());
    assert!(matches!(answer.body, ToolBody::File(_)));
    let (text, is_error) = words(answer);
    assert_eq!((text.len(), is_error), (3_000_000, false));
    assert!(wrong(&mut servers, "tests_big", r#"{"size": 20000000}"#).contains("more than 8 MiB"));
    assert_eq!(right(&mut servers, "tests_count", ""), "1", "a new process");
}

#[test]
fn a_server_gets_its_own_variables_and_no_keys_of_ours() {
    if std::env::var_os(ALONE).is_none() {
        let name = "mcp::real::a_server_gets_its_own_variables_and_no_keys_of_ours";
        return alone(name, &[("ANTHROPIC_API_KEY", "ours"), ("PYTHON_AUTH", "ours"), ("TZ", "Asia/Tokyo")]);
    }
    let mut server = ours();
    if let McpTransport::Command { env, .. } = &mut server.how {
        env.push(("ITS_KEY".to_owned(), "sesame".to_owned()));
    }
    let mut servers = open(&[server]);
    let mut variable =
        |name: &str| right(&mut servers, "tests_environment", &json!({"name": name}).to_string());
    assert_eq!((variable("ITS_KEY").as_str(), variable("TZ").as_str()), ("sesame", "Asia/Tokyo"));
    for name in ["ANTHROPIC_API_KEY", "PYTHON_AUTH"] {
        assert!(std::env::var_os(name).is_some());
        assert_eq!(variable(name), "(not there)");
    }
}

#[test]
fn a_ready_made_server_is_used_as_it_is() {
    let mut servers =
        open(&[by_command("time", &["-m", "mcp_server_time", "--local-timezone", "Asia/Tokyo"])]);
    let names: Vec<&str> = servers.definitions().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["time_get_current_time", "time_convert_time"]);
    let arguments = json!({"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": "UTC"});
    let said = right(&mut servers, "time_convert_time", &arguments.to_string());
    assert!(said.contains("T00:30:00+00:00"), "{said}");
}

#[test]
fn the_sdk_s_server_at_an_address_is_listed_and_called_whatever_way_it_answers() {
    for options in [&[][..], &["--json"], &["--stateless"]] {
        let served = Served::start(options, 0);
        let mut servers = open(&[served.server()]);
        assert_eq!(servers.definitions()[0].again, Repeatability::Safe);
        assert_eq!(right(&mut servers, "far_add", r#"{"a": 2, "b": 40}"#), "42");
        assert_eq!(right(&mut servers, "far_echo", r#"{"text": "日本語"}"#), "日本語");
        let (text, is_error) = said(&mut servers, "far_big", r#"{"size": 200000}"#);
        assert_eq!((text.len(), is_error), (200_000, false));
        assert!(wrong(&mut servers, "far_fail", r#"{"why": "no luck"}"#).contains("no luck"));
    }
}

#[test]
fn a_server_at_an_address_that_says_too_much_is_not_read_to_the_end() {
    for options in [&[][..], &["--json"]] {
        let served = Served::start(options, 0);
        let mut servers = open(&[served.server()]);
        let why = wrong(&mut servers, "far_big", r#"{"size": 20000000}"#);
        assert!(why.contains("it sent a message of more than 8 MiB"), "{why}");
        assert_eq!(right(&mut servers, "far_add", r#"{"a": 2, "b": 40}"#), "42");
    }
}

#[test]
fn a_server_at_an_address_that_goes_away_and_comes_back_is_used_again() {
    let served = Served::start(&[], 0);
    let port = served.port;
    let mut servers = open(&[served.server()]);
    assert_eq!(right(&mut servers, "far_count", ""), "1");
    drop(served);
    let why = wrong(&mut servers, "far_count", "");
    assert!(why.contains("the MCP server far: it cannot be reached"), "{why}");
    // The new one knows nothing of the session: it is begun again, without a word about it.
    let _served = Served::start(&[], port);
    assert_eq!(right(&mut servers, "far_count", ""), "1");
    assert_eq!(right(&mut servers, "far_count", ""), "2");
}

#[test]
fn a_call_that_takes_too_long_is_ended_at_the_server_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&[], 0);
    for mut server in [ours(), served.server()] {
        // Long enough for the call to begin at the server: one that is taken back before leaves no note.
        server.call = std::time::Duration::from_secs(5);
        let name = format!("{}_slow", server.name);
        let note = folder.path().join(&server.name);
        let mut servers = open(&[server]);
        let arguments = json!({"seconds": 100, "ended": note.to_str().unwrap()});
        assert!(wrong(&mut servers, &name, &arguments.to_string()).contains("did not answer within 5 s"));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::fs::read_to_string(&note).unwrap_or_default() != "cancelled" {
            assert!(std::time::Instant::now() < until, "{name} was never told");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn a_server_over_https_is_believed_when_the_system_knows_its_certificate_and_else_refused() {
    if let Some(url) = std::env::var_os(ALONE).and_then(|_| std::env::var("KOMADO_MCP_URL").ok()) {
        assert_eq!(right(&mut open(&[at(&url)]), "far_add", r#"{"a": 2, "b": 40}"#), "42");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start_secure(folder.path());
    let url = format!("https://localhost:{}/mcp", served.port);
    let why = refusal(&[at(&url)]);
    assert!(why.contains("it cannot be reached") && why.contains("certificate"), "{why}");
    let certificate = folder.path().join("certificate.pem");
    let trusted = [("SSL_CERT_FILE", certificate.to_str().unwrap()), ("KOMADO_MCP_URL", url.as_str())];
    let name = "a_server_over_https_is_believed_when_the_system_knows_its_certificate_and_else_refused";
    alone(&format!("mcp::real::{name}"), &trusted);
}

#[test]
fn two_thousand_calls_take_no_memory_and_leave_no_process() {
    if std::env::var_os(ALONE).is_some() {
        return many_calls();
    }
    alone("mcp::real::two_thousand_calls_take_no_memory_and_leave_no_process", &[]);
}

#[test]
fn neither_the_longest_message_nor_one_beyond_takes_more_memory_than_a_task_has() {
    if std::env::var_os(ALONE).is_none() {
        let name = "neither_the_longest_message_nor_one_beyond_takes_more_memory_than_a_task_has";
        return alone(&format!("mcp::real::{name}"), &[]);
    }
    let rogue = Rogue::new("huge");
    let mut servers = open(&[ours(), rogue.server.clone()]);
    assert_eq!(right(&mut servers, "tests_big", r#"{"size": 4000000}"#).len(), 4_000_000);
    assert!(wrong(&mut servers, "rogue_go", "{}").contains("more than 8 MiB"));
    let peak = memory("VmHWM");
    println!("peak: {peak} kB");
    assert!(peak < 96 * 1024, "{peak} kB");
}

fn many_calls() {
    let mut servers = open(&[ours()]);
    let text = "ことば".repeat(1000);
    let arguments = json!({"text": text}).to_string();
    let mut call = |times: usize| {
        for _ in 0..times {
            assert_eq!(right(&mut servers, "tests_echo", &arguments).len(), text.len());
        }
        memory("VmRSS")
    };
    let before = call(200);
    let after = call(2000);
    println!("resident: {before} kB, and {after} kB after 2000 calls of {} bytes", text.len());
    // A leak of each call's words alone would be 18 MB.
    assert!(after < before + 4096, "{before} kB grew to {after} kB");
    let children = children();
    assert!(!children.is_empty());
    drop(servers);
    children.into_iter().for_each(await_end);
}

/// Kilobytes of this process, as the system counts them under this name.
fn memory(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn children() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: String = tasks.map(of).collect();
    all.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}
