//! Tasks that were queued, listed, shown and changed; playbooks that were checked, drawn and followed.

use super::sessions::tail;
use super::{Render, each};
use crate::cli_output::{CliOutput, clip, count, number, table};
use komado_core::notation::{tamed, width};
use komado_ops::OpResult;
use komado_ops::playbook::{CheckedPlaybooks, DrawnPlaybook, RanPlaybook};
use komado_ops::task::{
    AddedTasks, FetchedTasks, QueuedTask, TaskChanged, TaskDetails, TaskList, TaskRow, TaskState,
};
use serde_json::Value;

/// Columns that a key has at least, of its end.
const KEY: usize = 24;
/// Columns that a title has at least.
const TITLE: usize = 8;

impl Render for QueuedTask {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.session)?;
        paper.say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for AddedTasks {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        self.items.iter().try_for_each(|task| task.text(paper))
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)
    }
}

impl Render for FetchedTasks {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for new in &self.queued {
            paper.line(format!("{} {}", new.session, new.task))?;
        }
        paper.say(counted(self));
        Ok(())
    }
}

/// How much was fetched.
pub(crate) fn counted(fetched: &FetchedTasks) -> String {
    format!("{} new, {} known", fetched.queued.len(), fetched.known)
}

impl Render for TaskChanged {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("{} {}", self.session, self.what))?;
        self.undo.iter().for_each(|undo| paper.say(format!("undo: {undo}")));
        Ok(())
    }
}

impl Render for TaskList {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let tasks = &self.page.items;
        if tasks.is_empty() {
            return paper.line(if self.all { "no tasks" } else { "no tasks; --all lists those that ended" });
        }
        let heading = ["task", "state", "turns", "tokens"].map(str::to_owned);
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(tasks.iter().map(cells)).map(Vec::from).collect();
        let figures = table(&rows, &[2, 3]);
        let taken = figures.iter().map(|line| width(line)).max().unwrap_or(0) + 4;
        let room = paper.width.saturating_sub(taken);
        let widest = |text: fn(&TaskRow) -> String| tasks.iter().map(|task| width(&text(task))).max();
        // What no title needs is the keys'.
        let most = room.saturating_sub(widest(title).unwrap_or(0)).max(KEY);
        let left = room.saturating_sub(widest(key).unwrap_or(0).min(most)).max(TITLE);
        let words = tasks.iter().map(|task| [tail(&key(task), most), clip(&title(task), left)]);
        let words = std::iter::once(["key", "title"].map(str::to_owned)).chain(words);
        let rows: Vec<Vec<String>> =
            figures.into_iter().zip(words).map(|(line, [key, title])| vec![line, key, title]).collect();
        table(&rows, &[]).into_iter().try_for_each(|line| paper.fit(&line))
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.page.items)
    }
}

fn cells(task: &TaskRow) -> [String; 4] {
    [task.session.chars().take(8).collect(), state(task), number(task.turns), number(task.tokens)]
}

/// The key. One that is the session's own name says nothing. Of two issues of the same place the end is what tells them apart.
fn key(task: &TaskRow) -> String {
    if task.task.ends_with(&task.session) { "local".to_owned() } else { tamed(&task.task) }
}

fn title(task: &TaskRow) -> String {
    tamed(task.title.as_deref().unwrap_or_default())
}

/// The state, and which try it is where there was more than one.
fn state(task: &TaskRow) -> String {
    match task.tries.filter(|tries| *tries > 1 && task.state != TaskState::Paused) {
        Some(tries) => format!("{} {tries}", task.state.name()),
        None => task.state.name().to_owned(),
    }
}

impl Render for TaskDetails {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for (name, value) in lines(self) {
            paper.field(&format!("{name:<9} "), &tamed(&value))?;
        }
        if let Some(paths) = &self.paths {
            let paths = [("folder", &paths.folder), ("playbook", &paths.playbook), ("files", &paths.files)];
            for (name, path) in paths.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
                paper.line(format!("{name:<9} {path}"))?;
            }
        }
        let journal = &self.journal;
        for (heading, words) in
            [("task", &self.text), ("result", &journal.result), ("last words", &journal.last_words)]
        {
            if let Some(words) = words.as_deref().filter(|words| !words.trim().is_empty()) {
                paper.prose(&format!("\n{heading}:\n{}", words.trim()))?;
            }
        }
        Ok(())
    }
}

fn lines(task: &TaskDetails) -> Vec<(&'static str, String)> {
    let (row, journal) = (&task.row, &task.journal);
    let mut lines = vec![("session", row.session.clone()), ("key", row.task.clone())];
    let mut add = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    add("title", row.title.clone());
    add("url", row.url.clone());
    add("state", Some(row.state.name().to_owned()));
    // What its result says, too, is said there.
    let is_said = |why: &String| journal.result.as_deref().is_some_and(|result| result.contains(why.trim()));
    add("why", row.why.clone().filter(|why| !is_said(why)));
    add("tries", row.tries.map(|tries| tries.to_string()));
    add("worker", row.worker.clone());
    add("node", journal.node.clone());
    if task.has_session {
        let took = [(row.turns, "turn"), (row.tool_calls, "tool call"), (row.tokens, "token")];
        add("took", Some(took.map(|(n, one)| count(n, one)).join(", ")));
        add("threads", Some(journal.threads.to_string()));
        add("started", row.started_at.clone());
        add("ended", row.completed_at.clone());
    }
    lines
}

impl Render for CheckedPlaybooks {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for one in &self.items {
            let file = &one.file;
            if let (Some(name), Some(nodes)) = (&one.name, one.nodes) {
                paper.prose(&format!("{file}: ok, {name} has {}", count(nodes, "node")))?;
            }
            one.warnings.iter().for_each(|warning| paper.say(format!("komado: {file}: {warning}")));
            for problem in &one.problems {
                paper.prose(&format!("{}: {}", problem.place, problem.why))?;
            }
        }
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)
    }
}

impl Render for DrawnPlaybook {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.text)
    }
}

impl Render for RanPlaybook {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.say(format!("ended at {}", self.node));
        // What the model said last was printed as it came.
        match self.vars.get("last").and_then(Value::as_str) == Some(self.result.as_str()) {
            true => Ok(()),
            false => paper.line(&self.result),
        }
    }
}
