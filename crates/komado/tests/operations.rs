//! Every operation, through every interface that offers it: the command line, the HTTP API and MCP tell the same JSON.
//!
//! Each interface has a copy of the same folder of sessions. What only reads is asked of the session `demo`; what changes
//! something has a copy of it to itself, so that no case sees what another has done. An operation that two interfaces offer
//! needs a case; a case is one line.
use crate::run;

use komado_ops::stream::StreamForm;
use komado_ops::{ALL, Effect, OperationRow};
use run::{Place, TALK};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// One call of an operation.
struct Case {
    name: &'static str,
    /// The words after the verb; `$` is the session. `Err` says why the command line is not asked.
    words: Result<&'static str, &'static str>,
    /// The fields of the request. The session is added where there is one, and the thread is the root.
    fields: Value,
    /// Commands that come first.
    before: Vec<&'static str>,
    /// The standard input of the command.
    stdin: &'static str,
    /// Fields that differ from call to call, beside those that always do: ids that are made.
    masked: &'static [&'static str],
}

fn case(name: &'static str, words: &'static str, fields: Value) -> Case {
    Case { name, words: Ok(words), fields, before: Vec::new(), stdin: "", masked: &[] }
}

impl Case {
    fn after(mut self, command: &'static str) -> Self {
        self.before.push(command);
        self
    }

    fn stdin(self, stdin: &'static str) -> Self {
        Self { stdin, ..self }
    }

    fn masking(self, masked: &'static [&'static str]) -> Self {
        Self { masked, ..self }
    }

    fn row(&self) -> &'static OperationRow {
        ALL.iter().find(|row| row.name == self.name).unwrap_or_else(|| panic!("no operation {}", self.name))
    }

    fn has_session(&self) -> bool {
        let schema = (self.row().request)(&mut schemars::SchemaGenerator::default());
        schema.get("properties").is_some_and(|fields| fields.get("session").is_some())
    }

    /// A session of its own for what changes one.
    fn session(&self) -> String {
        match self.row().effect {
            Effect::Read => "demo".to_owned(),
            _ => format!("of-{}", self.name.replace('_', "-")),
        }
    }

    fn fields(&self) -> Map<String, Value> {
        let mut fields = self.fields.as_object().unwrap().clone();
        if self.has_session() && fields.get("session").is_none() {
            fields.insert("session".to_owned(), json!(self.session()));
        }
        fields
    }
}

