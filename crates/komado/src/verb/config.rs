//! `komado config`: each setting, its value, and where that came from.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{Ink, say};
use clap::Args as ClapArgs;
use komado_core::notation::tamed;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Only settings whose name begins so
    prefix: Option<String>,
    /// Print every setting there is, with its variables, as a Markdown table
    #[arg(long)]
    reference: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if args.reference {
        return app.paper.line(komado_config::reference().trim_end());
    }
    let prefix = args.prefix.unwrap_or_default();
    match (&app.context.config.file, &app.context.config.unconsented) {
        (Some(path), _) => say(format!("settings file: {}", path.display())),
        (None, Some(left_out)) => say(format!("settings file: none is used below; {left_out}")),
        (None, None) => say("settings file: none; ./komado.yaml would be read"),
    }
    for row in app.context.config.rows().into_iter().filter(|row| row.key.starts_with(&prefix)) {
        if app.paper.json {
            app.paper.json(&json!({ "key": row.key, "value": row.value, "origin": row.origin.to_string(), "about": row.about }))?;
            continue;
        }
        let first = tamed(row.value.lines().next().unwrap_or_default());
        let more = if row.value.lines().count() > 1 { " …" } else { "" };
        let origin = app.paper.ink(Ink::Dim, &tamed(&row.origin.to_string()));
        app.paper.line(format!("{:<44} {first}{more}  {origin}", tamed(&row.key)))?;
    }
    Ok(())
}
