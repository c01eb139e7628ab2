//! `komado ask` as a user meets it: against a server that counts, refuses, breaks and answers by a script.

use crate::run;

use komado_provider::scripted::{ErrorStyle, OnOverflow, ScriptStep, ScriptedOptions, ScriptedServer};
use run::{Place, Said, feed};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn server(window: u64) -> ScriptedServer {
    ScriptedServer::start(ScriptedOptions { window: Some(window), ..ScriptedOptions::default() }).unwrap()
}

/// A place whose settings name the server as provider `gw`.
fn place(server: &ScriptedServer, more: &str) -> Place {
    let place = Place::new();
    let yaml = format!(
        "llm:\n  provider: gw\n  gw: {{base_url: '{}/v1', model: m, {more}}}\nretry: {{delay_seconds: 0}}\n",
        server.url()
    );
    place.settings(&yaml);
    place
}

fn header(server: &ScriptedServer, name: &str) -> Option<String> {
    let seen = server.seen();
    seen.last()?
        .headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.clone())
}

/// The id of the session that a run said it made.
fn made(said: &Said) -> String {
    said.err.lines().find_map(|line| line.strip_prefix("session: ")).unwrap().to_owned()
}

#[test]
fn an_answer_goes_to_standard_output_and_nothing_else_does() {
    let server = server(8_000);
    server.add(ScriptStep::say("小窓は小さな窓です。"));
    let place = place(&server, "context_length: 8000");
    let said = place.run(&["ask", "小窓とは?"]);
    assert_eq!((said.code, said.out.as_str()), (0, "小窓は小さな窓です。\n"), "{}", said.err);
    let session = made(&said);
    let log = place.ok(&["log", &session]);
    assert!(log.contains("小窓とは?") && log.contains("sent m") && !log.contains("reply"), "{log}");
    assert!(!log.contains("digest="), "{log}");
    let verbose = place.ok(&["log", &session, "-v"]);
    assert!(verbose.contains(" sent m digest=") && verbose.contains("reply stop"), "{verbose}");
    server.add(ScriptStep::say("two"));
    assert_eq!(place.ok(&["ask", &session[..8], "and", "then?"]), "two\n");
    let body = String::from_utf8(server.seen().last().unwrap().body.clone()).unwrap();
    assert!(body.contains("小窓とは?") && body.contains("and then?"), "{body}");
}

#[test]
fn a_program_gets_one_object_with_everything() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    server.add(ScriptStep::say("yes"));
    let row = place.json(&["ask", "is it?", "--system", "Be short."]);
    assert_eq!((&row["text"], &row["finish"], &row["ours"]), (&json!("yes"), &json!("stop"), &json!(false)));
    assert_eq!((&row["window"], &row["attempts"], &row["calls"]), (&json!(8000), &json!(1), &json!([])));
    assert_eq!((&row["edits"], &row["window_from"]), (&json!([]), &json!("given")));
    assert_eq!(row["usage"]["input_tokens"].as_u64(), Some(server.seen()[0].tokens));
    let session = row["session"].as_str().unwrap();
    assert_eq!(row["tokens"], place.json(&["context", session])["context_tokens"]);
    assert!(place.ok(&["show", session]).contains("Be short."));
}

#[test]
fn the_question_may_come_through_a_pipe() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    for args in [&["ask", "-"][..], &["ask"]] {
        server.add(ScriptStep::say("{{last}}!").when_contains("二行"));
        let said = place.feed(args, "一行\n二行\n".as_bytes());
        assert_eq!((said.code, said.out.as_str()), (0, "一行\n二行!\n"), "{}", said.err);
    }
    let session = place.session_with(&["--model", "m", "--provider", "gw", "--window", "8000"]);
    server.add(ScriptStep::say("ok"));
    assert_eq!(place.feed(&["ask", &session], b"from a pipe").out, "ok\n");
    assert!(place.ok(&["log", &session]).contains("from a pipe"));
    assert_eq!(place.feed(&["ask", &session, "-"], b"  \n").code, 2, "nothing asked is a mistake");
    server.add(ScriptStep::say("a question"));
    assert_eq!(
        place.ok(&["ask", &session[..2]]),
        "a question\n",
        "with nothing piped in one word is a question"
    );
}

