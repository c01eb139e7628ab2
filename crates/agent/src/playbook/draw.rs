//! A playbook as text: nodes in the order they are come to, their ways as arrows, child threads indented.

use super::Playbook;
use super::node::{NodeAction, PlaybookNode};
use komado_core::amount::count;
use komado_core::notation::{self, width as long};
use komado_engine::transcript::html::escaped;
use std::collections::BTreeMap;

/// A node in the order of a drawing.
pub(super) struct DrawnNode<'p> {
    pub(super) node: &'p PlaybookNode,
    /// How many child threads it works inside of.
    pub(super) depth: usize,
}

/// A way in a drawing.
pub(super) struct DrawnEdge<'p> {
    /// When it is taken; empty for the only one.
    pub(super) when: String,
    pub(super) to: &'p str,
}

/// The nodes: what is inside a child thread stays together, and ends come last.
pub(super) fn rows(playbook: &Playbook) -> Vec<DrawnNode<'_>> {
    let nodes: BTreeMap<&str, &PlaybookNode> =
        playbook.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut waits: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut left: BTreeMap<&str, ()> = nodes.keys().map(|id| (*id, ())).collect();
    let rank = |id: &str, depth: usize| {
        let is_end = nodes
            .get(id)
            .is_some_and(|node| matches!(node.does, NodeAction::Stop { .. } | NodeAction::End { .. }));
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
            NodeAction::Start(_) => depth + 1,
            NodeAction::Stop { .. } => depth.saturating_sub(1),
            _ => depth,
        };
        rows.push(DrawnNode { node, depth });
        for (_, to) in node.ways().into_iter().rev() {
            waits.entry(rank(to, after)).or_default().push(to);
        }
    }
    rows
}

/// The ways of a node, as they are told.
pub(super) fn ways(node: &PlaybookNode) -> Vec<DrawnEdge<'_>> {
    if let NodeAction::Branch { cases, other } = &node.does {
        let cases = cases.iter().map(|(cond, to)| DrawnEdge { when: cond.to_string(), to });
        return cases.chain([DrawnEdge { when: "else".into(), to: other }]).collect();
    }
    let told = |(field, to)| DrawnEdge {
        when: if field == "on_error" { "error".into() } else { String::new() },
        to,
    };
    node.ways().into_iter().map(told).collect()
}

