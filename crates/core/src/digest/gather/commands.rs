//! What was run: the first line of a command, its exit code, and the files a shell touches.
//!
//! The shell is read roughly, by words and separators: enough to know a verb from a file. It refuses to run, expand
//! or judge anything.

use super::paths::{Touch, is_path, tidy};
use crate::digest::scan;
use crate::digest::scan::{one_line, start};
use serde_json::Value;

/// Characters of a command that are kept.
const LENGTH: usize = 220;

/// The command that a call gives to a shell, when it is such a call.
pub(in crate::digest) fn command(name: &str, arguments: &Value) -> Option<String> {
    const SHELLS: [&str; 10] =
        ["bash", "shell", "exec", "run", "terminal", "cmd", "command", "powershell", "console", "python"];
    const KEYS: [&str; 6] = ["command", "cmd", "script", "code", "input", "commands"];
    let name = name.to_ascii_lowercase();
    if name != "sh" && !SHELLS.iter().any(|shell| name.contains(shell)) {
        return None;
    }
    let fields = match arguments {
        Value::Object(fields) => fields,
        Value::String(text) => return Some(text.clone()),
        _ => return None,
    };
    KEYS.iter().find_map(|key| match fields.get(*key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
                    Some((*script).to_owned())
                }
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    })
}

/// The line by which a command is remembered.
pub(in crate::digest) fn first_line(command: &str) -> String {
    let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().unwrap_or_default();
    // A line that only goes somewhere says nothing of what was done.
    let line = match lines.next() {
        Some(next) if line.starts_with("cd ") && !line.contains("&&") => next,
        _ => line,
    };
    one_line(line, LENGTH)
}

/// A call of a tool that is not a shell, as one line: its name and its short values.
pub(in crate::digest) fn action(name: &str, arguments: &Value) -> String {
    let mut line = name.to_owned();
    if let Value::Object(fields) = arguments {
        for (key, value) in fields {
            let value = match value {
                Value::String(text) if text.len() <= 200 => one_line(text, 80),
                Value::Number(number) => number.to_string(),
                Value::Bool(_) | Value::Null => continue,
                Value::String(text) => one_line(scan::start(text, 400), 60),
                other => one_line(scan::start(&other.to_string(), 400), 80),
            };
            line.push_str(&format!(" {key}={value}"));
            if line.len() > LENGTH {
                break;
            }
        }
    }
    one_line(&line, LENGTH)
}

/// The exit code that a result tells: in its first lines, its last lines, or as a field of its JSON.
pub(in crate::digest) fn exit_code(output: &str) -> Option<i32> {
    let tail = scan::end(output, 600);
    let head = scan::start(output, 200);
    let last = tail.lines().rev().filter(|line| !line.trim().is_empty()).take(4);
    let first = head.lines().filter(|line| !line.trim().is_empty()).take(2);
    last.chain(first).find_map(told_exit).or_else(|| {
        let json = output.trim_start().starts_with('{');
        json.then(|| field_exit(head).or_else(|| field_exit(tail))).flatten()
    })
}

/// `exit code 1`, `[exit 1]`, `Exit code: 0`, `returncode=2`: the line says little else.
fn told_exit(line: &str) -> Option<i32> {
    const MARKS: &str = "exit code|exit status|exitcode|exit_code|return code|returncode|exited with|exit";
    if line.len() > 120 {
        return None;
    }
    let line = line.trim().to_ascii_lowercase();
    let (mark, at) = MARKS.split('|').find_map(|mark| Some((mark, line.rfind(mark)?)))?;
    let before = line[..at].trim_start_matches(['[', '(', '<', '*', '-', ' ']);
    // A bare `exit 1` in the middle of a line is a line of a script.
    if mark == "exit" && (!before.is_empty() || line[at + 4..].starts_with('(')) {
        return None;
    }
    if before.split_whitespace().count() > 5 || before.contains(['"', '=', '→', ';', '{', '(']) {
        return None;
    }
    let rest = line[at + mark.len()..]
        .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '=' | '>'));
    let rest = rest.strip_prefix("code ").unwrap_or(rest);
    let end = rest
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || (*i == 0 && *c == '-')))
        .map_or(rest.len(), |(i, _)| i);
    let after = rest[end..].trim_matches([']', ')', '>', '*', '.', '-', ' ']);
    if after.len() > 24 { None } else { rest[..end].parse().ok() }
}

