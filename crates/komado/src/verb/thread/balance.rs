//! `komado thread balance`: share the window out otherwise, while threads are at work.

use super::child;
use super::spawned::ratio;
use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{number, say};
use crate::share;
use crate::verb::{change, fit};
use clap::Args as ClapArgs;
use komado_core::journal::Ratio;
use komado_core::{Address, Seq, ThreadId};
use komado_engine::balance::{Balance, Recut};
use komado_engine::engine::Found;
use komado_engine::share::Portion;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD; those below it follow
    pub(crate) address: Address,
    /// What it gets of its parent's window, from 0.01 to 0.99; as before when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) ratio: Option<Ratio>,
    /// Cut what it sees of the threads above anew, from what they see now
    #[arg(long)]
    pub(crate) refresh: bool,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    if args.ratio.is_none() && !args.refresh && args.window.is_none() {
        return Err(Fault::usage("nothing would change: give --ratio RATIO, --refresh or --window TOKENS"));
    }
    let window = u64::from(fit::window(app, &app.context.session(&found.session)?, args.window)?);
    let before = current(app, &found)?;
    let slices = if args.refresh { Recut::Refresh } else { Recut::Keep };
    let buffer = app.context.config.policy(None).buffer;
    let balance = Balance { ratio: args.ratio, window, buffer, slices };
    let said = app.context.engine.balance_below(&found.session, &found.thread, balance)?;
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let portion = thread.portion(Some(window))?;
    drop(thread);
    // What a slice showed before can be read in the journal, but is not shown again.
    let undo = before.filter(|_| !args.refresh && args.ratio.is_some());
    let undo = undo.map(|ratio| format!("komado thread balance {} --ratio {ratio}", change::name(&found)));
    tell(app, &found, window, &said, portion.as_ref(), undo)
}

/// The ratio in force.
fn current(app: &App, found: &Found) -> Outcome<Option<Ratio>> {
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    Ok(thread.share()?.and_then(|share| share.slices.last().map(|slice| slice.ratio)))
}

fn tell(
    app: &mut App,
    found: &Found,
    window: u64,
    said: &[(ThreadId, Seq)],
    portion: Option<&Portion>,
    undo: Option<String>,
) -> Outcome {
    if app.paper.json {
        let entries: Vec<_> =
            said.iter().map(|(thread, seq)| json!({ "thread": thread.as_str(), "seq": seq })).collect();
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "op": "share",
            "entries": entries,
            "window": window,
            "share": portion.map(share::json),
            "undo": undo,
        }));
    }
    for (thread, seq) in said {
        app.paper.line(format!("@{seq} {thread} has a new share"))?;
    }
    if let Some(portion) = portion {
        say(format!("window: {} = {}", number(window), share::line(portion)));
        say(format!("seen of the threads above: {}", share::seen(portion)));
    }
    undo.iter().for_each(|undo| say(format!("undo: {undo}")));
    Ok(())
}