#[test]
fn a_whole_answer_is_the_same_as_one_in_pieces() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    server.add(ScriptStep::say("長い答え ".repeat(40)));
    server.add(ScriptStep::say("長い答え ".repeat(40)));
    let pieces = place.json(&["ask", "a"]);
    let whole = place.json(&["ask", "a", "--no-stream"]);
    assert_eq!(pieces["text"], whole["text"]);
    let streamed: Vec<bool> = server.seen().iter().map(|seen| seen.stream).collect();
    assert_eq!(streamed, [true, false]);
}

#[test]
fn every_dialect_is_spoken() {
    for (dialect, path) in [
        ("openai", "/v1/chat/completions"),
        ("responses", "/v1/responses"),
        ("anthropic", "/v1/messages"),
        ("ollama", "/api/chat"),
    ] {
        let server = server(8_000);
        server.add(ScriptStep::say("はい、聞こえます。"));
        server.add(ScriptStep::say("second"));
        let place = place(&server, &format!("dialect: {dialect}, context_length: 8000"));
        let row = place.json(&["ask", "聞こえますか?"]);
        assert_eq!(row["text"], "はい、聞こえます。", "{dialect}");
        let session = row["session"].as_str().unwrap();
        assert_eq!(place.json(&["ask", session, "more"])["text"], "second");
        assert!(server.seen().iter().all(|seen| seen.path.starts_with(path)), "{dialect}");
    }
}

