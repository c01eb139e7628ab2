//! `komado export`: a session as one stream.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{say, text_of};
use crate::progress;
use clap::Args as ClapArgs;
use komado_core::Address;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    address: Address,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let bar = progress::spinner("entries");
    let Some(path) = args.output else {
        app.context.engine.export(&found.session, &mut app.paper.safe(), |n| bar.set_position(n))?;
        bar.finish_and_clear();
        return Ok(());
    };
    // A name means the whole export: it is written beside and renamed.
    let folder =
        path.parent().filter(|p| !p.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    {
        let mut out = BufWriter::new(file.as_file_mut());
        app.context.engine.export(&found.session, &mut out, |n| bar.set_position(n))?;
        out.flush()?;
    }
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|e| e.error)?;
    bar.finish_and_clear();
    if app.paper.json {
        return app
            .paper
            .json(&serde_json::json!({ "session": found.session.as_str(), "file": text_of(&path) }));
    }
    say(format!("wrote {}", path.display()));
    Ok(())
}