/// The drawing, in lines of at most `width` columns.
pub(super) fn text(playbook: &Playbook, width: usize) -> String {
    let rows = rows(playbook);
    let places: BTreeMap<&str, usize> =
        rows.iter().enumerate().map(|(n, row)| (row.node.id.as_str(), n)).collect();
    let mut lines = vec![format!("{} ({})", playbook.name, count(rows.len() as u64, "node"))];
    for (n, DrawnNode { node, depth }) in rows.iter().enumerate() {
        let bars = "│ ".repeat(*depth);
        let label = node.label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
        lines.push(format!("{bars}● {} [{}]{label}", node.id, told_kind(node)));
        let ways = ways(node);
        for (k, DrawnEdge { when, to }) in ways.iter().enumerate() {
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
pub(super) fn told_kind(node: &PlaybookNode) -> String {
    match &node.does {
        NodeAction::Tool { tool, .. } => format!("tool {tool}"),
        NodeAction::Calls => "tool: the model's calls".to_owned(),
        NodeAction::End { is_good: false, .. } => "end: failed".to_owned(),
        _ => node.kind().to_owned(),
    }
}

/// A text in so many columns, with `…` where something is left out.
pub(super) fn clipped(text: &str, width: usize) -> String {
    notation::clipped(&text.replace(char::is_control, " "), width)
}

// A playbook as a picture: one node a row, ways on beside them, child threads in frames.
//
// Ways to the next row go straight down; ways further down have lanes on the right, ways back have lanes on the left: none
// crosses a box. When a way is taken stands in the box that it leaves, on a line of its own from which it goes out: words
// and lines never meet, however many there are. All boxes are as wide as the longest words need, and long words go on in
// the next line. The same playbook gives the same bytes.

/// Between two boxes.
const GAP: usize = 36;
/// Between two lanes, and between two frames.
const LANE: usize = 18;
/// Around everything.
const MARGIN: usize = 28;
/// Width of a column of the title, in tenths.
const TITLE: usize = 82;

/// A way from one row to another.
struct Edge {
    from: usize,
    to: usize,
    /// Which of the ways of its row it is.
    nth: usize,
    when: String,
    /// The lane, from the boxes outwards; none for one that goes straight down.
    lane: Option<usize>,
}

/// Where things are.
struct Sheet<'p> {
    name: &'p str,
    rows: Vec<DrawnNode<'p>>,
    cards: Vec<Card>,
    /// Where each box begins, and where one more would.
    tops: Vec<usize>,
    edges: Vec<Edge>,
    /// Width of a box.
    wide: usize,
    /// Where the boxes of the root begin.
    left: usize,
    /// Where the lanes on the right begin.
    right: usize,
    width: usize,
}

/// The picture.
pub(super) fn picture(playbook: &Playbook) -> String {
    let sheet = Sheet::of(playbook);
    let height = sheet.tops[sheet.cards.len()] - GAP + MARGIN;
    let mut lines = vec![
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {height}\" width=\"{w}\" height=\"{height}\" \
             font-family=\"system-ui, 'Noto Sans JP', 'Hiragino Sans', sans-serif\" font-size=\"13\">",
            w = sheet.width
        ),
        format!("<title>{}</title>", escaped(sheet.name)),
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#555\"/></marker></defs>"
            .to_owned(),
        format!("<rect width=\"{}\" height=\"{height}\" fill=\"#fff\"/>", sheet.width),
        format!("<text x=\"{MARGIN}\" y=\"{MARGIN}\" font-weight=\"600\">{}</text>", escaped(sheet.name)),
    ];
    lines.extend(sheet.frames());
    lines.extend(sheet.edges.iter().map(|edge| sheet.arrow(edge)));
    lines.extend((0..sheet.rows.len()).map(|n| sheet.node(n)));
    lines.push("</svg>".to_owned());
    lines.join("\n") + "\n"
}

impl<'p> Sheet<'p> {
    fn of(playbook: &'p Playbook) -> Self {
        let rows = rows(playbook);
        let edges = edges(&rows);
        let cards: Vec<Card> = rows.iter().enumerate().map(|(n, row)| card_of(n, row, &edges)).collect();
        let mut tops = vec![MARGIN * 2];
        for card in &cards {
            tops.push(tops[tops.len() - 1] + card.height() + GAP);
        }
        let most = |is_back: bool| {
            let lanes = edges.iter().filter(|edge| is_back == (edge.to <= edge.from));
            lanes.filter_map(|edge| edge.lane).max().map_or(0, |lane| (lane + 1) * LANE)
        };
        let deepest = rows.iter().map(|row| row.depth).max().unwrap_or_default();
        let left = MARGIN + most(true) + LANE;
        let wide = cards.iter().map(Card::width).max().unwrap_or_default();
        let right = left + wide + deepest * LANE * 2;
        let title = MARGIN + long(&playbook.name) * TITLE / 10;
        let width = (right + most(false)).max(title) + MARGIN;
        Self { name: &playbook.name, rows, cards, tops, edges, wide, left, right, width }
    }

    fn x(&self, row: usize) -> usize {
        self.left + self.rows[row].depth * LANE
    }

    /// A frame around each run of rows that is inside a child thread.
    fn frames(&self) -> Vec<String> {
        let deepest = self.rows.iter().map(|row| row.depth).max().unwrap_or_default();
        let mut frames = Vec::new();
        for depth in 1..=deepest {
            let mut row = 0;
            while row < self.rows.len() {
                let length = self.rows[row..].iter().take_while(|row| row.depth >= depth).count();
                if length > 0 {
                    frames.push(self.frame(depth, deepest, row, length));
                }
                row += length.max(1);
            }
        }
        frames
    }

    fn frame(&self, depth: usize, deepest: usize, row: usize, length: usize) -> String {
        let rim = LANE.saturating_sub(depth * 3);
        let (x, y) = (self.left + depth * LANE - LANE / 2, self.tops[row] - rim);
        let width = self.wide + (deepest - depth) * LANE * 2 + LANE;
        let height = self.tops[row + length] - GAP - self.tops[row] + rim * 2;
        format!(
            "<rect class=\"stelis\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#f0f4fb\" \
             stroke=\"#7a94c4\" stroke-dasharray=\"5 4\"/>"
        )
    }

    fn node(&self, n: usize) -> String {
        let (card, x, y) = (&self.cards[n], self.x(n), self.tops[n]);
        let (fill, stroke) = match self.rows[n].node.kind() {
            "llm" => ("#eaf6ec", "#4c9a5b"),
            "tool" => ("#fdf3e1", "#c98a2b"),
            "branch" => ("#f4eefb", "#8460b8"),
            "end" => ("#eee", "#555"),
            _ => ("#fff", "#777"),
        };
        let words: String = card.lines().map(|line| line.drawn(x, y)).collect();
        format!(
            "<g><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/>{words}</g>",
            self.wide,
            card.height(),
        )
    }

    /// The line of a way.
    fn arrow(&self, edge: &Edge) -> String {
        let (from, to) = (self.x(edge.from), self.x(edge.to));
        let out = self.tops[edge.from] + self.cards[edge.from].out(edge.nth);
        let into = self.tops[edge.to] + INTO;
        let path = match edge.lane {
            None => {
                let x = from.max(to) + 40 + edge.nth * 12;
                format!("M{x} {}V{}", self.tops[edge.to] - GAP, self.tops[edge.to])
            }
            Some(lane) if edge.to <= edge.from => {
                let x = self.left - LANE - lane * LANE;
                format!("M{from} {out}H{x}V{into}H{to}")
            }
            Some(lane) => {
                let x = self.right + LANE + lane * LANE;
                format!("M{} {out}H{x}V{into}H{}", from + self.wide, to + self.wide)
            }
        };
        format!("<path d=\"{path}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#tip)\"/>")
    }
}

/// The box of a row, with its ways.
fn card_of(n: usize, row: &DrawnNode<'_>, edges: &[Edge]) -> Card {
    let mut card = Card::of(row.node);
    for edge in edges.iter().filter(|edge| edge.from == n) {
        let goes = match edge.lane {
            None => Goes::Down,
            Some(_) if edge.to <= edge.from => Goes::Back,
            Some(_) => Goes::On,
        };
        card.add_way(goes, &edge.when);
    }
    card
}

/// Every way, with a lane that no other one of its side uses between the same rows.
fn edges(rows: &[DrawnNode<'_>]) -> Vec<Edge> {
    let places: BTreeMap<&str, usize> =
        rows.iter().enumerate().map(|(n, row)| (row.node.id.as_str(), n)).collect();
    let mut edges = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        for (nth, DrawnEdge { when, to }) in ways(row.node).into_iter().enumerate() {
            let Some(to) = places.get(to).copied() else { continue };
            edges.push(Edge { from, to, nth, when, lane: None });
        }
    }
    for is_back in [true, false] {
        let mut lanes: Vec<Vec<(usize, usize)>> = Vec::new();
        let own =
            edges.iter_mut().filter(|edge| (edge.to <= edge.from) == is_back && edge.to != edge.from + 1);
        for edge in own {
            let span = (edge.from.min(edge.to), edge.from.max(edge.to));
            let is_free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(a, b)| span.1 < *a || *b < span.0);
            let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
            if lane == lanes.len() {
                lanes.push(Vec::new());
            }
            lanes[lane].push(span);
            edge.lane = Some(lane);
        }
    }
    edges
}

