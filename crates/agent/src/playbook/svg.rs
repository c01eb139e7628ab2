//! A playbook as a picture: one node a row, ways on beside them, child threads in frames.
//!
//! Ways to the next row go straight down; ways further down have lanes on the right, ways back have lanes on the left: none
//! crosses a box. When a way is taken stands in the box that it leaves, on a line of its own from which it goes out: words
//! and lines never meet, however many there are. All boxes are as wide as the longest words need, and long words go on in
//! the next line. The same playbook gives the same bytes.

mod card;

use super::Playbook;
use super::draw::{Row, Way, rows, ways};
use card::{Card, Goes};
use komado_core::notation::width as long;
use std::collections::BTreeMap;

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
    rows: Vec<Row<'p>>,
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
        let into = self.tops[edge.to] + card::INTO;
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
fn card_of(n: usize, row: &Row<'_>, edges: &[Edge]) -> Card {
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