/// A case for every operation that two interfaces offer.
fn cases() -> Vec<Case> {
    vec![
        case("sessions", "", json!({ "newest": false })),
        case("stats", "", json!({})),
        case("export", "$", json!({})),
        case("entries", "$", json!({})),
        Case { words: Err("`log --json` tells what `entries` does"), ..case("log", "", json!({})) },
        case("show", "$", json!({ "format": "messages" })),
        case("context", "$", json!({})),
        case("diff", "$@2 $@6", json!({ "from": "root@2", "to": "root@6" })),
        case("thread_list", "$", json!({})),
        case("threads", "$", json!({})),
        case("thread_chronicle", "$/done", json!({ "thread": "done" })),
        case("outputs", "$", json!({})),
        case("output", "$ @3 --limit 2", json!({ "ref_id": "@3", "limit": 2 })),
        case("output_raw", "$ @3", json!({ "ref_id": "@3" })),
        case("recall", "--all window", json!({ "query": "window", "session": null })),
        case("recall_session", "$ window", json!({ "query": "window" })),
        case("report", "all --from 2d", json!({ "what": "all", "from": "2d" })),
        case("users", "", json!({})),
        case("user", "ann", json!({ "user": "ann" })),
        case("messages", "ann --limit 3", json!({ "user": "ann", "limit": 3 })),
        case("models", "gpt-4o", json!({ "name": "gpt-4o" })),
        case("models_learned", "", json!({})),
        case("explain_error", "--status 400", json!({ "status": 400, "body": "too long: 9 tokens > 8" }))
            .stdin("too long: 9 tokens > 8"),
        case("import", "demo.jsonl --as again", json!({ "as": "again" })),
        case("new", "--id made --window 4000", json!({ "id": "made", "window": 4000 })),
        case("complete", "$ done", json!({ "result": "done" })),
        case("fail", "$ broken", json!({ "reason": "broken" })),
        case("stop", "$ enough", json!({ "reason": "enough" })),
        case("pause", "$ lunch", json!({ "reason": "lunch" })),
        case("resume", "$", json!({})).after("session pause $"),
        case("append", "$ hello", json!({ "text": "hello" })),
        case("setup", "$ --system polite", json!({ "system": "polite" })),
        case("redact", "$ --text main.py --reason x --yes", json!({ "text": "main.py", "reason": "x" })),
        case("pin", "$@2", json!({ "seq": 2 })),
        case("unpin", "$@2", json!({ "seq": 2 })).after("edit pin $@2"),
        case("rewind", "$@2", json!({ "seq": 2 })),
        case("revert", "$@14", json!({ "seq": 14 })).after("edit trim $ 3"),
        case("truncate", "$ 1..5", json!({ "span": "1..5" })),
        case("trim", "$ 3", json!({ "span": "3" })),
        case("fit", "$ --window 1000", json!({ "window": 1000 })),
        case("condense", "$ 1..5 --text short", json!({ "span": "1..5", "text": "short" })),
        case("fork", "$@2 other", json!({ "seq": 2, "name": "other" })),
        case("thread_start", "$ about --name new", json!({ "label": "about", "name": "new" })),
        case("thread_tell", "$/open root soon", json!({ "thread": "open", "to": "root", "text": "soon" })),
        case("thread_end", "$/open --chronicle told", json!({ "thread": "open", "chronicle": "told" })),
        case("thread_abort", "$/open why", json!({ "thread": "open", "reason": "why" })),
        case("thread_pause", "$/open why", json!({ "thread": "open", "reason": "why" })),
        case("thread_resume", "$/waiting", json!({ "thread": "waiting" })),
        case("thread_balance", "$/open --ratio 0.3", json!({ "thread": "open", "ratio": 0.3 })),
        case("thread_write_chronicle", "$/done --text anew", json!({ "thread": "done", "text": "anew" })),
        case("user_session", "eve --window 4000", json!({ "user": "eve", "window": 4000 })),
        case("user_forget", "bob --dry-run", json!({ "user": "bob", "dry_run": true })),
        case("cleanup", "--days 0 --dry-run", json!({ "days": 0, "dry_run": true })),
        case("models_forget", "small", json!({ "about": "small" })),
        case("tasks", "", json!({})).after("task add --key listed tidy"),
        case("task", "local:shown", json!({ "task": "local:shown" })).after("task add --key shown tidy"),
        case("task_add", "tidy --key added", json!({ "text": "tidy", "key": "added" }))
            .masking(&["session", "undo"]),
        case("task_pause", "local:p", json!({ "task": "local:p" })).after("task add --key p tidy"),
        case("task_resume", "local:r", json!({ "task": "local:r" }))
            .after("task add --key r tidy")
            .after("task pause local:r"),
        case("task_stop", "local:s", json!({ "task": "local:s" })).after("task add --key s tidy"),
        case("task_retry", "local:t", json!({ "task": "local:t" }))
            .after("task add --key t tidy")
            .after("task stop local:t"),
    ]
}

/// Fields that differ from call to call: times, and which process it was.
const MASKED: &[&str] = &["created_at", "started_at", "updated_at", "completed_at", "process_id"];

/// Fields that are told on this machine alone: where things lie on a server's disk is told to no caller over HTTP.
const LOCAL: &[&str] = &["folder", "files", "playbook", "kept_in", "short"];

fn masked(value: Value, also: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !LOCAL.contains(&name.as_str()));
            let mask = |name: &str, value: Value| match (MASKED.contains(&name) || also.contains(&name))
                && !value.is_null()
            {
                true => json!("masked"),
                false => masked(value, also),
            };
            Value::Object(kept.map(|(name, value)| (name.clone(), mask(&name, value))).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| masked(item, also)).collect(),
        other => other,
    }
}

/// The command line.
struct Cli<'a>(&'a Place);

impl Cli<'_> {
    /// What the command prints, whole.
    fn call(&self, case: &Case, words: &str) -> String {
        let verb = case.row().interfaces.cli.ok().unwrap();
        let is_bytes = matches!(case.row().form, Some(StreamForm::Bytes(_)));
        let json = if is_bytes || verb.ends_with("--json") { "" } else { "--json" };
        let line = format!("{verb} {} {json}", words.replace('$', &case.session()));
        self.run(&line, case.stdin.as_bytes())
    }

    fn run(&self, line: &str, input: &[u8]) -> String {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(["--base-dir", "cli"]);
        let said = self.0.feed(&words, input);
        assert_eq!(said.code, 0, "komado {line}: {}{}", said.out, said.err);
        said.out
    }
}

