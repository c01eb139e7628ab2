//! `komado chat` through a pipe: every command, long messages, a window that is never too small, Ctrl-C.

use crate::run;

use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use run::{Place, Said};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

fn chat(place: &Place, args: &[&str], lines: &str) -> Said {
    place.feed(&[&["chat", "--provider", "scripted"], args].concat(), lines.as_bytes())
}

/// The same with a server that gives `answers` answers.
fn talk(place: &Place, server: &ScriptedServer, window: &str, lines: &str, answers: usize) -> Said {
    (0..answers).for_each(|n| server.add(ScriptStep::say(format!("答え{n}"))));
    let args = ["chat", "--base-url", server.url(), "--model", "m", "--window", window];
    place.feed(&args, lines.as_bytes())
}

/// The session that a chat said it is in.
fn session(said: &Said) -> String {
    said.err.lines().find_map(|line| line.strip_prefix("go on with: komado chat ")).unwrap().to_owned()
}

#[test]
fn answers_come_out_of_a_pipe_without_a_prompt() {
    let place = Place::new();
    let said = chat(&place, &[], "repeat: one\n\nrepeat: 二\n");
    assert_eq!((said.code, said.out.as_str()), (0, "one\n二\n"), "{}", said.err);
    let again = chat(&place, &[&session(&said)], "repeat: three\n/quit\nrepeat: four\n");
    assert_eq!(again.out, "three\n");
    let log = place.ok(&["log", &session(&said)]);
    assert_eq!(log.matches(" user ").count(), 3, "{log}");
}

