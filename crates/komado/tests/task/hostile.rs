//! A task that does everything it should not, from end to end; and one after it.

use crate::kit::{Shop, calls, says};
use komado_provider::scripted::{Step, When};
use serde_json::Value;

/// Speaks MCP as long as it likes: `dies` ends in the middle of a call, `garbage` answers it with nonsense.
const SERVER: &str = r#"
import json, sys
how = sys.argv[1]
def send(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        send(request, {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                       "serverInfo": {"name": how, "version": "1"}})
    elif method == "tools/list":
        send(request, {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call" and how == "dies":
        print("out of paper", file=sys.stderr, flush=True)
        sys.exit(7)
    elif method == "tools/call":
        print("\x00\xff {not json\n[1,2]\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":3}", flush=True)
"#;

/// What is called, and what its result must contain.
const CALLS: [(&str, &str, &str); 12] = [
    ("read", r#"{"path":"../../../../etc/passwd"}"#, "leads out of the working folder"),
    ("read", r#"{"path":"/etc/passwd"}"#, "folder"),
    ("read", r#"{"path":"out/passwd"}"#, "folder"),
    ("edit", r#"{"path":"../escaped.txt","content":"x"}"#, "folder"),
    ("edit", r#"{"path":"/proc/self/root/tmp/escaped.txt","content":"x"}"#, "folder"),
    ("list", r#"{"path":".."}"#, "folder"),
    ("shell", r#"{"command":"yes 窓"}"#, "[killed: it "),
    ("shell", r#"{"command":"sleep 600"}"#, "longer than 2 s"),
    ("dies_go", "{}", "out of paper"),
    ("garbage_go", "{}", "did not answer within"),
    ("fly_away", "{}", "there is no tool"),
    ("read", "path=notes.txt", "JSON"),
];

fn shop() -> Shop {
    let all: Vec<(&str, &str)> = CALLS.iter().map(|(name, arguments, _)| (*name, *arguments)).collect();
    let after = When { anywhere: Some("(hostile)".into()), has_tool_result: Some(true), ..When::default() };
    let steps = vec![
        Step { when: after, ..Step::say("I give up: 何もできません") },
        calls(&all).when_anywhere("(hostile)"),
        says("(t)", "a good task"),
    ];
    let shop = Shop::new(steps, "");
    let program = shop.place.path().join("server.py");
    std::fs::write(&program, SERVER).unwrap();
    let program = program.display();
    shop.set(&format!(
        "agent: {{max_errors: 50}}\nmcp_servers:\n  \
         dies: {{command: python3, args: ['{program}', dies]}}\n  \
         garbage: {{command: python3, args: ['{program}', garbage], timeout_seconds: 1}}\n"
    ));
    shop
}

#[test]
fn a_hostile_task_has_clear_results_and_the_worker_does_the_next_one() {
    let shop = shop();
    let folder = shop.place.path().join("inside");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/etc", folder.join("out")).unwrap();
    let folder = folder.display().to_string();
    let hostile =
        shop.place.ok(&["task", "add", "(hostile) break out", "--folder", &folder]).trim().to_owned();
    let good = shop.add("(t) be good");
    shop.work();
    assert_eq!((shop.state(&hostile).as_str(), shop.state(&good).as_str()), ("completed", "completed"));
    assert_eq!(shop.show(&hostile)["result"], "I give up: 何もできません");
    let messages = shop.seen_with("(hostile)");
    let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), CALLS.len(), "{messages:?}");
    for ((name, arguments, wanted), result) in CALLS.iter().zip(results) {
        let words = result["content"].to_string();
        let is_clear = words.contains(wanted) && !words.contains("root:");
        let end: Vec<char> = words.chars().rev().take(600).collect();
        assert!(is_clear, "{name} {arguments}: {}", end.iter().rev().collect::<String>());
    }
    let tools = std::fs::read_to_string(shop.place.folder(&hostile).join("tools.jsonl")).unwrap();
    assert_eq!(tools.lines().count(), CALLS.len(), "{tools}");
    assert!(!shop.place.path().join("escaped.txt").exists());
    shop.place.ok(&["doctor"]);
}
