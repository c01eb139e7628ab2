//! The judge: hard facts of a conversation, found by plain patterns that share nothing with the digest's own readers.
//!
//! Simple on purpose. The judged code must not have written the law, so nothing here calls the digest, and a pattern
//! is changed because it is wrong about conversations, never because a digest scores badly.

use komado_core::harness::user_text;
use komado_core::message::{Message, MessagePart, Role};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// What is judged, in the order of the report.
pub(crate) const CLASSES: [&str; 9] =
    ["rules", "paths", "commands", "exit codes", "errors", "urls", "ids", "symbols", "numbers"];
const RULES: usize = 0;
const PATHS: usize = 1;
const COMMANDS: usize = 2;
const EXITS: usize = 3;
const ERRORS: usize = 4;
const URLS: usize = 5;
const IDS: usize = 6;
const SYMBOLS: usize = 7;
const NUMBERS: usize = 8;

/// A class and a text.
pub(crate) type ExpectedFact = (usize, String);

/// Facts with the number of messages that hold each.
pub(crate) type Facts = BTreeMap<ExpectedFact, u32>;

pub(crate) struct Judge {
    path: Regex,
    url: Regex,
    id: Regex,
    symbol: Regex,
    number: Regex,
    error: Regex,
    exit: Regex,
    rule: Regex,
    line_number: Regex,
}

impl Judge {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            path: Regex::new(
                r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*[A-Za-z]\w*\.[A-Za-z]\w{0,5}\b|\b[\w-]{2,}\.(?:rs|go|py|tsx?|jsx?|md|toml|ya?ml|json|sh|c|h|cpp|txt)\b",
            )?,
            url: Regex::new(r#"https?://[^\s"'<>)\]}`\\,]+"#)?,
            id: Regex::new(
                r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]*(?:\d[a-f]|[a-f]\d)[0-9a-f]{5,38}\b|#\d+\b|\bv?\d+\.\d+\.\d+\b|\b[A-Z]{2,}-\d+\b|\b(?:[A-Z]+\d+[A-Z\d]*|\d+[A-Z][A-Z\d]*)\b",
            )?,
            symbol: Regex::new(
                r"\b(?:fn|def|class|func|function|struct|enum|trait|interface)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{4,})",
            )?,
            number: Regex::new(r"\$?\b\d[\d,]*(?:\.\d+)?\b%?")?,
            error: Regex::new(
                r"\b(?:[A-Z]\w*(?:Error|Exception)|error|Error|ERROR|FAILED|FAIL|fatal|panic(?:ked)?)\b|エラー|失敗|例外",
            )?,
            exit: Regex::new(
                r"(?i)(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)?|return ?code)\W{0,4}(-?\d+)",
            )?,
            rule: Regex::new(
                r"(?i)\b(?:must|never|always|don't|do not|only|make sure|important|please use|prefer)\b|必ず|しないで|てはいけない|禁止|絶対|べき|のみ|厳守",
            )?,
            line_number: Regex::new(r"(?m)^\s*\d+[→:|\t]")?,
        })
    }

    /// The facts of `messages`.
    pub(crate) fn facts(&self, messages: &[Message]) -> Facts {
        let mut facts = Facts::new();
        for fact in self.each(messages).into_iter().flatten() {
            *facts.entry(fact).or_default() += 1;
        }
        // Figures and names count when they come back.
        facts.retain(|(class, _), times| !matches!(*class, NUMBERS | SYMBOLS) || *times >= 2);
        facts
    }

    /// What each of `messages` holds.
    pub(crate) fn each(&self, messages: &[Message]) -> Vec<BTreeSet<ExpectedFact>> {
        let mut each = Vec::with_capacity(messages.len());
        let mut shells: BTreeMap<&str, String> = BTreeMap::new();
        for message in messages {
            let mut found = BTreeSet::new();
            for part in &message.parts {
                match part {
                    MessagePart::Call(call) => {
                        if let Some(command) = shell_command(&call.name, &call.arguments) {
                            found.insert((COMMANDS, command.clone()));
                            shells.insert(&call.id, command);
                        }
                    }
                    MessagePart::Result(outcome) => {
                        if let Some(command) = shells.get(outcome.call_id.as_str()) {
                            self.outcome(command, &message.words(), &mut found);
                        }
                    }
                    _ => {}
                }
            }
            if message.role == Role::User {
                // What an agent writes around its user's words is no rule of the user.
                for words in user_text(&message.words()) {
                    self.rules(words, &mut found);
                }
            }
            self.words(&said(message), &mut found);
            each.push(found);
        }
        each
    }

    fn words(&self, text: &str, found: &mut BTreeSet<ExpectedFact>) {
        for url in self.url.find_iter(text) {
            found.insert((URLS, url.as_str().trim_end_matches(['.', ':', ';']).to_owned()));
        }
        let text = self.url.replace_all(text, " ");
        found.extend(
            self.path.find_iter(&text).map(|path| (PATHS, path.as_str().trim_start_matches("./").to_owned())),
        );
        found.extend(self.id.find_iter(&text).map(|id| (IDS, id.as_str().to_owned())));
        found.extend(self.symbol.captures_iter(&text).map(|name| (SYMBOLS, name[1].to_owned())));
        let text = self.line_number.replace_all(&text, " ");
        found.extend(
            self.number
                .find_iter(&text)
                .map(|number| number.as_str().trim_end_matches(','))
                .filter(|number| number.len() >= 3)
                .map(|number| (NUMBERS, number.to_owned())),
        );
    }

    /// Errors and the exit code of what a shell printed.
    fn outcome(&self, command: &str, output: &str, found: &mut BTreeSet<ExpectedFact>) {
        for line in output.lines().filter(|line| line.len() <= 300 && self.error.is_match(line)) {
            found.insert((ERRORS, one_line(line)));
        }
        let ends: Vec<&str> = output.lines().take(1).chain(output.lines().rev().take(2)).collect();
        if let Some(exit) = ends.into_iter().find_map(|line| self.exit.captures(line)) {
            found.insert((EXITS, format!("{command}\u{0}{}", &exit[1])));
        }
    }

    fn rules(&self, text: &str, found: &mut BTreeSet<ExpectedFact>) {
        let sentences = text
            .lines()
            .flat_map(|line| line.split_inclusive(['。', '！']))
            .flat_map(|line| line.split(". "));
        for sentence in sentences.filter(|sentence| sentence.len() <= 400 && self.rule.is_match(sentence)) {
            let sentence = one_line(sentence.trim_start_matches(['-', '*', ' ', '#']));
            found.insert((RULES, sentence.trim_end_matches('.').to_owned()));
        }
    }
}

