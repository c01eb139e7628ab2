//! `komado playbook check`: everything that is wrong with playbooks, with its place, before they run.

use super::{most_depth, read};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{count, say};
use clap::Args as ClapArgs;
use komado_agent::playbook::Problem;
use serde_json::json;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The playbooks
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut wrong = 0;
    for file in &args.files {
        let name = file.display();
        let found = read(file, most_depth(app)).unwrap_or_else(|fault| {
            let why = fault.message().to_owned();
            Err(vec![Problem { place: name.to_string(), why }])
        });
        wrong += u64::from(found.is_err());
        if app.paper.json {
            app.paper.json(&match &found {
                Ok(playbook) => json!({
                    "file": name.to_string(), "ok": true, "name": playbook.name, "nodes": playbook.len(),
                    "problems": [], "warnings": playbook.warnings(),
                }),
                Err(problems) => json!({
                    "file": name.to_string(), "ok": false, "warnings": [],
                    "problems": problems.iter().map(|p| json!({"place": p.place, "why": p.why})).collect::<Vec<_>>(),
                }),
            })?;
            continue;
        }
        match found {
            Ok(playbook) => {
                let nodes = count(playbook.len() as u64, "node");
                app.paper.line(format!("{name}: ok, {} has {nodes}", playbook.name))?;
                playbook.warnings().iter().for_each(|warning| say(format!("komado: {name}: {warning}")));
            }
            Err(problems) => {
                for problem in problems {
                    app.paper.line(problem.to_string())?;
                }
            }
        }
    }
    if wrong == 0 {
        return Ok(());
    }
    app.paper.flush()?;
    Err(Fault::input(format!(
        "{} of {} cannot be followed",
        wrong,
        count(args.files.len() as u64, "playbook")
    )))
}
