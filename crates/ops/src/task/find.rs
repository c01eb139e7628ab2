//! The task that a request means.

use super::standing::Standing;
use crate::{Context, Exit, Fault, Naming, Outcome};
use komado_agent::task::Task;
use komado_store::Query;

/// Most names that an ambiguous one is told to fit.
const MOST: usize = 5;
/// Characters from which on a name is rather a session's than a key.
const ID: usize = 8;

/// What was given, and how it may be meant.
struct Named<'a> {
    given: &'a str,
    is_whole: bool,
}

impl Named<'_> {
    fn is_session(&self, id: &str) -> bool {
        if self.is_whole { id == self.given } else { id.starts_with(self.given) }
    }

    fn is_key(&self, key: &str) -> bool {
        key == self.given || key.strip_prefix("local:") == Some(self.given)
    }
}

/// The task that is named, among those the caller may see. In the queue is looked first; of several sessions with the same
/// key the newest is meant.
pub(super) fn find(context: &Context, given: &str) -> Outcome<Standing> {
    if given.trim().is_empty() {
        return Err(Fault::usage("which task? give its session, a beginning of it, or its key"));
    }
    let named = Named { given, is_whole: context.naming == Naming::Exact };
    let mut fits = Vec::new();
    for queued in context.engine.jobs() {
        let queued = queued?;
        let is_it = named.is_key(&queued.job.key) || named.is_session(queued.job.session.as_str());
        if is_it && context.caller.may_see_job(&queued.job) {
            fits.push(Standing::of_job(context, queued)?);
        }
        if fits.len() > MOST {
            break;
        }
    }
    if fits.is_empty() {
        fits = sessions(context, &named)?;
    }
    only(&named, fits)
}

/// What is long enough to be a session's name is looked for among those that begin so, and only then among all.
fn sessions(context: &Context, named: &Named<'_>) -> Outcome<Vec<Standing>> {
    let given = named.given;
    let is_id = given.len() >= ID && given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let by_id = if is_id { among(context, named, Some(given.to_owned()))? } else { Vec::new() };
    if by_id.is_empty() { among(context, named, None) } else { Ok(by_id) }
}

fn among(context: &Context, named: &Named<'_>, prefix: Option<String>) -> Outcome<Vec<Standing>> {
    let (mut by_id, mut by_key) = (Vec::new(), None);
    let query = Query { prefix, user: context.caller.only_user(), ..Query::default() };
    context.engine.each_session(query, |row| {
        if !row.meta.task_key.is_task() || !context.caller.may_see(row) {
            return Ok(());
        }
        if named.is_session(&row.meta.uuid) && by_id.len() <= MOST {
            by_id.push(row.clone());
        }
        if named.is_key(&Task::name_of(&row.meta.task_key)) {
            by_key = Some(row.clone());
        }
        Ok(())
    })?;
    by_key.into_iter().chain(by_id).map(Standing::of_row).collect()
}

fn only(named: &Named<'_>, mut fits: Vec<Standing>) -> Outcome<Standing> {
    let given = named.given;
    let exact = |task: &Standing| task.session.as_str() == given || named.is_key(&task.key);
    if let Some(exact) = fits.iter().position(exact) {
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
