//! Standard output: a report for people, or one JSON value for programs; never a mix. Messages go to standard error.

use crate::error::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use komado_core::notation::{shown, tamed, width};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Where a report is printed.
pub(crate) struct BenchOutput {
    out: BufWriter<Stdout>,
    /// True when the reader is a program.
    pub(crate) json: bool,
    /// True when the reader is a terminal with colours.
    colour: bool,
}

impl BenchOutput {
    pub(crate) fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { out: BufWriter::new(stdout), json, colour }
    }

    /// Prints a line. Its text is our own; what others wrote goes through [`shown`] first.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result {
        Ok(writeln!(self.out, "{}", text.as_ref())?)
    }

    /// Prints a table: see [`table`].
    pub(crate) fn table(&mut self, rows: &[Vec<String>], right: &[usize]) -> Result {
        table(rows, right).into_iter().try_for_each(|line| self.line(line))
    }

    /// Prints one JSON value on a line.
    pub(crate) fn write_json<T: Serialize>(&mut self, value: &T) -> Result {
        serde_json::to_writer(&mut self.out, value)?;
        Ok(self.out.write_all(b"\n")?)
    }

    pub(crate) fn flush(&mut self) -> Result {
        Ok(self.out.flush()?)
    }

    /// `text` in bold, where there are colours.
    pub(crate) fn bold(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Prints a message to standard error.
pub(crate) fn say(text: impl AsRef<str>) {
    // There is nowhere left to report that this failed.
    let _ = writeln!(io::stderr(), "{}", shown(text.as_ref()));
}

/// A number with commas between thousands.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows of cells in columns that line up; the columns in `right` are aligned to the right.
fn table(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| tamed(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |c: usize| rows.iter().filter_map(|row| row.get(c)).map(|cell| width(cell)).max();
    let widths: Vec<usize> = (0..columns).map(|c| widest(c).unwrap_or(0)).collect();
    rows.iter().map(|row| aligned(row, &widths, right)).collect()
}

fn aligned(row: &[String], widths: &[usize], right: &[usize]) -> String {
    let cells = row.iter().enumerate().map(|(c, cell)| {
        let gap = " ".repeat(widths[c].saturating_sub(width(cell)));
        if right.contains(&c) { gap + cell } else { cell.clone() + &gap }
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// A progress bar on standard error; nothing where that is not a terminal.
pub(crate) fn progress(what: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_thousands_are_set_apart() {
        let rows =
            [vec!["user".into(), "n".into()], vec!["小窓".into(), "12".into()], vec!["a".into(), "3".into()]];
        assert_eq!(table(&rows, &[1]), ["user   n", "小窓  12", "a      3"]);
        assert_eq!(["0", "999", "1,234,567"], [0, 999, 1_234_567].map(number).each_ref().map(String::as_str));
    }
}
