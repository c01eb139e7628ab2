//! The list of sessions, as people look for one: what it is about, when it was last used, where, with what, and at what price.

use super::Render;
use crate::cli_output::{CliOutput, clip, table};
use jiff::Timestamp;
use komado_core::amount::age as age_of;
use komado_core::notation::{tamed, width};
use komado_core::session::State;
use komado_ops::OpResult;
use komado_ops::session::{SessionCost, SessionList, SessionRow};
use std::collections::BTreeSet;

impl Render for SessionList {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        if self.items.is_empty() {
            paper.fit("no sessions")?;
        } else {
            let now = Timestamp::now();
            let columns: Vec<SessionColumn> = COLUMNS.iter().map(|column| column(self, now)).collect();
            lines(columns, paper.width).into_iter().try_for_each(|line| paper.line(line))?;
        }
        paper.say(footer(self));
        for one in &self.items {
            one.unfinished.iter().for_each(|why| paper.say(format!("komado: session {}: {why}", one.id)));
        }
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        super::each(paper, &self.items)
    }
}

/// The most columns that a cell takes while others want them, and how it is cut to so many.
type CellCut = (usize, fn(&str, usize) -> String);

/// A column with its heading first.
struct SessionColumn {
    cells: Vec<String>,
    is_right: bool,
    /// How its cells are cut; `None` where they never are.
    cut: Option<CellCut>,
    /// What leaves first where there is little room; 0 stays.
    leaves: u8,
    /// True for the one that takes what room there is.
    bends: bool,
}

impl SessionColumn {
    /// Columns of its widest cell.
    fn whole(&self) -> usize {
        self.cells.iter().map(|cell| width(cell)).max().unwrap_or(0)
    }

    /// Columns that it takes.
    fn width(&self) -> usize {
        self.whole().min(self.cut.map_or(usize::MAX, |(most, _)| most))
    }

    /// Takes of `spare` columns what it is cut by.
    fn grow(&mut self, spare: &mut usize) {
        let more = (self.whole() - self.width()).min(*spare);
        if let Some((most, _)) = &mut self.cut {
            *most += more;
            *spare -= more;
        }
    }

    /// A cell as it is shown.
    fn shown(&self, row: usize) -> String {
        let cell = &self.cells[row];
        self.cut.map_or_else(|| cell.clone(), |(most, cut)| cut(cell, most))
    }
}

/// Columns of a short id that a person gave, of a folder and of other names.
const ID: usize = 20;
const PROJECT: usize = 26;
const NAME: usize = 24;
/// Fewest columns of a title.
const TITLE: usize = 24;

/// The columns in their order.
const COLUMNS: [fn(&SessionList, Timestamp) -> SessionColumn; 10] =
    [id, title, status, age, project, agent, model, tokens, cost, saved];

fn column(
    list: &SessionList,
    heading: &str,
    leaves: u8,
    cell: impl Fn(&SessionRow) -> String,
) -> SessionColumn {
    let cells = list.items.iter().map(|row| tamed(&cell(row)));
    SessionColumn {
        cells: std::iter::once(heading.to_owned()).chain(cells).collect(),
        is_right: false,
        cut: None,
        leaves,
        bends: false,
    }
}

/// The same, cut where others want the room.
fn bounded(most: usize, cut: fn(&str, usize) -> String, column: SessionColumn) -> SessionColumn {
    SessionColumn { cut: Some((most, cut)), ..column }
}

fn id(list: &SessionList, _: Timestamp) -> SessionColumn {
    let name = |row: &SessionRow| {
        let short = row.about.as_ref().and_then(|about| about.short.as_deref());
        short.unwrap_or(&row.id).to_owned()
    };
    bounded(ID, clip, column(list, "session", 0, name))
}

fn title(list: &SessionList, _: Timestamp) -> SessionColumn {
    let title = |row: &SessionRow| {
        let title = row.about.as_ref().and_then(|about| about.title.clone());
        title
            .or_else(|| row.meta.task_key.is_task().then(|| row.meta.task_key.to_string()))
            .unwrap_or_default()
    };
    SessionColumn { bends: true, ..column(list, "title", 0, title) }
}

