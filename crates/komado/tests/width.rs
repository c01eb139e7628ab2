//! Is a line ever wider than the terminal? Every verb that prints for people is run at terminals of 80 and of 120 columns, over a
//! small store whose titles, names and messages are Japanese, too; so is every help page.
//!
//! A line may be wider when it is to be copied: a command, a path, an id, each with a label before it at most. What is printed for
//! another program or said by a model is as it is: each such verb is named with its reason. The list of verbs is taken from the
//! manual, which is made from the command line itself, so that a new one cannot be forgotten.
use crate::run;

use komado_core::notation::width;
use regex::Regex;
use run::{Place, TALK, at_terminal};
use std::collections::BTreeSet;
use std::sync::LazyLock;

const TITLE: &str = "古い計算機の設計図をすべて読み、八十桁の端末には収まらない長い題名でまとめてください。それから試験をして";
const COLUMNS: [usize; 2] = [80, 120];

/// What is done with a verb.
enum Run {
    /// Its lines fit.
    Fits,
    /// It fails, with this code; what it says fits.
    Fails(i32),
    /// It prints what is not ours to break.
    AsItIs(&'static str),
    /// It is not run here.
    Not(&'static str),
}
use Run::{AsItIs, Fails, Fits, Not};

/// The verb, its words, and what is done with it, in an order in which each finds what it needs.
const VERBS: &[(&str, &str, Run)] = &[
    ("new", "--id a-long-name-that-a-person-gave-to-a-session-of-theirs-on-2026-11-18", Fits),
    ("new", "--id small --model gpt-4o", Fits),
    ("append", "small TITLE", Fits),
    ("show", "city", Fits),
    ("show", "city --brief", Fits),
    ("show", "nowhere", Fails(3)),
    ("log", "city", Fits),
    ("log", "city -v", Fits),
    ("log", "city@99", Fails(3)),
    ("context", "city", Fits),
    ("context", "city/deep", Fits),
    ("recall", "city 設計図", Fits),
    ("recall", "city main.py --neighbours 1", Fits),
    ("recall", "--all zzz", Fits),
    ("sessions", "", Fits),
    ("sessions", "city", Fits),
    ("export", "city -o city.jsonl", Fits),
    ("export", "city --format md", AsItIs("a file for another program")),
    ("import", "city.jsonl --as copy", Fits),
    ("fit", "copy --dry-run --window 2000", Fits),
    ("fit", "copy --window 100", Fails(5)),
    ("edit pin", "copy@2", Fits),
    ("edit unpin", "copy@2", Fits),
    ("edit condense", "small 1 --text 短", Fits),
    ("edit truncate", "copy 6 --text TITLE", Fails(5)),
    ("edit trim", "city 4", Fails(5)),
    ("edit setup", "copy --system TITLE", Fits),
    ("edit redact", "copy --text main.py --reason x --yes", Fits),
    ("rewind", "copy@3", Fits),
    ("revert", "city@10", Fails(5)),
    ("fork", "city@3 other", Fits),
    ("session output", "city", Fits),
    ("session output", "city @4", AsItIs("what a tool printed")),
    ("session diff", "city@2 city@5", Fits),
    ("session pause", "city TITLE", Fits),
    ("session resume", "city", Fits),
    ("session fail", "copy TITLE", Fits),
    ("session stop", "small", Fits),
    ("thread start", "city TITLE --name started", Fits),
    ("thread tree", "city", Fits),
    ("thread tell", "city deep TITLE", Fits),
    ("thread balance", "city/deep --ratio 0.5", Fits),
    ("thread chronicle", "city/done", Fits),
    ("thread chronicle", "city/done --text TITLE", Fits),
    ("thread pause", "city/deep", Fits),
    ("thread resume", "city/deep", Fits),
    ("thread end", "city/started できました --chronicle TITLE", Fits),
    ("thread abort", "city/deep TITLE", Fits),
    ("thread run", "city TITLE --provider scripted", AsItIs("a model's words")),
    ("session complete", "city 済", Fits),
    ("ask", "TITLE --provider scripted", AsItIs("a model's words")),
    ("ask", "TITLE --provider openai --model gpt-4o", Fails(2)),
    ("task add", "TITLE --key one", Fits),
    ("task list", "", Fits),
    ("task show", "local:one", Fits),
    ("task pause", "local:one", Fits),
    ("task resume", "local:one", Fits),
    ("task stop", "local:one", Fits),
    ("task retry", "local:one", Fits),
    ("playbook check", "p.json bad.json", Fails(6)),
    ("playbook graph", "p.json", Fits),
    ("playbook graph", "--mermaid", AsItIs("a drawing for another program")),
    ("playbook run", "p.json --provider scripted", Fits),
    ("user session", "花子 --window 8000", Fits),
    ("user list", "", Fits),
    ("user recent", "花子", Fits),
    ("user show", "花子", Fits),
    ("user forget", "花子 --dry-run", Fits),
    ("models", "", Fits),
    ("models", "gpt-4o", Fits),
    ("models", "claud-sonnet", Fails(3)),
    ("models update", "models.jsonl", Fits),
    ("models learned", "", Fits),
    ("admin config", "", Fits),
    ("admin config", "--reference", AsItIs("a page in Markdown")),
    ("admin trust", "komado.yaml", Fits),
    ("admin trust", "--list", Fits),
    ("admin doctor", "", Fits),
    ("admin cleanup", "--days 0 --dry-run", Fits),
    ("admin stats", "", Fits),
    ("admin report", "all", Fits),
    ("admin report", "all --lang ja", Fits),
    ("admin migrate", "--from file:BASE --to file:other", Fits),
    ("admin key add", "ann --user TITLE", Fits),
    ("admin key list", "", Fits),
    ("admin key revoke", "ann", Fits),
    ("admin completions", "powershell", AsItIs("a line for a shell")),
    ("admin man", "--out pages", Fits),
    ("admin man", "", AsItIs("a page for `man`")),
    ("dev demo", "--fast", Fits),
    ("dev replay", "talk.jsonl --window 2000", Fits),
    ("dev explain-error", "--status 400", Fits),
    ("serve", "", Not("serves until it is stopped")),
    ("mcp", "", Not("serves until it is stopped")),
    ("chat", "", Not("waits for what is typed")),
    ("task fetch", "", Not("needs a tracker on a network")),
    ("task work", "", Not("works until it is stopped")),
    ("dev model-server", "", Not("serves until it is stopped")),
];

/// A store with something of everything.
fn seeded() -> Place {
    let place = Place::new();
    let ok = |args: &[&str]| place.ok(args);
    ok(&[
        "new", "--id", "city", "--meter", "bytes4", "--window", "100000", "--user", "花子", "--system", TITLE,
    ]);
    let long = serde_json::json!({ "role": "user", "content": TITLE.repeat(3) }).to_string();
    assert_eq!(place.append("city", &format!("{long}\n{TALK}")).code, 0);
    for (above, name) in [("city", "first"), ("city/first", "second"), ("city/second", "deep")] {
        ok(&["thread", "start", above, TITLE, "--name", name, "--no-lending"]);
        ok(&["append", &format!("city/{name}"), TITLE]);
    }
    ok(&["thread", "start", "city", TITLE, "--name", "done", "--no-lending"]);
    ok(&["thread", "end", "city/done", "--chronicle", &TITLE.repeat(2)]);
    let file = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    file("talk.jsonl", TALK);
    let prompt = serde_json::json!({"name": "試し", "nodes": [
        {"id": "問", "type": "set", "vars": {"e": TITLE}, "next": "end"}, {"id": "end", "type": "end"}]});
    file("p.json", &prompt.to_string());
    file(
        "bad.json",
        r#"{"name": "b", "nodes": [{"id": "a", "type": "llm", "prompt": "x", "next": "nowhere"}]}"#,
    );
    file("models.jsonl", r#"{"id":"a-model","provider":"a-provider","context":10}"#);
    file("komado.yaml", "llm:\n  own:\n    base_url: http://127.0.0.1:9/a/path/that/is/rather/long/v1\n");
    ok(&["admin", "trust", "komado.yaml"]);
    place
}

/// What came to a terminal of so many columns, in lines without codes.
fn lines(place: &Place, columns: usize, args: &[&str]) -> (i32, Vec<String>) {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_komado")).parent().unwrap().display();
    let mut command = place.program("komado");
    command.args(args).env("PATH", format!("{bin}:{path}"));
    command.env("COLUMNS", columns.to_string()).env("KOMADO_PAGER", "cat").env("TZ", "UTC");
    let (code, text) = at_terminal(command);
    // A bar goes back to where the line begins.
    (code, CODES.replace_all(&text, "").split(['\n', '\r']).map(|line| line.trim_end().to_owned()).collect())
}

/// Bars that go away again; where there are two, one is drawn behind the other.
static BARS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[░█] +\d+% \d+s.*[░█] +\d+% \d+s$").unwrap());

static CODES: LazyLock<Regex> = LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").unwrap());

/// A command, behind a label or what leads to it; or one thing without a space that is not in backquotes, behind a label.
static COPIED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*([│~] )?([^`]*: )?komado [a-z]|^\s*([\w @]+: )?([^\s`\p{Han}\p{Hiragana}\p{Katakana}]|`[^`]*`)+$").unwrap()
});

fn too_wide(lines: &[String], columns: usize) -> Vec<&String> {
    let is_wide = |line: &&String| width(line) > columns && !COPIED.is_match(line) && !BARS.is_match(line);
    lines.iter().filter(is_wide).collect()
}

#[test]
fn every_verb_of_the_command_line_is_run_or_left_out_for_a_reason() {
    let place = Place::new();
    let made = place.json(&["admin", "man", "--out", "pages"]);
    let pages: Vec<&str> =
        made["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    let names: BTreeSet<&str> =
        pages.iter().filter_map(|page| page.strip_prefix("komado-")?.strip_suffix(".1")).collect();
    let listed: BTreeSet<String> = VERBS.iter().map(|(verb, ..)| verb.replace(' ', "-")).collect();
    let is_group = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name}-")));
    let forgotten: Vec<_> = names.iter().filter(|name| !listed.contains(**name) && !is_group(name)).collect();
    assert!(forgotten.is_empty(), "add a row to VERBS for each: {forgotten:?}");
    assert!(names.len() > 80 && listed.iter().all(|verb| names.contains(verb.as_str())), "{listed:?}");
    for (verb, words, done) in VERBS {
        if let AsItIs(why) | Not(why) = done {
            assert!(!why.is_empty(), "{verb} {words}");
        }
    }
}

#[test]
fn no_verb_prints_a_line_wider_than_the_terminal_but_what_is_to_be_copied() {
    let mut faults = Vec::new();
    for columns in COLUMNS {
        let place = seeded();
        let base = place.base().display().to_string();
        for (verb, words, done) in VERBS {
            let code = match done {
                Fits | AsItIs(_) => 0,
                Fails(code) => *code,
                Not(_) => continue,
            };
            let words = words.replace("TITLE", TITLE).replace("BASE", &base);
            let args: Vec<&str> = verb.split(' ').chain(words.split_whitespace()).collect();
            let (ended, lines) = lines(&place, columns, &args);
            if ended != code {
                faults.push(format!("{args:?} ended with {ended}, not {code}: {lines:?}"));
            }
            if !matches!(done, AsItIs(_)) {
                let wide = too_wide(&lines, columns);
                faults.extend(wide.iter().map(|line| format!("{columns}: {verb} {words}: {line}")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_help_page_fits_the_terminal() {
    let place = Place::new();
    let groups = ["", "edit", "session", "thread", "task", "playbook", "user", "admin", "admin key", "dev"];
    for columns in COLUMNS {
        for verb in VERBS.iter().map(|(verb, ..)| *verb).chain(groups) {
            for help in ["--help", "-h"] {
                let args: Vec<&str> = verb.split_whitespace().chain([help]).collect();
                let (code, lines) = lines(&place, columns, &args);
                let wide: Vec<&String> = lines.iter().filter(|line| width(line) > columns).collect();
                assert!(code == 0 && wide.is_empty(), "{columns}: {args:?}: {code} {wide:?}");
            }
        }
    }
}

#[test]
fn what_is_to_be_copied_is_a_command_or_one_thing_behind_a_label() {
    let is_copied = |line: &str| COPIED.is_match(line);
    for line in [
        "undo: komado revert x@1",
        "      komado thread resume a/b",
        "folder: /a/b",
        "  │ … 3 more lines: komado show x --full",
        "`komado fit x --window 8000`",
        "/tmp/x/komado.yaml",
        "read one in full: komado log x -n 1",
    ] {
        assert!(is_copied(line), "{line}");
    }
    for line in
        ["komado: there is no session", "folder: /a/b and more", "two words", "see `komado log` for more"]
    {
        assert!(!is_copied(line), "{line}");
    }
}

#[test]
fn a_wider_terminal_shows_more_of_a_list() {
    let place = seeded();
    place.ok(&["task", "add", TITLE, "--key", "a-key-that-is-longer-than-others-are"]);
    place.ok(&["new", "--id", "a-name-that-a-person-gave"]);
    let shown = |columns: usize, args: &[&str]| lines(&place, columns, args).1.join("\n");
    let most =
        |text: &str| TITLE.char_indices().rev().find(|(end, _)| text.contains(&TITLE[..*end])).unwrap().0;
    for args in
        [&["thread", "tree", "city"][..], &["task", "list"], &["user", "recent", "花子"], &["log", "city"]]
    {
        let (narrow, wide) = (shown(80, args), shown(120, args));
        assert!(
            most(&wide) > most(&narrow) || wide.len() > narrow.len() + 100,
            "{args:?}:\n{narrow}\n{wide}"
        );
    }
    let sessions = ["sessions"];
    assert!(!shown(80, &sessions).contains("a-name-that-a-person-gave"), "{}", shown(80, &sessions));
    assert!(shown(120, &sessions).contains("a-name-that-a-person-gave"), "{}", shown(120, &sessions));
}

#[test]
fn a_deep_tree_names_every_thread_and_its_own_share_at_80_columns() {
    let place = Place::new();
    place.ok(&["new", "--id", "city", "--meter", "bytes4", "--window", "100000"]);
    place.ok(&["append", "city", TITLE]);
    let mut above = "city".to_owned();
    for _ in 0..12 {
        let start = ["thread", "start", &above, TITLE, "--max-depth", "20", "--ratio", "0.9", "--no-lending"];
        above = place.json(&start)["address"].as_str().unwrap().to_owned();
        place.ok(&["append", &above, TITLE]);
    }
    let tree = place.json(&["thread", "tree", "city"]);
    for columns in COLUMNS {
        let (code, lines) = lines(&place, columns, &["thread", "tree", "city"]);
        assert_eq!((code, too_wide(&lines, columns)), (0, vec![]));
        for thread in tree["threads"].as_array().unwrap() {
            let name = thread["thread"].as_str().unwrap();
            assert!(lines.iter().any(|line| line.split(' ').any(|word| word == name)), "{name}: {lines:#?}");
        }
        let with = |end: &str| lines.iter().filter(|line| line.contains(end)).count();
        assert_eq!((with(" own"), with("古い計算機")), (12, 12), "{lines:#?}");
    }
}
