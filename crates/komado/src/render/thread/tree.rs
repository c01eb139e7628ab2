//! The tree as a picture: a line for each thread, its gauge and its share while it is open, what it did once it has ended.

use crate::fault::Outcome;
use crate::paper::{Ink, Paper, clip, count, number};
use crate::render::Render;
use crate::{gauge, share};
use komado_core::notation::{tamed, width};
use komado_ops::thread::{ThreadTree, TreeThread};

/// Cells of a gauge.
const CELLS: usize = 32;
/// Columns of what stands around a gauge's cells and numbers.
const GAUGE: usize = 15;
/// Columns of a thread's name and label, with what draws the tree before them.
const NAMES: std::ops::Range<usize> = 12..48;

impl Render for ThreadTree {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let size = match self.window {
            Some(window) => format!("window {}", number(window)),
            None => "the window is not set".into(),
        };
        let size = clip(&size, paper.width.saturating_sub(width(&self.session) + 2));
        let heading = format!("{}  {size}", paper.ink(Ink::Bold, &self.session));
        paper.line(heading.trim_end())?;
        let columns = below(self, None).map(|one| widest(self, one, 0)).max().unwrap_or(0);
        // On narrow paper a name takes half of it: what became of the thread is to be read, too.
        let most = NAMES.end.min(paper.width / 2).max(NAMES.start);
        let mut sketch = Sketch { paper, tree: self, columns: columns.clamp(NAMES.start, most) };
        below(self, None).try_for_each(|one| sketch.thread(one, "", "", ""))
    }
}

/// The threads that were started in `parent`.
fn below<'a>(tree: &'a ThreadTree, parent: Option<&'a str>) -> impl Iterator<Item = &'a TreeThread> {
    tree.threads.iter().filter(move |one| one.parent.as_deref() == parent)
}

/// The widest name, as it is drawn.
fn widest(tree: &ThreadTree, one: &TreeThread, indent: usize) -> usize {
    let below = below(tree, Some(&one.thread)).map(|child| widest(tree, child, indent + 3)).max();
    below.unwrap_or(0).max(indent + width(&name(one)))
}

/// Name and label.
fn name(one: &TreeThread) -> String {
    let label = one.label.as_deref().unwrap_or_default();
    // A label is one line here, whatever it is.
    let label = tamed(&label.split_whitespace().collect::<Vec<_>>().join(" "));
    if label.is_empty() { one.thread.clone() } else { format!("{}  {label}", one.thread) }
}

struct Sketch<'a> {
    paper: &'a mut Paper,
    tree: &'a ThreadTree,
    columns: usize,
}

impl Sketch<'_> {
    /// A thread and those below it; `indent` stands before all its lines, `branch` before the first, `stem` before the rest.
    fn thread(&mut self, one: &TreeThread, indent: &str, branch: &str, stem: &str) -> Outcome {
        self.first(one, &format!("{indent}{branch}"))?;
        let children: Vec<&TreeThread> = below(self.tree, Some(&one.thread)).collect();
        let below = format!("{indent}{stem}");
        let bar = if children.is_empty() { "   " } else { "│  " };
        let rest = format!("{below}{bar}");
        if is_open(one) {
            self.fill(one, &rest)?;
        }
        if let Some(chronicle) = &one.chronicle {
            let line = tamed(chronicle.headline());
            let mark = if chronicle.partial { "(partial) " } else { "" };
            self.line(&rest, Ink::Dim, &format!("{mark}{line}"))?;
        }
        if !one.anchored {
            self.line(&rest, Ink::Yellow, "its parent was rewound to before it began")?;
        }
        let last = children.len().saturating_sub(1);
        children.into_iter().enumerate().try_for_each(|(n, child)| match n == last {
            true => self.thread(child, &below, "└─ ", "   "),
            false => self.thread(child, &below, "├─ ", "│  "),
        })
    }

    /// Name, state, share, messages.
    fn first(&mut self, one: &TreeThread, before: &str) -> Outcome {
        let room = self.columns.saturating_sub(width(before));
        let name = clip(&name(one), room);
        let gap = " ".repeat(room.saturating_sub(width(&name)));
        let (id, label) = name.split_once("  ").unwrap_or((&name, ""));
        let label = if label.is_empty() { String::new() } else { format!("  {label}") };
        let paper = &mut *self.paper;
        let taken = width(before) + width(&name) + width(&gap) + 2;
        let status = clip(&format!("{:<9}", one.status), paper.width.saturating_sub(taken));
        let facts = clip(&facts(one), paper.width.saturating_sub(taken + width(&status) + 2));
        let status = paper.ink(ink(one.status), &status);
        let line = format!("{before}{}{label}{gap}  {status}  {facts}", paper.ink(Ink::Bold, id));
        paper.line(line.trim_end())
    }

    /// How full it is, and of whose window.
    fn fill(&mut self, one: &TreeThread, rest: &str) -> Outcome {
        let window = one.share.as_ref().map(|share| share.window).or(self.tree.window);
        let window = window.map(|window| u32::try_from(window).unwrap_or(u32::MAX));
        let cells = cells(self.paper, rest, one.context_tokens, window);
        let gauge = gauge::line(self.paper, &one.parts, window, cells);
        self.paper.line(format!("{rest}{gauge}"))?;
        match &one.share {
            Some(share) => self.line(rest, Ink::Dim, &share::line(share)),
            None => Ok(()),
        }
    }

    /// A line below the first one, cut where the paper ends.
    fn line(&mut self, rest: &str, ink: Ink, text: &str) -> Outcome {
        let text = clip(text, self.paper.width.saturating_sub(width(rest)));
        let text = self.paper.ink(ink, &text);
        self.paper.line(format!("{rest}{text}"))
    }
}

fn facts(one: &TreeThread) -> String {
    let mut facts = Vec::new();
    match (one.ratio, one.thread_window) {
        (Some(ratio), Some(own)) => facts.push(format!("{ratio} = {}", number(own))),
        (None, Some(own)) => facts.push(number(own)),
        _ => {}
    }
    facts.push(count(one.messages, "message"));
    facts.extend(one.base.as_ref().map(|base| format!("goes on from {base}")));
    facts.extend((one.held && is_open(one)).then(|| "held".to_owned()));
    facts.join(" · ")
}

/// True for a thread that has not ended.
fn is_open(one: &TreeThread) -> bool {
    matches!(one.status, "active" | "paused")
}

/// Cells for which there is room beside the numbers.
fn cells(paper: &Paper, rest: &str, tokens: u64, window: Option<u32>) -> usize {
    let numbers = number(tokens).len() + window.map_or(0, |window| number(u64::from(window)).len());
    paper.width.saturating_sub(width(rest) + numbers + GAUGE).clamp(1, CELLS)
}

fn ink(status: &str) -> Ink {
    match status {
        "active" => Ink::Green,
        "paused" => Ink::Yellow,
        "aborted" => Ink::Red,
        _ => Ink::Dim,
    }
}
