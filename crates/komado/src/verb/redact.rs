//! `komado redact`: take a secret out for good.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, say};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::redact::What;
use serde_json::{Value, json};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// One entry, SESSION@SEQ; or a session with --text or --pattern
    pub(crate) address: Address,
    /// Take out every occurrence of this text
    #[arg(long, conflicts_with = "pattern")]
    pub(crate) text: Option<String>,
    /// Take out everything that matches this regular expression
    #[arg(long)]
    pub(crate) pattern: Option<String>,
    /// Why; kept with each changed entry
    #[arg(long)]
    pub(crate) reason: String,
    /// Do it: what is taken out cannot be brought back
    #[arg(long)]
    pub(crate) yes: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let (row, left) = take_out(app, args)?;
    if app.paper.json {
        app.paper.json(&row)?;
        return complain(&left);
    }
    app.paper.line(format!(
        "changed {} of the journal and {}",
        count(row["entries"].as_u64().unwrap_or(0), "line"),
        count(row["blobs"].as_u64().unwrap_or(0), "output")
    ))?;
    say("undo: none; the entries say when and why");
    complain(&left)
}

/// Takes it out; tells what was changed, and where it still stands.
pub(crate) fn take_out(app: &App, args: Args) -> Outcome<(Value, Vec<String>)> {
    let found = app.find(&args.address)?;
    let what = match (found.seq, args.text, args.pattern) {
        (None, Some(text), _) if !text.is_empty() => What::Matching(pattern(&regex::escape(&text))?),
        (None, None, Some(text)) => What::Matching(pattern(&text)?),
        (Some(seq), None, None) => What::Entry(found.thread.clone(), seq),
        _ => {
            return Err(Fault::usage(
                "name one entry (komado redact SESSION@SEQ), or a session with --text or --pattern",
            ));
        }
    };
    if !args.yes {
        return Err(Fault::new(
            Exit::Refused,
            "what is redacted cannot be brought back; say --yes to do it (`komado export` first, to keep a copy)",
        ));
    }
    let done = app.context.engine.redact(&found.session, &what, &args.reason)?;
    let left = match &what {
        What::Matching(pattern) => app.context.engine.redact_leaves(&found.session, pattern)?,
        What::Entry(..) => Vec::new(),
    };
    let row = json!({
        "session": found.session.as_str(),
        "entries": done.entries,
        "blobs": done.blobs,
        "left": left,
        "undo": null,
    });
    Ok((row, left))
}

/// A secret that is still somewhere is a failure, whatever else was done.
pub(crate) fn complain(left: &[String]) -> Outcome {
    if left.is_empty() {
        return Ok(());
    }
    let places = left.join(", ");
    Err(Fault::new(
        Exit::Failed,
        format!("it is still in {places}, which cannot be changed; export, edit and import"),
    ))
}

fn pattern(text: &str) -> Outcome<regex::Regex> {
    regex::Regex::new(text).map_err(|e| Fault::input(format!("--pattern is no regular expression: {e}")))
}
