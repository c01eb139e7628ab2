//! `komado condense`: show a summary in place of a span; one for a span is read from standard input when it is not given.

use crate::app::App;
use crate::fault::Outcome;
use komado_ops::window::Condense;

pub(crate) type Args = Condense;

pub(crate) fn run(app: &mut App, mut args: Args) -> Outcome {
    if args.span.is_some() && args.text.is_none() {
        args.text = Some(super::append::read_stdin()?);
    }
    app.show(args)
}
