//! `komado export`: a session as one stream, to standard output or to a file.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{keep, say, text_of};
use crate::progress;
use clap::Args as ClapArgs;
use indicatif::ProgressBar;
use komado_ops::address::AtSession;
use komado_ops::session::{Export, Exported};
use komado_ops::stream::{Piece, Sink};
use std::io::Write;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    at: AtSession,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let export = Export { at: args.at };
    let Some(path) = args.output else {
        return write(app.context.clone(), export, &mut app.paper.safe()).map(|_| ());
    };
    let session = keep(&path, |out| write(app.context.clone(), export, out))?;
    if app.paper.json {
        return app.paper.json(&serde_json::json!({ "session": session, "file": text_of(&path) }));
    }
    say(format!("wrote {}", path.display()));
    Ok(())
}

/// Writes an export; gives the session's id.
fn write(context: komado_ops::Context, export: Export, out: &mut dyn Write) -> Outcome<String> {
    let mut to = Written { out, session: String::new(), bytes: 0, bar: progress::spinner("bytes") };
    context.stream(export, &mut to)?;
    to.bar.finish_and_clear();
    Ok(to.session)
}

struct Written<'a> {
    out: &'a mut dyn Write,
    session: String,
    bytes: u64,
    bar: ProgressBar,
}

impl Sink<Export> for Written<'_> {
    fn begin(&mut self, head: Exported) -> Outcome {
        self.session = head.session;
        Ok(())
    }

    fn item(&mut self, Piece(bytes): Piece) -> Outcome {
        self.out.write_all(&bytes)?;
        self.bytes += bytes.len() as u64;
        self.bar.set_position(self.bytes);
        Ok(())
    }
}
