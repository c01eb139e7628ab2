//! `komado thread tell`: words from one thread to another.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::verb::append::read_stdin;
use crate::verb::change;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::engine::Found;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Who speaks: the session, or SESSION/THREAD
    pub(crate) from: Address,
    /// Who is to hear it: a thread of the same session, by name, or SESSION/THREAD
    pub(crate) to: String,
    /// The words; standard input when left out
    pub(crate) words: Vec<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let from = app.find_now(&args.from)?;
    let to = listener(app, &from, &args.to)?;
    let words =
        if args.words.is_empty() || args.words == ["-"] { read_stdin()? } else { args.words.join(" ") };
    if words.trim().is_empty() {
        return Err(Fault::usage("nothing is told: write the words, or pipe them in"));
    }
    let mut thread = app.context.open(&from, Mode::Write)?;
    let seq = thread.tell(&to.thread, &words)?;
    app.settle(&mut thread);
    drop(thread);
    if app.paper.json {
        return app.paper.json(&json!({
            "session": from.session.as_str(),
            "thread": from.thread.as_str(),
            "to": to.thread.as_str(),
            "seq": seq,
            "op": "tell",
        }));
    }
    app.paper.line(format!("@{seq} told {}", to.thread))?;
    say(format!("{} hears it before its next request; what was told cannot be taken back", to.thread));
    say(format!("next: komado ask {} \"…\"", change::name(&to)));
    Ok(())
}

/// Who is to hear: a name stands for a thread of the speaker's session, an address must lead there.
fn listener(app: &App, from: &Found, to: &str) -> Outcome<Found> {
    let address = if to.contains('/') { to.to_owned() } else { format!("{}/{to}", from.session) };
    let found = app.find_now(&address.parse::<komado_core::Address>()?)?;
    if found.session != from.session {
        return Err(Fault::usage(format!(
            "threads of one session tell each other; {} is of session {}, not of {}",
            found.thread, found.session, from.session
        )));
    }
    Ok(found)
}
