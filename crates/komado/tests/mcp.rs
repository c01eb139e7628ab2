//! The MCP server as a client meets it: every tool, over standard input and output and over HTTP, with the official SDK.
use crate::run;

use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, PaginatedRequestParams,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use run::{Place, TALK};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

type Client = RunningService<RoleClient, ()>;

/// Runs a test that waits.
fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// A client of `komado mcp`.
async fn by_pipe(place: &Place, options: &[&str]) -> Client {
    let words: Vec<&str> = ["mcp"].iter().chain(options).copied().collect();
    let command = tokio::process::Command::from(place.command(&words));
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().unwrap();
    ().serve(transport).await.unwrap()
}

/// `komado serve`, ended with the test.
struct Served(Child, String);

impl Served {
    fn start(place: &Place) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command: Command = place.command(&["serve", "--listen", &address, "--upstream", "scripted"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let served = Self(child, format!("http://{address}/mcp"));
        for _ in 0..200 {
            if std::net::TcpStream::connect(&address).is_ok() {
                return served;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing listens at {address}");
    }

    async fn client(&self) -> Client {
        // The SDK's HTTP client wants one, also where nothing is encrypted. Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        ().serve(StreamableHttpClientTransport::from_uri(self.1.clone())).await.unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    client.call_tool(params).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// What a call that must succeed says for programs.
async fn done(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments.clone()).await;
    assert_ne!(result.is_error, Some(true), "{tool} {arguments}: {}", text(&result));
    assert!(!result.content.is_empty(), "{tool} says nothing in words");
    let value = result.structured_content.unwrap_or_default();
    assert!(value.is_object(), "{tool}: {value}");
    value
}

/// What a call that must fail says.
async fn fault(client: &Client, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments.clone()).await;
    assert_eq!(result.is_error, Some(true), "{tool} {arguments}: {}", text(&result));
    text(&result)
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str()).collect()
}

/// A session with a talk and a long output, and the output's id.
fn talk(place: &Place) -> (String, String) {
    let session = place.session();
    assert_eq!(place.append(&session, TALK).code, 0);
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"c9","type":"function","function":{"name":"run","arguments":"{}"}}]}"#;
    assert_eq!(place.append(&session, call).code, 0);
    let long: String = (1..=3000).map(|n| format!("{n} 小窓のログ line\n")).collect();
    let said = place.feed(&["append", &session, "--role", "tool", "--call", "c9"], long.as_bytes());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(place.run(&["task", "add", "--key", "tidy", "片付けて"]).code, 0);
    let listed = place.json_lines(&["session", "output", &session]);
    (session, listed[0]["ref"].as_str().unwrap().to_owned())
}

