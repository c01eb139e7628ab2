//! `komado task fetch`: put what waits at the trackers into the queue.

use super::put::{Put, fresh, put};
use super::standing::{PAUSED, job_of};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use clap::Args as ClapArgs;
use komado_agent::source::{self, Source};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_provider::{Cancel, Client};
use komado_store::{Queued, Stage};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Only from this tracker
    #[arg(long, value_name = "NAME", value_parser = ["github", "gitlab"])]
    source: Option<String>,
    /// Fetch again after so many seconds, until stopped
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,
}

/// What was fetched.
#[derive(Default)]
pub(crate) struct Fetched {
    /// Sessions and keys of new tasks.
    queued: Vec<(SessionId, String)>,
    /// Tasks that were there.
    known: u64,
}

impl Fetched {
    /// Tells the person what is new.
    pub(crate) fn tell_news(&self) {
        for (session, key) in &self.queued {
            say(format!("komado: {key} is queued as {session}"));
        }
    }

    /// Tells the person everything.
    pub(crate) fn tell(&self) {
        self.tell_news();
        say(format!("komado: {} new, {} known", self.queued.len(), self.known));
    }

    fn row(&self) -> Value {
        let queued =
            self.queued.iter().map(|(session, key)| json!({ "session": session.as_str(), "task": key }));
        json!({ "queued": queued.collect::<Vec<_>>(), "known": self.known })
    }
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    loop {
        let fetched = all(app, args.source.as_deref(), &Cancel::default())?;
        if app.paper.json {
            app.paper.json(&fetched.row())?;
        } else {
            for (session, key) in &fetched.queued {
                app.paper.line(format!("{session} {key}"))?;
            }
            say(format!("{} new, {} known", fetched.queued.len(), fetched.known));
        }
        app.paper.flush()?;
        let Some(seconds) = args.watch else { return Ok(()) };
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

/// Fetches from every tracker of the settings, or from one, until `cancel` is said.
pub(crate) fn all(app: &App, only: Option<&str>, cancel: &Cancel) -> Outcome<Fetched> {
    let trackers = &app.context.config.agent.trackers;
    let wanted: Vec<_> =
        trackers.iter().filter(|tracker| only.is_none_or(|name| tracker.kind.name() == name)).collect();
    if wanted.is_empty() {
        let name = only.unwrap_or("github");
        return Err(Fault::usage(format!(
            "no tracker to fetch from: set {name}.repos in the settings, such as [ann/tool]; `komado config` lists them"
        )));
    }
    let mut fetched = Fetched::default();
    for tracker in wanted {
        let client = Client::new(app.config.models.patience(tracker.kind.name()))
            .map_err(|why| Fault::new(Exit::Failed, why.to_string()))?;
        let mut source =
            source::open(tracker.clone(), client, cancel.clone()).map_err(|why| super::fault(why.into()))?;
        from(app, &mut *source, &mut fetched)?;
    }
    Ok(fetched)
}

fn from(app: &App, source: &mut dyn Source, fetched: &mut Fetched) -> Outcome {
    let mut went_wrong = Ok(());
    let asked = source.waiting(&mut |task| {
        went_wrong = take_in(app, task, fetched);
        went_wrong.is_ok()
    });
    went_wrong?;
    asked.map_err(|why| super::fault(why.into()))
}

/// Queues one that waits. Its label says that somebody wants it, also when it was laid aside before: then it begins anew,
/// with what the earlier session came to. One that rests goes on only when somebody lets it.
fn take_in(app: &App, task: Task, fetched: &mut Fetched) -> Outcome {
    let key = task.name.clone();
    let mut put_in = put(app, fresh()?, task.clone())?;
    if matches!(put_in, Put::Known)
        && let Some(failed) = job_of(app, &key)?.filter(is_failed)
    {
        app.context.engine.store().withdraw(&failed.job.session)?;
        put_in = put(app, fresh()?, task)?;
    }
    match put_in {
        Put::Queued(session) => fetched.queued.push((session, key)),
        Put::Known => fetched.known += 1,
    }
    Ok(())
}

fn is_failed(queued: &Queued) -> bool {
    queued.stage == Stage::Dead && queued.why.as_deref() != Some(PAUSED)
}