#[test]
fn a_key_comes_from_the_environment_or_a_file_and_never_from_a_flag() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000, api_key_file: key");
    let key = place.path().join("key");
    std::fs::write(&key, "sk-from-file\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = place.run(&["ask", "a"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(header(&server, "authorization").as_deref(), Some("Bearer sk-from-file"));
    assert!(!said.err.contains("chmod"), "{}", said.err);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(place.run(&["ask", "a"]).err.contains("chmod 600"));
    let mut command = place.command(&["ask", "a"]);
    command.env("KOMADO_LLM_GW_API_KEY", "sk-from-env");
    assert_eq!(feed(command, b"").code, 0);
    assert_eq!(header(&server, "authorization").as_deref(), Some("Bearer sk-from-env"));
    let said = place.run(&["ask", "a", "--set", "llm.gw.api_key=sk-from-flag"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("list of processes") && said.err.contains("KOMADO_LLM_GW_API_KEY"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("sk-from-flag"), "{}", said.err);
    std::fs::remove_file(&key).unwrap();
    let said = place.run(&["ask", "a"]);
    assert!(said.code == 2 && said.err.contains("api_key_file"), "{}", said.err);
    assert!(!place.ok(&["admin", "config"]).contains("sk-"));
}

#[test]
fn a_provider_that_asks_for_a_key_and_has_none_names_the_variable() {
    let place = Place::new();
    let said = place.run(&["ask", "a", "--provider", "anthropic", "--model", "claude-3-5-haiku-latest"]);
    assert!(said.code == 2 && said.err.contains("ANTHROPIC_API_KEY"), "{}", said.err);
    let said = place.run(&["ask", "a", "--provider", "anthropc", "--model", "x"]);
    assert!(said.code == 2 && said.err.contains("did you mean anthropic?"), "{}", said.err);
    let said = place.run(&["ask", "a", "--provider", "acme", "--model", "x"]);
    assert!(said.code == 2 && said.err.contains("llm.acme.base_url"), "{}", said.err);
    let said = place.run(&["ask", "a", "--set", "llm.acme.dialect=antropic"]);
    assert!(said.code == 2 && said.err.contains("openai, responses, anthropic or ollama"), "{}", said.err);
    let said = place.run(&["ask", "a", "--base-url", "ftp://h", "--model", "x", "--window", "9"]);
    assert!(said.code == 2 && said.err.contains("--base-url"), "{}", said.err);
    assert_eq!(place.json_lines(&["sessions"]).len(), 0, "nothing was made for what cannot be asked");
}

#[test]
fn a_window_is_asked_for_known_or_an_error() {
    let plain = ScriptedServer::start(ScriptedOptions::default()).unwrap();
    let here = place(&plain, "");
    let said = here.run(&["ask", "a"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("--window") && said.err.contains("llm.gw.context_length"), "{}", said.err);
    assert_eq!(here.ok(&["ask", "repeat: x", "--window", "8000"]), "x\n");
    let options =
        ScriptedOptions { window: Some(3_000), words: ErrorStyle::Vllm, ..ScriptedOptions::default() };
    let vllm = ScriptedServer::start(options).unwrap();
    let row = place(&vllm, "").json(&["ask", "repeat: x"]);
    assert_eq!((&row["window"], &row["window_from"]), (&json!(3000), &json!("probed")));
    let place = Place::new();
    let made = place.json(&["new", "--model", "gpt-4o"]);
    assert_eq!((&made["window"], &made["window_from"]), (&json!(128_000), &json!("listed")));
}

#[test]
fn what_a_refusal_taught_is_known_from_then_on() {
    let server = server(2_000);
    let place = place(&server, "dialect: anthropic");
    let long = format!("{} repeat: ok", "word ".repeat(2_500));
    let row = place.json(&["ask", &long, "--window", "9000"]);
    assert!(row["attempts"].as_u64() > Some(1), "{row}");
    let session = row["session"].as_str().unwrap();
    let said = place.run(&["ask", session, "repeat: on", "--window", "9000"]);
    assert!(said.code == 0 && said.err.contains("2,000"), "{}{}", said.out, said.err);
    let learned = place.json(&["ask", "repeat: x"]);
    assert_eq!((&learned["window"], &learned["window_from"]), (&json!(2000), &json!("learned")));
}

#[test]
fn a_conversation_of_many_windows_is_always_answered() {
    for overflow in [OnOverflow::Refuse, OnOverflow::RefuseInStream] {
        let options = ScriptedOptions { window: Some(3_000), overflow, ..ScriptedOptions::default() };
        let server = ScriptedServer::start(options).unwrap();
        let place = place(&server, "context_length: 3000");
        let session = place.session_with(&["--model", "m", "--provider", "gw"]);
        let mut edits = 0;
        for n in 0..24 {
            let question = format!("質問 {n}: {}", "ファイル src/main.rs を読んでください。".repeat(60));
            server.add(ScriptStep::say(format!("答え {n}")));
            let row = place.json(&["ask", &session, &question]);
            assert_eq!((&row["text"], &row["ours"]), (&json!(format!("答え {n}")), &json!(false)), "{row}");
            edits += row["edits"].as_array().unwrap().len();
        }
        let log = place.json_lines(&["log", &session]);
        let said: u64 = log
            .iter()
            .filter(|line| line["role"].is_string())
            .filter_map(|line| line["tokens"].as_u64())
            .sum();
        assert!(said > 5 * 3_000 && edits > 0, "{said} {edits}");
        assert!(server.seen().iter().all(|seen| seen.status == 200), "nothing was too large");
        place.ok(&["admin", "doctor"]);
    }
}

#[test]
fn a_provider_that_is_down_is_named_and_the_session_goes_on() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    let session = place.session_with(&["--model", "m", "--provider", "gw"]);
    let down = ["ask", &session, "hello?", "--base-url", "http://127.0.0.1:1", "--set", "retry.tries=1"];
    let said = place.run(&down);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("127.0.0.1:1") && said.err.contains("--again"), "{}", said.err);
    assert!(place.ok(&["log", &session]).contains("lost"), "the journal says so");
    server.add(ScriptStep::say("here"));
    assert_eq!(place.ok(&["ask", "--again", &session]), "here\n");
    let body = String::from_utf8(server.seen()[0].body.clone()).unwrap();
    assert_eq!(body.matches("hello?").count(), 1, "{body}");
    let json = place.run(&[&down[..], &["--json"]].concat());
    let error: Value = serde_json::from_str(json.err.lines().last().unwrap()).unwrap();
    assert_eq!((json.code, &error["error"]["kind"]), (1, &json!("failed")));
}

#[test]
fn what_was_not_kept_is_not_promised() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    let session = place.session_with(&["--model", "m", "--provider", "gw"]);
    let said = place.run(&["ask", "--again", &session]);
    assert!(said.code == 5 && said.err.contains("nothing was said yet"), "{}", said.err);
    place.ok(&["ask", &session, "hi"]);
    let said = place.run(&["ask", "--again", &session]);
    assert!(said.code == 5 && said.err.contains("the last word is the model's"), "{}", said.err);
    assert!(!said.err.contains("is kept"), "what failed is not advised: {}", said.err);
    place.ok(&["session", "complete", &session]);
    let said = place.run(&["ask", &session, "x"]);
    assert!(said.code == 5 && !said.err.contains("--again"), "{}", said.err);
}