/// Calls every tool once and more, and checks that none was left out.
async fn walk(client: &Client, session: &str, output: &str) {
    let listed: BTreeSet<String> =
        client.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name.into_owned()).collect();
    let mut called = BTreeSet::new();
    let mut tool = async |name: &str, mut arguments: Value| {
        called.insert(name.to_owned());
        if arguments.get("session").is_none() && !["new", "sessions", "tasks", "task"].contains(&name) {
            arguments["session"] = json!(session);
        }
        done(client, name, arguments).await
    };
    let read = tool("tool_output_cache", json!({ "ref_id": output, "offset": 2999 })).await;
    assert!(read["text"].as_str().unwrap().contains("2999 小窓のログ line"), "{read}");
    let found =
        tool("tool_output_cache_grep", json!({ "ref_id": output, "pattern": "^1234 ", "regex": true })).await;
    assert!(found["text"].as_str().unwrap().contains("1234 小窓"), "{found}");
    let line =
        tool("tool_output_cache_line", json!({ "ref_id": output, "line_number": 7, "char_offset": 2 })).await;
    assert!(line["text"].as_str().unwrap().contains("小窓のログ"), "{line}");
    let recalled = tool("recall", json!({ "query": "バグを直して", "limit": 3 })).await;
    assert_eq!(recalled["items"][0]["seq"], 1, "{recalled}");
    let everywhere = done(client, "recall", json!({ "query": "main.py", "mode": "exact" })).await;
    assert!(!everywhere["items"].as_array().unwrap().is_empty());
    let context = tool("context", json!({})).await;
    assert_eq!(context["window"], 8000);
    let log = tool("log", json!({ "from": 2, "limit": 3 })).await;
    assert_eq!((&log["first"], &log["last"], &log["next"]), (&json!(2), &json!(4), &json!(5)));
    assert_eq!(log["text"].as_str().unwrap().lines().count(), 3, "{log}");
    let shown = tool("show", json!({ "seq": 1 })).await;
    assert!(shown["text"].as_str().unwrap().contains("バグを直して"), "{shown}");
    let sessions = tool("sessions", json!({ "limit": 5 })).await;
    assert!(sessions["items"].as_array().unwrap().iter().any(|one| one["session"] == session));
    let made = tool("new", json!({ "window": 4000, "system": "短く" })).await;
    let other = made["session"].as_str().unwrap().to_owned();
    // Words that a command line would take for something else are words here.
    for words in ["-", "--help", "終わり\n"] {
        let said = tool("append", json!({ "session": other, "text": words, "role": "user" })).await;
        let seq = said["seq"].clone();
        let back =
            done(client, "tool_output_cache", json!({ "session": other, "ref_id": format!("@{seq}") })).await;
        assert!(back["text"].as_str().unwrap().contains(words.trim_end()), "{words:?}: {back}");
    }
    // An empty text is one, and is refused as everywhere: nothing is read in its place.
    for words in ["", " "] {
        let before = done(client, "context", json!({ "session": other })).await["seq"].clone();
        let told = fault(client, "append", json!({ "session": other, "text": words, "role": "user" })).await;
        assert!(told.contains("the message of role user is empty: write what it says"), "{words:?}: {told}");
        assert_eq!(done(client, "context", json!({ "session": other })).await["seq"], before);
    }
    let pinned = tool("pin", json!({ "seq": 1 })).await;
    assert_eq!(pinned["op"], "pin");
    tool("unpin", json!({ "seq": 1 })).await;
    let edit = tool("condense", json!({ "span": "2..5", "text": "main.py を読んだ" })).await;
    assert!(edit["tokens_after"].as_u64().unwrap() < edit["tokens_before"].as_u64().unwrap(), "{edit}");
    tool("revert", json!({ "seq": edit["seq"] })).await;
    let fitted = tool("fit", json!({ "dry_run": true })).await;
    assert_eq!(fitted["dry_run"], true);
    let forked = tool("fork", json!({ "seq": 6, "label": "別の道" })).await;
    assert_eq!(forked["base"]["seq"], 6, "{forked}");
    let child = tool("thread_start", json!({ "label": "調べる", "ratio": 0.5 })).await;
    let thread = child["thread"].as_str().unwrap().to_owned();
    tool("append", json!({ "thread": thread, "text": "調べた" })).await;
    tool("thread_tell", json!({ "to": thread, "text": "急いで" })).await;
    let ended =
        tool("thread_end", json!({ "thread": thread, "result": "ok", "chronicle": "調べ終えた" })).await;
    assert_eq!(ended["chronicle"]["text"], "調べ終えた");
    tool("thread_resume", json!({ "thread": thread })).await;
    tool("thread_abort", json!({ "thread": thread, "reason": "もういい" })).await;
    let tree = tool("threads", json!({})).await;
    assert!(tree["threads"].as_array().unwrap().iter().any(|one| one["status"] == "aborted"), "{tree}");
    let back = tool("rewind", json!({ "seq": 6 })).await;
    assert_eq!(back["op"], "rewind");
    let tasks = tool("tasks", json!({})).await;
    assert_eq!(tasks["items"][0]["task"], "local:tidy", "{tasks}");
    let task = tool("task", json!({ "task": "local:tidy" })).await;
    assert_eq!((&task["text"], &task["state"]), (&json!("片付けて"), &json!("queued")), "{task}");
    assert_eq!(listed, called, "every tool that is listed is called here, and none that is not");
}

#[test]
fn every_tool_can_be_called_over_standard_input_and_output() {
    let place = Place::new();
    let (session, output) = talk(&place);
    wait(async {
        let client = by_pipe(&place, &[]).await;
        walk(&client, &session, &output).await;
        client.cancel().await.unwrap();
    });
}

#[test]
fn every_tool_can_be_called_over_http() {
    let place = Place::new();
    let (session, output) = talk(&place);
    let served = Served::start(&place);
    wait(async {
        let client = served.client().await;
        walk(&client, &session, &output).await;
        client.cancel().await.unwrap();
    });
}

#[test]
fn a_session_need_not_be_named_when_only_one_can_be_meant() {
    let place = Place::new();
    let (first, _) = talk(&place);
    wait(async {
        let client = by_pipe(&place, &[]).await;
        assert_eq!(done(&client, "context", json!({})).await["session"], json!(first));
        let second = done(&client, "new", json!({})).await["session"].clone();
        let told = fault(&client, "context", json!({})).await;
        assert!(told.contains("`sessions` lists them"), "{told}");
        client.cancel().await.unwrap();
        let client = by_pipe(&place, &["--session", second.as_str().unwrap()]).await;
        assert_eq!(done(&client, "context", json!({})).await["session"], second);
        assert_eq!(done(&client, "context", json!({ "session": first })).await["session"], json!(first));
        client.cancel().await.unwrap();
    });
    let wrong = place.run(&["mcp", "--session", "nowhere"]);
    assert_eq!(wrong.code, 3, "{}", wrong.err);
}

