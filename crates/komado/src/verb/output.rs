//! `komado output`: read on in what was too long to be shown.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_ops::address::{AtMoment, AtThread};
use komado_ops::output::{ListOutputs, Part, RawOutput, ReadOutput};
use komado_ops::stream::{Piece, Sink};
use std::io::Write;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    address: AtMoment,
    /// The output: its id or a beginning of it, or @SEQ for an entry; a list of the outputs when left out
    #[arg(value_name = "REF")]
    reference: Option<String>,
    #[command(flatten)]
    part: Part,
    /// Copy the bytes to standard output
    #[arg(long, conflicts_with_all = ["offset", "limit", "grep", "line", "char_offset"])]
    raw: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let Some(ref_id) = args.reference else {
        if args.raw || args.part != Part::default() {
            return Err(Fault::usage("which output? `komado output SESSION` lists them"));
        }
        return app.show(ListOutputs { at: args.address });
    };
    let at = AtThread { session: args.address.session, thread: args.address.thread };
    if !args.raw {
        return app.show(ReadOutput { at, ref_id, part: args.part });
    }
    if app.paper.json {
        return Err(Fault::usage("--raw copies bytes, which are no JSON; leave out one of the two"));
    }
    app.context.stream(RawOutput { at, ref_id }, &mut Copied(app.paper.raw()))
}

/// Copies what comes.
struct Copied<'a>(&'a mut dyn Write);

impl Sink<RawOutput> for Copied<'_> {
    fn begin(&mut self, (): ()) -> Outcome {
        Ok(())
    }

    fn item(&mut self, Piece(bytes): Piece) -> Outcome {
        Ok(self.0.write_all(&bytes)?)
    }
}
