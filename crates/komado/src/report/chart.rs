//! Charts as SVG: nothing in them comes from elsewhere, and each says in words what it shows.
//!
//! The colours are of the middle, so that they stand on white and on black.

use super::Look;
use super::html::escaped;
use super::section::{Cell, Drawn, Section};
use super::text::compared;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const BAR: &str = "#4878a8";
const INK: &str = "#808080";
/// Bars under each other, at most; the table has all.
const MOST: usize = 20;
/// Characters of a name beside a bar.
const NAME: usize = 22;

/// The chart of a table; none where there is nothing to draw.
pub(super) fn chart(section: &Section, look: Look) -> Option<String> {
    let (at, drawn) = section.drawn?;
    let rows: Vec<(String, &Cell)> = compared(section)
        .map(|row| (row[0].shown(), &row[at]))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let most = rows.iter().map(|(_, cell)| cell.length()).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let title = format!("{}: {}", look.lang.say(section.name), look.lang.say(section.columns[at]));
    Some(match drawn {
        Drawn::Time => upright(&title, &rows, most),
        Drawn::Rank => lying(&title, &rows[..rows.len().min(MOST)], most),
    })
}

fn opened(title: &str, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\"><title>{title}</title>\n"
    )
}

/// One bar for each, with what it is and how much where it is pointed at.
fn bar(svg: &mut String, place: [f64; 4], name: &str, cell: &Cell) {
    let [x, y, width, height] = place;
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{BAR}\"><title>{}: {}</title></rect>",
        escaped(name),
        cell.shown(),
    );
}

fn label(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>"
    );
}

fn upright(title: &str, rows: &[(String, &Cell)], most: f64) -> String {
    let mut svg = opened(title, HEIGHT);
    let (left, top, bottom) = (56.0, 14.0, HEIGHT - 24.0);
    let step = (WIDTH - left - 4.0) / rows.len() as f64;
    let largest = rows.iter().max_by(|a, b| a.1.length().total_cmp(&b.1.length()));
    if let Some((_, cell)) = largest {
        label(&mut svg, left - 6.0, top + 8.0, "end", &cell.shown());
    }
    label(&mut svg, left - 6.0, bottom, "end", "0");
    let _ = writeln!(svg, "<path d=\"M{left} {bottom}H{WIDTH}\" stroke=\"{INK}\" fill=\"none\"/>");
    for (n, (name, cell)) in rows.iter().enumerate() {
        let height = cell.length() / most * (bottom - top);
        let x = left + n as f64 * step + step * 0.1;
        bar(&mut svg, [x, bottom - height, step * 0.8, height], name, cell);
    }
    // As many names as have room below.
    let every = (rows.len() as f64 * 84.0 / (WIDTH - left)).ceil().max(1.0) as usize;
    for (n, (name, _)) in rows.iter().enumerate().step_by(every) {
        label(&mut svg, left + (n as f64 + 0.5) * step, HEIGHT - 8.0, "middle", name);
    }
    svg.push_str("</svg>\n");
    svg
}

fn lying(title: &str, rows: &[(String, &Cell)], most: f64) -> String {
    let (left, right, step) = (230.0, 70.0, 24.0);
    let mut svg = opened(title, rows.len() as f64 * step + 8.0);
    for (n, (name, cell)) in rows.iter().enumerate() {
        let y = n as f64 * step + 4.0;
        let length = cell.length() / most * (WIDTH - left - right);
        let mut short: String = name.chars().take(NAME).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        label(&mut svg, left - 8.0, y + 15.0, "end", &short);
        bar(&mut svg, [left, y + 2.0, length, step - 6.0], name, cell);
        label(&mut svg, left + length + 6.0, y + 15.0, "start", &cell.shown());
    }
    svg.push_str("</svg>\n");
    svg
}
