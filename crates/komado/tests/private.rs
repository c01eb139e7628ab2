//! What Komado makes in its base folder only its owner may read, whatever the umask and whichever verb comes first; and what is printed of
//! a model's, a tool's or a repository's words gives no orders to a terminal.
#[allow(dead_code)]
use crate::gateway::stage;
use crate::run;

use run::{Place, TALK};
use stage::{ASKS, Gateway};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Everything in a folder, and the folder, that others may read, write or enter.
fn open_to_others(path: &Path) -> Vec<(PathBuf, u32)> {
    // Files for a moment come and go while a server runs.
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Vec::new() };
    let mode = meta.permissions().mode() & 0o777;
    let mut found = Vec::new();
    // A link has no mode of its own.
    if mode & 0o077 != 0 && !meta.is_symlink() {
        found.push((path.to_owned(), mode));
    }
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            found.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    found
}

/// Children inherit it; it is never taken back, since every test here wants the same.
fn without_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
}

#[test]
fn whichever_verb_comes_first_the_base_folder_is_its_owners_alone() {
    without_umask();
    for verb in [
        &["admin", "key", "add", "one"][..],
        &["new", "--window", "1000"],
        &["task", "add", "x", "--title", "t"],
        &["ask", "hello", "--provider", "scripted"],
        &["user", "session", "ann", "--window", "1000"],
    ] {
        let place = Place::new();
        place.ok(verb);
        assert!(place.base().exists(), "{verb:?}");
        assert_eq!(open_to_others(&place.base()), [], "{verb:?}");
    }
    let served = Gateway::start(Place::new(), &["--upstream", "scripted"]);
    assert_eq!(served.get("/healthz").status(), 200);
    assert!(served.place.base().exists());
    assert_eq!(open_to_others(&served.place.base()), []);
}

#[test]
fn everything_that_is_made_in_the_base_folder_is_its_owners_alone() {
    without_umask();
    let place = Place::new();
    let key =
        place.json(&["admin", "key", "add", "root", "--sees", "all"])["key"].as_str().unwrap().to_owned();
    let gateway = Gateway::start(place, &["--upstream", "scripted"]);
    let key =
        [("x-komado-key", key.as_str()), ("content-type", "application/json"), ("idempotency-key", "k1")];
    for (_, path, body) in ASKS {
        assert_eq!(gateway.ask(&format!("POST {path}"), &key, body.as_bytes()).status(), 200, "{path}");
    }
    let made = gateway.ask("POST /api/v1/sessions", &key, br#"{"id":"api","window":1000,"user":"ann"}"#);
    assert_eq!(made.status(), 201, "{}", made.text());
    let said = br#"{"messages":[{"role":"user","content":"once"}]}"#;
    let said = gateway.ask("POST /api/v1/sessions/api/threads/root/entries", &key, said);
    assert!([200, 201].contains(&said.status()), "{}", said.text());
    assert!(gateway.place.base().join("answers.db").exists());
    assert_eq!(open_to_others(&gateway.place.base()), [], "while it serves");
    let place = &gateway.place;
    let s = place.session();
    place.append(&s, TALK);
    let long = "a long line of output\n".repeat(5_000);
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"c9","type":"function","function":{"name":"cat","arguments":"{}"}}]}"#;
    let result = serde_json::json!({ "role": "tool", "tool_call_id": "c9", "content": long });
    assert_eq!(place.append(&s, &format!("{call}\n{result}\n")).code, 0);
    for verb in [
        &["fit", &s][..],
        &["edit", "condense", &s, "1..4"],
        &["fork", &s],
        &["ask", &s, "and?", "--provider", "scripted"],
        &["thread", "start", &s, "child"],
        &["recall", &s, "window"],
        &["admin", "report"],
        &["task", "add", "x", "--title", "t"],
        &["models"],
        &["user", "forget", "ann", "--yes", "--export", "kept"],
        &["session", "complete", &s],
        &["admin", "doctor"],
        &["admin", "doctor", "--rebuild"],
        &["export", &s, "--output", "out.jsonl"],
        &["admin", "cleanup"],
    ] {
        let said = place.run(verb);
        assert!([0, 5].contains(&said.code), "{verb:?}: {}", said.err);
    }
    // Whatever becomes of the task: its folder is made.
    place.run(&["task", "work", "--once", "--provider", "scripted"]);
    assert!(place.base().join("work").exists());
    assert_eq!(open_to_others(&place.base()), []);
    for made in ["keys.json", "keys.lock", "erasures.jsonl", "erasures.key", "answers.db", "tasks.db"] {
        assert!(place.base().join(made).exists(), "{made} was made");
    }
}