fn field_exit(json: &str) -> Option<i32> {
    ["\"exit_code\"", "\"exitCode\"", "\"returncode\"", "\"return_code\"", "\"exit\""].iter().find_map(
        |key| {
            let rest = json[json.find(key)? + key.len()..].trim_start().strip_prefix(':')?.trim_start();
            let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()
        },
    )
}

/// One simple command of a line: its verb and the words after it.
struct Simple<'a> {
    words: Vec<&'a str>,
}

impl<'a> Simple<'a> {
    fn verb(&self) -> &'a str {
        let verb = self.words.first().copied().unwrap_or_default();
        verb.rsplit('/').next().unwrap_or(verb)
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// The simple commands of a script, up to the first here-document.
fn simple(script: &str) -> Vec<Simple<'_>> {
    let mut found = Vec::new();
    for line in scan::start(script, 4000).lines().take(40) {
        for piece in line.split(['|', ';', '&', '(', ')']) {
            let mut words = piece.split_whitespace().peekable();
            while words
                .peek()
                .is_some_and(|w| matches!(*w, "sudo" | "time" | "then" | "do" | "!") || is_assignment(w))
            {
                words.next();
            }
            let words: Vec<&str> = words.collect();
            if !words.is_empty() {
                found.push(Simple { words });
            }
        }
        if line.contains("<<") {
            break;
        }
    }
    found
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    })
}

/// The program that a command runs, with its first word: `cargo test`, `git commit`.
pub(in crate::digest) fn program(command: &str) -> String {
    let simple = simple(command);
    let Some(one) = simple.iter().find(|one| one.verb() != "cd").or(simple.first()) else {
        return String::new();
    };
    let word = one.words.get(1).filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    let word = word.filter(|word| !word.starts_with('-')).map_or_else(String::new, |word| format!(" {word}"));
    format!("{}{word}", one.verb()).replace(',', "")
}

/// True when a command searches: its lines are hits.
pub(in crate::digest) fn searches(script: &str) -> bool {
    let verb = simple(script).into_iter().find(|one| one.verb() != "cd").map(|one| one.verb().to_owned());
    matches!(verb.as_deref(), Some("grep" | "rg" | "egrep" | "find" | "fd" | "ag"))
}

/// True when a script only looks at things: what it prints is not news about a run.
pub(in crate::digest) fn only_looks(script: &str) -> bool {
    const LOOKS: [&str; 27] = [
        "ls", "cat", "head", "tail", "grep", "rg", "egrep", "find", "pwd", "cd", "echo", "which", "wc",
        "tree", "less", "more", "nl", "sort", "uniq", "cut", "awk", "stat", "file", "fd", "ag", "jq", "true",
    ];
    let simple = simple(script);
    !simple.is_empty()
        && simple.iter().all(|one| match one.verb() {
            "sed" => !one.words.iter().any(|w| w.starts_with("-i")),
            "git" => {
                ["log", "diff", "show", "status", "blame", "branch", "grep"].iter().any(|sub| one.has(sub))
            }
            verb => {
                LOOKS.contains(&verb)
                    || verb.starts_with(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '/')
            }
        })
        && !script.contains("> ")
}

/// The files a script touches.
pub(in crate::digest) fn files(script: &str) -> Vec<(String, Touch)> {
    const CHANGES: [&str; 12] =
        ["tee", "touch", "rm", "mv", "cp", "vim", "vi", "nano", "chmod", "patch", "truncate", "mkdir"];
    const READS: [&str; 10] = ["cat", "head", "tail", "less", "more", "nl", "sed", "wc", "bat", "awk"];
    let mut found = Vec::new();
    for one in simple(script) {
        let touch = match one.verb() {
            "sed" if one.words.iter().any(|w| w.starts_with("-i")) => Touch::Changed,
            verb if CHANGES.contains(&verb) => Touch::Changed,
            verb if READS.contains(&verb) => Touch::Read,
            _ => Touch::Seen,
        };
        let mut into = false;
        for word in &one.words[1.min(one.words.len())..] {
            let target = word.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('>');
            let redirected = into || (target.len() < word.len() && word.contains('>'));
            into = redirected && target.is_empty();
            let path = tidy(target.trim_matches(['"', '\'', '(', ')', ',']));
            if path != "/dev/null" && (is_path(path) || (redirected && is_plain(path))) && path.len() <= 300 {
                found.push((path.to_owned(), if redirected { Touch::Changed } else { touch }));
            }
        }
    }
    found
}

