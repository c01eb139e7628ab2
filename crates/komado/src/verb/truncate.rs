//! `komado truncate`: show a marker in place of a span.

use super::change::{self, Change};
use super::span::Spans;
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    pub(crate) address: Address,
    /// The entries to hide, such as 3..50 or 3..10,12..50
    pub(crate) span: Spans,
    /// The marker; one that counts the entries when left out
    #[arg(long)]
    pub(crate) text: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let text = args.text.unwrap_or_else(|| format!("[{} entries not shown: {}]", args.span.len(), args.span));
    change::make(
        app,
        &found,
        |thread| thread.truncate(args.span.0.clone(), &text, "by_hand"),
        |seq| Change {
            op: "truncate",
            what: format!("showing a marker in place of {}", args.span),
            undo: Some(format!("komado revert {}@{seq}", change::name(&found))),
        },
    )
}