fn status(list: &SessionList, _: Timestamp) -> SessionColumn {
    column(list, "status", 3, |row| match row.status {
        State::Running => String::new(),
        other => other.name().to_owned(),
    })
}

fn age(list: &SessionList, now: Timestamp) -> SessionColumn {
    SessionColumn { is_right: true, ..column(list, "used", 0, |row| ago(&row.updated_at, now)) }
}

fn project(list: &SessionList, _: Timestamp) -> SessionColumn {
    let project = |row: &SessionRow| row.project.as_deref().map(at_home).unwrap_or_default();
    bounded(PROJECT, tail, column(list, "project", 6, project))
}

fn agent(list: &SessionList, _: Timestamp) -> SessionColumn {
    bounded(NAME, clip, column(list, "agent", 5, |row| row.agent.clone().unwrap_or_default()))
}

fn model(list: &SessionList, _: Timestamp) -> SessionColumn {
    bounded(NAME, clip, column(list, "model", 4, |row| row.meta.config.model.clone().unwrap_or_default()))
}

fn tokens(list: &SessionList, _: Timestamp) -> SessionColumn {
    let tokens = |row: &SessionRow| or_nothing(row.counters.total_tokens);
    SessionColumn { is_right: true, ..column(list, "tokens", 2, tokens) }
}

fn cost(list: &SessionList, _: Timestamp) -> SessionColumn {
    let cost = |row: &SessionRow| match row.cost() {
        Some(SessionCost { usd, .. }) => dollars(*usd),
        None if row.lacks_price() => "?".to_owned(),
        None => String::new(),
    };
    SessionColumn { is_right: true, ..column(list, "cost", 1, cost) }
}

fn saved(list: &SessionList, _: Timestamp) -> SessionColumn {
    let saved = |row: &SessionRow| or_nothing(row.counters.saved_tokens);
    SessionColumn { is_right: true, ..column(list, "saved", 7, saved) }
}

/// The columns that fit into `room`, and of the title what fits beside them. What is left over goes to what is cut, the name
/// first. A column in which nothing stands is left out.
fn lines(mut columns: Vec<SessionColumn>, room: usize) -> Vec<String> {
    columns.retain(|column| column.leaves == 0 || column.cells[1..].iter().any(|cell| !cell.is_empty()));
    let others = |columns: &[SessionColumn]| -> usize {
        let widths: usize = columns.iter().filter(|column| !column.bends).map(SessionColumn::width).sum();
        widths + 2 * columns.len().saturating_sub(1)
    };
    let wanted =
        columns.iter().filter(|column| column.bends).map(|column| column.width().min(TITLE)).sum::<usize>();
    while others(&columns) + wanted > room {
        let Some(most) = columns.iter().map(|column| column.leaves).max().filter(|most| *most > 0) else {
            break;
        };
        columns.retain(|column| column.leaves != most);
    }
    let left = room.saturating_sub(others(&columns));
    let title = columns.iter().filter(|column| column.bends).map(SessionColumn::whole).sum::<usize>();
    let mut spare = left.saturating_sub(title);
    for column in columns.iter_mut().filter(|column| !column.bends) {
        column.grow(&mut spare);
    }
    let bent = columns.iter_mut().filter(|column| column.bends);
    bent.for_each(|column| column.cut = Some((left.min(title), clip)));
    let right: Vec<usize> = (0..columns.len()).filter(|n| columns[*n].is_right).collect();
    let count = columns.first().map_or(0, |column| column.cells.len());
    let row = |n: usize| columns.iter().map(|column| column.shown(n)).collect();
    let rows: Vec<Vec<String>> = (0..count).map(row).collect();
    // Where even these do not fit, a line ends where the room does.
    table(&rows, &right).iter().map(|line| clip(line, room)).collect()
}