// The words of one box: what people call the node, its id and type, and a line for each of its ways.

/// Where ways come in, from the top of a box.
const INTO: usize = 16;
/// The least width.
const NARROWEST: usize = 200;
/// From the sides of a box to its words.
const SIDE: usize = 12;
/// Where the first line stands, from one line to the next, and below the last one.
const FIRST: usize = 20;
const STEP: usize = 18;
const LAST: usize = 10;
/// Width of a column in tenths, bold and small.
const BOLD: usize = 82;
const SMALL: usize = 66;
/// Most columns of a line: long words go on in the next one.
const BOLD_COLUMNS: usize = 48;
const SMALL_COLUMNS: usize = 60;
/// Before words that go on. It is drawn as room: not everyone who shows a picture keeps blanks at the beginning.
const INDENT: &str = "\u{3000}";
/// Most lines of the same words: no reader wants more in a picture.
const MOST_LINES: usize = 8;

/// Where a way goes.
#[derive(Clone, Copy)]
enum Goes {
    /// To the row below.
    Down,
    /// To one further down.
    On,
    /// To one above, or to itself.
    Back,
}

/// The words of a box.
struct Card {
    bold: Vec<String>,
    small: Vec<String>,
    /// The line that each way goes out from.
    outs: Vec<usize>,
}