fn is_plain(path: &str) -> bool {
    path.len() > 1 && !path.starts_with(['&', '$', '-', '<']) && !path.contains(['*', '$', '{', '='])
}

// Lines that tell of something going wrong, and lines that count how a run went.
//
// Both are read from what commands print, line by line. Source code that merely talks about errors is the reason
// why outputs that only show files are not read here; the caller keeps them away.

/// Characters of a line that are kept.
pub(in crate::digest) const ERROR_LENGTH: usize = 240;
/// Bytes of a line that are looked at.
const LOOK: usize = 1000;

/// What a line begins with when it is about a failure.
const BEGINS: &str = "error|fatal|panic|fail|--- fail|e   |npm err|exception|uncaught|traceback|abort|\
                      segmentation fault|[error]|✗";

/// What a line holds when it is about a failure.
const HOLDS: &str = "error:|error[|error ts|exception:|exception in|panicked at|failed to|failed:|\
                     failed with|cannot find|could not|no such file|not found|permission denied|\
                     undefined reference|undefined:|syntax error|timed out|assertion failed|失敗|エラー|\
                     例外|できません|見つかりません|異常";

/// What a line holds when nothing failed after all.
const FINE: &str = "0 errors|0 error|no errors|no error|0 failed|0 failures|error: null|\"error\":null|\
                    エラーなし";

/// The line, when it tells of a failure.
pub(in crate::digest) fn error(line: &str) -> Option<String> {
    let line = start(line, LOOK).trim();
    if line.len() < 5 || is_listed(line) || is_progress(line) {
        return None;
    }
    let low = line.to_lowercase();
    let begins = BEGINS.split('|').any(|cue| low.starts_with(cue));
    let named = || line.split([' ', ':', '(', ')', ',']).any(is_error_name);
    let holds = || HOLDS.split('|').any(|cue| low.contains(cue)) || line.contains("FAILED") || named();
    if !(begins || holds()) || FINE.split('|').any(|cue| low.contains(cue)) {
        return None;
    }
    // The heading of a traceback says nothing; its last line does.
    if low.starts_with("traceback") || low.trim_end_matches([':', '.']).len() < 6 {
        return None;
    }
    Some(one_line(line, ERROR_LENGTH))
}

/// A line that tells that work goes on or went well: no failure, whatever names stand in it.
pub(in crate::digest) fn is_progress(line: &str) -> bool {
    const STEPS: [&str; 27] = [
        "Compiling",
        "Checking",
        "Downloading",
        "Downloaded",
        "Installing",
        "Installed",
        "Building",
        "Fetching",
        "Fetched",
        "Resolving",
        "Resolved",
        "Updating",
        "Updated",
        "Finished",
        "Documenting",
        "Fresh",
        "Unpacking",
        "Collecting",
        "Preparing",
        "Linking",
        "Locking",
        "Requirement",
        "Using",
        "PASS",
        "ok",
        "✓",
        "✔",
    ];
    let line = line.trim();
    if is_bar(line)
        || line.starts_with("--- PASS")
        || line.starts_with("=== RUN")
        || line.ends_with(" ... ok")
    {
        return true;
    }
    let first = line.split(char::is_whitespace).next().unwrap_or_default();
    let low = || line.to_lowercase();
    STEPS.contains(&first) && !low().contains("fail") && !low().contains(" error:")
}

/// `45%|████      | 9/20`, `[=====>    ] 45%`
fn is_bar(line: &str) -> bool {
    line.contains('%')
        && ["███", "━━━", "▓▓▓", "[==", "[##", "|##", "----"].iter().any(|bar| line.contains(bar))
}

/// A line of a file, with the number that a tool wrote before it.
fn is_listed(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['\t', '→'])
}

/// True for words that only stand in real failures, whatever text is around them.
pub(in crate::digest) fn is_certain(line: &str) -> bool {
    let line = start(line, LOOK);
    ["error:", "error[", "Error:", "Exception:", "panicked at", "FAILED", "fatal:", "エラー:", "例外:"]
        .iter()
        .any(|cue| line.contains(cue))
}

/// `TypeError`, `java.io.IOException`
fn is_error_name(word: &str) -> bool {
    word.len() > 6
        && (word.ends_with("Error") || word.ends_with("Exception"))
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !word.contains(['=', '"', '\'', '/', '<', '`'])
}

