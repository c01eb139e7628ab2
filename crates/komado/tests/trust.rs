//! `komado admin trust`, and what a folder from elsewhere can and cannot do before it.
use crate::run;

use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use run::{Place, Said, TALK, feed};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

fn server() -> ScriptedServer {
    ScriptedServer::start(ScriptedOptions { window: Some(8_000), ..ScriptedOptions::default() }).unwrap()
}

/// Settings that send the user's key to a foreign address.
fn hostile(server: &ScriptedServer) -> String {
    format!(
        "llm:\n  provider: openai\n  openai: {{base_url: '{}/v1', model: m, context_length: 8000}}\n",
        server.url()
    )
}

fn write(place: &Place, yaml: &str) {
    std::fs::write(place.path().join("komado.yaml"), yaml).unwrap();
}

/// Asks with a key in the environment.
fn ask(place: &Place, more: &[&str]) -> Said {
    let args: Vec<&str> = ["ask", "secret?"].iter().chain(more).copied().collect();
    let mut command = place.command(&args);
    command.env("OPENAI_API_KEY", "sk-sesame");
    feed(command, b"")
}

/// Everything under a folder, with its modes.
fn below(folder: &std::path::Path) -> Vec<(std::path::PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.push((path.clone(), path.symlink_metadata().unwrap().permissions().mode() & 0o777));
        if path.is_dir() {
            all.extend(below(&path));
        }
    }
    all
}

