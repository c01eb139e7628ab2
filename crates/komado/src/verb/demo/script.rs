//! What happens in the session: an issue, then one wish after the other, each looked into, done and tested.
//!
//! Nothing here knows of windows or tokens. The same seed plays the same session.

use super::dice::Dice;
use super::library::{self, FILES, Text};
use serde_json::json;
use std::collections::VecDeque;

/// The system prompt.
pub(super) const SYSTEM: &str = "You are a careful engineer. You work on the issue you are given, in the repository \
you are in. Read before you change; change little; run the tests after every change; say what you did in one or two \
sentences. Call several tools at once when they do not depend on each other.";

/// The tools, as the chat API wants them.
pub(super) const TOOLS: &str = r#"[{"type":"function","function":{"name":"read_file","description":"Read lines of a file.","parameters":{"type":"object","properties":{"path":{"type":"string"},"from":{"type":"integer"},"to":{"type":"integer"}},"required":["path"]}}},{"type":"function","function":{"name":"search","description":"Find lines that contain a word.","parameters":{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}}},{"type":"function","function":{"name":"list_files","description":"List the files.","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"edit_file","description":"Insert a line.","parameters":{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}},"required":["path","line","text"]}}},{"type":"function","function":{"name":"run_tests","description":"Run the tests whose names contain a word.","parameters":{"type":"object","properties":{"filter":{"type":"string"}}}}}]"#;

/// What must hold whatever else is forgotten.
pub(super) const RULES: &str = "Rules for this repository:\n1. The journal's format is frozen: never change how a line \
is written.\n2. No unwrap outside tests.\n3. Run the tests after every change.\n4. Answer in the language of the \
question. コミットメッセージは英語で書いてください。";

/// What the session is about.
pub(super) const ISSUE: &str = "Issue #1: the view needs explaining\n\nA newcomer opens `crates/core/src/view.rs` and \
asks: why does folding a million entries cost no more than folding ten? Go through view, layout, admit and the index, \
add a comment wherever the reason is not plain from the code, and add a test where a promise is made that nothing \
checks. I will send more wishes as I find them.";

