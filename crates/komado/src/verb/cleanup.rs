//! `komado cleanup`: remove sessions that ended long ago.

use crate::app::App;
use crate::clock::days_ago;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, say};
use clap::Args as ClapArgs;
use komado_engine::cleanup::Run;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Sessions that ended before so many days; context_storage.cleanup_days when left out
    #[arg(long)]
    pub(crate) days: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let days = args.days.unwrap_or(app.context.config.cleanup_days);
    let run = if args.dry_run { Run::Dry } else { Run::Real };
    let cleaned = app.context.engine.cleanup(&days_ago(days), run, |_| {})?;
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for session in &cleaned.sessions {
        let (id, status) = (&session.meta.uuid, session.status.name());
        if app.paper.json {
            app.paper.json(&json!({ "session": id, "status": status, "completed_at": session.completed_at, "removed": !args.dry_run }))?;
        } else {
            app.paper
                .line(format!("{verb} {id} ({status} {})", session.completed_at.as_deref().unwrap_or("?")))?;
        }
    }
    for (id, why) in &cleaned.failed {
        if app.paper.json {
            app.paper.json(&json!({ "session": id, "removed": false, "error": why }))?;
        } else {
            app.paper.line(format!("could not remove {id}: {why}"))?;
        }
    }
    let (sessions, blobs) =
        (count(cleaned.sessions.len() as u64, "session"), count(cleaned.swept.blobs, "output"));
    let when = count(u64::from(days), "day");
    say(format!("{verb} {sessions} that ended over {when} ago, and {blobs} that nothing names"));
    if args.dry_run && !cleaned.sessions.is_empty() {
        say("without --dry-run this is done, and cannot be undone");
    }
    match cleaned.failed.len() {
        0 => Ok(()),
        n => Err(Fault::new(
            Exit::Failed,
            format!("{} could not be removed; see above", count(n as u64, "session")),
        )),
    }
}
