//! A report as tables: the same rows for terminals, spreadsheets and browsers.

use super::words::Lang;
use super::{By, Look};
use crate::paper::number;
use komado_engine::report::{Performance, Performed, Questions, Report, Spreading, ToolUsed, Usage, Used};

/// What stands in a table.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cell {
    Text(String),
    Count(u64),
    /// With up to three decimals.
    Figure(f64),
    /// Of one; shown in per cent.
    Share(f64),
    /// Nobody knows.
    Unknown,
}

/// A table with a name.
pub(super) struct Section {
    /// As programs know it.
    pub(super) name: &'static str,
    /// Names of the columns; the first names the rows.
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The column that is drawn, and how.
    pub(super) drawn: Option<(usize, Drawn)>,
    /// What else is to be known.
    pub(super) note: Option<String>,
}

/// How a column is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Drawn {
    /// Upright, one beside the other, in time.
    Time,
    /// Lying, one under the other.
    Rank,
}

impl Cell {
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

    /// For programs; nothing where nobody knows.
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

fn known(figure: Option<u64>) -> Cell {
    figure.map_or(Cell::Unknown, Cell::Count)
}

fn share(figure: Option<f64>) -> Cell {
    figure.map_or(Cell::Unknown, Cell::Share)
}

/// Every table of a report.
pub(super) fn sections(told: &Report, look: Look) -> Vec<Section> {
    let mut sections = Vec::new();
    told.usage.iter().for_each(|usage| usages(usage, look, &mut sections));
    sections.extend(told.questions.as_ref().map(|questions| asked(questions, look.lang)));
    told.performance.iter().for_each(|performance| performed(performance, look, &mut sections));
    sections
}

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

/// A breakdown: by what, its name, that of its first column, its rows, those beyond them, and how it is drawn.
type Breakdown<'a> = (By, &'static str, &'static str, &'a [Used], Option<&'a Used>, Drawn);

fn usages(usage: &Usage, look: Look, sections: &mut Vec<Section>) {
    let all: [Breakdown<'_>; 4] = [
        (By::Day, "usage_by_day", "day", &usage.by_day, None, Drawn::Time),
        (By::Week, "usage_by_week", "week", &usage.by_week, None, Drawn::Time),
        (By::User, "usage_by_user", "user", &usage.by_user, usage.other_users.as_ref(), Drawn::Rank),
        (By::Model, "usage_by_model", "model", &usage.by_model, usage.other_models.as_ref(), Drawn::Rank),
    ];
    for (by, name, key, rows, others, drawn) in all {
        if look.by.is_some_and(|wanted| wanted != by) {
            continue;
        }
        // What the rows of sessions do not know cannot be drawn.
        let column = if usage.total.turns.is_some() { "turns" } else { "sessions_made" };
        let at = 1 + USAGE.iter().position(|known| *known == column).unwrap_or(0);
        let rows = rows.iter().map(|row| used(row, row.key.clone()));
        let others = others.map(|row| used(row, look.lang.say("others").to_owned()));
        let total = used(&usage.total, look.lang.say("total").to_owned());
        sections.push(Section {
            name,
            columns: std::iter::once(key).chain(USAGE).collect(),
            rows: rows.chain(others).chain([total]).collect(),
            drawn: Some((at, drawn)),
            note: None,
        });
    }
}

fn used(row: &Used, key: String) -> Vec<Cell> {
    vec![
        Cell::Text(key),
        Cell::Count(row.sessions_made),
        Cell::Count(row.sessions_active),
        known(row.turns),
        known(row.messages),
        Cell::Count(row.model_calls),
        known(row.tokens_in),
        known(row.tokens_out),
        Cell::Count(row.tokens),
        Cell::Count(row.tool_calls),
        Cell::Count(row.compactions),
        known(row.bytes),
    ]
}

fn asked(questions: &Questions, lang: Lang) -> Section {
    let row = |group: &komado_engine::report::Question| {
        vec![
            Cell::Text(group.question.clone()),
            Cell::Count(group.count),
            Cell::Count(group.at_most),
            Cell::Share(group.share),
            Cell::Count(group.users),
            Cell::Text(group.last_seen.chars().take(10).collect()),
            Cell::Text(group.examples.first().cloned().unwrap_or_default()),
        ]
    };
    let missed = number(questions.missed_at_most);
    Section {
        name: "questions",
        columns: vec!["question", "count", "at_most", "share", "users", "last_seen", "example"],
        rows: questions.groups.iter().map(row).collect(),
        drawn: Some((1, Drawn::Rank)),
        note: (questions.missed_at_most > 0).then(|| lang.fill("missed", &[("count", &missed)])),
    }
}

fn performed(performance: &Performance, look: Look, sections: &mut Vec<Section>) {
    let others = |name: &str| look.lang.say(name).to_owned();
    sections.push(Section {
        name: "performance",
        columns: vec!["figure", "value"],
        rows: figures(&performance.overall, look.lang),
        drawn: None,
        note: None,
    });
    let models = performance.by_model.iter().map(|row| model(row, row.model.clone()));
    let rest = performance.other_models.iter().map(|row| model(row, others("others")));
    sections.push(Section {
        name: "performance_by_model",
        columns: vec![
            "model",
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
        ],
        rows: models.chain(rest).collect(),
        drawn: None,
        note: None,
    });
    let tools = performance.tools.iter().map(|row| tool(row, row.tool.clone()));
    let rest = performance.other_tools.iter().map(|row| tool(row, others("others")));
    sections.push(Section {
        name: "tools",
        columns: vec!["tool", "calls", "errors", "error_rate", "interrupted", "mean_ms"],
        rows: tools.chain(rest).collect(),
        drawn: Some((1, Drawn::Rank)),
        note: None,
    });
}

fn model(row: &Performed, key: String) -> Vec<Cell> {
    let middle = |spread: Option<Spreading>| spread.map_or(Cell::Unknown, |spread| Cell::Figure(spread.p50));
    vec![
        Cell::Text(key),
        Cell::Count(row.completed),
        Cell::Count(row.failed),
        Cell::Count(row.stopped),
        middle(row.turns_to_finish),
        middle(row.seconds_per_turn),
        Cell::Count(row.requests),
        share(row.retry_rate),
        share(row.overflow_rate),
        share(row.tool_error_rate),
        share(row.compression_ratio),
        Cell::Count(row.recalls),
    ]
}

fn tool(row: &ToolUsed, key: String) -> Vec<Cell> {
    vec![
        Cell::Text(key),
        Cell::Count(row.calls),
        Cell::Count(row.errors),
        Cell::Share(row.error_rate),
        Cell::Count(row.interrupted),
        row.mean_ms.map_or(Cell::Unknown, Cell::Figure),
    ]
}

/// Every figure of all models, one under the other; what nobody knows is left out.
fn figures(all: &Performed, lang: Lang) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let mut put = |name: &str, suffix: &str, cell: Cell| {
        if cell != Cell::Unknown {
            rows.push(vec![Cell::Text(format!("{}{suffix}", lang.say(name))), cell]);
        }
    };
    put("completed", "", Cell::Count(all.completed));
    put("failed", "", Cell::Count(all.failed));
    put("stopped", "", Cell::Count(all.stopped));
    for (name, spread) in [
        ("turns_to_finish", all.turns_to_finish),
        ("seconds_per_turn", all.seconds_per_turn),
        ("seconds_to_first_answer", all.seconds_to_first_answer),
    ] {
        let Some(spread) = spread else { continue };
        for (suffix, figure) in
            [(" p50", spread.p50), (" p90", spread.p90), (" p99", spread.p99), (" max", spread.max)]
        {
            put(name, suffix, Cell::Figure(figure));
        }
    }
    put("requests", "", Cell::Count(all.requests));
    put("retries", "", Cell::Count(all.retries));
    put("retry_rate", "", share(all.retry_rate));
    put("overflows", "", Cell::Count(all.overflows));
    put("overflow_rate", "", share(all.overflow_rate));
    put("failures", "", Cell::Count(all.failures));
    put("tool_calls", "", Cell::Count(all.tool_calls));
    put("tool_errors", "", Cell::Count(all.tool_errors));
    put("tool_error_rate", "", share(all.tool_error_rate));
    put("condensed", "", Cell::Count(all.condensed));
    put("truncated", "", Cell::Count(all.truncated));
    put("trimmed", "", Cell::Count(all.trimmed));
    put("compression_ratio", "", share(all.compression_ratio));
    put("recalls", "", Cell::Count(all.recalls));
    rows
}
