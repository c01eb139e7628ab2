//! A report as tables: the same rows for terminals, spreadsheets and browsers.

use super::language::ReportLanguage;
use super::{ReportView, UsageBy};
use crate::cli_output::number;
use komado_engine::report::Report;
use serde_json::Value;

/// What stands in a table.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ReportCell {
    Text(String),
    Count(u64),
    /// With up to three decimals.
    Figure(f64),
    /// Of one; shown in per cent.
    Share(f64),
    /// Not known.
    Unknown,
}

/// A table with a name.
pub(super) struct ReportSection {
    /// As programs know it.
    pub(super) name: &'static str,
    /// Names of the columns; the first names the rows.
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<ReportCell>>,
    /// The column that is drawn, and how.
    pub(super) drawn: Option<(usize, ChartKind)>,
    /// What else is to be known.
    pub(super) note: Option<String>,
}

/// How a column is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChartKind {
    /// Upright, one beside the other, in time.
    Time,
    /// Lying, one under the other.
    Rank,
}

impl ReportCell {
    /// For people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(n) => number(*n),
            Self::Figure(figure) => plain(*figure),
            Self::Share(share) => format!("{:.1} %", 100.0 * share),
            Self::Unknown => "-".to_owned(),
        }
    }

    /// For programs; nothing where it is not known.
    pub(super) fn bare(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(n) => n.to_string(),
            Self::Figure(figure) | Self::Share(figure) => plain(*figure),
            Self::Unknown => String::new(),
        }
    }

    /// How long its bar is.
    pub(super) fn length(&self) -> f64 {
        match self {
            Self::Count(n) => *n as f64,
            Self::Figure(figure) | Self::Share(figure) => *figure,
            Self::Text(_) | Self::Unknown => 0.0,
        }
    }

    pub(super) const fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_))
    }
}