fn footer(list: &SessionList) -> String {
    let (shown, total) = (list.items.len() as u64, list.total.unwrap_or_default());
    let mut parts = Vec::new();
    if total > shown {
        parts.push(format!("{shown} of {total}"));
        parts.push("--all shows the rest".to_owned());
    }
    let kept = |place: &String| {
        let what = if place.starts_with('/') { "folder" } else { "store" };
        format!("{what}: {}", at_home(place))
    };
    parts.extend(list.kept_in.as_ref().map(kept));
    let of: BTreeSet<&str> =
        list.items.iter().filter_map(|row| Some(row.cost()?.prices_of.as_str())).collect();
    if !of.is_empty() {
        parts.push(format!("prices of {}", of.into_iter().collect::<Vec<_>>().join(" and ")));
    }
    if list.items.iter().any(SessionRow::lacks_price) {
        parts.push("?: price not known".to_owned());
    }
    parts.join(" · ")
}

/// A path as people write it: `~` for their home.
pub(crate) fn at_home(path: &str) -> String {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let rest = home.as_deref().and_then(|home| path.strip_prefix(home.trim_end_matches('/')));
    match rest {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// The end of a path or a key, which says more than its beginning.
pub(super) fn tail(path: &str, most: usize) -> String {
    if width(path) <= most {
        return path.to_owned();
    }
    let mut taken = 1;
    let end: Vec<char> = path
        .chars()
        .rev()
        .take_while(|c| {
            taken += width(c.encode_utf8(&mut [0; 4]));
            taken <= most
        })
        .collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// How long ago a moment was.
fn ago(at: &str, now: Timestamp) -> String {
    let Ok(at) = at.parse::<Timestamp>() else { return String::new() };
    match u64::try_from(now.duration_since(at).as_secs()) {
        Ok(seconds @ 60..) => age_of(seconds),
        _ => "now".to_owned(),
    }
}

/// A number as people say it: `812`, `12.4k`, `1.2M`.
pub(crate) fn rounded(n: u64) -> String {
    #[allow(clippy::cast_precision_loss)]
    let of = |unit: f64| n as f64 / unit;
    match n {
        0..1000 => n.to_string(),
        1000..99_950 => format!("{:.1}k", of(1e3)),
        99_950..999_500 => format!("{:.0}k", of(1e3)),
        999_500..99_950_000 => format!("{:.1}M", of(1e6)),
        99_950_000..999_500_000 => format!("{:.0}M", of(1e6)),
        _ => format!("{:.1}G", of(1e9)),
    }
}

fn or_nothing(n: u64) -> String {
    if n == 0 { String::new() } else { rounded(n) }
}

/// An amount in US dollars; one that is no whole tenth of a cent is never shown as nothing.
pub(crate) fn dollars(usd: f64) -> String {
    match usd {
        usd if usd >= 0.9995 => format!("${usd:.2}"),
        usd if usd >= 0.0005 => format!("${usd:.3}"),
        usd if usd > 0.0 => "<$0.001".to_owned(),
        _ => "$0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_as_people_say_them() {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        for (at, text) in [
            ("2026-11-18T12:00:30Z", "now"),
            ("2026-11-18T11:59:01Z", "now"),
            ("2026-11-18T11:55:00Z", "5 min"),
            ("2026-11-18T09:00:00Z", "3 h"),
            ("2026-11-17T11:00:00Z", "1 day"),
            ("2026-11-16T11:00:00Z", "2 days"),
            ("long ago", ""),
        ] {
            assert_eq!(ago(at, now), text, "{at}");
        }
    }

    #[test]
    fn numbers_and_amounts_are_short_and_never_too_small() {
        let all = [
            0,
            812,
            999,
            1000,
            12_449,
            99_949,
            99_950,
            999_499,
            999_500,
            1_234_567,
            120_000_000,
            5_000_000_000,
        ];
        let told = all.map(rounded);
        assert_eq!(
            told,
            ["0", "812", "999", "1.0k", "12.4k", "99.9k", "100k", "999k", "1.0M", "1.2M", "120M", "5.0G"]
        );
        assert_eq!(
            [0.0, 0.000_01, 0.0312, 0.9996, 4.117, 1234.5].map(dollars),
            ["$0", "<$0.001", "$0.031", "$1.00", "$4.12", "$1234.50"]
        );
    }

    #[test]
    fn of_a_long_path_the_end_is_shown() {
        assert_eq!(tail("/srv/app", 8), "/srv/app");
        assert_eq!(tail("/srv/very/long/app", 9), "…long/app");
        assert_eq!(tail("/srv/小窓/話", 7), "…窓/話");
    }
}
