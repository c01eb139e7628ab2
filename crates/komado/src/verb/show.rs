//! `komado show`: exactly what the model sees.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::Paper;
use clap::Args as ClapArgs;
use komado_ops::address::AtMoment;
use komado_ops::journal::{Format, Show, ViewItem, Viewed};
use komado_ops::stream::Sink;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD, or a moment SESSION@SEQ
    #[arg(value_name = "ADDRESS")]
    at: AtMoment,
    /// Do not shorten long texts
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let format = if app.paper.json { Format::Messages } else { Format::Lines };
    let width = u32::try_from(app.paper.width).ok();
    let show = Show { at: args.at, format: Some(format), full: args.full, width };
    app.context.stream(show, &mut Printed(&mut app.paper))
}

/// Prints each item when it comes.
struct Printed<'a>(&'a mut Paper);

impl Sink<Show> for Printed<'_> {
    fn begin(&mut self, _: Viewed) -> Outcome {
        Ok(())
    }

    fn item(&mut self, item: ViewItem) -> Outcome {
        match item {
            ViewItem::Line { text } => self.0.line(text),
            other => self.0.json(&other),
        }
    }
}
