//! A task that does everything it should not, from end to end; and one after it.

use crate::task::kit::{Shop, calls, says};
use komado_provider::scripted::{ScriptStep, StepCondition};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;

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
    let after = StepCondition {
        anywhere: Some("(hostile)".into()),
        has_tool_result: Some(true),
        ..StepCondition::default()
    };
    let steps = vec![
        ScriptStep { when: after, ..ScriptStep::say("I give up: 何もできません") },
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
    shop.place.ok(&["admin", "doctor"]);
}

/// Puts something in place of the rules.
type Plant<'p> = &'p dyn Fn(&Path);

#[test]
fn rules_that_lead_out_of_the_folder_are_not_told() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let outside = shop.place.path().join("outside.md");
    std::fs::write(&outside, "SECRET RULES").unwrap();
    let plants: [(&str, Plant<'_>); 6] = [
        ("environ", &|rules| symlink("/proc/self/environ", rules).unwrap()),
        ("absolute", &|rules| symlink(&outside, rules).unwrap()),
        ("relative", &|rules| symlink("../outside.md", rules).unwrap()),
        ("fifo", &|rules| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o644));
            rustix::fs::mknodat(rustix::fs::CWD, rules, kind, mode, 0).unwrap();
        }),
        ("folder", &|rules| std::fs::create_dir(rules).unwrap()),
        ("device", &|rules| symlink("/dev/zero", rules).unwrap()),
    ];
    for (name, plant) in plants {
        let folder = shop.place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        plant(&folder.join("AGENTS.md"));
        let text = format!("(t) {name}");
        let task =
            shop.place.ok(&["task", "add", &text, "--folder", folder.to_str().unwrap()]).trim().to_owned();
        shop.work();
        assert_eq!(shop.state(&task), "completed", "{name}");
        let told = Value::from(shop.seen_with(&text)).to_string();
        assert!(!told.contains("Rules of this place") && !told.contains("SECRET"), "{name}: {told}");
        let home = format!("HOME={}", shop.place.home().display());
        let journal = std::fs::read_to_string(shop.place.folder(&task).join("messages.jsonl")).unwrap();
        assert!(!told.contains(&home) && !journal.contains(&home), "{name}: {told}");
    }
    let inside = shop.place.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("CONTRIBUTING.md"), "Test first.").unwrap();
    symlink("CONTRIBUTING.md", inside.join("AGENTS.md")).unwrap();
    shop.place.ok(&["task", "add", "(t) inside", "--folder", inside.to_str().unwrap()]);
    shop.work();
    assert!(Value::from(shop.seen_with("(t) inside")).to_string().contains("Test first."));
}

#[test]
fn a_task_that_plants_a_hook_says_so_in_its_result() {
    let lines = "git init -q . && printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit \
                 && git config core.fsmonitor ./monitor && git commit -q --allow-empty -m x; test ! -e ran && echo no hook ran";
    let arguments = serde_json::json!({ "command": lines, "timeout_seconds": 60 }).to_string();
    let after = StepCondition {
        anywhere: Some("(hook)".into()),
        has_tool_result: Some(true),
        ..StepCondition::default()
    };
    let steps = vec![
        ScriptStep { when: after, ..ScriptStep::say("All is well.") },
        calls(&[("shell", &arguments)]).when_anywhere("(hook)"),
    ];
    let shop = Shop::new(steps, "");
    shop.set("agent: {max_errors: 50}\n");
    let folder = shop.place.path().join("repository");
    std::fs::create_dir(&folder).unwrap();
    let task =
        shop.place.ok(&["task", "add", "(hook)", "--folder", folder.to_str().unwrap()]).trim().to_owned();
    shop.work();
    let heard = Value::from(shop.seen_with("(hook)")).to_string();
    assert!(heard.contains("no hook ran"), "{heard}");
    let result = shop.show(&task)["result"].as_str().unwrap().to_owned();
    assert!(result.starts_with("All is well.\n\nWarning: git runs programs"), "{result}");
    assert!(
        result.contains("- .git/config (new)") && result.contains("- .git/hooks/pre-commit (new)"),
        "{result}"
    );
}