/// One thing the model says, with the calls it makes.
pub(super) struct Turn {
    /// Said by the user before, when the model waits.
    pub(super) asked: Option<String>,
    pub(super) says: String,
    pub(super) acts: Vec<Act>,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Read { path: String, from: usize, to: usize },
    Search { word: &'static str },
    List,
    Edit { text: &'static Text, line: usize, new: String },
    Test { filter: &'static str, fails: bool },
}

/// What came of a call.
pub(super) struct Came {
    pub(super) output: String,
    pub(super) failed: bool,
}

impl Act {
    pub(super) fn tool(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read_file",
            Self::Search { .. } => "search",
            Self::List => "list_files",
            Self::Edit { .. } => "edit_file",
            Self::Test { .. } => "run_tests",
        }
    }

    pub(super) fn arguments(&self) -> String {
        match self {
            Self::Read { path, from: 1, to: usize::MAX } => json!({ "path": path }),
            Self::Read { path, from, to } => json!({ "path": path, "from": from, "to": to }),
            Self::Search { word } => json!({ "word": word }),
            Self::List => json!({}),
            Self::Edit { text, line, new } => json!({ "path": text.path, "line": line, "text": new }),
            Self::Test { filter, .. } => json!({ "filter": filter }),
        }
        .to_string()
    }

    /// Does it.
    pub(super) fn act(&self) -> Came {
        let came = |output: String| Came { output, failed: false };
        match self {
            Self::Read { path, from, to } => match library::find(path) {
                Some(text) => came(text.slice(*from, (*to).min(text.len()))),
                None => Came {
                    output: format!("error: {path}: No such file or directory (os error 2)"),
                    failed: true,
                },
            },
            Self::Search { word } => came(library::search(word, 40)),
            Self::List => {
                came(FILES.iter().map(|text| format!("{:>6}  {}\n", text.text.len(), text.path)).collect())
            }
            Self::Edit { text, line, new } => came(hunk(text, *line, new)),
            Self::Test { filter, fails } => test_run(filter, *fails),
        }
    }
}

/// A change as a diff shows it.
fn hunk(text: &Text, line: usize, new: &str) -> String {
    let before = line.saturating_sub(2).max(1);
    let mut hunk = format!("--- a/{0}\n+++ b/{0}\n@@ -{before},4 +{before},5 @@\n", text.path);
    for n in before..line {
        hunk.push_str(&format!(" {}\n", text.line(n)));
    }
    hunk.push_str(&format!("+{new}\n"));
    for n in line..line + 2 {
        hunk.push_str(&format!(" {}\n", text.line(n)));
    }
    hunk
}

fn test_run(filter: &str, fails: bool) -> Came {
    let names = library::tests();
    let mut output = String::from(
        "   Compiling komado-core v0.1.0 (crates/core)\n    Finished `test` profile [optimized + debuginfo] target(s) in 6.31s\n",
    );
    output.push_str(&format!("     Running unittests src/lib.rs\n\nrunning {} tests\n", names.len()));
    let broken = names.len() / 2;
    for (i, name) in names.iter().enumerate() {
        let verdict = if fails && i == broken { "FAILED" } else { "ok" };
        output.push_str(&format!("test {name} ... {verdict}\n"));
    }
    let failed = usize::from(fails);
    if let Some(name) = names.get(broken).filter(|_| fails) {
        output.push_str(&format!(
            "\nfailures:\n\n---- {name} stdout ----\nthread '{name}' panicked at crates/core/src/{filter}.rs:217:9:\nassertion `left == right` failed\n  left: 3\n right: 4\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"
        ));
    }
    let verdict = if fails { "FAILED" } else { "ok" };
    output.push_str(&format!(
        "\ntest result: {verdict}. {} passed; {failed} failed; 0 ignored; finished in 0.42s\n",
        names.len() - failed
    ));
    Came { output, failed: fails }
}

/// The session to come.
pub(super) struct Script {
    dice: Dice,
    waiting: VecDeque<Turn>,
    wishes: usize,
}

/// What is wished for; `{f}` is a function, `{p}` its file.
const WISHES: [&str; 8] = [
    "`{f}` in {p}: say in a comment why it costs nothing that grows with the conversation.",
    "I stumbled over `{f}` ({p}). What happens to it after a rewind? Write down the answer next to the code.",
    "{p} の `{f}` は初めて読む人には難しいです。理由をコメントに書いて、テストを実行してください。",
    "Is there a test that fails when `{f}` in {p} forgets the pins? If not, add one.",
    "`{f}` ({p}): does it hold when two calls are made at once? Check, and note what you find.",
    "Please go over the error texts around `{f}` in {p}: each must say what to do next.",
    "{p} の `{f}`：日本語のテキストでもトークン数が正しく数えられるか確認してください。",
    "What reads `{f}` in {p}, and from how many places? Leave a comment for the next reader.",
];

impl Script {
    pub(super) fn new() -> Self {
        let mut script = Self { dice: Dice::new(1), waiting: VecDeque::new(), wishes: 0 };
        script.wish(None);
        script
    }

    /// The next turn.
    pub(super) fn next(&mut self) -> Turn {
        if self.waiting.is_empty() {
            let wish = WISHES[self.wishes % WISHES.len()];
            self.wishes += 1;
            self.wish(Some(wish));
        }
        self.waiting.pop_front().unwrap_or_else(|| self.farewell())
    }

    /// The last one.
    pub(super) fn farewell(&self) -> Turn {
        let says = "Everything on the list is done: the comments are in, the promises have their tests, and all tests \
                    pass. 以上で完了です。";
        Turn { asked: None, says: says.into(), acts: Vec::new() }
    }

    /// Some turns that lead nowhere.
    pub(super) fn astray(&mut self) -> Vec<Turn> {
        let text = self.file();
        let edit = Act::Edit {
            text,
            line: text.len() / 2,
            new: "    self.items = self.items.saturating_add(1);".into(),
        };
        vec![
            turn("Perhaps the sums are simply off by one; I will add it where they are read.", vec![edit]),
            turn("Now the tests.", vec![Act::Test { filter: "view", fails: true }]),
            turn(
                "It fails elsewhere. I will add one there as well, and run them again.",
                vec![Act::Test { filter: "layout", fails: true }],
            ),
        ]
    }

    /// Some turns that try another idea.
    pub(super) fn aside(&mut self) -> Vec<Turn> {
        let text = self.file();
        vec![
            turn(
                "Would a tree serve better than a list here? I will look at what the list is asked for.",
                vec![self.read(text), Act::Search { word: "partition_point" }],
            ),
            turn(
                "Every question is a binary search already. I will measure before I say more.",
                vec![Act::Test { filter: "layout", fails: false }],
            ),
        ]
    }

    fn file(&mut self) -> &'static Text {
        &FILES[self.dice.below(FILES.len())]
    }

    /// Looks into a wish (the issue itself when there is none), does it, tests it, reports.
    fn wish(&mut self, wish: Option<&str>) {
        let text = if wish.is_none() { &FILES[0] } else { self.file() };
        let functions = text.functions();
        let (line, word) = functions.get(self.dice.below(functions.len())).copied().unwrap_or((1, "fold"));
        let japanese = wish.is_some_and(|wish| !wish.is_ascii());
        let first = self.waiting.len();
        self.look(text, word);
        let new = format!(
            "{}// {word}: reads the index, never the entries.",
            " ".repeat(text.line(line).len() - text.line(line).trim_start().len())
        );
        let says = format!("The reason is plain now; I will write it down above `{word}`.");
        self.waiting.push_back(turn(says, vec![Act::Edit { text, line, new: new.clone() }]));
        let filter = text.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let fails = self.dice.below(5) < 2;
        self.waiting.push_back(turn("Running the tests.", vec![Act::Test { filter, fails }]));
        if fails {
            let near =
                Act::Read { path: text.path.into(), from: line.saturating_sub(15).max(1), to: line + 25 };
            self.waiting
                .push_back(turn("One test fails. I will look at the lines around my change.", vec![near]));
            self.waiting.push_back(turn(
                "The comment split a doc block; moving it.",
                vec![Act::Edit { text, line: line + 1, new }],
            ));
            self.waiting.push_back(turn("And the tests again.", vec![Act::Test { filter, fails: false }]));
        }
        let report = if japanese {
            format!("`{word}` の理由をコメントに書きました。テストはすべて通ります。")
        } else {
            format!("Done: `{word}` in {} now says why it is cheap, and the tests pass.", text.path)
        };
        self.waiting.push_back(turn(report, Vec::new()));
        if let (Some(wish), Some(turn)) = (wish, self.waiting.get_mut(first)) {
            turn.asked = Some(wish.replace("{f}", word).replace("{p}", text.path));
        }
    }

    /// Search, then read: one file or several at once, now and then a whole one, now and then one that is not there.
    fn look(&mut self, text: &'static Text, word: &'static str) {
        let mut acts = vec![Act::Search { word }];
        if self.dice.below(3) == 0 {
            acts.push(Act::List);
        }
        self.waiting.push_back(turn(format!("I will look for `{word}` first."), acts));
        if self.dice.below(4) == 0 {
            let path = text.path.replace(".rs", "s.rs");
            self.waiting
                .push_back(turn(format!("Opening {path}."), vec![Act::Read { path, from: 1, to: 60 }]));
        }
        for _ in 0..self.dice.between(2, 4) {
            let whole = self.dice.below(8) == 0;
            let mut acts = vec![if whole {
                Act::Read { path: text.path.into(), from: 1, to: usize::MAX }
            } else {
                self.read(text)
            }];
            if self.dice.below(3) == 0 {
                let other = self.file();
                acts.push(self.read(other));
            }
            let says = if acts.len() > 1 {
                "Reading both at once.".into()
            } else {
                format!("Reading {}.", text.path)
            };
            self.waiting.push_back(turn(says, acts));
        }
    }

    fn read(&mut self, text: &'static Text) -> Act {
        let from = self.dice.between(1, text.len().saturating_sub(40).max(1));
        Act::Read { path: text.path.into(), from, to: (from + self.dice.between(30, 90)).min(text.len()) }
    }
}

fn turn(says: impl Into<String>, acts: Vec<Act>) -> Turn {
    Turn { asked: None, says: says.into(), acts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_session_is_played_every_time_and_has_everything_in_it() {
        let play = || {
            let mut script = Script::new();
            (0..200).map(|_| script.next()).collect::<Vec<_>>()
        };
        let (a, b) = (play(), play());
        assert!(a.iter().zip(&b).all(|(a, b)| a.says == b.says && a.asked == b.asked));
        let acts: Vec<&Act> = a.iter().flat_map(|turn| &turn.acts).collect();
        assert!(a.iter().any(|turn| turn.acts.len() > 1), "calls at once");
        assert!(a.iter().any(|turn| turn.asked.as_ref().is_some_and(|asked| !asked.is_ascii())), "Japanese");
        assert!(acts.iter().any(|act| act.act().failed) && acts.iter().any(|act| !act.act().failed));
        assert!(acts.iter().all(|act| !act.act().output.is_empty() && act.arguments().starts_with('{')));
        serde_json::from_str::<serde_json::Value>(TOOLS).unwrap();
    }
}
