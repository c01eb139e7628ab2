//! `komado revert`: undo one edit.

use super::change::{self, Change};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::Entry;
use komado_store::Mode;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The edit (or the revert) to undo, SESSION@SEQ
    pub(crate) address: Address,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let Some(target) = found.seq else {
        return Err(Fault::usage(format!(
            "name the edit: komado revert {}@SEQ; `komado context` lists them",
            args.address
        )));
    };
    // Undoing an undo brings an edit back; what undoes that is reverting the edit itself.
    let edit = match app.engine.open(&found.session, &found.thread, Mode::Read)?.record(target)?.entry {
        Entry::Revert { target: edit } => Some(edit),
        _ => None,
    };
    change::make(
        app,
        &found,
        |thread| thread.revert(target),
        |seq| Change {
            op: "revert",
            what: format!("undid @{target}; everything said since stays"),
            undo: Some(format!("komado revert {}@{}", change::name(&found), edit.unwrap_or(seq))),
        },
    )
}
