//! `komado unpin`: take a pin back.

use super::change::{self, Change};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The pinned message, SESSION@SEQ
    pub(crate) address: Address,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let Some(at) = found.seq else {
        return Err(Fault::usage(format!("name the message: komado unpin {}@SEQ", args.address)));
    };
    change::make(
        app,
        &found,
        |thread| thread.unpin(at),
        |_| Change {
            op: "unpin",
            what: format!("unpinned @{at}: edits may hide it again"),
            undo: Some(format!("komado pin {}@{at}", change::name(&found))),
        },
    )
}
