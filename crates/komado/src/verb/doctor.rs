//! `komado doctor`: check every session, and make again what can be made again.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, say};
use crate::progress;
use clap::Args as ClapArgs;
use komado_core::{Address, SessionId};
use komado_store::{Mode, Store};
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
    if args.rebuild {
        let done = app.files()?.rebuild()?;
        say(format!("tasks.db made again from the folders: {}", count(done.sessions, "session")));
    }
    app.files()?.check_base()?;
    let sessions = match &args.address {
        Some(address) => vec![app.find(address)?.session],
        None => app.files()?.folders()?,
    };
    let bar = progress::bar("checking", sessions.len() as u64);
    let mut broken = Vec::new();
    for id in &sessions {
        if let Err(fault) = check(app, id, args.rebuild) {
            broken.push((id.clone(), fault));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let findings = app.files()?.take_findings();
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
    let summary = format!(
        "{} checked, {}, {} cannot be read",
        count(sessions.len() as u64, "session"),
        count(findings.len() as u64, "finding"),
        broken.len()
    );
    if app.paper.json {
        app.paper.json(
            &json!({ "sessions": sessions.len(), "findings": findings.len(), "unreadable": broken.len() }),
        )?;
    } else {
        say(summary);
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Fault::new(Exit::Failed, "some sessions cannot be read; see above"))
    }
}

/// Checks the folder against the journal and the table, then brings what is derived up to date.
fn check(app: &App, id: &SessionId, rebuild: bool) -> Result<(), String> {
    let files = app.files().map_err(|_| "not a file store".to_owned())?;
    files.check(id).map_err(|e| e.to_string())?;
    for header in files.threads(id).map_err(|e| e.to_string())? {
        let mut thread = match app.engine.open(id, &header.thread, Mode::Amend) {
            Ok(thread) => thread,
            // Someone writes it now; whoever does keeps it right.
            Err(komado_engine::Error::Store(komado_store::Error::Busy { .. })) => continue,
            Err(error) => return Err(error.to_string()),
        };
        thread.settle().map_err(|e| e.to_string())?;
        for note in thread.notes() {
            say(format!("komado: {id}/{}: {note}", header.thread));
        }
    }
    if rebuild {
        app.engine.reindex(id, &mut |_, _| {}).map_err(|e| e.to_string())?;
    }
    Ok(())
}
