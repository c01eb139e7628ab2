//! The forms of a report: text for people, JSON for programs, CSV for spreadsheets, HTML for browsers.

mod html;
mod language;
mod section;
mod text;

use clap::ValueEnum;
pub(crate) use html::POLICY;
use komado_engine::report::Report;
pub(crate) use language::ReportLanguage;
use schemars::JsonSchema;
use section::{ReportCell, ReportSection};
use serde::Deserialize;
use std::io::{self, Write};
pub(crate) use text::print;

/// What usage is counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum UsageBy {
    Day,
    Week,
    User,
    Model,
}

/// In which form. Text is for the command line alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum ReportFormat {
    #[serde(skip)]
    Text,
    Json,
    Csv,
    Html,
}

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportView {
    pub(crate) format: ReportFormat,
    pub(crate) by: Option<UsageBy>,
    pub(crate) lang: ReportLanguage,
}

/// A report in one of its forms.
pub(crate) fn write(told: &Report, look: ReportView, out: &mut dyn Write) -> io::Result<()> {
    match look.format {
        ReportFormat::Text => text::lines(told, look).iter().try_for_each(|line| writeln!(out, "{line}")),
        ReportFormat::Csv => write_csv(&section::sections(told, look), out),
        ReportFormat::Html => html::write(told, look, out),
        ReportFormat::Json => {
            serde_json::to_writer(&mut *out, told)?;
            out.write_all(b"\n")
        }
    }
}

/// Writes the tables for a spreadsheet: RFC 4180, in UTF-8.
///
/// One table is written as it is. Several have different columns, and a file has one head; so each figure gets a line of its
/// own then. A text that a spreadsheet would take for a formula gets an apostrophe in front: what a user typed must not be
/// run by the program that opens the report.
fn write_csv(sections: &[ReportSection], out: &mut dyn Write) -> io::Result<()> {
    if let [only] = sections {
        row(only.columns.iter().map(|name| (*name).to_owned()), out)?;
        return only.rows.iter().try_for_each(|cells| row(cells.iter().map(safe), out));
    }
    row(["section", "key", "figure", "value"].map(str::to_owned).into_iter(), out)?;
    for section in sections {
        for cells in &section.rows {
            for (name, cell) in section.columns.iter().zip(cells).skip(1) {
                let line = [section.name.to_owned(), safe(&cells[0]), (*name).to_owned(), safe(cell)];
                row(line.into_iter(), out)?;
            }
        }
    }
    Ok(())
}

fn row(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let line: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
    write!(out, "{}\r\n", line.join(","))
}

fn safe(cell: &ReportCell) -> String {
    let text = cell.bare();
    // Some spreadsheets take the wide forms that Japanese keyboards give for the same.
    let is_formula = matches!(cell, ReportCell::Text(_))
        && text != "-"
        && text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r']);
    if is_formula { format!("'{text}") } else { text }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &'static str, key: &str) -> ReportSection {
        let rows = vec![vec![ReportCell::Text(key.into()), ReportCell::Count(3), ReportCell::Unknown]];
        ReportSection { name, columns: vec!["question", "count", "share"], rows, drawn: None, note: None }
    }

    fn written(sections: &[ReportSection]) -> String {
        let mut out = Vec::new();
        write_csv(sections, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_table_is_written_as_it_is_and_several_a_figure_a_line() {
        assert_eq!(
            written(&[section("a", "返品, \"急ぎ\"")]),
            "question,count,share\r\n\"返品, \"\"急ぎ\"\"\",3,\r\n"
        );
        let both = written(&[section("a", "x"), section("b", "y\nz")]);
        assert_eq!(
            both,
            "section,key,figure,value\r\na,x,count,3\r\na,x,share,\r\nb,\"y\nz\",count,3\r\nb,\"y\nz\",share,\r\n"
        );
    }

    #[test]
    fn nothing_that_a_user_typed_is_a_formula() {
        for text in
            ["=1+1", "+1", "-1", "@x", "\t=1", "=HYPERLINK(\"http://x\")", "＝1+1", "＋1", "－1", "＠x"]
        {
            let line = written(&[section("a", text)]);
            let cell = line.lines().nth(1).unwrap().trim_start_matches('"');
            assert!(cell.starts_with('\''), "{line}");
        }
        assert!(written(&[section("a", "-")]).contains("\r\n-,3"));
    }
}
