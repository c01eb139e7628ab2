//! `komado playbook graph`: a playbook as lines for a terminal, or as a picture.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{say, text_of};
use clap::Args as ClapArgs;
use komado_ops::playbook::GraphPlaybook;
use serde::Serialize;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The playbook; the built-in one when left out
    file: Option<PathBuf>,
    /// Write a picture to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A picture that was written.
#[derive(Serialize)]
struct Picture {
    name: String,
    svg: String,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let is_printed = args.svg.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if is_printed && app.paper.json {
        return Err(Fault::usage(
            "--json and --svg - both want standard output: write the picture to a file, or leave --json out",
        ));
    }
    let drawn = app.run(GraphPlaybook { file: args.file })?;
    let Some(path) = args.svg else { return app.print(&drawn) };
    if is_printed {
        return app.paper.line(drawn.svg.trim_end());
    }
    let svg = text_of(&path);
    std::fs::write(&path, drawn.svg).map_err(|why| Fault::new(Exit::Failed, format!("{svg}: {why}")))?;
    if app.paper.json {
        return app.paper.json(&Picture { name: drawn.name, svg });
    }
    say(format!("written: {svg}"));
    Ok(())
}
