//! `komado import`: a session from its export.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_ops::session::Import;
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
    let from: Box<dyn BufRead + Send> = match args.file.filter(|path| path.as_os_str() != "-") {
        None => Box::new(BufReader::new(stdin())),
        Some(path) => {
            let file = File::open(&path)
                .map_err(|e| Fault::new(Exit::NotFound, format!("cannot open {}: {e}", path.display())))?;
            Box::new(BufReader::new(file))
        }
    };
    app.context = app.context.clone().reading(from);
    app.show(Import { name: args.name })
}
