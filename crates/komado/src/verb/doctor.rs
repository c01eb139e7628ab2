//! `komado doctor`: check every session and the queue, and make again what can be made again. A store on a server also
//! tells how it is doing, and how long it takes to say so.

mod pulse;
mod queue;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, say};
use crate::progress;
use clap::Args as ClapArgs;
use komado_core::{Address, SessionId};
use komado_engine::Error;
use komado_engine::import::unfinished;
use komado_store::{Mode, Query};
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Only this session
    address: Option<Address>,
    /// Make tasks.db again from the folders, and each session's recall.db from its journals
    #[arg(long)]
    rebuild: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match &app.context.files {
        Some(files) => {
            if args.rebuild {
                let done = files.rebuild()?;
                say(format!("tasks.db made again from the folders: {}", count(done.sessions, "session")));
            }
            files.check_base()?;
        }
        None => pulse::tell(app)?,
    }
    let (sessions, broken) = check_all(app, &args)?;
    let findings = app.context.files.as_ref().map(|files| files.take_findings()).unwrap_or_default();
    for finding in &findings {
        if app.paper.json {
            app.paper.json(&json!({ "finding": finding.to_string() }))?;
        } else {
            app.paper.line(finding.to_string())?;
        }
    }
    for (id, why) in &broken {
        if app.paper.json {
            app.paper.json(&json!({ "session": id.as_str(), "error": why }))?;
        } else {
            app.paper.line(format!("{id}: {why}"))?;
        }
    }
    let only = args.address.as_ref().map(|address| app.find(address)).transpose()?;
    let queue = queue::check(app, only.map(|found| found.session).as_ref())?;
    summarise(app, sessions, findings.len() as u64, broken.len() as u64, &queue)?;
    match (broken.len(), queue.broken) {
        (0, 0) => Ok(()),
        (0, _) => Err(Fault::new(Exit::Failed, "the queue has what cannot be read; see above")),
        _ => Err(Fault::new(Exit::Failed, "some sessions cannot be read; see above")),
    }
}

fn summarise(app: &mut App, sessions: u64, findings: u64, broken: u64, queue: &queue::Looked) -> Outcome {
    if app.paper.json {
        return app.paper.json(&json!({
            "sessions": sessions, "findings": findings, "unreadable": broken,
            "jobs": queue.jobs, "stale_jobs": queue.stale, "unreadable_jobs": queue.broken,
        }));
    }
    let (sessions, findings) = (count(sessions, "session"), count(findings, "finding"));
    say(format!("{sessions} checked, {findings}, {broken} cannot be read"));
    if queue.jobs + queue.broken > 0 {
        let jobs = count(queue.jobs, "job");
        say(format!("{jobs} in the queue, {} stale, {} cannot be read", queue.stale, queue.broken));
    }
    Ok(())
}

/// Checks the session that was named, or all; gives how many there were, and which cannot be read.
fn check_all(app: &App, args: &Args) -> Outcome<(u64, Vec<(SessionId, String)>)> {
    let bar = progress::bar("checking", 0);
    let (mut checked, mut broken) = (0, Vec::new());
    let mut one = |id: &SessionId| -> Result<(), Error> {
        match check(app, id, args.rebuild) {
            // Nothing is wrong with the session, and the next would be waited for as long.
            Err(Error::Store(error)) if error.is_away() => return Err(error.into()),
            Err(why) => broken.push((id.clone(), why.to_string())),
            Ok(()) => {}
        }
        checked += 1;
        bar.inc(1);
        Ok(())
    };
    match (&args.address, &app.context.files) {
        (Some(address), _) => one(&app.find(address)?.session)?,
        // Also folders that the table does not know.
        (None, Some(files)) => {
            let folders = files.folders()?;
            bar.set_length(folders.len() as u64);
            folders.iter().try_for_each(one)?;
        }
        (None, None) => app
            .engine
            .each_session(Query::default(), |session| one(&SessionId::new(session.meta.uuid.as_str())?))?,
    }
    bar.finish_and_clear();
    Ok((checked, broken))
}

/// Checks a session against its journals, a folder also against the table, then brings what is derived up to date.
fn check(app: &App, id: &SessionId, rebuild: bool) -> Result<(), Error> {
    if let Some(files) = &app.context.files {
        files.check(id)?;
    }
    for header in app.context.engine.store().threads(id)? {
        let mut thread = match app.context.engine.open(id, &header.thread, Mode::Amend) {
            Ok(thread) => thread,
            // Someone writes it now; whoever does keeps it right.
            Err(Error::Store(komado_store::Error::Busy { .. })) => continue,
            Err(error) => return Err(error),
        };
        thread.settle()?;
        for note in thread.notes() {
            say(format!("komado: {id}/{}: {note}", header.thread));
        }
    }
    if rebuild {
        app.context.engine.reindex(id, &mut |_, _| {})?;
    }
    if let Some(why) = unfinished(&app.context.engine.session(id)?) {
        say(format!("komado: session {id}: {why}"));
    }
    Ok(())
}
