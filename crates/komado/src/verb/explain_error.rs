//! `komado explain-error`: what a provider's error is taken for, as the gateway and the engine would take it.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_ops::model::ExplainError;
use std::io::Read;

/// The largest body taken in; an error of a server is a few lines.
const LARGEST: u64 = 16 << 20;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The HTTP status the body came with; 200 for an error inside a stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=599))]
    status: u16,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::input(
            "standard input: more than 16 MB; give the error alone, without what came before it",
        ));
    }
    app.show(ExplainError { status: args.status, body: String::from_utf8_lossy(&bytes).into_owned() })
}