/// The line, when it counts how tests went.
pub(in crate::digest) fn tally(line: &str) -> Option<String> {
    let line = start(line, LOOK).trim().trim_matches(['=', ' ']);
    if !line.bytes().any(|b| b.is_ascii_digit()) || line.len() > 200 {
        return None;
    }
    let low = line.to_lowercase();
    let counts =
        ["passed", "failed", "passing", "failing", "skipped", "errors", "problems", "成功", "失敗", "件"]
            .iter()
            .any(|word| low.match_indices(word).any(|(at, _)| counted(&low[..at])));
    let told = ["test result:", "tests:", "test suites:", "coverage:"].iter().any(|cue| low.starts_with(cue));
    let ran = low.starts_with("ran ") && low.contains("test");
    (counts || told || ran).then(|| one_line(line, ERROR_LENGTH))
}

/// True when a number stands right before.
fn counted(before: &str) -> bool {
    before.trim_end().ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_exit_code_is_found_however_it_is_told() {
        for (output, code) in [
            ("ok\n[Command finished with exit code 0]", Some(0)),
            ("Exit code 1\nboom", Some(1)),
            ("lots\nExit code: 101\n", Some(101)),
            ("x\n[exit 2]", Some(2)),
            ("{\"stdout\":\"\",\"exit_code\": 3}", Some(3)),
            ("returncode=-9", Some(-9)),
            ("(Process exited with code 7)", Some(7)),
            ("    25→    exit 1", None),
            ("\tos.Exit(1)", None),
            ("all fine", None),
        ] {
            assert_eq!(exit_code(output), code, "{output}");
        }
    }

    #[test]
    fn a_shell_is_known_by_name_and_key() {
        assert_eq!(command("Bash", &json!({"command": "ls"})).as_deref(), Some("ls"));
        assert_eq!(
            command("shell", &json!({"command": ["bash", "-lc", "cargo test"]})).as_deref(),
            Some("cargo test")
        );
        assert_eq!(command("str_replace_editor", &json!({"command": "view"})), None);
    }

    #[test]
    fn a_shell_line_tells_which_files_it_reads_and_changes() {
        assert_eq!(
            files("cd /w && sed -n 1,9p src/a.rs | head; echo x > out.txt && sed -i s/a/b/ src/b.rs"),
            [
                ("src/a.rs".to_owned(), Touch::Read),
                ("out.txt".to_owned(), Touch::Changed),
                ("src/b.rs".to_owned(), Touch::Changed)
            ]
        );
        assert_eq!(
            files("cat > /w/new.py <<'EOF'\nopen('x/y.txt')\nEOF"),
            [("/w/new.py".to_owned(), Touch::Changed)]
        );
        assert_eq!(files("make 2>/dev/null 2>&1"), []);
    }

    #[test]
    fn looking_is_told_from_doing() {
        assert!(
            only_looks("cd /w && ls -l | head")
                && only_looks("git diff main --stat")
                && only_looks("sed -n 1,5p a")
        );
        assert!(
            !only_looks("cargo test") && !only_looks("sed -i s/a/b/ f") && !only_looks("git commit -m x")
        );
    }

    #[test]
    fn failures_are_told_from_words_about_failures() {
        for line in [
            "error[E0308]: mismatched types",
            "TypeError: x is not a function",
            "thread 'main' panicked at src/main.rs:3:5:",
            "--- FAIL: TestResume (0.3s)",
            "FAILED tests/test_a.py::test_b - assert 1 == 2",
            "bash: foo: command not found",
            "接続に失敗しました",
        ] {
            assert!(error(line).is_some(), "{line}");
        }
        for line in [
            "0 errors, 3 warnings",
            "Finished in 3 s",
            "Traceback (most recent call last):",
            "ok",
            "  38\texcept TypeError:",
            "   Compiling not-found-error: v1.0.2",
            "Downloading TypeError v0.3.1",
            "test parser::fails with: permission denied ... ok",
            "--- PASS: TestMissing/no such file (0.00s)",
            " 45%|████      | failed: 0 of 20",
        ] {
            assert_eq!(error(line), None, "{line}");
        }
    }

    #[test]
    fn a_count_of_tests_is_a_result() {
        for line in [
            "=== 3 failed, 20 passed in 0.5s ===",
            "test result: ok. 5 passed; 0 failed",
            "Tests: 4 total",
            "Ran 12 tests in 0.1s",
        ] {
            assert!(tally(line).is_some(), "{line}");
        }
        assert_eq!(tally("she passed by at 12"), None);
    }
}
