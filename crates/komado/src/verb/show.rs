//! `komado show`: exactly what the model sees.

use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::message::Message;
use komado_core::openai::{self, Blobs};
use komado_core::{Address, Seq, SessionId, notation};
use komado_store::{Mode, Store};
use std::io::{self, Write};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD, or a moment SESSION@SEQ
    address: Address,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let view = match found.seq {
        Some(seq) => thread.view_at(seq)?,
        None => thread.view().clone(),
    };
    if app.paper.json {
        let mut blobs = Inline { store: app.context.engine.store(), session: &found.session };
        let out = &mut app.paper.safe();
        return view.pour(thread.source(), &mut |seq: Seq, message: &Message| -> Outcome {
            write!(out, "{{\"seq\":{seq},\"message\":")?;
            openai::write(message, &mut blobs, out)?;
            Ok(out.write_all(b"}\n")?)
        });
    }
    let width = if args.full { usize::MAX } else { app.paper.width };
    let mut failed: Outcome = Ok(());
    notation::each_item(&view, thread.source(), width, |line| {
        if failed.is_ok() {
            failed = app.paper.line(line);
        }
    })?;
    failed
}

/// Pictures from the session's blobs.
pub(crate) struct Inline<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) session: &'a SessionId,
}

impl Blobs for Inline<'_> {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut blob = self.store.blob(self.session, id).map_err(io::Error::other)?;
        komado_store::write_base64(&mut blob, out)
    }
}
