//! `komado pin`: keep a message in the view through every edit.

use super::change::{self, Change};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The message, SESSION@SEQ; a call is pinned with its results
    pub(crate) address: Address,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let Some(at) = found.seq else {
        return Err(Fault::usage(format!("name the message: komado pin {}@SEQ", args.address)));
    };
    change::make(
        app,
        &found,
        |thread| thread.pin(at),
        |_| Change {
            op: "pin",
            what: format!("pinned @{at}: no edit hides it now"),
            undo: Some(format!("komado unpin {}@{at}", change::name(&found))),
        },
    )
}
