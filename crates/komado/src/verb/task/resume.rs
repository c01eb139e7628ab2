//! `komado task resume`: let a task that rests go on.
//!
//! One that is on its way to rest is waited for: whoever works on it has the order, or will have it in a moment, and cannot
//! be asked to forget it. What was let go is looked at once more: somebody may have taken its job before, found that it
//! rests, and laid it aside only now.

use super::found::find;
use super::put::{Put, put};
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
    let work = &app.config.agent.work;
    let until = Instant::now() + work.grace + work.hidden + SLACK;
    let mut is_let_go = false;
    loop {
        let id = &task.session;
        match task.state() {
            "pausing" if Instant::now() < until => std::thread::sleep(LOOK),
            "pausing" => return Err(refused(id, "has not come to rest yet: try again later")),
            "queued" | "retry" if is_let_go => {
                return tell(app, id, "queued", "waits to go on", Some("pause"));
            }
            "running" if is_let_go => return tell(app, id, "running", "goes on", Some("pause")),
            _ if Instant::now() < until && rests(app, &task)? => {
                let_go(app, task)?;
                is_let_go = true;
            }
            state @ ("stopped" | "failed") => {
                return Err(refused(id, format!("is {state}: `komado task retry {id}` takes it up again")));
            }
            state => return Err(refused(id, format!("is {state}: only one that rests can go on"))),
        }
        task = find(app, &named)?;
    }
}

/// True also for one that is open and has neither a job nor anybody who writes it: nobody would ever go on with it.
fn rests(app: &App, task: &Standing) -> Outcome<bool> {
    let is_lost =
        task.queued.is_none() && task.is_open() && app.engine.store().writer(&task.session)?.is_none();
    Ok(task.state() == "paused" || is_lost)
}

/// Opens its session and lets its job be taken; one whose job is gone gets another.
fn let_go(app: &App, task: Standing) -> Outcome {
    let id = task.session.clone();
    if task.queued.is_none() {
        return queue_again(app, &task.remembered(app)?);
    }
    reopen(app, &id)?;
    if !app.engine.store().requeue(&id)? {
        // Somebody has it by now: to work on it, or to lay it aside.
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Makes a job again from what the journal remembers, and opens the session for it.
pub(super) fn queue_again(app: &App, task: &Standing) -> Outcome {
    let id = &task.session;
    let taken =
        || refused(id, format!("has no job, and another task has its key: `komado task show {}`", task.key));
    if job_of(app, &task.key)?.is_some() {
        return Err(taken());
    }
    let Some(about) = task.remembered_task() else {
        let why = "has no job in the queue any more, and was never begun: what it was to do is not known; add it again";
        let end = if task.is_open() {
            format!(", and end this one: `komado task stop {id}`")
        } else {
            String::new()
        };
        return Err(refused(id, format!("{why}{end}")));
    };
    reopen(app, id)?;
    match put(app, id.clone(), about)? {
        Put::Queued(_) => Ok(()),
        Put::Known => Err(taken()),
    }
}

/// Opens the session again; one that is open needs no opening.
pub(super) fn reopen(app: &App, id: &SessionId) -> Outcome {
    match app.engine.resume(id) {
        Ok(_) | Err(Engine::WrongState { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}
