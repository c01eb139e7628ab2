//! `komado thread tell`: words from one thread to another, given or piped in.

use crate::app::App;
use crate::fault::Outcome;
use crate::verb::append::read_stdin;
use clap::Args as ClapArgs;
use komado_ops::address::AtThread;
use komado_ops::thread::TellThread;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Who speaks: the session, or SESSION/THREAD
    from: AtThread,
    /// Who is to hear it: a thread of the same session, by name, or SESSION/THREAD
    to: String,
    /// The words; standard input when left out
    words: Vec<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let is_piped = args.words.is_empty() || args.words == ["-"];
    let text = if is_piped { read_stdin()? } else { args.words.join(" ") };
    app.show(TellThread { at: args.from, to: args.to, text })
}
