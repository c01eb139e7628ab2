//! The task that somebody means.

use super::Named;
use super::put::name;
use super::standing::{Standing, each_job, is_task};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use komado_store::Query;

/// Most names that an ambiguous one is told to fit.
const MOST: usize = 5;
/// Characters from which on a name is rather a session's than a key.
const ID: usize = 8;

/// The task that is named. In the queue is looked first; of several sessions with the same key the newest is meant.
pub(super) fn find(app: &App, named: &Named) -> Outcome<Standing> {
    let given = named.task.as_str();
    if given.trim().is_empty() {
        return Err(Fault::usage("which task? give its session, a beginning of it, or its key"));
    }
    let local = format!("local:{given}");
    let mut fits = Vec::new();
    each_job(app, |queued| {
        let key = &queued.job.key;
        if *key == given || *key == local || queued.job.session.as_str().starts_with(given) {
            fits.push(Standing::of_job(app, queued)?);
        }
        Ok(fits.len() <= MOST)
    })?;
    if fits.is_empty() {
        fits = sessions(app, given)?;
    }
    only(given, fits)
}

/// What is long enough to be a session's name is looked for among those that begin so, and only then among all.
fn sessions(app: &App, given: &str) -> Outcome<Vec<Standing>> {
    let is_id = given.len() >= ID && given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let by_id = if is_id { among(app, given, Some(given.to_owned()))? } else { Vec::new() };
    if by_id.is_empty() { among(app, given, None) } else { Ok(by_id) }
}

fn among(app: &App, given: &str, prefix: Option<String>) -> Outcome<Vec<Standing>> {
    let local = format!("local:{given}");
    let (mut by_id, mut by_key) = (Vec::new(), None);
    app.context.engine.each_session(Query { prefix, ..Query::default() }, |row| {
        if is_task(row) && row.meta.uuid.starts_with(given) && by_id.len() <= MOST {
            by_id.push(row.clone());
        }
        if is_task(row) && [given, &local].contains(&name(&row.meta.task_key).as_str()) {
            by_key = Some(row.clone());
        }
        Ok(())
    })?;
    by_key.into_iter().chain(by_id).map(Standing::of_row).collect()
}

fn only(given: &str, mut fits: Vec<Standing>) -> Outcome<Standing> {
    let is_key = |key: &str| key == given || key.strip_prefix("local:") == Some(given);
    if let Some(exact) = fits.iter().position(|task| task.session.as_str() == given || is_key(&task.key)) {
        return Ok(fits.swap_remove(exact));
    }
    if fits.len() > 1 {
        let names: Vec<&str> = fits.iter().take(MOST).map(|task| task.session.as_str()).collect();
        return Err(Fault::new(
            Exit::NotFound,
            format!("{given:?} fits several tasks: {}; write more of it", names.join(", ")),
        ));
    }
    fits.pop().ok_or_else(|| {
        Fault::new(Exit::NotFound, format!("there is no task {given:?}; `komado task list --all` lists them"))
    })
}