#[test]
fn an_answer_that_is_not_what_it_seems_is_told() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000, api_key: sk-SECRET123");
    let said = place.run(&["ask", "write 50 words", "--max-tokens", "5"]);
    assert!(said.code == 0 && said.err.contains("the answer is cut"), "{}", said.err);
    server.add(ScriptStep { finish: Some("content_filter".into()), ..ScriptStep::say("") });
    let said = place.run(&["ask", "a"]);
    assert!(said.err.contains("filter"), "{}", said.err);
    // A server that repeats the key in its refusal does not get it into the journal, nor onto the terminal.
    server.add(ScriptStep::fail(401, Some("\u{1b}[31mno such key: sk-SECRET123")));
    let said = place.run(&["ask", "b"]);
    assert!(
        said.code == 1 && said.err.contains("no such key: ***") && !said.err.contains('\u{1b}'),
        "{}",
        said.err
    );
    let log = place.ok(&["log", &made(&said), "--full"]);
    assert!(log.contains("no such key") && !log.contains("SECRET"), "{log}");
    let mut session = String::new();
    for n in 0..5 {
        let question = format!("{n}: {}", "Read src/main.rs and tell me. ".repeat(20));
        let args = if n == 0 { vec!["ask", &question] } else { vec!["ask", &session, &question] };
        let row = place.json(&[&args[..], &["--set", "session.max_history=2"]].concat());
        assert_eq!(row["edits"].as_array().unwrap().len(), usize::from(n > 1), "{n}: {row}");
        session = row["session"].as_str().unwrap().to_owned();
    }
}

