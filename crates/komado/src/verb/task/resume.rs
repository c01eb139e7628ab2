//! `komado task resume`: let a task that rests go on.
//!
//! One that is on its way to rest is waited for: whoever works on it has the order, or will have it in a moment, and cannot
//! be asked to forget it. What was let go is looked at once more: somebody may have taken its job before, found that it
//! rests, and laid it aside only now.

use super::found::find;
use super::put::put_at_rest;
use super::standing::{Standing, job_of};
use super::{Named, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use clap::Args as ClapArgs;
use komado_core::SessionId;
use komado_engine::Error as Engine;
use std::time::{Duration, Instant};

/// How often a task that comes to rest is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How much longer than its grace a task may take to rest.
const SLACK: Duration = Duration::from_secs(10);

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let mut task = find(app, &args.named)?;
    let named = Named { task: task.session.to_string() };
    if task.state() == "pausing" {
        say(format!("komado: {} comes to rest first; it goes on after that", task.session));
    }
    let work = &app.context.config.agent.pace;
    let until = Instant::now() + work.grace + work.hidden + SLACK;
    let mut is_let_go = false;
    loop {
        let id = &task.session;
        if is_let_go && let Some((state, words, undo)) = went_on(task.state()) {
            return tell(app, id, state, words, undo);
        }
        match task.state() {
            "pausing" if Instant::now() < until => std::thread::sleep(LOOK),
            "pausing" => return Err(refused(id, "has not come to rest yet: try again later")),
            _ if Instant::now() < until && rests(app, &task)? => {
                let_go(app, task)?;
                is_let_go = true;
            }
            "paused" => {
                let why = "rests still, after all the time a worker may take to lay it aside";
                return Err(refused(id, format!("{why}: try again with `komado task resume {id}`")));
            }
            state @ ("stopped" | "failed" | "dead") => {
                return Err(refused(id, format!("is {state}: `komado task retry {id}` takes it up again")));
            }
            state => return Err(refused(id, format!("is {state}: only one that rests can go on"))),
        }
        task = find(app, &named)?;
    }
}

/// The state, the words and the undo for one that was let go; `None` where it rests again. It may have come to its end by
/// the time it is looked at.
fn went_on(state: &str) -> Option<(&'static str, &'static str, Option<&'static str>)> {
    match state {
        "queued" | "retry" => Some(("queued", "waits to go on", Some("pause"))),
        "running" => Some(("running", "goes on", Some("pause"))),
        "completed" => Some(("completed", "went on, and is completed", None)),
        "failed" => Some(("failed", "went on, and failed", None)),
        "stopped" => Some(("stopped", "went on, and was stopped", None)),
        _ => None,
    }
}

/// True also for one that is open and has neither a job nor anybody who writes it: nobody would ever go on with it.
fn rests(app: &App, task: &Standing) -> Outcome<bool> {
    let is_lost = task.queued.is_none()
        && task.is_open()
        && app.context.engine.store().writer(&task.session)?.is_none();
    Ok(task.state() == "paused" || is_lost)
}

/// Opens its session and lets its job be taken; one whose job is gone gets another.
fn let_go(app: &App, task: Standing) -> Outcome {
    let id = task.session.clone();
    if task.queued.is_none() {
        return queue_again(app, &task.remembered(app)?);
    }
    reopen(app, &id)?;
    if !app.context.engine.store().requeue(&id)? {
        // Somebody has it by now: to work on it, or to lay it aside.
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Makes a job again from what the journal remembers, and opens the session for it. The job is there first, at rest: a
/// worker that starts meanwhile finds no open session without one.
pub(super) fn queue_again(app: &App, task: &Standing) -> Outcome {
    let (id, store) = (&task.session, app.context.engine.store());
    let Some(about) = task.remembered_task() else {
        let why = "has no job in the queue any more, and was never begun: what it was to do is not known; add it again";
        let end = if task.is_open() {
            format!(", and end this one: `komado task stop {id}`")
        } else {
            String::new()
        };
        return Err(refused(id, format!("{why}{end}")));
    };
    if !put_at_rest(app, id.clone(), about)? {
        return check_is_its_own(app, task);
    }
    if let Err(fault) = reopen(app, id) {
        store.withdraw(id)?;
        return Err(fault);
    }
    // Where it is not at rest any more, somebody else let it go, or took it out.
    store.requeue(id)?;
    Ok(())
}

/// Refuses when the job with its key is another task's. Its own was put there by somebody else at the same moment.
fn check_is_its_own(app: &App, task: &Standing) -> Outcome {
    let (id, key) = (&task.session, &task.key);
    match job_of(app, key)? {
        Some(other) if other.job.session == *id => Ok(()),
        _ => Err(refused(id, format!("has no job, and another task has its key: `komado task show {key}`"))),
    }
}

/// Opens the session again; one that is open needs no opening.
pub(super) fn reopen(app: &App, id: &SessionId) -> Outcome {
    match app.context.engine.resume(id) {
        Ok(_) | Err(Engine::WrongState { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_ended_right_after_it_was_let_go_is_told_with_its_end_and_one_that_rests_is_looked_at_again() {
        for state in ["completed", "failed", "stopped"] {
            let (told, words, undo) = went_on(state).unwrap();
            assert_eq!((told, undo), (state, None));
            assert!(words.contains(state), "{words}");
        }
        assert_eq!(went_on("retry").unwrap().0, "queued");
        assert_eq!((went_on("paused"), went_on("pausing")), (None, None));
    }
}
