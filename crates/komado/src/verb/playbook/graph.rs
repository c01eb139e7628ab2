//! `komado playbook graph`: a playbook as lines for a terminal, or as a picture.

use super::right;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use clap::Args as ClapArgs;
use serde_json::json;
use std::path::PathBuf;

/// Columns of a drawing.
const COLUMNS: usize = 80;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The playbook; the built-in one when left out
    file: Option<PathBuf>,
    /// Write a picture to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let is_printed = args.svg.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if is_printed && app.paper.json {
        return Err(Fault::usage(
            "--json and --svg - both want standard output: write the picture to a file, or leave --json out",
        ));
    }
    let playbook = right(args.file.as_deref(), u32::MAX)?;
    match args.svg {
        Some(_) if is_printed => app.paper.line(playbook.svg().trim_end()),
        Some(path) => {
            std::fs::write(&path, playbook.svg())
                .map_err(|why| Fault::new(Exit::Failed, format!("{}: {why}", path.display())))?;
            if app.paper.json {
                return app.paper.json(&json!({ "name": playbook.name, "svg": path.display().to_string() }));
            }
            say(format!("written: {}", path.display()));
            Ok(())
        }
        None if app.paper.json => app.paper.json(
            &json!({ "name": playbook.name, "nodes": playbook.len(), "text": playbook.drawn(COLUMNS) }),
        ),
        None => app.paper.line(playbook.drawn(COLUMNS)),
    }
}