/// A line of words.
struct Line<'c> {
    words: &'c str,
    is_bold: bool,
    /// How far below the top of the box it stands.
    down: usize,
}

impl Card {
    fn of(node: &PlaybookNode) -> Self {
        let bold = wrapped(node.label.as_deref().unwrap_or(&node.id), BOLD_COLUMNS);
        let small = wrapped(&format!("{} · {}", node.id, told_kind(node)), SMALL_COLUMNS);
        Self { bold, small, outs: Vec::new() }
    }

    /// One more way; what is taken always needs no words.
    fn add_way(&mut self, goes: Goes, when: &str) {
        if when.is_empty() {
            return self.outs.push(self.small.len() - 1);
        }
        let arrow = match goes {
            Goes::Down => '↓',
            Goes::On => '→',
            Goes::Back => '←',
        };
        self.outs.push(self.small.len());
        let lines = wrapped(when, SMALL_COLUMNS - long(INDENT)).into_iter().enumerate();
        self.small.extend(
            lines.map(|(n, line)| if n == 0 { format!("{arrow} {line}") } else { INDENT.to_owned() + &line }),
        );
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let bold = self.bold.iter().map(|words| (words, true));
        let all = bold.chain(self.small.iter().map(|words| (words, false)));
        all.enumerate().map(|(n, (words, is_bold))| Line { words, is_bold, down: FIRST + n * STEP })
    }

    /// How far below the top a way goes out.
    fn out(&self, nth: usize) -> usize {
        let line = self.bold.len() + self.outs.get(nth).copied().unwrap_or_default();
        FIRST + line * STEP - 4
    }

    fn height(&self) -> usize {
        FIRST + (self.bold.len() + self.small.len() - 1) * STEP + LAST
    }

    fn width(&self) -> usize {
        let words = self.lines().map(|line| long(line.words) * if line.is_bold { BOLD } else { SMALL } / 10);
        (words.max().unwrap_or_default() + SIDE * 2).max(NARROWEST)
    }
}

impl Line<'_> {
    /// In a box at this place.
    fn drawn(&self, x: usize, y: usize) -> String {
        let (room, words) = match self.words.strip_prefix(INDENT) {
            Some(words) => (SIDE + long(INDENT) * SMALL / 10, words),
            None => (SIDE, self.words),
        };
        let (x, y, words) = (x + room, y + self.down, escaped(words));
        let style = if self.is_bold { "font-weight=\"600\"" } else { "fill=\"#555\" font-size=\"11\"" };
        format!("<text x=\"{x}\" y=\"{y}\" {style}>{words}</text>")
    }
}

/// Words in lines of at most so many columns, broken at a blank where there is one near the end.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text.trim());
    while long(rest) > columns && lines.len() + 1 < MOST_LINES {
        let fits = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = fits.take_while(|end| long(&rest[..*end]) <= columns).last().unwrap_or(rest.len());
        let blank = rest[..end].rfind(' ').filter(|blank| long(&rest[..*blank]) * 2 > columns);
        let (line, after) = rest.split_at(blank.unwrap_or(end));
        lines.push(line.to_owned());
        rest = after.trim_start();
    }
    lines.push(clipped(rest, columns));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_go_on_in_the_next_line_and_only_far_too_long_ones_are_cut() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("窓を直してください", 8), ["窓を直し", "てくださ", "い"]);
        assert_eq!(wrapped("", 8), [""]);
        let lines = wrapped(&"a".repeat(100), 10);
        assert_eq!((lines.len(), lines[7].as_str()), (MOST_LINES, "aaaaaaaaa…"));
    }
}
