//! Threads as people see them: what was started, ended and told, and what is next.

use super::sessions::tail;
use super::window::{gauge, gauge_cells, share_line, share_line_within, share_seen};
use super::{Render, RenderList, address, columns, or_dash};
use crate::cli_output::{CliOutput, Style, clip, count, number};
use komado_core::notation::{tamed, width};
use komado_ops::OpResult;
use komado_ops::page::ResultPage;
use komado_ops::thread::{
    Balanced, ChronicleEntry, EndedThread, Forked, HowEnded, Ran, Resumed, Started, TellResult,
    ThreadChronicle, ThreadRow, ThreadTree, TreeThread, WindowShare, WrittenChronicle,
};
use komado_ops::window::learned_line;

/// How a window is shared out.
fn say_window(paper: &mut CliOutput, window: u64, share: &WindowShare) {
    paper.say(format!("window: {} = {}", number(window), share_line(share)));
}

impl Render for Forked {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.address)?;
        if let Some(base) = &self.base {
            paper.say(format!("shares everything up to @{}; the thread it left is as it was", base.seq));
        }
        paper.say(format!("next: komado append {} \"…\"", self.address));
        Ok(())
    }
}

impl RenderList for ThreadRow {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        let heading = ["thread", "status", "begins at", "goes on from", "entries", "tokens", "label"];
        let rows = page.items.iter().map(|one| {
            [
                one.thread.clone(),
                one.status.to_owned(),
                or_dash(one.parent.as_ref()),
                or_dash(one.base.as_ref()),
                number(one.entries.into()),
                number(one.context_tokens),
                one.label.clone().unwrap_or_default(),
            ]
        });
        columns(paper, heading, &[4, 5], rows)
    }
}

impl Render for Started {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let address = &self.address;
        paper.line(address)?;
        self.share.iter().for_each(|share| say_window(paper, self.window, share));
        paper.say(format!("next: komado ask {address} \"…\"; at the end: komado thread end {address}"));
        paper.say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for EndedThread {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("{} is {}", address(&self.session, &self.thread), self.how.status))?;
        beside(paper, &self.how);
        Ok(())
    }
}

impl Render for Ran {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.say(format!("{} is completed", address(&self.answered.session, &self.answered.thread)));
        beside(paper, &self.how);
        Ok(())
    }
}

/// What else is to be known of a thread that has ended, or waits.
fn beside(paper: &mut CliOutput, ended: &HowEnded) {
    if !ended.aborted.is_empty() {
        paper.say(format!("aborted with it: {}", ended.aborted.join(", ")));
    }
    if let Some(why) = &ended.declined {
        paper.say(format!(
            "komado: the thread did end, and its chronicle is the digest's, not a model's: {why}"
        ));
    }
    if let Some(chronicle) = &ended.chronicle {
        let line = format!("chronicle of {}: {}", covers(chronicle), tamed(chronicle.headline()));
        paper.say(clip(&line, paper.width));
    }
    if !ended.told {
        paper.say(
            "komado: its parent is being changed by another process; it hears of this when it is opened next",
        );
    }
    paper.say(format!("undo: {}", ended.undo));
    ended.undo_aborted.iter().for_each(|undo| paper.say(format!("      {undo}")));
}

/// Which entries a chronicle tells of.
fn covers(chronicle: &ThreadChronicle) -> String {
    let [from, to] = chronicle.covers;
    format!("@{from}..{to}{}", if chronicle.partial { " (partial)" } else { "" })
}

impl Render for Resumed {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let name = address(&self.session, &self.thread);
        paper.line(format!("{name} is active"))?;
        if let Some(share) = &self.share {
            say_window(paper, self.window, share);
            paper.say(format!("what it sees of the threads above is as of now: {}", share_seen(share)));
        }
        paper.say(format!("next: komado ask {name} \"…\""));
        paper.say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for TellResult {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("@{} told {}", self.seq, self.to))?;
        paper.say(format!("{} gets the message before its next request; it cannot be taken back", self.to));
        paper.say(format!("next: komado ask {} \"…\"", address(&self.session, &self.to)));
        Ok(())
    }
}

impl Render for Balanced {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for one in &self.entries {
            paper.line(format!("@{} {} has a new share", one.seq, one.thread))?;
        }
        if let Some(share) = &self.share {
            say_window(paper, self.window, share);
            paper.say(format!("seen of the threads above: {}", share_seen(share)));
        }
        self.undo.iter().for_each(|undo| paper.say(format!("undo: {undo}")));
        Ok(())
    }
}

