//! `komado condense`: show a summary in place of a span: one you wrote, or one that is written now.

use super::change::{self, Change};
use super::fit::{Room, condense_now};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::model::ModelChoice;
use komado_ops::span::Spans;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    pub(crate) address: Address,
    /// The entries to hide, such as 3..50 or 3..10,12..50; left out: all but what is kept, in a summary written now
    pub(crate) span: Option<Spans>,
    /// The summary for the span; standard input when left out
    #[arg(long, requires = "span")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) room: Room,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let Some(span) = args.span else {
        let room = args.room;
        return condense_now(app, &found, |app, thread| room.budget(app, thread), &ModelChoice::default());
    };
    let text = args.text.map_or_else(super::append::read_stdin, Ok)?;
    change::make(
        app,
        &found,
        |thread| thread.condense(span.0.clone(), &text, "by_hand"),
        |seq| Change {
            op: "condense",
            what: format!("showing the summary in place of {span}"),
            undo: Some(format!("komado revert {}@{seq}", change::name(&found))),
        },
    )
}