fn plain(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The cell of a figure, by its name in the JSON of a report; of a spread the middle.
fn cell(row: &Value, name: &str) -> ReportCell {
    match &row[name] {
        Value::String(text) => ReportCell::Text(text.clone()),
        spread @ Value::Object(_) => cell(spread, "p50"),
        Value::Number(figure) => match (figure.as_u64(), figure.as_f64()) {
            (Some(count), _) => ReportCell::Count(count),
            (None, Some(share)) if SHARES.contains(&name) => ReportCell::Share(share),
            (None, Some(figure)) => ReportCell::Figure(figure),
            (None, None) => ReportCell::Unknown,
        },
        _ => ReportCell::Unknown,
    }
}

/// A row of such cells, under a key.
fn cells(key: String, row: &Value, names: &[&str]) -> Vec<ReportCell> {
    std::iter::once(ReportCell::Text(key)).chain(names.iter().map(|name| cell(row, name))).collect()
}

/// Every table of a report.
pub(super) fn sections(told: &Report, look: ReportView) -> Vec<ReportSection> {
    // Its figures have one name each, in every form. They always can be JSON.
    let told = serde_json::to_value(told).unwrap_or_default();
    let mut sections = Vec::new();
    if told["usage"].is_object() {
        usages(&told["usage"], look, &mut sections);
    }
    if told["questions"].is_object() {
        sections.push(asked(&told["questions"], look.lang));
    }
    if told["performance"].is_object() {
        performed(&told["performance"], look.lang, &mut sections);
    }
    sections
}

/// Figures that are a part of one.
const SHARES: [&str; 6] =
    ["share", "error_rate", "retry_rate", "overflow_rate", "tool_error_rate", "compression_ratio"];

const USAGE: [&str; 11] = [
    "sessions_made",
    "sessions_active",
    "turns",
    "messages",
    "model_calls",
    "tokens_in",
    "tokens_out",
    "tokens",
    "tool_calls",
    "compactions",
    "bytes",
];

/// A table whose rows are under `list`, each named by its `key`, those beyond them under `others`.
fn table(
    name: &'static str,
    key: &'static str,
    columns: &[&'static str],
    (of, list, others): (&Value, &str, &str),
    lang: ReportLanguage,
) -> ReportSection {
    let named = |row: &Value| {
        let name = [&row[key], &row["key"]].iter().find_map(|name| name.as_str()).unwrap_or_default();
        cells(name.to_owned(), row, columns)
    };
    let rows = of[list].as_array().into_iter().flatten().map(named);
    let others = of.get(others).filter(|row| row.is_object());
    let others = others.map(|row| cells(lang.say("others").to_owned(), row, columns));
    ReportSection {
        name,
        columns: std::iter::once(key).chain(columns.iter().copied()).collect(),
        rows: rows.chain(others).collect(),
        drawn: None,
        note: None,
    }
}

fn usages(usage: &Value, look: ReportView, sections: &mut Vec<ReportSection>) {
    // What the rows of sessions do not know cannot be drawn.
    let column = if usage["total"]["turns"].is_null() { "sessions_made" } else { "turns" };
    let at = 1 + USAGE.iter().position(|known| *known == column).unwrap_or(0);
    for (by, name, key, from, drawn) in [
        (UsageBy::Day, "usage_by_day", "day", ("by_day", ""), ChartKind::Time),
        (UsageBy::Week, "usage_by_week", "week", ("by_week", ""), ChartKind::Time),
        (UsageBy::User, "usage_by_user", "user", ("by_user", "other_users"), ChartKind::Rank),
        (UsageBy::Model, "usage_by_model", "model", ("by_model", "other_models"), ChartKind::Rank),
    ] {
        if look.by.is_some_and(|wanted| wanted != by) {
            continue;
        }
        let mut section = table(name, key, &USAGE, (usage, from.0, from.1), look.lang);
        section.rows.push(cells(look.lang.say("total").to_owned(), &usage["total"], &USAGE));
        sections.push(ReportSection { drawn: Some((at, drawn)), ..section });
    }
}

fn asked(questions: &Value, lang: ReportLanguage) -> ReportSection {
    let columns = ["count", "at_most", "share", "users", "last_seen", "example"];
    let mut section = table("questions", "question", &columns, (questions, "groups", ""), lang);
    let groups = questions["groups"].as_array().into_iter().flatten();
    for (row, group) in section.rows.iter_mut().zip(groups) {
        let day = group["last_seen"].as_str().unwrap_or_default().chars().take(10).collect();
        let example = group["examples"][0].as_str().unwrap_or_default().to_owned();
        (row[5], row[6]) = (ReportCell::Text(day), ReportCell::Text(example));
    }
    let missed = questions["missed_at_most"].as_u64().unwrap_or(0);
    let note = (missed > 0).then(|| lang.fill("missed", &[("count", &number(missed))]));
    ReportSection { drawn: Some((1, ChartKind::Rank)), note, ..section }
}

fn performed(performance: &Value, lang: ReportLanguage, sections: &mut Vec<ReportSection>) {
    sections.push(ReportSection {
        name: "performance",
        columns: vec!["figure", "value"],
        rows: figures(&performance["overall"], lang),
        drawn: None,
        note: None,
    });
    let columns = [
        "completed",
        "failed",
        "stopped",
        "turns_to_finish",
        "seconds_per_turn",
        "requests",
        "retry_rate",
        "overflow_rate",
        "tool_error_rate",
        "compression_ratio",
        "recalls",
    ];
    let models = (performance, "by_model", "other_models");
    sections.push(table("performance_by_model", "model", &columns, models, lang));
    let columns = ["calls", "errors", "error_rate", "interrupted", "mean_ms"];
    let tools = table("tools", "tool", &columns, (performance, "tools", "other_tools"), lang);
    sections.push(ReportSection { drawn: Some((1, ChartKind::Rank)), ..tools });
}

/// Every figure of all models, one under the other; what is not known is left out.
fn figures(all: &Value, lang: ReportLanguage) -> Vec<Vec<ReportCell>> {
    const FIGURES: [&str; 20] = [
        "completed",
        "failed",
        "stopped",
        "turns_to_finish",
        "seconds_per_turn",
        "seconds_to_first_answer",
        "requests",
        "retries",
        "retry_rate",
        "overflows",
        "overflow_rate",
        "failures",
        "tool_calls",
        "tool_errors",
        "tool_error_rate",
        "condensed",
        "truncated",
        "trimmed",
        "compression_ratio",
        "recalls",
    ];
    let spread = |name: &str| {
        let part = |part| (format!("{} {part}", lang.say(name)), cell(&all[name], part));
        ["p50", "p90", "p99", "max"].map(part).to_vec()
    };
    let figure = |name: &&str| match all[*name].is_object() {
        true => spread(name),
        false => vec![(lang.say(name).to_owned(), cell(all, name))],
    };
    let known = FIGURES.iter().flat_map(figure).filter(|(_, cell)| *cell != ReportCell::Unknown);
    known.map(|(name, cell)| vec![ReportCell::Text(name), cell]).collect()
}