impl Render for ChronicleEntry {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let chronicle = &self.chronicle;
        paper.prose(chronicle.text.trim_end())?;
        let by = chronicle.by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default();
        paper.say(format!("@{}, of {}{by}", self.seq, covers(chronicle)));
        Ok(())
    }
}

impl Render for WrittenChronicle {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let ChronicleEntry { seq, chronicle, .. } = &self.entry;
        paper.line(format!("@{seq} chronicle of {}", covers(chronicle)))?;
        self.declined.iter().for_each(|why| paper.say(format!("komado: no chronicle by a model: {why}")));
        self.undo.iter().for_each(|undo| paper.say(format!("undo: {undo}")));
        Ok(())
    }
}

/// Cells of a gauge.
const CELLS: usize = 32;
/// Fewest columns of names, with what draws the tree before them.
const NAMES: usize = 12;
/// Fewest columns of a label beside its thread's name; one that has less and is longer stands in a line of its own.
const LABEL: usize = 12;

/// The tree as a picture: a line for each thread, its gauge and its share while it is open, what it did once it has ended.
impl Render for ThreadTree {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let size = match self.window {
            Some(window) => format!("window {}", number(window)),
            None => "the window is not set".into(),
        };
        let size = clip(&size, paper.width.saturating_sub(width(&self.session) + 2));
        let heading = format!("{}  {size}", paper.ink(Style::Bold, &self.session));
        paper.line(heading.trim_end())?;
        if let Some(learned) = &self.learned_window {
            paper.fit(&format!("  {}", learned_line(learned)))?;
        }
        let widest = below(self, None).map(|one| widest(self, one, 0)).max().unwrap_or(0);
        // Names have what room the states and figures of most threads leave.
        let usual = |one| width(&state(one, &facts(one).into_iter().take(2).collect::<Vec<_>>()));
        let beside = self.threads.iter().map(usual).max().unwrap_or(0) + 2;
        let columns = widest.min(paper.width.saturating_sub(beside).max(paper.width / 2)).max(NAMES);
        let mut sketch = TreeDrawing { paper, tree: self, columns };
        below(self, None).try_for_each(|one| sketch.thread(one, "", "", ""))
    }
}

/// The threads that were started in `parent`.
fn below<'a>(tree: &'a ThreadTree, parent: Option<&'a str>) -> impl Iterator<Item = &'a TreeThread> {
    tree.threads.iter().filter(move |one| one.parent.as_deref() == parent)
}

/// The widest name and label, as they are drawn.
fn widest(tree: &ThreadTree, one: &TreeThread, indent: usize) -> usize {
    let below = below(tree, Some(&one.thread)).map(|child| widest(tree, child, indent + 3)).max();
    let label = Some(width(&label(one))).filter(|label| *label > 0).map_or(0, |label| label + 2);
    below.unwrap_or(0).max(indent + width(&one.thread) + label)
}

/// The label: one line, whatever it is.
fn label(one: &TreeThread) -> String {
    let label = one.label.as_deref().unwrap_or_default();
    tamed(&label.split_whitespace().collect::<Vec<_>>().join(" "))
}

struct TreeDrawing<'a> {
    paper: &'a mut CliOutput,
    tree: &'a ThreadTree,
    /// Columns of names and labels, and of what draws the tree before them.
    columns: usize,
}

