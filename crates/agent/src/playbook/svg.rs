//! A playbook as a picture: one node a row, ways on beside them, child threads in frames.
//!
//! Ways to the next row go straight down; ways further down have lanes on the right, ways back have lanes on the left. The
//! same playbook gives the same bytes.

use super::Playbook;
use super::draw::{Row, Way, clipped, rows, told_kind, ways};
use std::collections::BTreeMap;

/// A row, with the gap below it.
const ROW: usize = 84;
/// A box.
const WIDTH: usize = 320;
const HEIGHT: usize = 48;
/// Between two lanes, and between two frames.
const LANE: usize = 18;
/// Around everything.
const MARGIN: usize = 28;
/// Most columns of words in a box, and beside a way.
const WORDS: usize = 40;
const BESIDE: usize = 44;

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
    rows: Vec<Row<'p>>,
    edges: Vec<Edge>,
    /// Where the boxes of the root begin.
    left: usize,
    /// Where the lanes on the right begin.
    right: usize,
    width: usize,
}

/// The picture.
pub(super) fn picture(playbook: &Playbook) -> String {
    let sheet = Sheet::of(playbook);
    let height = MARGIN * 2 + 24 + sheet.rows.len() * ROW;
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
        let most = |is_back: bool| {
            let lanes = edges.iter().filter(|edge| is_back == (edge.to <= edge.from));
            lanes.filter_map(|edge| edge.lane).max().map_or(0, |lane| (lane + 1) * LANE)
        };
        let deepest = rows.iter().map(|row| row.depth).max().unwrap_or_default();
        let left = MARGIN + most(true) + LANE;
        let right = left + WIDTH + deepest * LANE * 2;
        let words = BESIDE * 7;
        let width = right + most(false) + words + MARGIN;
        Self { name: &playbook.name, rows, edges, left, right, width }
    }

    fn x(&self, row: usize) -> usize {
        self.left + self.rows[row].depth * LANE
    }

    fn y(row: usize) -> usize {
        MARGIN * 2 + row * ROW
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
        let (x, y) = (self.left + depth * LANE - LANE / 2, Self::y(row) - LANE + depth * 3);
        let width = WIDTH + (deepest - depth) * LANE * 2 + LANE;
        let height = (length - 1) * ROW + HEIGHT + (LANE - depth * 3) * 2;
        format!(
            "<rect class=\"stelis\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#f0f4fb\" \
             stroke=\"#7a94c4\" stroke-dasharray=\"5 4\"/>"
        )
    }

    fn node(&self, n: usize) -> String {
        let (node, x, y) = (self.rows[n].node, self.x(n), Self::y(n));
        let (fill, stroke) = match node.kind() {
            "llm" => ("#eaf6ec", "#4c9a5b"),
            "tool" => ("#fdf3e1", "#c98a2b"),
            "branch" => ("#f4eefb", "#8460b8"),
            "end" => ("#eee", "#555"),
            _ => ("#fff", "#777"),
        };
        let label = node.label.as_deref().unwrap_or(&node.id);
        let below = format!("{} · {}", node.id, told_kind(node));
        format!(
            "<g><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/><text x=\"{tx}\" y=\"{ty}\" font-weight=\"600\">{}</text><text x=\"{tx}\" y=\"{by}\" \
             fill=\"#555\" font-size=\"11\">{}</text></g>",
            escaped(&clipped(label, WORDS)),
            escaped(&clipped(&below, WORDS + 8)),
            tx = x + 12,
            ty = y + 20,
            by = y + 38,
        )
    }

    fn arrow(&self, edge: &Edge) -> String {
        let words = |x: usize, y: usize| match edge.when.is_empty() {
            true => String::new(),
            false => format!(
                "<text x=\"{x}\" y=\"{y}\" fill=\"#555\" font-size=\"11\">{}</text>",
                escaped(&clipped(&edge.when, BESIDE))
            ),
        };
        let (from, to) = (self.x(edge.from), self.x(edge.to));
        let out = Self::y(edge.from) + HEIGHT / 2 + edge.nth * 7;
        let into = Self::y(edge.to) + HEIGHT / 2;
        let line =
            |d: String| format!("<path d=\"{d}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#tip)\"/>");
        let Some(lane) = edge.lane else {
            let (bottom, top) = (Self::y(edge.from) + HEIGHT, Self::y(edge.to));
            let x = from.max(to) + 40 + edge.nth * 12;
            return line(format!("M{x} {bottom}V{top}")) + &words(x + 8, bottom + 20);
        };
        if edge.to <= edge.from {
            let x = self.left - LANE - lane * LANE;
            return line(format!("M{from} {out}H{x}V{}H{to}", into - 8))
                + &words(from + 60, Self::y(edge.from) + HEIGHT + 14);
        }
        let x = self.right + LANE + lane * LANE;
        line(format!("M{} {out}H{x}V{into}H{}", from + WIDTH, to + WIDTH)) + &words(x + 6, out + 4)
    }
}

/// Every way, with a lane that no other one of its side uses between the same rows.
fn edges(rows: &[Row<'_>]) -> Vec<Edge> {
    let places: BTreeMap<&str, usize> =
        rows.iter().enumerate().map(|(n, row)| (row.node.id.as_str(), n)).collect();
    let mut edges = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        for (nth, Way { when, to }) in ways(row.node).into_iter().enumerate() {
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

/// Words in XML, without what XML cannot hold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
