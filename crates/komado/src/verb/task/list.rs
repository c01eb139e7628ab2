//! `komado task list`: the queue and the sessions of tasks, in one table.

use super::standing::{Standing, each_job, is_task};
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::number;
use crate::table::table;
use clap::Args as ClapArgs;
use komado_core::notation::{tamed, width};
use komado_ops::session::newest;
use komado_store::Query;
use std::collections::HashSet;

/// Columns of a key that are shown, its end.
const KEY: usize = 24;
/// Columns that a title has at least.
const TITLE: usize = 8;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Also those that ended
    #[arg(long)]
    all: bool,
    /// At most so many that are not in the queue, the newest
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let tasks = tasks(app, &args)?;
    if app.paper.json {
        return tasks.iter().try_for_each(|task| app.paper.json(&task.as_json()));
    }
    if tasks.is_empty() {
        return app.paper.line(if args.all { "no tasks" } else { "no tasks; --all lists those that ended" });
    }
    let heading = ["task", "state", "turns", "tokens", "key"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(tasks.iter().map(cells));
    let taken = table(&rows, &[2, 3]).iter().map(|line| width(line)).max().unwrap_or(0) + 2;
    let room = app.paper.width.saturating_sub(taken).max(TITLE);
    let titles = tasks.iter().map(|task| head(&task.title().unwrap_or_default(), room));
    for (row, title) in rows.iter_mut().zip(std::iter::once("title".to_owned()).chain(titles)) {
        row.push(title);
    }
    table(&rows, &[2, 3]).into_iter().try_for_each(|line| app.paper.fit(&line))
}

/// Those in the queue, in its order, then those that have only a session.
fn tasks(app: &App, args: &Args) -> Outcome<Vec<Standing>> {
    let mut tasks = Vec::new();
    each_job(app, |queued| {
        tasks.push(Standing::of_job(app, queued)?);
        Ok(true)
    })?;
    let queued: HashSet<String> = tasks.iter().map(|task| task.session.to_string()).collect();
    let sees = |row: &komado_core::session::Session| {
        is_task(row) && !queued.contains(&row.meta.uuid) && (args.all || !row.status.is_ended())
    };
    for row in newest(&app.context, Query::default(), args.limit, sees)? {
        tasks.push(Standing::of_row(row)?.remembered(app)?);
    }
    Ok(tasks)
}

fn cells(task: &Standing) -> Vec<String> {
    let counters = task.row.as_ref().map(|row| row.counters).unwrap_or_default();
    // A key that is the session's own name says nothing.
    let key = if task.key.ends_with(task.session.as_str()) { "local" } else { &task.key };
    vec![
        task.session.as_str().chars().take(8).collect(),
        state(task),
        number(counters.llm_call_count),
        number(counters.total_tokens),
        tail(key, KEY),
    ]
}

/// The state, and which try it is where there was more than one.
fn state(task: &Standing) -> String {
    match task.tries().filter(|tries| *tries > 1 && !task.state().eq("paused")) {
        Some(tries) => format!("{} {tries}", task.state()),
        None => task.state().to_owned(),
    }
}

/// The beginning of a text, so much as fits into these columns.
fn head(text: &str, columns: usize) -> String {
    let text = tamed(text);
    if width(&text) <= columns {
        return text;
    }
    let cut: String = fitting(text.chars(), columns - 1).collect();
    cut + "…"
}

/// The end of a text: of two issues of the same place it is what tells them apart.
fn tail(text: &str, columns: usize) -> String {
    let text = tamed(text);
    if width(&text) <= columns {
        return text;
    }
    let mut cut: Vec<char> = fitting(text.chars().rev(), columns - 1).collect();
    cut.push('…');
    cut.into_iter().rev().collect()
}

fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut taken = 0;
    chars.take_while(move |c| {
        taken += width(c.encode_utf8(&mut [0; 4]));
        taken <= columns
    })
}