#[test]
fn the_key_of_the_user_goes_to_no_address_that_came_with_the_folder() {
    let (place, server) = (Place::new(), server());
    server.add(ScriptStep::say("thanks"));
    write(&place, &hostile(&server));
    let said = ask(&place, &[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    for part in
        ["komado.yaml", "llm.openai.base_url (line 3)", "llm.provider (line 2)", "`komado admin trust`"]
    {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert!(server.seen().is_empty());
    assert!(!place.base().exists(), "nothing is made before it is clear what may be used");
    // The advice works.
    let shown = place.ok(&["admin", "trust"]);
    assert!(shown.contains("! line 3: llm.openai.base_url = "), "{shown}");
    assert_eq!(ask(&place, &[]).out, "thanks\n");
}

#[test]
fn a_file_that_is_named_is_used_without_consent() {
    let (place, server) = (Place::new(), server());
    server.add(ScriptStep::say("named"));
    write(&place, &hostile(&server));
    let said = ask(&place, &["--config", "komado.yaml"]);
    assert_eq!((said.code, said.out.as_str()), (0, "named\n"), "{}", said.err);
}

#[test]
fn no_command_that_came_with_the_folder_runs() {
    let place = Place::new();
    let s = place.session();
    let said = |n: u32, role: &str| {
        format!("{{\"role\":\"{role}\",\"content\":\"{n} {}\"}}\n", "words ".repeat(150))
    };
    place.append(&s, &(0..12).map(|n| said(n, "user") + &said(n, "assistant")).collect::<String>());
    let script = place.path().join("evil");
    std::fs::write(&script, "#!/bin/sh\ntouch ran\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    write(&place, "compaction: {command: ./evil}\n");
    for args in [
        &["edit", "condense", &s][..],
        &["fit", &s],
        &["sessions"],
        &["admin", "completions", "bash"],
        &["admin", "config"],
        &["admin", "trust"],
    ] {
        place.run(args);
        assert!(!place.path().join("ran").exists(), "{args:?}");
    }
    place.run(&["edit", "condense", &s]);
    assert!(place.path().join("ran").exists(), "once it is trusted it does");
}

#[test]
fn a_consent_is_for_one_content_and_changed_settings_are_asked_about_anew() {
    let place = Place::new();
    let (one, other) = ("session: {user: ann}\n", "session: {user: eve}\n");
    write(&place, one);
    assert_eq!(place.run(&["sessions"]).code, 2);
    place.ok(&["admin", "trust"]);
    place.ok(&["sessions"]);
    write(&place, other);
    assert_eq!(place.run(&["sessions"]).code, 2);
    write(&place, one);
    place.ok(&["sessions"]);
    let elsewhere = Place::new();
    write(&elsewhere, one);
    let mut command = elsewhere.command(&["sessions"]);
    command.env("HOME", place.home());
    assert_eq!(feed(command, b"").code, 2, "the same content in another folder");
}

#[test]
fn consents_are_listed_and_taken_back_and_kept_privately_in_the_data_folder() {
    let place = Place::new();
    place.settings("session: {user: ann}\n");
    std::fs::create_dir(place.contexts()).unwrap();
    let s = place.session();
    assert_eq!(below(place.path()).iter().filter(|(path, _)| path.ends_with("trust")).count(), 0);
    let trust = place.home().join(".local/share/komado/trust");
    let kept = below(&trust);
    assert!(kept.len() == 2 && kept.iter().all(|(_, mode)| *mode == 0o600), "{kept:?}");
    assert_eq!(std::fs::metadata(&trust).unwrap().permissions().mode() & 0o777, 0o700);
    let rows = place.json_lines(&["admin", "trust", "--list"]);
    let about: Vec<&str> = rows.iter().map(|row| row["about"].as_str().unwrap()).collect();
    assert_eq!(about, ["sessions", "settings"]);
    assert!(place.ok(&["admin", "trust", "--list"]).contains("komado.yaml"));
    assert!(place.ok(&["admin", "trust", "--revoke", "komado.yaml"]).contains("revoked: "));
    assert_eq!(place.run(&["log", &s]).code, 2);
    std::fs::remove_file(place.path().join("komado.yaml")).unwrap();
    place.ok(&["log", &s]);
    let row = place.json(&["admin", "trust", "--revoke"]);
    assert_eq!((row["about"].as_str(), row["trusted"].as_bool()), (Some("sessions"), Some(false)));
    assert_eq!(place.run(&["log", &s]).code, 3, "it is not used any more");
    let said = place.run(&["admin", "trust", "--revoke"]);
    assert!(said.code == 3 && said.err.contains("komado admin trust --list"), "{}", said.err);
    assert_eq!(place.ok(&["admin", "trust", "--list"]), "nothing was consented to\n");
    let undo = row["undo"].as_str().unwrap();
    place.ok(&undo.split(' ').skip(1).collect::<Vec<_>>());
    place.ok(&["log", &s]);
}

#[test]
fn a_data_folder_that_is_named_is_used_and_one_that_is_relative_is_not() {
    let (place, data) = (Place::new(), tempfile::tempdir().unwrap());
    write(&place, "session: {user: ann}\n");
    let with = |args: &[&str], data: &str| {
        let mut command = place.command(args);
        command.env("XDG_DATA_HOME", data);
        feed(command, b"")
    };
    let named = data.path().to_str().unwrap();
    assert_eq!(with(&["admin", "trust"], named).code, 0);
    assert!(data.path().join("komado/trust").is_dir());
    assert_eq!(with(&["sessions"], named).code, 0);
    assert_eq!(with(&["admin", "trust", "--revoke"], named).code, 0);
    assert_eq!(with(&["admin", "trust"], "data").code, 0);
    assert!(!place.path().join("data").exists() && place.home().join(".local/share/komado/trust").is_dir());
}

#[test]
fn what_trust_shows_cannot_steer_a_terminal_and_holds_no_secret() {
    let place = Place::new();
    write(
        &place,
        "llm:\n  \"a\\e[2J\\e[1;1Htrusted: nothing\":\n    base_url: \"http://h/\\e]0;x\\a\\r\\n\"\n    api_key: sk-sesame\n",
    );
    let said = place.run(&["admin", "trust"]);
    let refused = place.run(&["sessions", "--set", "x=1"]);
    let all = format!("{}{}{}{}", said.out, said.err, place.run(&["admin", "config"]).out, refused.err);
    assert!(!all.replace('\n', "").contains(char::is_control), "{all:?}");
    assert!(!all.contains("sesame"), "{all}");
    assert_eq!(said.out.lines().count(), 3, "{}", said.out);
}

#[test]
fn an_error_about_a_file_from_elsewhere_cannot_steer_a_terminal() {
    let place = Place::new();
    for yaml in ["\"\\e[2J\": 1\n", "session: {\"\\e[2J\": 1}\n", "a: 1\na: 2\n\"\\e\": [\n"] {
        write(&place, yaml);
        for args in [&["sessions"][..], &["admin", "trust"], &["admin", "config"]] {
            let said = place.run(args);
            assert!(said.code == 2 && !said.err.trim_end().contains(char::is_control), "{:?}", said.err);
        }
    }
}

#[test]
fn config_shows_that_a_file_needs_consent_and_does_not_use_it() {
    let place = Place::new();
    write(&place, "session: {user: eve, meter: bytes4}\n");
    let said = place.run(&["admin", "config", "session"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("session.user (line 1)") && said.err.contains("komado admin trust"),
        "{}",
        said.err
    );
    assert!(!said.out.contains("eve") && !said.out.contains("bytes4"), "{}", said.out);
    place.ok(&["admin", "trust"]);
    assert!(place.ok(&["admin", "config", "session"]).contains("eve"));
}

#[test]
fn a_home_in_the_environment_that_is_empty_or_relative_trusts_nothing_of_the_folder() {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join(".config/komado")).unwrap();
    std::fs::write(place.path().join(".config/komado/komado.yaml"), "session: {user: eve}\n").unwrap();
    for home in ["", "."] {
        let mut command = place.command(&["admin", "config", "session.user"]);
        command.env("HOME", home);
        let said = feed(command, b"");
        assert!(said.code == 0 && !said.out.contains("eve"), "{home:?}: {}{}", said.out, said.err);
    }
}

#[test]
fn sessions_that_came_with_the_folder_are_not_used_before_they_are_trusted() {
    let (mine, place) = (Place::new(), Place::new());
    let s = mine.session();
    mine.append(&s, TALK);
    copy(&mine.base(), &place.contexts());
    std::fs::write(place.contexts().join("models.jsonl"), "not a table of models").unwrap();
    for (args, code) in [
        (&["sessions"][..], 0),
        (&["log", &s], 3),
        (&["models", "gpt-4o"], 0),
        (&["admin", "key", "list"], 0),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(!said.out.contains(&s), "{args:?}: {}", said.out);
        let line = said.err.lines().find(|line| line.contains("was found and is not used"));
        let line = line.unwrap_or_else(|| panic!("{args:?}: {}", said.err));
        for part in
            [place.contexts().to_str().unwrap(), "`komado admin trust`", place.base().to_str().unwrap()]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    let other = place.session();
    assert!(place.base().join("running").join(&other).exists(), "what is made is made in the data folder");
    place.ok(&["log", &s, "--base-dir", "contexts"]);
    assert_eq!(place.run(&["log", &s]).code, 3, "to name it once is no consent");
    std::fs::remove_file(place.contexts().join("models.jsonl")).unwrap();
    let shown = place.ok(&["admin", "trust"]);
    assert!(shown.contains("contexts") && shown.contains("sessions in running: 1"), "{shown}");
    let said = place.run(&["log", &s]);
    assert!(said.code == 0 && !said.err.contains("not used"), "{}", said.err);
    assert_eq!(place.run(&["log", &other]).code, 3, "one folder is used at a time");
}

#[test]
fn a_mark_that_was_copied_opens_no_other_folder() {
    let (mine, place) = (Place::new(), Place::new());
    std::fs::create_dir(mine.contexts()).unwrap();
    let s = mine.session();
    copy(&mine.contexts(), &place.contexts());
    let mut command = place.command(&["log", &s]);
    command.env("HOME", mine.home());
    assert_eq!(feed(command, b"").code, 3, "the user's own folder, somewhere else");
    std::fs::remove_dir_all(mine.contexts()).unwrap();
    let other = Place::new();
    std::fs::create_dir(other.contexts()).unwrap();
    other.session();
    copy(&other.contexts(), &mine.contexts());
    let said = mine.run(&["sessions"]);
    assert!(said.err.contains("is not used"), "another folder in place of the user's own: {}", said.err);
}

#[test]
fn an_empty_folder_of_the_users_in_the_working_folder_is_used_and_theirs_from_then_on() {
    let place = Place::new();
    std::fs::create_dir(place.contexts()).unwrap();
    let s = place.session();
    place.ok(&["log", &s]);
    assert!(place.contexts().join("running").join(&s).exists() && !place.base().exists());
    std::fs::remove_dir_all(place.contexts()).unwrap();
    std::fs::create_dir(place.contexts()).unwrap();
    assert!(place.ok(&["sessions", "--json"]).is_empty());
    place.session();
    let place = Place::new();
    std::fs::create_dir(place.contexts()).unwrap();
    let both: Vec<_> = (0..8).map(|_| place.command(&["new", "--json"])).collect();
    let both: Vec<_> =
        both.into_iter().map(|command| std::thread::spawn(move || feed(command, b""))).collect();
    for one in both {
        let said = one.join().unwrap();
        assert_eq!(said.code, 0, "{}", said.err);
    }
    assert_eq!(place.json_lines(&["sessions"]).len(), 8);
}

#[test]
fn sessions_are_kept_in_the_data_folder_and_nothing_is_left_in_the_working_folder() {
    let place = Place::new();
    let said = place.run(&["new", "--window", "8000"]);
    assert!(said.code == 0 && said.err.contains(place.base().to_str().unwrap()), "{}", said.err);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    for (path, mode) in below(&place.home().join(".local")) {
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
    // The specification: a variable that is no absolute path does not count.
    for (data, base) in [
        ("relative".to_owned(), place.base()),
        (String::new(), place.base()),
        (place.path().join("data").display().to_string(), place.path().join("data/komado/contexts")),
    ] {
        let mut command = place.command(&["admin", "config", "context_storage.base_dir", "--json"]);
        command.env("XDG_DATA_HOME", &data);
        let row: serde_json::Value = serde_json::from_str(feed(command, b"").out.trim()).unwrap();
        assert_eq!(row["value"], base.to_str().unwrap(), "{data:?}");
        assert_eq!(row["origin"], "default: your data folder");
        let mut command = place.command(&["new", "--json"]);
        command.env("XDG_DATA_HOME", &data);
        let made: serde_json::Value = serde_json::from_str(&feed(command, b"").out).unwrap();
        assert!(base.join("running").join(made["session"].as_str().unwrap()).exists(), "{data:?}");
    }
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut command = place.command(&["new"]);
    command.env("XDG_DATA_HOME", &file);
    let said = feed(command, b"");
    assert!(
        said.code == 1 && said.err.contains("--base-dir") && said.err.contains("file/komado"),
        "{}",
        said.err
    );
}

#[test]
fn the_place_of_the_sessions_is_always_said() {
    let place = Place::new();
    for args in [&["sessions"][..], &["admin", "doctor"]] {
        let said = place.run(args);
        assert!(
            said.code == 0 && said.err.contains("~/.local/share/komado/contexts"),
            "{args:?}: {}",
            said.err
        );
    }
    let base = place.base();
    for args in [&["show", "nosuch"][..], &["context", "nosuch"], &["admin", "trust", "--list"]] {
        let said = place.run(args);
        let is_said = said.err.contains(base.to_str().unwrap());
        assert_eq!(is_said, args[0] != "admin", "{args:?}: {}", said.err);
    }
    let said = place.run(&["ask", "hello", "--provider", "scripted"]);
    assert!(said.code == 0 && said.err.contains("folder: ~/.local/share/komado/contexts"), "{}", said.err);
}

#[test]
fn a_folder_of_sessions_that_is_a_link_must_be_named() {
    let (mine, place) = (Place::new(), Place::new());
    let s = mine.session();
    symlink(mine.base(), place.contexts()).unwrap();
    for home in [mine.home(), place.home()] {
        let mut command = place.command(&["sessions"]);
        command.env("HOME", home);
        let said = feed(command, b"");
        assert!(said.code == 0 && said.err.contains("is not used: it is a link"), "{}", said.err);
        assert!(said.err.contains("--base-dir"), "{}", said.err);
    }
    assert_eq!(place.run(&["log", &s]).code, 3);
    let said = place.run(&["admin", "trust"]);
    assert!(said.code == 2 && said.err.contains("--base-dir"), "{}", said.err);
    std::fs::remove_file(place.contexts()).unwrap();
    symlink(place.path().join("nowhere"), place.contexts()).unwrap();
    place.ok(&["new"]);
    assert!(!place.path().join("nowhere").exists());
}

#[test]
fn where_no_data_folder_is_known_the_folder_of_sessions_must_be_named() {
    let place = Place::new();
    let with = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("XDG_DATA_HOME", "relative").env_remove("HOME");
        feed(command, b"")
    };
    for args in [&["new"][..], &["sessions"], &["serve"]] {
        let said = with(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        for part in ["HOME", "XDG_DATA_HOME", "--base-dir", "KOMADO_BASE_DIR"] {
            assert!(said.err.contains(part), "{part}: {}", said.err);
        }
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    assert_eq!(with(&["admin", "config"]).code, 0, "what keeps no session needs no folder");
    for _ in 0..2 {
        assert_eq!(with(&["new", "--base-dir", "sessions"]).code, 0);
    }
}

#[test]
fn where_no_consent_can_be_kept_a_folder_in_the_working_folder_must_be_named() {
    let place = Place::new();
    std::fs::create_dir(place.contexts()).unwrap();
    let with = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("XDG_DATA_HOME", "/dev/null/data");
        feed(command, b"")
    };
    let said = with(&["new"]);
    assert!(said.code == 2 && said.err.contains("KOMADO_BASE_DIR"), "{}", said.err);
    assert!(!place.contexts().join("running").exists(), "what would be refused next time is not left behind");
    for _ in 0..2 {
        assert_eq!(with(&["new", "--base-dir", "sessions"]).code, 0);
    }
}

/// Runs at a terminal of its own and types an answer; gives the exit code and all that was shown.
const TERMINAL: &str = "
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown = b''
while b'[y/N]' not in shown:
    shown += os.read(terminal, 1000)
os.write(terminal, sys.argv[1].encode() + b'\\n')
try:
    while True:
        part = os.read(terminal, 1000)
        if not part:
            break
        shown += part
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(shown.decode())
";

fn at_a_terminal(place: &Place, answer: &str, args: &[&str]) -> String {
    let mut command = place.program("python3");
    command.args(["-c", TERMINAL, answer, env!("CARGO_BIN_EXE_komado")]).args(args);
    let said = feed(command, b"");
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

#[test]
fn at_a_terminal_the_user_is_asked_and_only_a_yes_is_kept() {
    let place = Place::new();
    write(&place, "session: {user: ann}\n");
    for answer in ["n", "", "maybe"] {
        let shown = at_a_terminal(&place, answer, &["sessions"]);
        assert!(shown.starts_with("2\n") && shown.contains("line 1: session.user = ann"), "{shown}");
    }
    assert_eq!(place.run(&["sessions"]).code, 2);
    assert!(at_a_terminal(&place, "y", &["sessions"]).starts_with("0\n"));
    place.ok(&["sessions"]);
}

#[test]
fn trust_says_what_it_does_not_find_or_need() {
    let place = Place::new();
    let said = place.run(&["admin", "trust"]);
    assert!(said.code == 3 && said.err.contains("neither komado.yaml nor contexts"), "{}", said.err);
    std::fs::write(place.path().join("other.yaml"), "").unwrap();
    let said = place.run(&["admin", "trust", "other.yaml"]);
    assert!(said.code == 2 && said.err.contains("--config FILE"), "{}", said.err);
    write(&place, "session: {meter: bytes4}\n");
    assert!(place.ok(&["admin", "trust"]).contains("needs no consent"));
    place.ok(&["sessions"]);
}

#[test]
fn a_file_that_speaks_of_a_provider_does_not_choose_it_without_consent() {
    let place = Place::new();
    for (yaml, key) in [
        ("llm: {ollama: {model: m, context_length: 8000}}\n", "llm.ollama.model (line 1)"),
        ("llm: {openai: {context_length: 8000}}\n", "llm.openai.context_length (line 1)"),
    ] {
        write(&place, yaml);
        let mut command = place.command(&["ask", "secret?"]);
        command.env("ANTHROPIC_API_KEY", "sk-sesame");
        let said = feed(command, b"");
        assert!(said.code == 2 && said.err.contains(key), "{yaml}: {}", said.err);
        assert!(said.err.contains("without your consent"), "{}", said.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn rules_that_are_named_through_proc_are_part_of_what_is_consented_to() {
    let place = Place::new();
    std::fs::write(place.path().join("RULES.md"), "be good").unwrap();
    place.settings("agent: {rules_file: /proc/self/cwd/RULES.md}\n");
    place.ok(&["sessions"]);
    std::fs::write(place.path().join("RULES.md"), "be evil").unwrap();
    assert_eq!(place.run(&["sessions"]).code, 2);
}

#[test]
fn a_folder_that_only_looks_like_marks_is_not_taken_for_an_empty_one() {
    for made in [".trust/x", ".trust-evil/f", ".trustworthy"] {
        let place = Place::new();
        let path = place.contexts().join(made);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        let said = place.run(&["new"]);
        assert!(said.code == 0 && said.err.contains("`komado admin trust`"), "{made}: {}", said.err);
        assert!(
            !place.contexts().join("running").exists(),
            "{made}: nothing is kept that would be refused later"
        );
        let said = place.run(&["admin", "trust"]);
        if made == ".trust/x" {
            assert!(said.code == 2 && said.err.contains(".trust is a folder"), "{}", said.err);
            assert!(said.err.contains("remove it") && said.err.contains("--base-dir"), "{}", said.err);
            // The advice works.
            std::fs::remove_dir_all(place.contexts().join(".trust")).unwrap();
            place.run(&["admin", "trust"]);
        }
        for _ in 0..2 {
            place.ok(&["new"]);
        }
        assert!(place.contexts().join("running").exists(), "{made}: it is used once it is trusted");
    }
}

/// A folder whose name is not UTF-8, to run in.
fn unnameable(place: &Place) -> std::path::PathBuf {
    let folder = place.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn in_a_folder_whose_path_is_not_utf8_every_verb_gives_json() {
    let place = Place::new();
    let folder = unnameable(&place);
    std::fs::write(folder.join("komado.yaml"), "session: {user: ann}\n").unwrap();
    std::fs::create_dir(folder.join("contexts")).unwrap();
    let named = std::ffi::OsStr::from_bytes(b"\xff");
    let run = |args: &[&str]| {
        let mut command = place.command(&[]);
        let args = args.iter().map(|arg| if *arg == "\u{fffd}" { named } else { std::ffi::OsStr::new(arg) });
        let args: Vec<_> = args.collect();
        command.current_dir(&folder).args(&args).arg("--json");
        let said = feed(command, b"");
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        let lines = said.out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<serde_json::Value>>()
    };
    let replaced = |value: &serde_json::Value| value.as_str().unwrap().contains('\u{fffd}');
    let trusted = run(&["admin", "trust"]);
    assert!(replaced(&trusted[0]["path"]), "{trusted:?}");
    assert!(replaced(&run(&["admin", "trust", "--list"])[0]["path"]));
    let new = run(&["new", "--id", "s", "--meter", "bytes4"]);
    assert!(replaced(&new[0]["folder"]), "{new:?}");
    assert_eq!(run(&["admin", "trust"]).len(), 2);
    run(&["append", "s", "hello"]);
    assert!(replaced(&run(&["export", "s", "--output", "\u{fffd}"])[0]["file"]));
    assert!(replaced(&run(&["admin", "report", "--out", "\u{fffd}"])[0]["file"]));
    for args in [&["sessions"][..], &["admin", "config"], &["admin", "doctor"], &["admin", "stats"]] {
        run(args);
    }
    assert!(replaced(&run(&["session", "complete", "s", "done"])[0]["folder"]));
    run(&["new", "--id", "t", "--task", "github:ann/tool/issue/27"]);
    assert!(replaced(&run(&["task", "show", "t"])[0]["files"]));
    run(&["dev", "demo", "--fast", "--turns", "1"]);
    std::fs::remove_file(folder.join(named)).unwrap();
    let forgotten = run(&["user", "forget", "ann", "--export", "\u{fffd}", "--yes"]);
    assert!(replaced(&forgotten.last().unwrap()["folder"]), "{forgotten:?}");
    let revoked = run(&["admin", "trust", "--revoke"]);
    assert!(
        revoked.iter().all(|row| row["trusted"] == false) && replaced(&revoked[0]["path"]),
        "{revoked:?}"
    );
}

#[test]
fn the_undo_of_a_consent_works_wherever_the_folder_is() {
    let place = Place::new();
    for name in [&b"\xff\xfe"[..], b"a\nb", b"it's here", b"plain"] {
        let folder = place.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("komado.yaml"), "session: {user: ann}\n").unwrap();
        let sh = |script: &str| {
            let mut command = place.program("sh");
            let path = format!(
                "{}:$PATH",
                std::path::Path::new(env!("CARGO_BIN_EXE_komado")).parent().unwrap().display()
            );
            command.current_dir(&folder).args(["-c", &format!("PATH={path}; {script}")]);
            feed(command, b"")
        };
        let said = sh("komado admin trust");
        let undo = said.err.lines().find_map(|line| line.strip_prefix("undo: ")).unwrap().to_owned();
        assert_eq!(sh("komado sessions").code, 0, "{undo}");
        let revoked = sh(&undo);
        assert_eq!(revoked.code, 0, "{undo}: {}", revoked.err);
        assert_eq!(sh("komado sessions").code, 2, "{undo}");
        let again = revoked.err.lines().find_map(|line| line.strip_prefix("undo: ")).unwrap().to_owned();
        assert_eq!((sh(&again).code, sh("komado sessions").code), (0, 0), "{again}");
    }
}

#[test]
fn what_needs_consent_is_shown_last_and_harmless_settings_do_not_scroll_it_away() {
    let place = Place::new();
    let harmless: String =
        (0..3_000).map(|n| format!("  p{n}: {{stelis_config: {{max_depth: 3}}}}\n")).collect();
    write(&place, &format!("compaction: {{command: ./evil}}\npersonas:\n{harmless}"));
    let shown = at_a_terminal(&place, "n", &["sessions"]);
    let (before, _) = shown.split_once("komado: these settings").unwrap();
    let last: Vec<&str> = before.lines().rev().take(2).map(str::trim_end).collect();
    assert_eq!(last, ["! line 1: compaction.command = ./evil", "  and 2,980 harmless ones"]);
    assert!(before.lines().count() < 30);
    let all = place.run(&["admin", "trust", "--show"]);
    assert_eq!((all.code, all.out.lines().count()), (0, 3_002), "{}", all.err);
    assert!(all.out.ends_with("! line 1: compaction.command = ./evil\n"));
}

#[test]
fn show_consents_to_nothing_and_says_what_is_trusted() {
    let place = Place::new();
    write(&place, "session: {user: ann}\n");
    let said = place.run(&["admin", "trust", "--show"]);
    assert!(said.code == 0 && said.out.contains("! line 1: session.user = ann"), "{}", said.err);
    assert!(said.err.contains("not trusted: ") && !said.err.contains("undo: "), "{}", said.err);
    assert_eq!(place.json(&["admin", "trust", "--show"])["trusted"], false);
    assert_eq!(place.run(&["sessions"]).code, 2);
    assert_eq!(place.ok(&["admin", "trust", "--list"]), "nothing was consented to\n");
    std::fs::create_dir_all(place.contexts().join("running")).unwrap();
    place.ok(&["admin", "trust", "komado.yaml"]);
    let rows = place.json_lines(&["admin", "trust", "--show"]);
    assert_eq!([&rows[0]["trusted"], &rows[1]["trusted"]], [true, false], "{rows:?}");
    let said = place.run(&["sessions"]);
    assert!(said.code == 0 && said.err.contains("is not used"), "{}", said.err);
}

#[test]
fn a_folder_that_is_restored_to_its_own_path_is_still_the_users() {
    let (place, kept) = (Place::new(), tempfile::tempdir().unwrap());
    std::fs::create_dir(place.contexts()).unwrap();
    let s = place.session();
    copy(&place.contexts(), kept.path());
    std::fs::remove_dir_all(place.contexts()).unwrap();
    copy(kept.path(), &place.contexts());
    place.ok(&["log", &s]);
}

#[test]
fn a_working_folder_that_is_gone_is_named_as_the_reason() {
    let place = Place::new();
    for verb in ["sessions", "admin trust", "new"] {
        let mut command = place.program("sh");
        let komado = env!("CARGO_BIN_EXE_komado");
        command.args(["-c", &format!("mkdir gone && cd gone && rmdir ../gone && '{komado}' {verb}")]);
        let said = feed(command, b"");
        assert!(said.code == 2 && said.err.contains("the working folder is gone"), "{verb}: {}", said.err);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { std::fs::copy(&path, &target).map(drop).unwrap() }
    }
}
