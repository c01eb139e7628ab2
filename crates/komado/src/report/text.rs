//! A report for a terminal: tables, with a bar where there is something to compare.

use super::ReportView;
use super::language::ReportLanguage;
use super::section::{ChartKind, ReportCell, ReportSection, sections};
use crate::cli_output::{CliOutput, Style, clip, count, number, table};
use komado_core::amount::count_of;
use komado_core::notation::{tamed, width};
use komado_engine::report::Report;
use komado_ops::OpResult;

/// Columns of the longest bar.
const CELLS: usize = 12;
/// Columns of a terminal as most have it.
const ROOM: usize = 80;
/// Columns of a question in such a terminal; a wider one has more.
const LONGEST: usize = 44;
/// What is left out first where there is no room for all.
const SPARE: [&str; 7] =
    ["bytes", "compactions", "tokens", "model_calls", "sessions_active", "tool_calls", "messages"];

/// Prints it.
pub(crate) fn print(paper: &mut CliOutput, told: &Report, look: ReportView) -> OpResult {
    for (line, kind) in drawn(told, look, paper.terminal_room().map_or(ROOM, |room| room.max(ROOM))) {
        match kind {
            LineKind::Title => paper.inked_prose(Style::Bold, &line)?,
            LineKind::Row => paper.fit(&line)?,
            LineKind::Prose => paper.prose(&line)?,
        }
    }
    Ok(())
}

/// What a line of a report is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// A heading.
    Title,
    /// A row of a table: cut where the terminal ends.
    Row,
    /// Words: they go on in the next line.
    Prose,
}

/// Its lines, without colours.
pub(super) fn lines(told: &Report, look: ReportView) -> Vec<String> {
    drawn(told, look, ROOM).into_iter().map(|(line, _)| line).collect()
}

/// Its lines, and what each is.
fn drawn(told: &Report, look: ReportView, room: usize) -> Vec<(String, LineKind)> {
    let lang = look.lang;
    let mut lines = vec![(about(told, look), LineKind::Title), (read(told, look), LineKind::Prose)];
    lines.extend(unreadable(told, look).map(|line| (line, LineKind::Prose)));
    for section in sections(told, look).into_iter().map(|section| slimmed(section, look, room)) {
        lines.push((String::new(), LineKind::Row));
        lines.push((lang.say(section.name).to_owned(), LineKind::Title));
        if section.rows.is_empty() {
            lines.push((lang.say("nothing").to_owned(), LineKind::Row));
        }
        lines.extend(rows(&section, look, room).into_iter().map(|line| (line, LineKind::Row)));
        lines.extend(section.note.map(|note| (note, LineKind::Prose)));
    }
    lines
}

/// How much was read for it.
pub(super) fn read(told: &Report, look: ReportView) -> String {
    let (sessions, entries) = match look.lang {
        ReportLanguage::En => {
            (count(told.sessions_read, "session"), count_of(told.entries_read, "entry", "entries"))
        }
        ReportLanguage::Ja => (number(told.sessions_read), number(told.entries_read)),
    };
    look.lang.fill("read", &[("sessions", &sessions), ("entries", &entries)])
}

/// How much could not be, where there is such.
pub(super) fn unreadable(told: &Report, look: ReportView) -> Option<String> {
    let unread = Some(told.unreadable).filter(|unread| *unread > 0)?;
    let unread = match look.lang {
        ReportLanguage::En => count(unread, "session"),
        ReportLanguage::Ja => number(unread),
    };
    Some(look.lang.fill("unreadable", &[("count", &unread)]))
}

/// Which time it is about.
pub(super) fn about(told: &Report, look: ReportView) -> String {
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

/// Usage without the columns in which nothing stands and, where there is no room for the others, without the spare ones.
fn slimmed(mut section: ReportSection, look: ReportView, room: usize) -> ReportSection {
    if !is_summed(&section) {
        return section;
    }
    for at in (1..section.columns.len()).rev() {
        if section.rows.iter().all(|row| row[at].length() == 0.0) {
            leave_out(&mut section, at);
        }
    }
    for name in SPARE {
        if rows(&section, look, room).iter().all(|line| width(line) <= room) {
            break;
        }
        if let Some(at) = section.columns.iter().position(|column| *column == name) {
            leave_out(&mut section, at);
            section.note = Some(look.lang.say("narrow").to_owned());
        }
    }
    section
}

/// Takes a column out, unless it is the one that is drawn.
fn leave_out(section: &mut ReportSection, at: usize) {
    if let Some((drawn, _)) = &mut section.drawn {
        if *drawn == at {
            return;
        }
        *drawn -= usize::from(*drawn > at);
    }
    section.columns.remove(at);
    section.rows.iter_mut().for_each(|row| drop(row.remove(at)));
}

fn rows(section: &ReportSection, look: ReportView, room: usize) -> Vec<String> {
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
        let mut cells: Vec<String> = row.iter().map(|cell| cut(cell, LONGEST + room - ROOM)).collect();
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
pub(super) fn compared(section: &ReportSection) -> impl Iterator<Item = &Vec<ReportCell>> {
    let rows = if is_summed(section) {
        &section.rows[..section.rows.len().saturating_sub(1)]
    } else {
        &section.rows
    };
    rows.iter()
}

/// True when the last row is the sum of the others.
fn is_summed(section: &ReportSection) -> bool {
    section.name.starts_with("usage_by_")
}

fn cut(cell: &ReportCell, most: usize) -> String {
    match cell {
        ReportCell::Text(text) => clip(text, most),
        _ => cell.shown(),
    }
}

fn bar(length: f64, most: f64, drawn: ChartKind) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if most > 0.0 { (length / most * (CELLS * 8) as f64).ceil() as usize } else { 0 };
    let empty = if drawn == ChartKind::Time && eighths == 0 { "·" } else { "" };
    format!("{}{}{empty}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::super::ReportFormat;
    use super::super::language::ReportLanguage;
    use super::*;

    #[test]
    fn usage_fits_a_terminal_and_empty_columns_are_left_out() {
        let columns =
            ["day", "sessions_made", "sessions_active", "turns", "messages", "model_calls", "tokens_in"];
        let columns: Vec<&str> = columns
            .into_iter()
            .chain(["tokens_out", "tokens", "tool_calls", "compactions", "bytes"])
            .collect();
        let row = |name: &str| {
            let numbers =
                (1..columns.len()).map(|at| ReportCell::Count(if at == 10 { 0 } else { 123_456_789 }));
            std::iter::once(ReportCell::Text(name.to_owned())).chain(numbers).collect()
        };
        let (name, drawn) = ("usage_by_day", Some((3, ChartKind::Time)));
        let section =
            ReportSection { name, rows: vec![row("2026-11-16"), row("total")], columns, drawn, note: None };
        let look = ReportView { format: ReportFormat::Text, by: None, lang: ReportLanguage::En };
        let slim = slimmed(section, look, ROOM);
        let shown = rows(&slim, look, ROOM);
        assert!(shown.iter().all(|line| width(line) <= ROOM), "{shown:?}");
        assert!(slim.columns.starts_with(&["day", "sessions_made", "turns"]), "{:?}", slim.columns);
        assert_eq!(slim.drawn.map(|(at, _)| at), Some(2));
        assert!(slim.note.is_some());
    }
}