impl TreeDrawing<'_> {
    /// A thread and those below it; `indent` stands before all its lines, `branch` before the first, `stem` before the rest.
    fn thread(&mut self, one: &TreeThread, indent: &str, branch: &str, stem: &str) -> OpResult {
        let children: Vec<&TreeThread> = below(self.tree, Some(&one.thread)).collect();
        let below = format!("{indent}{stem}");
        let bar = if children.is_empty() { "   " } else { "│  " };
        let rest = self.drawn(&format!("{below}{bar}"));
        self.first(one, &self.drawn(&format!("{indent}{branch}")), &rest)?;
        if is_open(one) {
            self.fill(one, &rest)?;
        }
        if let Some(chronicle) = &one.chronicle {
            let line = tamed(chronicle.headline());
            let mark = if chronicle.partial { "(partial) " } else { "" };
            self.line(&rest, Style::Dim, &format!("{mark}{line}"))?;
        }
        if !one.anchored {
            self.line(&rest, Style::Yellow, "its parent was rewound to before it began")?;
        }
        let last = children.len().saturating_sub(1);
        children.into_iter().enumerate().try_for_each(|(n, child)| match n == last {
            true => self.thread(child, &below, "└─ ", "   "),
            false => self.thread(child, &below, "├─ ", "│  "),
        })
    }

    /// What draws the tree before a line: of a deep one the end, in half the terminal.
    fn drawn(&self, before: &str) -> String {
        tail(before, self.paper.width / 2)
    }

    /// Name, label, state, share, messages. The name is whole: one that is cut names nothing. What has no room beside it stands below.
    fn first(&mut self, one: &TreeThread, before: &str, rest: &str) -> OpResult {
        let id = width(before) + width(&one.thread);
        let label = label(one);
        let room = self.columns.saturating_sub(id + 2);
        let is_beside = room >= width(&label).min(LABEL);
        let beside = if is_beside { clip(&label, room) } else { String::new() };
        let gap = if beside.is_empty() { 0 } else { 2 };
        let taken = id + gap + width(&beside);
        let start = taken.max(self.columns) + 2;
        let facts = facts(one);
        let fits = |facts: &&[String]| start + width(&state(one, facts)) <= self.paper.width;
        let shown = (1..=facts.len()).rev().map(|n| &facts[..n]).find(fits).map_or(0, <[String]>::len);
        let name = self.paper.ink(Style::Bold, &one.thread);
        let name = format!("{before}{name}{}{beside}", " ".repeat(gap));
        match shown {
            0 => self.paper.line(name)?,
            _ => {
                let inked = inked_state(self.paper, one, &facts[..shown]);
                self.paper.line(format!("{name}{}{inked}", " ".repeat(start - taken)))?;
            }
        }
        if !is_beside {
            let label = clip(&label, self.paper.width.saturating_sub(width(rest)));
            self.paper.line(format!("{rest}{label}"))?;
        }
        let room = self.paper.width.saturating_sub(width(rest));
        match &facts[shown..] {
            [] => Ok(()),
            all if shown == 0 => {
                let all = clip(&all.join(" · "), room.saturating_sub(width(&state(one, &[]))));
                let inked = inked_state(self.paper, one, &[all]);
                self.paper.line(format!("{rest}{inked}").trim_end())
            }
            more => self.paper.line(format!("{rest}{}", clip(&more.join(" · "), room))),
        }
    }

    /// How full it is, and of whose window.
    fn fill(&mut self, one: &TreeThread, rest: &str) -> OpResult {
        let window = one.share.as_ref().map(|share| share.window).or(self.tree.window);
        let window = window.map(|window| u32::try_from(window).unwrap_or(u32::MAX));
        let room = self.paper.width.saturating_sub(width(rest));
        let cells = gauge_cells(room, one.context_tokens, window).min(CELLS);
        let gauge = gauge(self.paper, &one.parts, window, cells);
        match window {
            Some(_) => self.paper.line(format!("{rest}{gauge}"))?,
            None => self.paper.line(format!("{rest}{}", clip(&gauge, room)))?,
        }
        match &one.share {
            Some(share) => self.line(rest, Style::Dim, &share_line_within(share, room)),
            None => Ok(()),
        }
    }

    /// A line below the first one, cut where the terminal ends.
    fn line(&mut self, rest: &str, ink: Style, text: &str) -> OpResult {
        let text = clip(text, self.paper.width.saturating_sub(width(rest)));
        let text = self.paper.ink(ink, &text);
        self.paper.line(format!("{rest}{text}"))
    }
}

/// State and figures of a thread.
fn state(one: &TreeThread, facts: &[String]) -> String {
    format!("{:<9}  {}", one.status, facts.join(" · "))
}

/// The same in colours.
fn inked_state(paper: &CliOutput, one: &TreeThread, facts: &[String]) -> String {
    let status = paper.ink(ink(one.status), &format!("{:<9}", one.status));
    format!("{status}  {}", facts.join(" · "))
}

/// Figures of a thread: its window where it has one, its messages, and what else is to be known.
fn facts(one: &TreeThread) -> Vec<String> {
    let mut facts = Vec::new();
    match (one.ratio, one.thread_window) {
        (Some(ratio), Some(own)) => facts.push(format!("{ratio} = {}", number(own))),
        (None, Some(own)) => facts.push(number(own)),
        _ => {}
    }
    facts.push(count(one.messages, "message"));
    facts.extend(one.base.as_ref().map(|base| format!("goes on from {base}")));
    facts.extend((one.held && is_open(one)).then(|| "held".to_owned()));
    facts
}

/// True for a thread that has not ended.
fn is_open(one: &TreeThread) -> bool {
    matches!(one.status, "active" | "paused")
}

fn ink(status: &str) -> Style {
    match status {
        "active" => Style::Green,
        "paused" => Style::Yellow,
        "aborted" => Style::Red,
        _ => Style::Dim,
    }
}
