//! A playbook as a picture: one node a row, ways on beside them, child threads in frames.
//!
//! Ways to the next row go straight down; ways further down have lanes on the right, ways back have lanes on the left: none
//! crosses a box. They come in above the middle of a box and go out below it, so that no two of them lie on each other. All
//! boxes are as wide as the longest words need. The same playbook gives the same bytes.

use super::Playbook;
use super::draw::{Row, Way, clipped, long, rows, told_kind, ways};
use std::collections::BTreeMap;

/// A row, with the gap below it.
const ROW: usize = 84;
/// A box: the least width, and the height.
const NARROWEST: usize = 200;
const HEIGHT: usize = 48;
/// Between two lanes, and between two frames.
const LANE: usize = 18;
/// Around everything.
const MARGIN: usize = 28;
/// Width of a column of words in tenths: of the first line of a box, which is bold, and of small words.
const BOLD: usize = 82;
const SMALL: usize = 66;
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
    let (arrows, words): (Vec<_>, Vec<_>) = sheet.edges.iter().map(|edge| sheet.arrow(edge)).unzip();
    lines.extend(arrows);
    // Over all lines, each with a rim of its own.
    lines.extend(words.into_iter().filter(|words| !words.is_empty()));
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
        let wide = rows.iter().map(|row| box_of(row)).max().unwrap_or_default().max(NARROWEST);
        let right = left + wide + deepest * LANE * 2;
        let words = |edge: &Edge| edge.reach(left, right) + long(&clipped(&edge.when, BESIDE)) * SMALL / 10;
        let longest = edges.iter().map(words).max().unwrap_or_default();
        let title = MARGIN + long(&playbook.name) * BOLD / 10;
        let width = longest.max(right + most(false)).max(title) + MARGIN;
        Self { name: &playbook.name, rows, edges, wide, left, right, width }
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
        let width = self.wide + (deepest - depth) * LANE * 2 + LANE;
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
        let (label, below) = words_of(&self.rows[n]);
        format!(
            "<g><rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/><text x=\"{tx}\" y=\"{ty}\" font-weight=\"600\">{}</text><text x=\"{tx}\" y=\"{by}\" \
             fill=\"#555\" font-size=\"11\">{}</text></g>",
            escaped(&label),
            escaped(&below),
            wide = self.wide,
            tx = x + 12,
            ty = y + 20,
            by = y + 38,
        )
    }

    /// The line of a way, and the words beside it.
    fn arrow(&self, edge: &Edge) -> (String, String) {
        let (from, to) = (self.x(edge.from), self.x(edge.to));
        let out = Self::y(edge.from) + HEIGHT / 2 + 6 + edge.nth * 6;
        let into = Self::y(edge.to) + HEIGHT / 2 - 8;
        let (bottom, top) = (Self::y(edge.from) + HEIGHT, Self::y(edge.to));
        let (path, x, y) = match edge.lane {
            None => {
                let x = from.max(to) + 40 + edge.nth * 12;
                (format!("M{x} {bottom}V{top}"), x + 8, bottom + 20)
            }
            Some(lane) if edge.to <= edge.from => {
                let x = self.left - LANE - lane * LANE;
                (format!("M{from} {out}H{x}V{into}H{to}"), from + 60, bottom + 14)
            }
            Some(lane) => {
                let x = self.right + LANE + lane * LANE;
                let (from, to) = (from + self.wide, to + self.wide);
                (format!("M{from} {out}H{x}V{into}H{to}"), x + 6, out + 4 + edge.nth * 9)
            }
        };
        let line = format!("<path d=\"{path}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#tip)\"/>");
        (line, beside(edge, x, y))
    }
}

impl Edge {
    /// Where its words begin, at most.
    fn reach(&self, left: usize, right: usize) -> usize {
        match self.lane.filter(|_| self.to > self.from) {
            Some(lane) => right + LANE + lane * LANE + 6,
            None => left + 60 + self.nth * 12 + LANE * 4,
        }
    }
}

/// When a way is taken.
fn beside(edge: &Edge, x: usize, y: usize) -> String {
    if edge.when.is_empty() {
        return String::new();
    }
    format!(
        "<text x=\"{x}\" y=\"{y}\" fill=\"#555\" font-size=\"11\" stroke=\"#fff\" stroke-width=\"4\" \
         stroke-linejoin=\"round\" paint-order=\"stroke\">{}</text>",
        escaped(&clipped(&edge.when, BESIDE))
    )
}

/// The two lines of a box.
fn words_of(row: &Row<'_>) -> (String, String) {
    let Row { node, .. } = row;
    let below = format!("{} · {}", node.id, told_kind(node));
    (clipped(node.label.as_deref().unwrap_or(&node.id), WORDS), clipped(&below, WORDS + 8))
}

/// How wide the box of a row has to be.
fn box_of(row: &Row<'_>) -> usize {
    let (label, below) = words_of(row);
    (long(&label) * BOLD / 10).max(long(&below) * SMALL / 10) + 24
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
