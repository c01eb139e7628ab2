//! Calls and their results: what was run, which files it touched, how it ended.
//!
//! A call is remembered until its result comes; what then remains are the open ones. It refuses to hold a result's
//! words: lines that matter are taken out, the rest goes.

use super::paths::Touch;
use super::{FactOrigin, Gathered, commands, ids, paths, steps};
use crate::Seq;
use crate::digest::fact::{Fact, FactKind};
use crate::digest::scan;
use crate::digest::timeline::{Step, StepEnd, StepKind};
use crate::message::{Call, MessagePart, ToolOutcome};
use serde_json::Value;

/// Open calls that are remembered.
const OPEN: usize = 256;
/// Error lines of one result, from each end.
const LINES: usize = 6;

/// A call that waits for its result.
#[derive(Clone, Debug)]
pub(in crate::digest) struct OpenDigestCall {
    pub(in crate::digest) seq: Seq,
    pub(in crate::digest) text: String,
    what: What,
    tool: String,
    /// What it is about, in few words.
    brief: String,
    /// Its number in the timeline.
    step: Option<u64>,
    /// Running work that it names.
    ids: Vec<String>,
}

#[derive(Clone, Debug)]
enum What {
    /// A command for a shell.
    Shell { key: String, looks: bool },
    /// Work on files, each with what had happened to it before.
    Files { paths: Vec<(String, Touch)>, touch: Touch },
    /// Any other tool; `searches` when it looks for something.
    Action { key: String, searches: bool },
    /// Known from an earlier digest only, or about to-dos.
    Other,
}

