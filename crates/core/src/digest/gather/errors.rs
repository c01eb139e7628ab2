//! Lines that tell of something going wrong, and lines that count how a run went.
//!
//! Both are read from what commands print, line by line. Source code that merely talks about errors is the reason
//! why outputs that only show files are not read here; the caller keeps them away.

use crate::digest::scan::{one_line, start};

/// Characters of a line that are kept.
pub(in crate::digest) const LENGTH: usize = 240;
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
    if line.len() < 5 || is_listed(line) {
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
    Some(one_line(line, LENGTH))
}

/// A line of a file, with the number that a tool wrote before it.
fn is_listed(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['\t', '→'])
}

/// True for words that only stand in real failures, whoever wrote the text around them.
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
    (counts || told || ran).then(|| one_line(line, LENGTH))
}

/// True when a number stands right before.
fn counted(before: &str) -> bool {
    before.trim_end().ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

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
