//! A playbook as text: nodes in the order they are come to, their ways as arrows, child threads indented.

use super::Playbook;
use super::node::{Does, Node};
use komado_core::notation::width as long;
use std::collections::BTreeMap;

/// A node in the order of a drawing.
pub(super) struct Row<'p> {
    pub(super) node: &'p Node,
    /// How many child threads it works inside of.
    pub(super) depth: usize,
}

/// A way in a drawing.
pub(super) struct Way<'p> {
    /// When it is taken; empty for the only one.
    pub(super) when: String,
    pub(super) to: &'p str,
}

/// The nodes: what is inside a child thread stays together, and ends come last.
pub(super) fn rows(playbook: &Playbook) -> Vec<Row<'_>> {
    let nodes: BTreeMap<&str, &Node> = playbook.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut waits: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut left: BTreeMap<&str, ()> = nodes.keys().map(|id| (*id, ())).collect();
    let rank = |id: &str, depth: usize| {
        let is_end = nodes.get(id).is_some_and(|node| matches!(node.does, Does::Stop(_) | Does::End(_)));
        depth * 2 + usize::from(!is_end)
    };
    waits.entry(rank(&playbook.start, 0)).or_default().push(&playbook.start);
    let mut rows = Vec::with_capacity(nodes.len());
    while let Some(mut deepest) = waits.last_entry() {
        let (level, id) = (*deepest.key(), deepest.get_mut().pop());
        if deepest.get().is_empty() {
            deepest.remove();
        }
        let Some(node) = id.filter(|id| left.remove(id).is_some()).and_then(|id| nodes.get(id)) else {
            continue;
        };
        let depth = level / 2;
        let after = match node.does {
            Does::Start(_) => depth + 1,
            Does::Stop(_) => depth.saturating_sub(1),
            _ => depth,
        };
        rows.push(Row { node, depth });
        for (_, to) in node.ways().into_iter().rev() {
            waits.entry(rank(to, after)).or_default().push(to);
        }
    }
    rows
}

/// The ways of a node, as they are told.
pub(super) fn ways(node: &Node) -> Vec<Way<'_>> {
    if let Does::Branch(branch) = &node.does {
        let cases = branch.cases.iter().map(|(cond, to)| Way { when: cond.to_string(), to });
        return cases.chain([Way { when: "else".into(), to: &branch.other }]).collect();
    }
    let told =
        |(field, to)| Way { when: if field == "on_error" { "error".into() } else { String::new() }, to };
    node.ways().into_iter().map(told).collect()
}

/// The drawing, in lines of at most `width` columns.
pub(super) fn text(playbook: &Playbook, width: usize) -> String {
    let rows = rows(playbook);
    let places: BTreeMap<&str, usize> =
        rows.iter().enumerate().map(|(n, row)| (row.node.id.as_str(), n)).collect();
    let mut lines = vec![format!("{} ({} nodes)", playbook.name, rows.len())];
    for (n, Row { node, depth }) in rows.iter().enumerate() {
        let bars = "│ ".repeat(*depth);
        let label = node.label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
        lines.push(format!("{bars}● {} [{}]{label}", node.id, told_kind(node)));
        let ways = ways(node);
        for (k, Way { when, to }) in ways.iter().enumerate() {
            let corner = if k + 1 == ways.len() { '└' } else { '├' };
            let arrow = if places.get(to).is_some_and(|place| *place <= n) { "↺" } else { "→" };
            let (before, after) = (format!("{bars}  {corner} "), format!("{arrow} {to}"));
            // Where it leads is told, whatever is left out of when.
            let room = width.saturating_sub(long(&before) + long(&after) + 1);
            let when = if when.is_empty() { String::new() } else { clipped(when, room) + " " };
            lines.push(before + &when + &after);
        }
    }
    let mut drawn: String = lines.iter().map(|line| clipped(line, width) + "\n").collect();
    drawn.truncate(drawn.trim_end().len());
    drawn
}

/// The type, and the tool that is called.
pub(super) fn told_kind(node: &Node) -> String {
    match &node.does {
        Does::Tool(tool) => format!("tool {}", tool.tool),
        Does::Calls(_) => "tool: the model's calls".to_owned(),
        Does::End(end) if !end.is_good => "end: failed".to_owned(),
        _ => node.kind().to_owned(),
    }
}

/// A text in so many columns, with `…` where something is left out.
pub(super) fn clipped(text: &str, width: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if long(&text) <= width {
        return text;
    }
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| long(&text[..*end]) < width).last().unwrap_or(0);
    format!("{}…", &text[..end])
}
