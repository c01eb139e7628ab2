//! `komado thread chronicle`: what was done in a child thread; shown, written by hand, or told again.

use super::end::Teller;
use super::{child, ended};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::verb::change;
use clap::Args as ClapArgs;
use komado_core::journal::{Chronicle, Entry};
use komado_core::{Address, Seq};
use komado_engine::engine::Found;
use komado_engine::stelis::Telling;
use komado_store::Mode;
use serde_json::json;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    pub(crate) address: Address,
    /// Write it by hand
    #[arg(long, value_name = "TEXT", group = "what")]
    pub(crate) text: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) file: Option<PathBuf>,
    /// Have it told again
    #[arg(long, group = "what")]
    pub(crate) again: bool,
    /// Say again what entry SEQ said
    #[arg(long, value_name = "SEQ", group = "what")]
    pub(crate) restore: Option<Seq>,
    #[command(flatten)]
    pub(crate) teller: Teller,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    let before = latest(app, &found)?;
    let words = match (&args.text, &args.file, args.restore) {
        (Some(text), ..) => Some(text.clone()),
        (_, Some(path), _) => Some(read(path)?),
        (.., Some(seq)) => Some(earlier(app, &found, seq)?),
        _ => None,
    };
    if words.as_ref().is_some_and(|words| words.trim().is_empty()) {
        return Err(Fault::usage("a chronicle tells what was done; it cannot be empty"));
    }
    let write = |app: &App, telling: Telling<'_>| {
        Ok(app.context.engine.write_chronicle(&found.session, &found.thread, telling)?)
    };
    let declined = match words {
        Some(words) => write(app, Telling::Words(words))?.declined,
        None if args.again => args.teller.tell(app, &found, write)?.declined,
        None => return show(app, &found, before),
    };
    let undo = before
        .as_ref()
        .map(|(seq, _)| format!("komado thread chronicle {} --restore {seq}", change::name(&found)));
    let (seq, chronicle) = latest(app, &found)?
        .ok_or_else(|| Fault::new(Exit::Refused, "nothing was done in it that could be told"))?;
    if app.paper.json {
        let mut row = row(&found, seq, &chronicle);
        row["undo"] = json!(undo);
        row["declined"] = json!(declined);
        return app.paper.json(&row);
    }
    app.paper.line(format!("@{seq} chronicle of {}", ended::covers(&chronicle)))?;
    declined.iter().for_each(|why| say(format!("komado: no chronicle by a model: {why}")));
    undo.iter().for_each(|undo| say(format!("undo: {undo}")));
    Ok(())
}

fn show(app: &mut App, found: &Found, now: Option<(Seq, Chronicle)>) -> Outcome {
    let Some((seq, chronicle)) = now else {
        return Err(Fault::new(
            Exit::NotFound,
            format!(
                "{0} has no chronicle yet; `komado thread end {0}` or `komado thread chronicle {0} --again` writes one",
                change::name(found)
            ),
        ));
    };
    if app.paper.json {
        return app.paper.json(&row(found, seq, &chronicle));
    }
    app.paper.line(chronicle.text.trim_end())?;
    let by = chronicle.model.as_deref().map(|by| format!(", by {by}")).unwrap_or_default();
    say(format!("@{seq}, of {}{by}", ended::covers(&chronicle)));
    Ok(())
}

fn row(found: &Found, seq: Seq, chronicle: &Chronicle) -> serde_json::Value {
    let mut row = ended::chronicle_json(chronicle);
    row["session"] = json!(found.session.as_str());
    row["thread"] = json!(found.thread.as_str());
    row["seq"] = json!(seq);
    row
}

/// The chronicle in force, and the entry that says it.
fn latest(app: &App, found: &Found) -> Outcome<Option<(Seq, Chronicle)>> {
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let Some(seq) = thread.view().chronicle() else { return Ok(None) };
    match thread.record(seq)?.entry {
        Entry::Chronicle(chronicle) => Ok(Some((seq, chronicle))),
        _ => Ok(None),
    }
}

/// What an earlier chronicle said.
fn earlier(app: &App, found: &Found, seq: Seq) -> Outcome<String> {
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    match thread.record(seq)?.entry {
        Entry::Chronicle(chronicle) => Ok(chronicle.text),
        _ => Err(Fault::new(Exit::NotFound, format!("@{seq} of {} is no chronicle", found.thread))),
    }
}

fn read(path: &PathBuf) -> Outcome<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Fault::new(Exit::NotFound, format!("cannot read {}: {e}", path.display())))
}