#[test]
fn a_refusal_and_a_cut_stream_are_told_with_their_reason() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    server.add(ScriptStep::fail(401, Some(r#"{"error":{"message":"Incorrect API key"}}"#)));
    let said = place.run(&["ask", "a"]);
    assert!(
        said.code == 1 && said.err.contains("401") && said.err.contains("Incorrect API key"),
        "{}",
        said.err
    );
    server.add(ScriptStep {
        break_after: Some(1_500),
        chunk: Some(1),
        ..ScriptStep::say("abcdefghij".repeat(20))
    });
    let said = place.run(&["ask", "b"]);
    assert!(said.code == 1 && said.out.starts_with("abc"), "{}{}", said.out, said.err);
    let log = place.ok(&["log", &made(&said), "--json"]);
    assert!(log.contains("\"heard\":\"abc"), "what came is kept: {log}");
    server.add(ScriptStep::fail(503, None));
    server.add(ScriptStep::say("back again"));
    let said = place.run(&["ask", "c"]);
    assert_eq!((said.code, said.out.as_str()), (0, "back again\n"));
    assert!(said.err.contains("503") && said.err.contains("2 of 3"), "waiting is told: {}", said.err);
}

#[test]
fn calls_that_lead_back_are_answered_and_others_are_handed_over() {
    let server = server(16_000);
    let place = place(&server, "context_length: 16000");
    let first = place.json(&["ask", "the password of the day is 青い鳥. repeat: noted", "--tools"]);
    let session = first["session"].as_str().unwrap();
    server.add(ScriptStep::call("recall", r#"{"query":"青い鳥"}"#));
    server.add(ScriptStep::say("found {{last}}"));
    let row = place.json(&["ask", session, "what was it?"]);
    assert_eq!((&row["turns"], &row["calls"]), (&json!(2), &json!([])));
    let body = String::from_utf8(server.seen().last().unwrap().body.clone()).unwrap();
    assert!(body.contains("@2 user") || body.contains("青い鳥"), "{body}");
    server.add(ScriptStep::call("read_file", r#"{"path":"a"}"#));
    let row = place.json(&["ask", session, "read a"]);
    assert_eq!(row["calls"][0]["name"], "read_file");
    let id = row["calls"][0]["id"].as_str().unwrap();
    place.ok(&["append", session, "--role", "tool", "--call", id, "the text of a"]);
    server.add(ScriptStep::say("read it"));
    assert_eq!(place.ok(&["ask", "--again", session]), "read it\n");
    for _ in 0..12 {
        server.add(ScriptStep::call("recall", r#"{"query":"again"}"#));
    }
    let said = place.run(&["ask", session, "loop"]);
    assert!(
        said.code == 1 && said.err.contains("for 10 turns"),
        "a loop ends, and is not an answer: {}",
        said.err
    );
    assert!(place.ok(&["log", session, "--full"]).contains("enough calls"));
}

#[test]
fn a_model_writes_summaries_only_when_it_is_wished_for() {
    let server = server(8_000);
    let place = place(&server, "context_length: 8000");
    let summaries = || {
        let bodies = server.seen().into_iter().map(|seen| String::from_utf8(seen.body).unwrap());
        bodies.filter(|body| body.contains("<summary>")).count()
    };
    let talk = |more: &[&str]| {
        let session = place.session_with(&["--model", "m", "--provider", "gw"]);
        let mut models = Vec::new();
        for n in 0..24 {
            let question = format!("{} repeat: {n}", "Read src/main.rs and tell me. ".repeat(60));
            let args = [&["ask", &session, &question], more].concat();
            let row = place.json(&args);
            models.extend(row["edits"].as_array().unwrap().iter().map(|edit| edit["model"].clone()));
        }
        models
    };
    let by_digest = talk(&[]);
    assert!(!by_digest.is_empty() && summaries() == 0, "{by_digest:?}");
    let by_model = talk(&["--set", "compaction.model=same"]);
    assert!(by_model.contains(&json!("m")) && summaries() > 0, "{by_model:?}");
    let said = place.run(&["ask", "x", "--set", "compaction.provider=openai"]);
    assert!(said.code == 2 && said.err.contains("compaction.model"), "{}", said.err);
}

#[test]
fn with_nothing_configured_no_model_answers_and_nothing_is_made() {
    let place = Place::new();
    let city = place.session();
    let playbook = r#"{"name": "p", "start": "ask", "nodes": [
        {"id": "ask", "type": "llm", "prompt": "repeat: 小窓", "next": "done"}, {"id": "done", "type": "end"}]}"#;
    std::fs::write(place.path().join("p.json"), playbook).unwrap();
    // To say something of the built-in model is not to choose it.
    let about = ["--set", "llm.scripted.model=scripted"];
    for args in [
        &["ask", "repeat: 小窓"][..],
        &["ask", "repeat: 小窓", about[0], about[1]],
        &["ask", &city, "repeat: 小窓"],
        &["chat"],
        &["thread", "run", &city, "repeat: 小窓"],
        &["playbook", "run", "p.json"],
        &["task", "work", "--once"],
    ] {
        let said = place.feed(args, "repeat: 小窓\n".as_bytes());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        for part in ["no model is configured", "OPENAI_API_KEY", "llm.provider", "--provider scripted"] {
            assert!(said.err.contains(part), "{args:?}: {part}: {}", said.err);
        }
    }
    assert_eq!(place.json_lines(&["sessions"]).len(), 1);
}

#[test]
fn the_scripted_model_answers_where_it_is_named_and_in_sessions_made_with_it() {
    let place = Place::new();
    let said = place.run(&["ask", "repeat: 小窓", "--provider", "scripted"]);
    assert_eq!((said.code, said.out.as_str()), (0, "小窓\n"), "{}", said.err);
    let session = made(&said);
    let row = place.json(&["ask", &session, "repeat: again"]);
    assert_eq!((&row["text"], &row["window"]), (&json!("again"), &json!(4096)));
    let mut command = place.command(&["ask", "repeat: 変数"]);
    command.env("KOMADO_LLM_PROVIDER", "scripted");
    assert_eq!(feed(command, b"").out, "変数\n");
    let learned = place.base().join("learned.json");
    let text = std::fs::read_to_string(learned).unwrap_or_default();
    assert!(!text.contains("127.0.0.1"), "an address of the moment is not a place: {text}");
}

#[test]
fn a_session_that_is_not_there_is_not_taken_for_a_question() {
    let place = Place::new();
    let said = place.run(&["ask", "nosuch", "what is it?"]);
    assert!(said.code == 3 && said.err.contains("nosuch"), "{}", said.err);
    assert_eq!(place.run(&["ask", "--again"]).code, 2);
    assert_eq!(place.run(&["ask", ""]).code, 2);
    assert!(place.json_lines(&["sessions"]).is_empty());
}

#[test]
fn a_key_in_the_environment_chooses_its_provider_and_goes_nowhere_else() {
    let place = Place::new();
    let mut command = place.command(&["ask", "a"]);
    command.env("ANTHROPIC_API_KEY", "sk-a");
    let said = feed(command, b"");
    assert!(said.code == 2 && said.err.contains("which model of anthropic?"), "{}", said.err);
    let server = server(8_000);
    let mut command = place.command(&["ask", "a", "--base-url", server.url(), "--model", "m"]);
    command.env("OPENAI_API_KEY", "sk-o");
    let said = feed(command, b"");
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(header(&server, "authorization"), None);
    let mut command = place.command(&["ask", &made(&said), "b"]);
    command.env("OPENAI_API_KEY", "sk-o");
    let again = feed(command, b"");
    assert_eq!((again.code, server.seen().len()), (0, 2), "not handed to another: {}", again.err);
    assert_eq!(header(&server, "authorization"), None);
}

#[test]
fn a_server_that_leaves_something_out_in_silence_is_found_out() {
    let options =
        ScriptedOptions { window: Some(2_000), overflow: OnOverflow::Truncate, ..ScriptedOptions::default() };
    let server = ScriptedServer::start(options).unwrap();
    let place = place(&server, "");
    let said = place.run(&["ask", &format!("repeat: {}", "ok ".repeat(150)), "--window", "9000"]);
    let session = made(&said);
    for n in 0..10 {
        server.add(ScriptStep::say(format!("answer {n}")));
        let question = "Read the file src/main.rs and tell me what it does. ".repeat(50);
        let said = place.run(&["ask", &session, &question, "--window", "9000"]);
        assert_eq!(said.code, 0, "{}", said.err);
        if said.err.contains("did not say so") {
            return;
        }
    }
    panic!("ten questions of 600 tokens went into a window of 2,000, and it was not noticed");
}
