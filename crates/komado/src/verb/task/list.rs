//! `komado task list`: the queue and the sessions of tasks, in one table.

use super::standing::{Standing, each_job, is_task};
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::number;
use crate::table::table;
use crate::verb::sessions::newest;
use clap::Args as ClapArgs;
use komado_store::Query;
use std::collections::HashSet;

/// Characters of a key or a title that are shown.
const SHOWN: usize = 40;

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
    let heading = ["task", "state", "key", "title", "tries", "turns", "tokens", "worker"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(tasks.iter().map(cells));
    table(&rows, &[4, 5, 6]).into_iter().try_for_each(|line| app.paper.fit(&line))
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
    for row in newest(app, Query::default(), args.limit, sees)? {
        tasks.push(Standing::of_row(row)?);
    }
    Ok(tasks)
}

fn cells(task: &Standing) -> Vec<String> {
    let counters = task.row.as_ref().map(|row| row.counters).unwrap_or_default();
    // A key that is the session's own name says nothing.
    let key = if task.key.ends_with(task.session.as_str()) { "local" } else { &task.key };
    vec![
        task.session.as_str().chars().take(8).collect(),
        task.state().to_owned(),
        short(key),
        short(&task.task().map(|task| task.title).unwrap_or_default()),
        task.tries().map_or_else(|| "-".to_owned(), |tries| tries.to_string()),
        number(counters.llm_call_count),
        number(counters.total_tokens),
        task.worker().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
