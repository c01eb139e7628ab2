//! `komado import`: a session from its export.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::progress;
use clap::Args as ClapArgs;
use komado_core::SessionId;
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The export; standard input when left out or -
    file: Option<PathBuf>,
    /// Give the session another id
    #[arg(long = "as", value_name = "ID")]
    name: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let name = args.name.map(SessionId::new).transpose()?;
    let mut from: Box<dyn BufRead> = match args.file.filter(|path| path.as_os_str() != "-") {
        None => Box::new(BufReader::new(stdin())),
        Some(path) => {
            let file = File::open(&path)
                .map_err(|e| Fault::new(Exit::NotFound, format!("cannot open {}: {e}", path.display())))?;
            Box::new(BufReader::new(file))
        }
    };
    let bar = progress::spinner("lines");
    let id = app.context.engine.import(&mut *from, name, |n| bar.set_position(n))?;
    bar.finish_and_clear();
    if app.paper.json {
        let status = app.context.session(&id)?.status.name();
        return app.paper.json(&serde_json::json!({ "session": id.as_str(), "status": status }));
    }
    app.paper.line(id.as_str())?;
    say(format!("next: komado context {id}"));
    Ok(())
}
