//! `komado trim`: show a placeholder in place of what an entry says.

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
    /// The entries, such as 7 or 7,9,12
    pub(crate) span: Spans,
    /// The placeholder; one that names the entry when left out
    #[arg(long)]
    pub(crate) text: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let seqs = args.span.0.iter().flat_map(|span| span.from..=span.to);
    let places: Vec<_> = seqs
        .map(|seq| {
            (seq, args.text.clone().unwrap_or_else(|| format!("[output trimmed; entry @{seq} keeps it]")))
        })
        .collect();
    change::make(
        app,
        &found,
        |thread| thread.trim(places, "by_hand"),
        |seq| Change {
            op: "trim",
            what: format!("showing placeholders for {}", args.span),
            undo: Some(format!("komado revert {}@{seq}", change::name(&found))),
        },
    )
}