impl Gathered {
    pub(super) fn call(&mut self, seq: Seq, call: &Call) {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let (what, brief, step) = if self.todos.call(seq, &call.id, &call.name, &arguments) {
            (What::Other, call.name.clone(), None)
        } else if let Some(script) = commands::command(&call.name, &arguments) {
            self.shell(seq, &script)
        } else {
            self.tool(seq, &call.name, &arguments)
        };
        if self.open.len() >= OPEN {
            let oldest =
                self.open.iter().min_by_key(|(id, waiting)| (waiting.seq, *id)).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.open.remove(&id));
        }
        let hash = steps::hash(0, &call.arguments);
        let step = step.map(|step| self.timeline.begin(Step { hash, ..step }));
        let text = format!("call {} {}: {}", call.id, call.name, scan::one_line(&brief, 120));
        let text = text.trim_end_matches([':', ' ']).to_owned();
        let (tool, ids) = (call.name.clone(), self.background.named(&arguments));
        self.open.insert(call.id.clone(), OpenDigestCall { seq, text, what, tool, brief, step, ids });
    }

    /// An open call that an earlier digest told.
    pub(in crate::digest) fn recall_open(&mut self, fact: Fact) {
        if self.background.recall(&fact) {
            return;
        }
        if let Some((id, rest)) = fact.text.strip_prefix("call ").and_then(|rest| rest.split_once(' ')) {
            let (tool, brief) = rest.split_once(": ").unwrap_or((rest, ""));
            let (seq, text) = (fact.at, fact.text.clone());
            let (tool, brief) = (tool.to_owned(), brief.to_owned());
            let waiting =
                OpenDigestCall { seq, text, what: What::Other, tool, brief, step: None, ids: Vec::new() };
            self.open.entry(id.to_owned()).or_insert(waiting);
        }
    }

    /// A command that an earlier digest told.
    pub(in crate::digest) fn recall_command(&mut self, fact: Fact) {
        let weight = if commands::only_looks(&fact.text) { 0 } else { 300 };
        self.commands.put(fact.text.clone(), fact.weighing(weight));
    }

    fn shell(&mut self, seq: Seq, script: &str) -> (What, String, Option<Step>) {
        let line = commands::first_line(script);
        let looks = commands::only_looks(script);
        let mut files = commands::files(script);
        paths::patched(script, &mut files);
        files.into_iter().for_each(|(path, touch)| self.touch(seq, path, touch));
        self.words(seq, FactOrigin::Arguments, scan::start(script, 4000));
        self.command(seq, &line, if looks { 0 } else { 400 });
        let step = steps::ran(seq, script, &line);
        (What::Shell { key: line.clone(), looks }, line, Some(step))
    }

    fn tool(&mut self, seq: Seq, name: &str, arguments: &Value) -> (What, String, Option<Step>) {
        let touched = paths::touched(name, arguments);
        let most = touched.iter().map(|(_, touch)| *touch).max().unwrap_or(Touch::Seen);
        let step = steps::tool(seq, name, arguments, &touched, most);
        let mut paths = Vec::new();
        for (path, _) in &touched {
            paths.push((path.clone(), self.paths.get_mut(path).map_or(Touch::Seen, |known| known.touch)));
        }
        for (path, touch) in &touched {
            self.touch(seq, path.clone(), *touch);
        }
        if most > Touch::Seen {
            if most == Touch::Changed {
                self.written(seq, arguments);
            }
            let brief = paths.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>().join(", ");
            return (What::Files { paths, touch: most }, brief, Some(step));
        }
        let line = commands::action(name, arguments);
        self.values(seq, arguments);
        if name != "think" && step.kind == StepKind::Call {
            self.command(seq, &line, if touched.is_empty() { 300 } else { 0 });
        }
        let searches = step.kind == StepKind::Search;
        (What::Action { key: line.clone(), searches }, line, Some(step).filter(|_| name != "think"))
    }

    /// Words of the values of a call; its keys belong to the tool.
    fn values(&mut self, seq: Seq, value: &Value) {
        match value {
            Value::String(text) => self.words(seq, FactOrigin::Arguments, text),
            Value::Number(number) => self.words(seq, FactOrigin::Arguments, &number.to_string()),
            Value::Array(list) => list.iter().for_each(|item| self.values(seq, item)),
            Value::Object(fields) => fields.values().for_each(|value| self.values(seq, value)),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn command(&mut self, seq: Seq, line: &str, weight: u32) {
        if !line.is_empty() {
            let fact = Fact::new(FactKind::Command { exit: None }, line, seq).weighing(weight);
            self.commands.put(line.to_owned(), fact);
        }
    }

    fn touch(&mut self, seq: Seq, path: String, touch: Touch) {
        let weight = match touch {
            Touch::Changed => 800,
            Touch::Read => 400,
            Touch::Seen => 200,
        };
        let fact = Fact::new(FactKind::Path, path.clone(), seq).weighing(weight).touching(touch);
        self.paths.put(path, fact);
    }

    /// Names that the text of a changing call defines.
    fn written(&mut self, seq: Seq, arguments: &Value) {
        let Value::Object(fields) = arguments else { return };
        for (_, text) in fields.iter().filter(|(key, _)| !key.to_ascii_lowercase().starts_with("old")) {
            let Some(text) = text.as_str() else { continue };
            ids::defined(text, |name| {
                let fact = Fact::new(FactKind::Symbol, name, seq).weighing(300);
                self.symbols.put(name.to_owned(), fact);
            });
        }
    }

    /// Words and names of what was merely shown.
    fn shown(&mut self, seq: Seq, output: &str) {
        self.output_words(seq, FactOrigin::Shown, output);
        ids::defined(scan::start(output, 1 << 18), |name| {
            self.symbols.put(name.to_owned(), Fact::new(FactKind::Symbol, name, seq).weighing(60));
        });
    }

    pub(super) fn result(&mut self, seq: Seq, outcome: &ToolOutcome) {
        let waiting = self.open.remove(&outcome.call_id);
        let output: Vec<&str> = outcome
            .content
            .iter()
            .filter_map(
                |part| if let MessagePart::Text { text, .. } = part { Some(text.as_str()) } else { None },
            )
            .collect();
        let output = output.join("\n");
        self.todos.result(&outcome.call_id, &output, outcome.is_error);
        let Some(OpenDigestCall { what, tool, brief, step, ids, seq: asked, .. }) = waiting else {
            self.keep_ref(seq, &What::Other, outcome);
            self.first_errors(seq, &output, outcome.is_error);
            return self.output_words(seq, FactOrigin::Output, &output);
        };
        let named = self.keep_ref(seq, &what, outcome);
        if matches!(what, What::Shell { .. } | What::Action { .. }) || !ids.is_empty() {
            self.background.answered(asked, &tool, &brief, &ids, &output);
        }
        let (end, note) = self.answered(seq, what, outcome, &output, named);
        if let Some(step) = step {
            let end = if outcome.interrupted { StepEnd::Open } else { end };
            self.timeline.finish(step, end, &note);
        }
    }

    /// Takes out of an answer what matters; how the call ended, and the line that says most of it.
    fn answered(
        &mut self,
        seq: Seq,
        what: What,
        outcome: &ToolOutcome,
        output: &str,
        named: Option<String>,
    ) -> (StepEnd, String) {
        match what {
            What::Shell { key, looks } => self.shell_answered(seq, (&key, looks), outcome, output, named),
            What::Files { paths, touch } => {
                let error = self.first_errors(seq, output, outcome.is_error);
                if touch == Touch::Read {
                    self.shown(seq, output);
                }
                let Some(error) = error.filter(|_| outcome.is_error || is_refusal(output)) else {
                    return (StepEnd::Done, String::new());
                };
                for (path, before) in paths {
                    if let Some(known) = self.paths.get_mut(&path) {
                        known.touch = before;
                    }
                }
                (StepEnd::Failed, error)
            }
            What::Action { searches, .. } => {
                let error = self.first_errors(seq, output, outcome.is_error);
                self.output_words(seq, FactOrigin::Output, output);
                match error.filter(|_| outcome.is_error || is_refusal(output)) {
                    Some(error) => (StepEnd::Failed, error),
                    None if searches => (steps::hits(output), String::new()),
                    None => (StepEnd::Done, steps::first_line(output)),
                }
            }
            What::Other => {
                self.first_errors(seq, output, outcome.is_error);
                self.output_words(seq, FactOrigin::Output, output);
                (StepEnd::Done, String::new())
            }
        }
    }

    fn shell_answered(
        &mut self,
        seq: Seq,
        (key, looks): (&str, bool),
        outcome: &ToolOutcome,
        output: &str,
        named: Option<String>,
    ) -> (StepEnd, String) {
        let exit = commands::exit_code(output);
        let failed = outcome.is_error || outcome.interrupted;
        if let Some(fact) = self.commands.get_mut(key) {
            fact.kind = FactKind::Command { exit };
            fact.failed = failed && exit.is_none();
        }
        let bad = failed || exit.is_some_and(|code| code != 0);
        if !bad {
            self.git.ran(seq, key, output);
        }
        if looks && !bad {
            self.shown(seq, output);
            let end = if commands::searches(key) { steps::hits(output) } else { StepEnd::Done };
            return (
                exit.map_or(end, |code| if end == StepEnd::Done { StepEnd::Exit(code) } else { end }),
                String::new(),
            );
        }
        let (error, tally) = self.ran(seq, key, output, bad, named);
        let note = match (bad, error, tally) {
            (true, Some(error), _) => error,
            (_, _, Some(tally)) => tally,
            (true, None, None) => steps::last_line(output),
            (false, _, None) => String::new(),
        };
        let end = if failed { StepEnd::Failed } else { StepEnd::Done };
        (exit.map_or(end, StepEnd::Exit), note)
    }

    /// Cites the whole output at what it belongs to; gives its id.
    fn keep_ref(&mut self, seq: Seq, what: &What, outcome: &ToolOutcome) -> Option<String> {
        let id = outcome.output_ref.as_ref().map(|output| output.id.clone())?;
        let owner = match what {
            What::Shell { key, .. } | What::Action { key, .. } => self.commands.get_mut(key),
            What::Files { paths, .. } => paths.first().and_then(|(path, _)| self.paths.get_mut(path)),
            What::Other => None,
        };
        match owner {
            Some(fact) => fact.output = Some(id.clone()),
            None => {
                let tool = outcome.name.as_deref().unwrap_or("tool");
                let fact = Fact::new(FactKind::Id, format!("{tool} output"), seq).weighing(300);
                self.outputs.put(id.clone(), Fact { output: Some(id.clone()), ..fact });
            }
        }
        Some(id)
    }

    /// What a command printed: errors, counts of tests, words. Gives the first error and the last count.
    fn ran(
        &mut self,
        seq: Seq,
        key: &str,
        output: &str,
        bad: bool,
        named: Option<String>,
    ) -> (Option<String>, Option<String>) {
        let mut found = Vec::new();
        let mut tallies = Vec::new();
        for line in output.lines() {
            if let Some(error) = commands::error(line) {
                // The first few and the last few of a flood.
                if found.len() == 2 * LINES {
                    found.remove(LINES);
                }
                found.push(error);
            }
            if let Some(tally) = commands::tally(line) {
                if tallies.len() == 3 {
                    tallies.remove(0);
                }
                tallies.push(tally);
            }
        }
        if found.is_empty() && !bad {
            for error in self.errors.values_mut().filter(|error| error.cause.as_deref() == Some(key)) {
                error.resolved.get_or_insert(seq);
            }
        }
        let told = (found.first().cloned(), tallies.last().cloned());
        for text in found {
            self.error(seq, text, if bad { 300 } else { 150 }, Some(key), named.clone());
        }
        for text in tallies {
            self.results.put(scan::shape(&text), Fact::new(FactKind::Number, text, seq).weighing(400));
        }
        self.output_words(seq, FactOrigin::Output, output);
        told
    }

    /// Errors in the first lines of what a tool answered; the first line, when the tool says that it failed.
    fn first_errors(&mut self, seq: Seq, output: &str, failed: bool) -> Option<String> {
        let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).peekable();
        let first = lines.peek().copied().unwrap_or_default();
        let found = lines.filter(|line| line.len() < 2000 && is_notice(line)).find_map(commands::error);
        let found = found.or_else(|| failed.then(|| scan::one_line(first, commands::ERROR_LENGTH)));
        let found = found.filter(|text| !text.is_empty())?;
        self.error(seq, found.clone(), 150, None, None);
        Some(found)
    }

    fn error(&mut self, seq: Seq, text: String, weight: u32, cause: Option<&str>, output: Option<String>) {
        let key = scan::shape(&text);
        let fact = Fact::new(FactKind::Error, text, seq).weighing(weight);
        self.errors.put(key, Fact { cause: cause.map(str::to_owned), output, ..fact });
    }
}

/// A command that an earlier digest's timeline told.
pub(super) fn ran_before(seq: Seq, command: &str, end: StepEnd, count: u32) -> Fact {
    let exit = if let StepEnd::Exit(code) = end { Some(code) } else { None };
    let fact = Fact::new(FactKind::Command { exit }, command, seq);
    Fact { count, failed: end == StepEnd::Failed, ..fact }
}

/// True when a tool that does not mark its failures begins its answer with one.
fn is_refusal(output: &str) -> bool {
    ["Error:", "ERROR:", "error:", "<tool_use_error>", "Error "]
        .iter()
        .any(|start| output.trim_start().starts_with(start))
}

/// True when a line speaks of itself as an error, and is not a line of a file.
fn is_notice(line: &str) -> bool {
    let low = scan::start(line, 80).to_lowercase();
    ["error", "<tool_use_error>", "failed", "exception", "cannot", "エラー", "失敗"]
        .iter()
        .any(|cue| low.starts_with(cue))
}
