//! A report for a terminal: tables, with a bar where there is something to compare.

use super::Look;
use super::section::{Cell, Drawn, Section, sections};
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, number};
use crate::table::table;
use komado_core::notation::{tamed, width};
use komado_engine::report::Report;

/// Columns of the longest bar.
const CELLS: usize = 12;
/// Columns of a question.
const LONGEST: usize = 44;

/// Prints it.
pub(super) fn print(paper: &mut Paper, told: &Report, look: Look) -> Outcome {
    for (line, is_title) in drawn(told, look) {
        if is_title {
            let title = paper.ink(Ink::Bold, &line);
            paper.line(title)?;
        } else {
            paper.fit(&line)?;
        }
    }
    Ok(())
}

/// Its lines, without colours.
pub(super) fn lines(told: &Report, look: Look) -> Vec<String> {
    drawn(told, look).into_iter().map(|(line, _)| line).collect()
}

/// Its lines, and which of them are titles.
fn drawn(told: &Report, look: Look) -> Vec<(String, bool)> {
    let lang = look.lang;
    let mut lines = vec![(about(told, look), true)];
    let read = [("sessions", number(told.sessions_read)), ("entries", number(told.entries_read))];
    let read: Vec<(&str, &str)> = read.iter().map(|(slot, value)| (*slot, value.as_str())).collect();
    lines.push((lang.fill("read", &read), false));
    if told.unreadable > 0 {
        lines.push((lang.fill("unreadable", &[("count", &number(told.unreadable))]), false));
    }
    for section in sections(told, look) {
        lines.push((String::new(), false));
        lines.push((lang.say(section.name).to_owned(), true));
        if section.rows.is_empty() {
            lines.push((lang.say("nothing").to_owned(), false));
        }
        lines.extend(rows(&section, look).into_iter().map(|line| (line, false)));
        lines.extend(section.note.map(|note| (note, false)));
    }
    lines
}

/// Which time it is about.
pub(super) fn about(told: &Report, look: Look) -> String {
    let short = |time: &str| time.replace(".000000Z", "Z");
    let (from, to) = (short(&told.from), short(&told.to));
    let range = [("from", from.as_str()), ("to", to.as_str()), ("offset", told.utc_offset.as_str())];
    let mut text = look.lang.fill("range", &range);
    for (name, value) in [("user", &told.user), ("model", &told.model)] {
        if let Some(value) = value {
            text.push_str(&format!(", {} {}", look.lang.say(name), tamed(value)));
        }
    }
    text
}

fn rows(section: &Section, look: Look) -> Vec<String> {
    if section.rows.is_empty() {
        return Vec::new();
    }
    let mut head: Vec<String> = section.columns.iter().map(|name| look.lang.say(name).to_owned()).collect();
    let most = section
        .drawn
        .map_or(0.0, |(at, _)| compared(section).map(|row| row[at].length()).fold(0.0, f64::max));
    if section.drawn.is_some() {
        head.push(String::new());
    }
    let mut shown = vec![head];
    let last = section.rows.len() - 1;
    for (n, row) in section.rows.iter().enumerate() {
        let mut cells: Vec<String> = row.iter().map(cut).collect();
        if let Some((at, drawn)) = section.drawn {
            let is_sum = is_summed(section) && n == last;
            cells.push(if is_sum { String::new() } else { bar(row[at].length(), most, drawn) });
        }
        shown.push(cells);
    }
    let right: Vec<usize> =
        (1..section.columns.len()).filter(|at| section.rows[0][*at].is_number()).collect();
    table(&shown, &right)
}

/// The rows that are compared with each other: not their sum.
pub(super) fn compared(section: &Section) -> impl Iterator<Item = &Vec<Cell>> {
    let rows = if is_summed(section) {
        &section.rows[..section.rows.len().saturating_sub(1)]
    } else {
        &section.rows
    };
    rows.iter()
}

/// True when the last row is the sum of the others.
fn is_summed(section: &Section) -> bool {
    section.name.starts_with("usage_by_")
}

fn cut(cell: &Cell) -> String {
    let text = cell.shown();
    if !matches!(cell, Cell::Text(_)) || width(&text) <= LONGEST {
        return text;
    }
    let mut columns = 0;
    let fits = text.chars().take_while(|c| {
        columns += width(c.encode_utf8(&mut [0; 4]));
        columns < LONGEST
    });
    fits.chain(['…']).collect()
}

fn bar(length: f64, most: f64, drawn: Drawn) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if most > 0.0 { (length / most * (CELLS * 8) as f64).ceil() as usize } else { 0 };
    let empty = if drawn == Drawn::Time && eighths == 0 { "·" } else { "" };
    format!("{}{}{empty}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}