#[test]
fn every_command_does_what_its_verb_does() {
    let place = Place::new();
    let said = chat(
        &place,
        &[],
        "repeat: alpha\nrepeat: beta\n/show\n/log 2\n/context\n/recall alpha\n/help\n/model\n",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    for part in ["1 user \"repeat: alpha\"", "6 assistant \"beta\"", "of 4,096", "@1", "/condense"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert!(said.err.contains("scripted at scripted"), "{}", said.err);
    let id = session(&said);
    let said = chat(&place, &[&id], "/pin\n/pin @1\n/unpin @1\n/unpin\n/unpin\n");
    assert!(said.out.contains("pinned @6") && said.out.contains("unpinned @1"), "{}", said.out);
    assert!(
        said.out.contains("unpinned @6") && said.err.contains("nothing is pinned"),
        "{}{}",
        said.out,
        said.err
    );
    let said = chat(&place, &[&id], "/rewind\n/rewind @0\n/rewind 3\n/rewind x\n/show\n");
    assert!(said.out.contains("went back to @3") && said.out.contains("went back to @0"), "{}", said.out);
    assert!(said.err.contains("cannot be taken back") && said.err.contains("not \"x\""), "{}", said.err);
    assert!(!said.out.contains("beta"), "{}", said.out);
}

#[test]
fn condense_and_revert_are_a_pair() {
    let place = Place::new();
    let mut lines = String::new();
    for n in 0..12 {
        lines.push_str(&format!("{n}. {}\n", "Please read src/main.rs carefully. ".repeat(8)));
    }
    let said = chat(&place, &["--window", "16000"], &lines);
    let id = session(&said);
    let before = place.json(&["context", &id])["context_tokens"].as_u64().unwrap();
    let said = chat(&place, &[&id], "/condense\n/revert\n/revert\n");
    assert!(said.out.contains("condense"), "{}{}", said.out, said.err);
    assert!(said.err.contains("no edit is in force"), "{}", said.err);
    assert_eq!(place.json(&["context", &id])["context_tokens"].as_u64().unwrap(), before);
    let said = chat(&place, &[&id], "/condense\n");
    assert!(place.json(&["context", &id])["context_tokens"].as_u64().unwrap() < before, "{}", said.err);
}

#[test]
fn an_unknown_command_is_not_sent_and_the_nearest_is_named() {
    let place = Place::new();
    let said = chat(&place, &[], "/rewnd 1\n/zzzzzz\n /usr/bin is sent\n");
    assert!(
        said.err.contains("did you mean /rewind?") && said.err.contains("/help lists them"),
        "{}",
        said.err
    );
    assert_eq!(said.out.matches("turn 1").count(), 1, "{}", said.out);
    let log = place.ok(&["log", &session(&said)]);
    assert!(log.contains("\"/usr/bin") && !log.contains("rewnd"), "{log}");
}

#[test]
fn a_message_may_have_several_lines() {
    let (place, server) = (Place::new(), ScriptedServer::start(ScriptedOptions::default()).unwrap());
    let lines = "first \\\nsecond\n\"\"\"\n一\n\n二\n\"\"\"\n\"\"\"open\n";
    let said = talk(&place, &server, "4000", lines, 3);
    assert_eq!((said.code, said.out.as_str()), (0, "答え0\n答え1\n答え2\n"), "{}", said.err);
    let log = place.ok(&["log", &session(&said), "--json"]);
    for text in [r#""first \nsecond""#, r#""一\n\n二""#, r#""open""#] {
        assert!(log.contains(text), "{text}: {log}");
    }
}

#[test]
fn a_chat_of_many_windows_tells_each_edit_with_its_undo() {
    let place = Place::new();
    let server =
        ScriptedServer::start(ScriptedOptions { window: Some(2_500), ..ScriptedOptions::default() }).unwrap();
    let long = "設定ファイル config/app.yaml を読んで直してください。".repeat(12);
    let lines: String = (0..40).map(|n| format!("{n}: {long}\n")).collect();
    let said = talk(&place, &server, "2500", &lines, 40);
    assert_eq!(said.code, 0, "{}", said.err);
    let expect: String = (0..40).map(|n| format!("答え{n}\n")).collect();
    assert_eq!(said.out, expect);
    assert!(said.err.contains("undo: /revert @"), "{}", said.err);
    assert!(server.seen().iter().all(|seen| seen.status == 200), "nothing was too large");
    place.ok(&["admin", "doctor"]);
}

#[test]
fn a_failed_request_does_not_end_the_chat() {
    let server = ScriptedServer::start(ScriptedOptions::default()).unwrap();
    server.add(ScriptStep::fail(401, Some("no such key")));
    server.add(ScriptStep::say("now it works"));
    let place = Place::new();
    let args = ["chat", "--base-url", server.url(), "--model", "m", "--window", "4000"];
    let said = place.feed(&args, b"hello\n/again\n");
    assert_eq!((said.code, said.out.as_str()), (1, "now it works\n"), "{}", said.err);
    assert!(said.err.contains("no such key") && said.err.contains("1 of 2 questions"), "{}", said.err);
    let body = String::from_utf8(server.seen()[1].body.clone()).unwrap();
    assert_eq!(body.matches("hello").count(), 1, "{body}");
    let other = place.feed(&args, b"/model other\nrepeat: x\n");
    assert_eq!(other.code, 0, "{}", other.err);
    assert!(other.err.contains("window of model \"other\" is not known"), "{}", other.err);
}

#[test]
fn continue_takes_up_the_conversation_that_changed_last_and_shows_how_it_went() {
    let place = Place::new();
    let said = place.run(&["chat", "-c", "--provider", "scripted"]);
    assert!(
        said.code == 3 && said.err.contains("no conversation was begun in the working folder"),
        "{}",
        said.err
    );
    let lines: String = (0..5).map(|n| format!("repeat: word{n}\n")).collect();
    let first = session(&chat(&place, &[], &lines));
    let second = session(&chat(&place, &[], "repeat: elsewhere\n"));
    let said = chat(&place, &["-c"], "");
    assert_eq!((session(&said), said.out.as_str()), (second.clone(), ""), "{}", said.err);
    chat(&place, &[&first], "repeat: again\n");
    let said = chat(&place, &["--continue"], "repeat: last\n");
    assert_eq!((session(&said), said.out.as_str()), (first.clone(), "last\n"), "{}", said.err);
    for shown in ["❯ repeat: again", "  again", "❯ repeat: word4", "… 6 messages before"] {
        assert!(said.err.contains(shown), "{shown}: {}", said.err);
    }
    assert!(!said.err.contains("word2"), "only the last exchanges: {}", said.err);
    let log = place.json_lines(&["log", &first]).len();
    let said = place.feed(&["ask", "-c", "repeat: asked"], b"");
    assert_eq!((said.code, said.out.as_str()), (0, "asked\n"), "{}", said.err);
    assert!(place.json_lines(&["log", &first]).len() > log);
    place.ok(&["session", "complete", &first]);
    assert_eq!(session(&chat(&place, &["-c"], "")), second, "one that ended does not go on");
    let said = place.run(&["chat", "-c", &second]);
    assert!(said.code == 2 && said.err.contains("--continue"), "{}", said.err);
}

#[test]
fn a_chat_goes_from_session_to_session() {
    let place = Place::new();
    let first = session(&chat(&place, &["--system", "Be short."], "repeat: apples\n"));
    let said = chat(
        &place,
        &[],
        "repeat: pears\n/new\nrepeat: plums\n/sessions\n/sessions 3\nrepeat: more\n/open nope\n/sessions 9\n/sessions x\n/open\n",
    );
    assert_eq!(session(&said), first, "{}", said.err);
    let listed: Vec<&str> = said.out.lines().filter(|line| line.contains("repeat: ")).collect();
    assert_eq!(listed.len(), 3, "{}", said.out);
    for (line, words) in listed.iter().zip(["*  1  ", "   2  ", "   3  "]) {
        assert!(line.starts_with(words), "{line}");
    }
    assert!(listed[0].contains("repeat: plums") && listed[2].contains(&first[..13]), "{}", said.out);
    assert!(listed[2].contains(" s  ") && listed[2].contains("scripted"), "age and model: {}", listed[2]);
    assert!(said.err.contains("❯ repeat: apples"), "what was said there: {}", said.err);
    for wrong in ["nope", "there are 3", "not \"x\"", "say which session"] {
        assert!(said.err.contains(wrong), "{wrong}: {}", said.err);
    }
    assert!(place.ok(&["log", &first]).contains("repeat: more"));
    assert_eq!(place.json_lines(&["sessions"]).len(), 3);
}

/// A chat at a terminal of its own, in which `lines` are typed, each at a prompt; gives what the terminal showed.
fn typed(place: &Place, args: &[&str], lines: &[&str]) -> String {
    let (mut screen, theirs) = run::terminal();
    let mut command = place.command(&[&["chat", "--provider", "scripted"], args].concat());
    command.env("TERM", "xterm").stdin(theirs.try_clone().unwrap());
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut shown, mut bytes, mut lines) = (String::new(), [0; 4096], lines.iter());
    let mut typed = 0;
    // A terminal whose other side was closed gives an error.
    while let Ok(n @ 1..) = screen.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        // Keys change the line of the prompt; only the next prompt stands in another one.
        let prompts = shown.split('\n').filter(|line| line.contains('▕') && line.contains('❯')).count();
        if prompts > typed {
            typed = prompts;
            screen.write_all(lines.next().unwrap_or(&"").as_bytes()).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{shown}");
    shown
}

#[test]
fn what_was_typed_is_kept_for_the_next_chat_and_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    typed(&place, &[], &["repeat: typed before\r", "/quit\r"]);
    let history = place.base().join("chat_history");
    assert!(std::fs::read_to_string(&history).unwrap().contains("repeat: typed before"));
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    // Up twice: over the command to the message, which is said again.
    let shown = typed(&place, &["-c"], &["\u{1b}[A\u{1b}[A\r", "/quit\r"]);
    assert!(shown.contains("\u{1b}[2m"), "what was said before is dimmed: {shown}");
    let log = place.ok(&["log", place.json_lines(&["sessions"])[0]["session"].as_str().unwrap()]);
    assert_eq!(log.matches("user \"repeat: typed before\"").count(), 2, "{log}");
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn chat_is_not_for_programs() {
    let place = Place::new();
    let said = place.run(&["chat", "--json"]);
    assert!(said.code == 2 && said.err.contains("komado ask --json"), "{}", said.err);
    let said = place.feed(&["chat", "--provider", "scripted"], b"\xff\xfe\n");
    assert!(said.code == 6 && said.err.contains("UTF-8"), "{}", said.err);
}

#[test]
fn a_chat_in_which_nothing_was_said_leaves_no_session() {
    let place = Place::new();
    let said = chat(&place, &[], "repeat: kept\n/new\n/again\n/model\n/new\n/quit\n");
    assert!(said.code == 1 && said.err.contains("nothing was said yet"), "{}", said.err);
    assert!(!said.err.contains("go on with"), "{}", said.err);
    assert_eq!(place.json_lines(&["sessions"]).len(), 1);
    let said = chat(&place, &["-c"], "repeat: more\n");
    assert!(said.err.contains("❯ repeat: kept"), "{}", said.err);
    let said = chat(&place, &["--system", "Be short."], "/show\n");
    assert!(said.out.contains("Be short."), "what stands before the first word can be seen: {}", said.out);
}

#[test]
fn a_chat_at_an_address_goes_on_by_its_own_advice() {
    let (place, server) = (Place::new(), ScriptedServer::start(ScriptedOptions::default()).unwrap());
    let id = session(&talk(&place, &server, "4000", "one\n", 1));
    for args in [&["chat", id.as_str()][..], &["chat", "-c"]] {
        server.add(ScriptStep::say("two"));
        let said = place.feed(args, b"more\n");
        assert_eq!((said.code, said.out.as_str()), (0, "two\n"), "{args:?}: {}", said.err);
    }
    server.add(ScriptStep::say("three"));
    assert_eq!(place.ok(&["ask", &id, "and then?"]), "three\n");
    server.add(ScriptStep::fail(401, Some("not now")));
    assert_eq!(place.run(&["ask", &id, "again?"]).code, 1);
    server.add(ScriptStep::say("four"));
    assert_eq!(place.ok(&["ask", "--again", &id]), "four\n");
    // A provider that has a name is not at its usual address: that has to be said again, and the advice says it.
    server.add(ScriptStep::say("five"));
    let args =
        ["chat", "--provider", "lmstudio", "--base-url", server.url(), "--model", "m", "--window", "4000"];
    let said = place.feed(&args, b"hello\n");
    let advice = said.err.lines().find_map(|line| line.strip_prefix("go on with: komado ")).unwrap();
    server.add(ScriptStep::say("six"));
    let said = place.feed(&advice.split(' ').collect::<Vec<_>>(), b"more\n");
    assert_eq!((said.code, said.out.as_str()), (0, "six\n"), "{advice}: {}", said.err);
}

#[test]
fn where_an_imported_session_was_asked_is_not_where_it_is_asked_here() {
    let (place, server) = (Place::new(), ScriptedServer::start(ScriptedOptions::default()).unwrap());
    let id = session(&talk(&place, &server, "4000", "one\n", 1));
    place.ok(&["export", &id, "-o", "one.jsonl"]);
    place.ok(&["import", "one.jsonl", "--as", "brought"]);
    let said = place.run(&["ask", "brought", "a secret"]);
    assert!(said.code == 2 && said.err.contains("unknown provider"), "{}", said.err);
    assert_eq!(server.seen().len(), 1);
    let said = place.run(&["new", "--provider", server.url(), "--model", "m", "--window", "4000"]);
    assert!(said.code == 2 && said.err.contains("is a name, not http://"), "{}", said.err);
}

#[test]
fn ctrl_c_right_after_a_question_stops_the_answer_and_keeps_the_question() {
    let server = ScriptedServer::start(ScriptedOptions::default()).unwrap();
    server.add(ScriptStep { chunk: Some(1), chunk_delay_ms: 50, ..ScriptStep::say("slowly ".repeat(1_000)) });
    let place = Place::new();
    let mut command =
        place.command(&["chat", "--base-url", server.url(), "--model", "m", "--window", "9000000"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    told.read_line(&mut err).unwrap();
    let session = place.base().join("running").join(err.split(' ').next().unwrap());
    // Long enough to be counted for a while.
    let question = format!("do not lose this {}\n", "小窓 window ".repeat(100_000));
    stdin.write_all(question.as_bytes()).unwrap();
    // The session is made for a question that is there, before anything is journaled in it.
    while !session.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    drop(stdin);
    told.read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    let id = err.lines().find_map(|line| line.strip_prefix("go on with: komado chat ")).unwrap();
    let log = place.ok(&["log", id, "--json"]);
    assert!(log.contains("do not lose this"), "{log}");
}

#[test]
fn ctrl_c_stops_an_answer_keeps_what_came_and_the_chat_goes_on() {
    let server = ScriptedServer::start(ScriptedOptions::default()).unwrap();
    server.add(ScriptStep { chunk: Some(1), chunk_delay_ms: 50, ..ScriptStep::say("slowly ".repeat(1_000)) });
    server.add(ScriptStep::say("after"));
    let place = Place::new();
    let mut command =
        place.command(&["chat", "--base-url", server.url(), "--model", "m", "--window", "9000"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"begin\n").unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = [0; 6];
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"slowly");
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    out.read_line(&mut rest).unwrap();
    stdin.write_all(b"go on\n").unwrap();
    drop(stdin);
    let mut after = String::new();
    out.read_to_string(&mut after).unwrap();
    assert_eq!(after, "after\n");
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(err.contains("cancelled"), "{err}");
    assert_eq!(child.wait().unwrap().code(), Some(1), "one question was not answered");
    let id = err.lines().find_map(|line| line.strip_prefix("go on with: komado chat ")).unwrap();
    let log = place.ok(&["log", id, "--json"]);
    assert!(log.contains("\"finish\":\"cancelled\"") && log.contains("\"heard\":\"slowly"), "{log}");
}
