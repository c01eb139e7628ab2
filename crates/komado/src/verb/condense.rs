//! `komado condense`: show a summary that you wrote in place of a span.

use super::change::{self, Change};
use super::span::Spans;
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    address: Address,
    /// The entries to hide, such as 3..50 or 3..10,12..50
    span: Spans,
    /// The summary; standard input when left out
    #[arg(long)]
    text: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let text = args.text.map_or_else(super::append::read_stdin, Ok)?;
    change::make(
        app,
        &found,
        |thread| thread.condense(args.span.0.clone(), &text, "by_hand"),
        |seq| Change {
            op: "condense",
            what: format!("showing the summary in place of {}", args.span),
            undo: Some(format!("komado revert {}@{seq}", change::name(&found))),
        },
    )
}