#[test]
fn a_table_that_an_earlier_version_left_open_is_closed_and_the_folder_of_its_owner_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir_all(place.base()).unwrap();
    std::fs::set_permissions(place.base(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let db = place.base().join("answers.db");
    std::fs::write(&db, "").unwrap();
    std::fs::set_permissions(&db, std::fs::Permissions::from_mode(0o644)).unwrap();
    let gateway = Gateway::start(place, &["--upstream", "scripted"]);
    let local = [("content-type", "application/json"), ("idempotency-key", "k1"), ("x-komado-session", "s")];
    let ask = |line: &str, body: &str| {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        let headers: String = local.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = gateway.connect();
        std::io::Write::write_all(&mut stream, format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
        stage::answer(&mut std::io::BufReader::new(stream))
    };
    assert_eq!(ask("POST /api/v1/sessions", r#"{"id":"api","window":1000}"#).status(), 201);
    let said = ask(
        "POST /api/v1/sessions/api/threads/root/entries",
        r#"{"messages":[{"role":"user","content":"once"}]}"#,
    );
    assert!([200, 201].contains(&said.status()), "{}", said.text());
    let open = open_to_others(&gateway.place.base());
    assert_eq!(open, [(gateway.place.base(), 0o755)], "only the folder, which its owner made");
}

const WILD: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}\u{1b}]8;;http://evil.example\u{1b}\\here\u{9b}31m\u{7f}\u{202e}over\rwritten";

fn is_tame(text: &str) -> bool {
    !text.chars().any(|c| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}')
}

#[test]
fn no_verb_prints_what_a_terminal_would_act_on() {
    let place = Place::new();
    let s = place.session();
    let lines = [
        serde_json::json!({ "role": "user", "content": WILD }),
        serde_json::json!({ "role": "assistant", "content": WILD, "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "cat", "arguments": "{}" } }] }),
        serde_json::json!({ "role": "tool", "tool_call_id": "c1", "content": format!("{WILD}\n").repeat(2_000) }),
        serde_json::json!({ "role": "assistant", "content": WILD }),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(place.append(&s, &lines).code, 0);
    let task = place.json(&["task", "add", WILD, "--title", WILD])["session"].as_str().unwrap().to_owned();
    let blob = place.json_lines(&["session", "output", &s])[0]["ref"].as_str().unwrap().to_owned();
    for verb in [
        &["task", "show", &task][..],
        &["task", "list"],
        &["session", "output", &s, "@1"],
        &["session", "output", &s, &blob],
        &["session", "output", &s, &blob, "--grep", "here"],
        &["session", "output", &s, &blob, "--line", "1"],
        &["session", "output", &s],
        &["log", &s],
        &["log", &s, "--full"],
        &["show", &s],
        &["show", &s, "--full"],
        &["context", &s],
        &["admin", "stats"],
        &["sessions"],
        &["recall", &s, "here"],
        &["recall", &s, "here", "--exact"],
        &["thread", "tree", &s],
        &["admin", "report"],
        &["user", "list"],
    ] {
        let said = place.run(verb);
        assert_eq!(said.code, 0, "{verb:?}: {}", said.err);
        assert!(is_tame(&said.out) && is_tame(&said.err), "{verb:?}: {:?} {:?}", said.out, said.err);
    }
    for verb in [
        &["show", WILD][..],
        &["user", "show", WILD],
        &["admin", "key", "revoke", WILD],
        &["fit", &s, WILD],
        &["admin", "config", WILD],
    ] {
        let said = place.run(verb);
        assert_ne!(said.code, 0, "{verb:?}");
        assert!(is_tame(&said.out), "{verb:?}: {:?}", said.out);
        assert!(is_tame(&said.err), "{verb:?}: {:?}", said.err);
    }
    assert!(place.ok(&["session", "output", &s, "@1"]).contains(r"\u001b]0;mine\u0007"));
    assert!(place.ok(&["task", "show", &task]).contains(r"\u001b[2J"));
    assert_eq!(place.ok(&["session", "output", &s, "@1", "--raw"]), WILD, "bytes are copied as they are");
}