#[test]
fn what_is_wrong_with_a_call_is_told_in_words() {
    let place = Place::new();
    let (session, _) = talk(&place);
    wait(async {
        let client = by_pipe(&place, &[]).await;
        for (tool, arguments, words) in [
            ("pin", json!({}), "missing field `seq`"),
            ("pin", json!({ "seq": 1, "sequence": 2 }), "unknown field `sequence`"),
            ("pin", json!({ "seq": 1, "sequence": null }), "unknown field `sequence`"),
            ("pin", json!({ "seq": 4000 }), "4000"),
            ("context", json!({ "session": "nowhere" }), "nowhere"),
            ("log", json!({ "session": "../../etc" }), "../etc"),
            ("condense", json!({ "span": "2..5" }), "span and text go together"),
            ("recall", json!({ "query": "(", "mode": "regex", "session": session }), "("),
            ("thread_tell", json!({ "to": "root/x", "text": "a" }), "root/x"),
            ("thread_end", json!({}), "child thread"),
            ("tool_output_cache", json!({ "ref_id": "0000" }), "0000"),
        ] {
            let told = fault(&client, tool, arguments.clone()).await;
            assert!(told.contains(words), "{tool} {arguments}: {told}");
        }
        let unknown = client.call_tool(CallToolRequestParams::new("nothing")).await.unwrap_err();
        assert!(unknown.to_string().contains("nothing"), "{unknown}");
        client.cancel().await.unwrap();
    });
}

fn words(contents: &[ResourceContents]) -> &str {
    match contents {
        [ResourceContents::TextResourceContents { text, .. }] => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_are_resources_and_can_be_taken_up_again() {
    let place = Place::new();
    let (session, _) = talk(&place);
    wait(async {
        let client = by_pipe(&place, &[]).await;
        let read = async |uri: String| client.read_resource(ReadResourceRequestParams::new(uri)).await;
        let all = client.list_all_resources().await.unwrap();
        let uri = format!("komado://session/{session}");
        assert!(all.iter().any(|one| one.uri == "komado://sessions") && all.iter().any(|one| one.uri == uri));
        assert_eq!(client.list_all_resource_templates().await.unwrap().len(), 3);
        let list = read("komado://sessions".into()).await.unwrap();
        assert!(words(&list.contents).contains(&session));
        let view = read(uri.clone()).await.unwrap();
        assert!(words(&view.contents).contains("バグを直して"));
        let thread = read(format!("{uri}/thread/root")).await.unwrap();
        assert_eq!(words(&thread.contents), words(&view.contents));
        let journal = read(format!("{uri}/journal?from=2")).await.unwrap();
        let first: Value = serde_json::from_str(words(&journal.contents).lines().next().unwrap()).unwrap();
        assert_eq!(first["seq"], 2);
        let whole = read(format!("{uri}/journal")).await.unwrap();
        assert_eq!(words(&whole.contents).lines().count(), 8);
        for wrong in ["komado://session/nowhere", "komado://session/", "file:///etc/passwd"] {
            assert!(read(wrong.into()).await.is_err(), "{wrong}");
        }
        let plural = read(format!("komado://sessions/{session}")).await.unwrap_err().to_string();
        assert!(plural.contains("komado://session/ID"), "{plural}");
        let prompt = client.get_prompt(GetPromptRequestParams::new("resume")).await.unwrap();
        let said = format!("{:?}", prompt.messages);
        assert!(said.contains(&session) && said.contains("recall"), "{said}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn resources_come_in_pages() {
    let place = Place::new();
    let mut made = BTreeSet::new();
    for _ in 0..3 {
        made.insert(format!("komado://session/{}", place.session()));
    }
    wait(async {
        let client = by_pipe(&place, &[]).await;
        for _ in 0..60 {
            let one = done(&client, "new", json!({})).await;
            made.insert(format!("komado://session/{}", one["session"].as_str().unwrap()));
        }
        let page = client.list_resources(None).await.unwrap();
        assert_eq!(page.resources.len(), 51);
        let cursor = page.next_cursor.clone();
        assert!(cursor.is_some());
        let rest = PaginatedRequestParams::default().with_cursor(cursor);
        let rest = client.list_resources(Some(rest)).await.unwrap();
        assert_eq!(rest.next_cursor, None);
        let uris = page.resources.into_iter().chain(rest.resources).map(|one| one.uri);
        let listed: BTreeSet<String> = uris.filter(|uri| uri != "komado://sessions").collect();
        assert_eq!(listed, made);
        client.cancel().await.unwrap();
    });
}
