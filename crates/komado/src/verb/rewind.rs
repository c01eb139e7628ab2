//! `komado rewind`: go back to a moment.

use super::change::{self, Change};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The moment to go back to, SESSION@SEQ
    pub(crate) address: Address,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let Some(to) = found.seq else {
        return Err(Fault::usage(format!(
            "name the moment: komado rewind {}@SEQ; `komado log` lists them",
            args.address
        )));
    };
    change::make(
        app,
        &found,
        |thread| thread.rewind(to),
        |seq| Change {
            op: "rewind",
            what: format!("went back to @{to}; nothing was removed"),
            undo: Some(change::rewind_before(&found, seq)),
        },
    )
}