/// `komado serve`.
struct Http {
    child: Child,
    address: String,
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Http {
    fn start(place: &Place) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let words = ["serve", "--listen", &address, "--upstream", "scripted", "--base-dir", "http"];
        let mut command = place.command(&words);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = std::time::Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(started.elapsed().as_secs() < 20, "nothing listens at {address}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self { child, address }
    }

    /// Calls an operation: names in the path, then the query or a body.
    fn call(&self, case: &Case, export: &[u8]) -> String {
        let route = case.row().interfaces.http.ok().unwrap();
        let (mut path, mut fields) = (format!("/api/v1{}", route.path), case.fields());
        if path.contains("{thread}") {
            fields.entry("thread").or_insert(json!("root"));
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fields.retain(|name, value| {
            path = path.replace(&format!("{{{name}}}"), &text(value));
            !route.is_in_path(name) && !value.is_null()
        });
        let method = route.method.name().to_uppercase();
        if !route.has_json() {
            let pairs: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
            path = format!("{path}?{}", pairs.join("&"));
        }
        let json = Value::Object(fields).to_string();
        let (media, body) = match (route.body, route.has_json()) {
            (Some(media), _) => (media, export),
            (None, true) => ("application/json", json.as_bytes()),
            (None, false) => ("", &b""[..]),
        };
        let (head, body) = self.send(&method, &path, media, body);
        let status = format!(" {} ", route.status);
        assert!(head.lines().next().unwrap().contains(&status), "{method} {path}: {head}{body}");
        body
    }

    fn send(&self, method: &str, path: &str, media: &str, body: &[u8]) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (length, media) =
            (body.len(), if media.is_empty() { String::new() } else { format!("content-type: {media}\r\n") });
        let head =
            format!("{method} {path} HTTP/1.0\r\nhost: localhost\r\n{media}content-length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

/// `komado mcp`.
struct Mcp {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mcp {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["mcp", "--base-dir", "mcp"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut mcp = Self { child, to, from };
        let client = json!({ "name": "walk", "version": "1" });
        mcp.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        );
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(mcp.to, "{note}").unwrap();
        mcp
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.to, "{request}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn call(&mut self, case: &Case) -> Value {
        let params = json!({ "name": case.name, "arguments": case.fields() });
        let answer = self.ask("tools/call", params);
        assert_ne!(answer["isError"], true, "{}: {answer}", case.name);
        answer["structuredContent"].clone()
    }
}

/// The folder of the command line, with a session for each case, and copies of it for the others; and the export of `demo`.
fn seeded(place: &Place, cases: &[Case]) -> Vec<u8> {
    let cli = Cli(place);
    cli.run("new --id demo --meter bytes4 --window 8000 --user ann", b"");
    cli.run("append demo --jsonl -", TALK.as_bytes());
    cli.run("append demo --jsonl -", br#"{"role":"assistant","content":"","tool_calls":[{"id":"c9","type":"function","function":{"name":"run","arguments":"{}"}}]}"#);
    let long: String = (1..=3000).map(|n| format!("{n} 小窓のログ line\n")).collect();
    cli.run("append demo --role tool --call c9", long.as_bytes());
    for name in ["open", "waiting", "done"] {
        cli.run(&format!("thread start demo about --name {name}"), b"");
    }
    cli.run("thread pause demo/waiting", b"");
    cli.run("thread end demo/done --chronicle found", b"");
    cli.run("new --id bobs --window 8000 --user bob", b"");
    cli.run("session complete bobs", b"");
    let lesson = json!({ "http://127.0.0.1:9 small": { "window": 2000 } });
    std::fs::write(place.path().join("cli/learned.json"), lesson.to_string()).unwrap();
    let export = cli.run("export demo", b"").into_bytes();
    std::fs::write(place.path().join("demo.jsonl"), &export).unwrap();
    for case in cases {
        if case.row().effect != Effect::Read && case.has_session() {
            cli.run(&format!("import --as {}", case.session()), &export);
        }
        for command in &case.before {
            cli.run(&command.replace('$', &case.session()), b"");
        }
    }
    for name in ["http", "mcp"] {
        copy(&place.path().join("cli"), &place.path().join(name));
    }
    export
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Finds each operation in every interface, or a reason why it is not there; and nothing else in any.
fn check_offers(cli: &Cli<'_>, http: &Http, mcp: &mut Mcp) {
    let document: Value = serde_json::from_str(&http.send("GET", "/api/v1/openapi.json", "", b"").1).unwrap();
    let (mut names, mut routes, mut tools) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for OperationRow { name, interfaces, .. } in ALL {
        // It is the operationId of the document and the name of the tool.
        assert!(names.insert(*name), "{name} is there twice");
        match interfaces.cli {
            Ok(verb) => drop(cli.run(&format!("{} --help", verb.split(" --").next().unwrap()), b"")),
            Err(why) => assert!(!why.is_empty(), "why is {name} no verb?"),
        }
        match interfaces.http {
            Ok(route) => {
                let (method, path) = (route.method.name(), format!("/api/v1{}", route.path));
                assert!(routes.insert((path.clone(), method.to_owned())), "{method} {path} is there twice");
                assert_eq!(document["paths"][&path][method]["operationId"], *name, "{method} {path}");
                let (head, _) = http.send("PATCH", &path.replace(['{', '}'], ""), "", b"");
                let is_routed =
                    |line: &str| line.starts_with("allow:") && line.contains(&method.to_uppercase());
                assert!(head.contains(" 405 ") && head.lines().any(is_routed), "{method} {path}: {head}");
            }
            Err(why) => assert!(!why.is_empty(), "why is {name} no route?"),
        }
        match interfaces.mcp {
            Ok(()) => drop(tools.insert((*name).to_owned())),
            Err(why) => assert!(!why.is_empty(), "why is {name} no tool?"),
        }
    }
    let paths = document["paths"].as_object().unwrap().iter();
    let described = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
    });
    assert_eq!(described.collect::<BTreeSet<_>>(), routes);
    let listed = mcp.ask("tools/list", json!({}))["tools"].take();
    let listed = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), tools);
}

/// What differs between the answers of the interfaces to one case.
fn differences(case: &Case, cli: &Cli<'_>, http: &Http, mcp: &mut Mcp, export: &[u8]) -> Vec<String> {
    let by_cli = case.words.ok().map(|words| cli.call(case, words));
    let by_http = case.row().interfaces.http.ok().map(|_| http.call(case, export));
    if matches!(case.row().form, Some(StreamForm::Bytes(_))) {
        return (by_cli != by_http).then(|| format!("{}: the bytes differ", case.name)).into_iter().collect();
    }
    let parse = |text: &str| {
        masked(serde_json::from_str(text).unwrap_or_else(|_| panic!("{}: {text}", case.name)), case.masked)
    };
    let by_mcp = case.row().interfaces.mcp.ok().map(|()| masked(mcp.call(case), case.masked));
    let told = by_http.map(|text| parse(&text)).or(by_mcp.clone()).unwrap();
    // On the command line a list is a line for each of its items.
    let items = told["items"].as_array().cloned().unwrap_or_else(|| vec![told.clone()]);
    let lines = by_cli.map(|text| text.lines().map(parse).collect::<Vec<Value>>());
    let (items, lines) = (Value::Array(items), lines.map(Value::Array));
    let differs = |(of, told, other): (&str, &Value, Option<Value>)| {
        let other = other.filter(|other| other != told)?;
        Some(format!("{} by {of}:\n  {told}\n  {other}", case.name))
    };
    [("MCP", &told, by_mcp), ("command line", &items, lines)].into_iter().filter_map(differs).collect()
}

#[test]
fn every_interface_offers_what_it_says_and_tells_the_same() {
    let (place, mut cases) = (Place::new(), cases());
    for row in ALL {
        let is_offered =
            [row.interfaces.cli.is_ok(), row.interfaces.http.is_ok(), row.interfaces.mcp.is_ok()];
        let has_case = cases.iter().any(|case| case.name == row.name);
        let is_needed = is_offered.into_iter().filter(|offered| *offered).count() > 1;
        assert!(has_case || !is_needed, "{} is offered in several interfaces and has no case", row.name);
    }
    let export = seeded(&place, &cases);
    let (cli, http, mut mcp) = (Cli(&place), Http::start(&place), Mcp::start(&place));
    check_offers(&cli, &http, &mut mcp);
    // What is read is the same everywhere until something is changed.
    cases.sort_by_key(|case| case.row().effect != Effect::Read);
    let wrong: Vec<String> =
        cases.iter().flat_map(|case| differences(case, &cli, &http, &mut mcp, &export)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_in_the_docs_is_that_of_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (table, start) = (komado_ops::table(), page.find("| operation |").unwrap_or(page.len()));
    let wanted = format!("{}{table}", &page[..start]);
    if std::env::var_os("KOMADO_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "docs/operations.md should have (KOMADO_BLESS=1 writes it):\n{table}");
    }
}