/// True when `text`, which is on one line, holds the fact.
pub(crate) fn holds(text: &str, fact: &ExpectedFact) -> bool {
    match fact.1.split_once('\u{0}') {
        Some((command, code)) => text.find(command).is_some_and(|at| {
            let rest = text[at + command.len()..].to_ascii_lowercase();
            rest.match_indices("exit").any(|(at, _)| {
                let mut after = rest[at + 4..].chars().take(24).collect::<String>();
                after.push(' ');
                stands(&after, code)
            })
        }),
        None => stands(text, &fact.1),
    }
}

/// True when `word` stands in `text` and is no piece of a longer word.
fn stands(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let (first, last) = (part(word.chars().next()), part(word.chars().next_back()));
    text.match_indices(word).any(|(at, _)| {
        let before = first && part(text[..at].chars().next_back());
        let after = last && part(text[at + word.len()..].chars().next());
        !before && !after
    })
}

/// Everything a message says, with its calls.
pub(crate) fn said(message: &Message) -> String {
    let mut text = message.words();
    for call in message.calls() {
        text.push_str(&format!("\n{} {}", call.name, plain(&call.arguments)));
    }
    text
}

/// Arguments as a reader sees them: a line break is a line break.
fn plain(arguments: &str) -> String {
    arguments.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shell_command(name: &str, arguments: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    if !["bash", "shell", "terminal", "exec"].iter().any(|shell| name.contains(shell)) {
        return None;
    }
    let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
    let line = one_line(arguments.get("command")?.as_str()?.lines().next()?);
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_finds_what_it_judges() {
        let judge = Judge::new().unwrap();
        let read = |line: &str| komado_core::openai::read(line).unwrap();
        let messages = [
            read(r#"{"role":"user","content":"You must read src/a.rs and https://e.org/x. See #12"}"#),
            read(
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{\"command\":\"make all\"}"}}]}"#,
            ),
            read(r#"{"role":"tool","tool_call_id":"c","content":"error: 4711 is odd\nexit code 2"}"#),
        ];
        let facts = judge.facts(&messages);
        let wanted = [
            (RULES, "You must read src/a.rs and https://e.org/x"),
            (PATHS, "src/a.rs"),
            (COMMANDS, "make all"),
            (EXITS, "make all\u{0}2"),
            (ERRORS, "error: 4711 is odd"),
            (URLS, "https://e.org/x"),
            (IDS, "#12"),
        ];
        for (class, text) in wanted {
            assert!(facts.contains_key(&(class, text.to_owned())), "{text} in {facts:?}");
        }
    }

    #[test]
    fn a_fact_is_held_only_as_a_whole() {
        let fact = |class: usize, text: &str| (class, text.to_owned());
        assert!(holds("port 8080 is", &fact(NUMBERS, "8080")) && !holds("18080", &fact(NUMBERS, "8080")));
        assert!(holds("/w/src/a.rs", &fact(PATHS, "src/a.rs")));
        assert!(holds("make all → exit 2", &fact(EXITS, "make all\u{0}2")));
        assert!(!holds("make all → exit 0", &fact(EXITS, "make all\u{0}2")));
    }
}
