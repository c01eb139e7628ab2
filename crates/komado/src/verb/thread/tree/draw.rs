//! The tree as a picture: a line for each thread, its gauge and its share while it is open, what it did once it has ended.

use super::super::ended::headline;
use super::Leaf;
use crate::app::App;
use crate::fault::Outcome;
use crate::gauge;
use crate::paper::{Ink, Paper, count, number};
use crate::share;
use komado_core::notation::{tamed, width};
use komado_core::thread::Status;
use komado_engine::stelis::{Node, Tree};

/// Cells of a gauge.
const CELLS: usize = 32;
/// Columns of what stands around a gauge's cells and numbers.
const GAUGE: usize = 15;
/// Columns of a thread's name and label, with what draws the tree before them.
const NAMES: std::ops::Range<usize> = 12..48;

/// Draws a session's threads.
pub(super) fn tree(app: &mut App, tree: &Tree, window: Option<u64>) -> Outcome {
    let size =
        window.map_or_else(|| "the window is not set".into(), |window| format!("window {}", number(window)));
    let size = clip(&size, app.paper.width.saturating_sub(width(tree.session.as_str()) + 2));
    let heading = format!("{}  {size}", app.paper.ink(Ink::Bold, tree.session.as_str()));
    app.paper.line(heading.trim_end())?;
    let columns = tree.nodes.iter().map(|node| widest(node, 0)).max().unwrap_or(0);
    // On narrow paper a name takes half of it: what became of the thread is to be read, too.
    let most = NAMES.end.min(app.paper.width / 2).max(NAMES.start);
    let mut sketch = Sketch { app, window, columns: columns.clamp(NAMES.start, most) };
    tree.nodes.iter().try_for_each(|node| sketch.node(node, "", "", ""))
}

/// The widest name, as it is drawn.
fn widest(node: &Node, indent: usize) -> usize {
    let below = node.children.iter().map(|child| widest(child, indent + 3)).max().unwrap_or(0);
    below.max(indent + width(&name(node)))
}

/// Name and label.
fn name(node: &Node) -> String {
    let label = node.header.label.as_deref().unwrap_or_default();
    // A label is one line here, whatever it is.
    let label = tamed(&label.split_whitespace().collect::<Vec<_>>().join(" "));
    if label.is_empty() { node.header.thread.to_string() } else { format!("{}  {label}", node.header.thread) }
}

struct Sketch<'a> {
    app: &'a mut App,
    window: Option<u64>,
    columns: usize,
}

impl Sketch<'_> {
    /// A thread and those below it; `indent` stands before all its lines, `branch` before the first, `stem` before the rest.
    fn node(&mut self, node: &Node, indent: &str, branch: &str, stem: &str) -> Outcome {
        let leaf = Leaf::of(self.app, &node.header.session, node, self.window)?;
        self.first(node, &format!("{indent}{branch}"))?;
        let below = format!("{indent}{stem}");
        let bar = if node.children.is_empty() { "   " } else { "│  " };
        let rest = format!("{below}{bar}");
        if node.status.is_open() {
            self.fill(&leaf, &rest)?;
        }
        if let Some(chronicle) = &node.chronicle {
            let line = tamed(headline(&chronicle.text));
            let mark = if chronicle.partial { "(partial) " } else { "" };
            self.line(&rest, Ink::Dim, &format!("{mark}{line}"))?;
        }
        if node.is_adrift {
            self.line(&rest, Ink::Yellow, "its parent was rewound to before it began")?;
        }
        let last = node.children.len().saturating_sub(1);
        node.children.iter().enumerate().try_for_each(|(n, child)| match n == last {
            true => self.node(child, &below, "└─ ", "   "),
            false => self.node(child, &below, "├─ ", "│  "),
        })
    }

    /// Name, state, share, messages.
    fn first(&mut self, node: &Node, before: &str) -> Outcome {
        let room = self.columns.saturating_sub(width(before));
        let name = clip(&name(node), room);
        let gap = " ".repeat(room.saturating_sub(width(&name)));
        let (id, label) = name.split_once("  ").unwrap_or((&name, ""));
        let label = if label.is_empty() { String::new() } else { format!("  {label}") };
        let paper = &self.app.paper;
        let taken = width(before) + width(&name) + width(&gap) + 2;
        let status = clip(&format!("{:<9}", node.status.name()), paper.width.saturating_sub(taken));
        let facts = clip(&self.facts(node), paper.width.saturating_sub(taken + width(&status) + 2));
        let status = paper.ink(ink(node.status), &status);
        let line = format!("{before}{}{label}{gap}  {status}  {facts}", paper.ink(Ink::Bold, id));
        self.app.paper.line(line.trim_end())
    }

    fn facts(&self, node: &Node) -> String {
        let mut facts = Vec::new();
        match (node.ratio, Leaf::own_window(node, self.window)) {
            (Some(ratio), Some(own)) => facts.push(format!("{ratio} = {}", number(own))),
            (None, Some(own)) => facts.push(number(own)),
            _ => {}
        }
        facts.push(count(node.messages, "message"));
        facts.extend(
            node.header.base.as_ref().map(|base| format!("goes on from {}@{}", base.thread, base.seq)),
        );
        facts.extend(node.held_by.as_ref().filter(|_| node.status.is_open()).map(|_| "held".to_owned()));
        facts.join(" · ")
    }

    /// How full it is, and of whose window.
    fn fill(&mut self, leaf: &Leaf, rest: &str) -> Outcome {
        let window = leaf.portion.as_ref().map(|portion| portion.window()).or(self.window);
        let window = window.map(|window| u32::try_from(window).unwrap_or(u32::MAX));
        let cells = cells(&self.app.paper, rest, leaf.weight.tokens(), window);
        let gauge = gauge::line(&self.app.paper, &leaf.weight, window, cells);
        self.app.paper.line(format!("{rest}{gauge}"))?;
        match &leaf.portion {
            Some(portion) => self.line(rest, Ink::Dim, &share::line(portion)),
            None => Ok(()),
        }
    }

    /// A line below the first one, cut where the paper ends.
    fn line(&mut self, rest: &str, ink: Ink, text: &str) -> Outcome {
        let text = clip(text, self.app.paper.width.saturating_sub(width(rest)));
        let text = self.app.paper.ink(ink, &text);
        self.app.paper.line(format!("{rest}{text}"))
    }
}

/// Cells for which there is room beside the numbers.
fn cells(paper: &Paper, rest: &str, tokens: u64, window: Option<u32>) -> usize {
    let numbers = number(tokens).len() + window.map_or(0, |window| number(u64::from(window)).len());
    paper.width.saturating_sub(width(rest) + numbers + GAUGE).clamp(1, CELLS)
}

const fn ink(status: Status) -> Ink {
    match status {
        Status::Active => Ink::Green,
        Status::Paused => Ink::Yellow,
        Status::Completed => Ink::Dim,
        Status::Aborted => Ink::Red,
    }
}

/// At most so many columns of a text, whole characters.
fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let (mut cut, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += width(c.encode_utf8(&mut [0; 4]));
        if taken > columns {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn a_cut_never_takes_more_columns_than_there_are() {
        assert_eq!(clip("小窓の話", 8), "小窓の話");
        assert_eq!(clip("小窓の話", 7), "小窓の…");
        assert_eq!(clip("小窓の話", 6), "小窓…");
        assert_eq!(clip("abc", 2), "a…");
        assert_eq!((clip("abc", 1), clip("abc", 0)), ("…".into(), String::new()));
    }
}
