//! `komado thread start`: a child thread that outlives this command.

use super::spawned::Wanted;
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{number, say};
use crate::share;
use crate::verb::fit;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::Setup;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD: the thread it is started from
    pub(crate) address: Address,
    /// What it is about, for people and for the model
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let setup = args.wanted.setup()?;
    begin(app, args, setup)
}

/// The same with a setup that was read elsewhere.
pub(crate) fn begin(app: &mut App, args: Args, setup: Option<Setup>) -> Outcome {
    let found = app.find_now(&args.address)?;
    let session = app.context.session(&found.session)?;
    let own = &session.meta.config;
    // Whether it may be started at all is said before a missing window is.
    app.context.config.threads(own).check()?;
    let window = u64::from(fit::window(app, &session, args.window)?);
    let spawn = args.wanted.spawn(app, own, window, args.label.clone(), setup)?;
    let mut parent = app.context.open(&found, Mode::Write)?;
    let refused = |error| app.too_deep(own, error, args.wanted.max_depth);
    let mut child = parent.spawn_free(&spawn).map_err(refused)?;
    app.settle(&mut parent);
    app.settle(&mut child);
    let portion = child.portion(Some(window))?;
    let depth = child.share()?.map_or(0, |share| share.depth());
    let thread = child.header().thread.clone();
    drop((child, parent));
    let address = format!("{}/{thread}", found.session);
    let undo = format!("komado thread abort {address}");
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": thread.as_str(),
            "address": address,
            "parent": found.thread.as_str(),
            "label": args.label,
            "depth": depth,
            "ratio": spawn.ratio.get(),
            "window": window,
            "share": portion.as_ref().map(share::json),
            "status": "active",
            "undo": undo,
        }));
    }
    app.paper.line(&address)?;
    if let Some(portion) = &portion {
        say(format!("window: {} = {}", number(window), share::line(portion)));
    }
    say(format!("next: komado ask {address} \"…\"; at the end: komado thread end {address}"));
    say(format!("undo: {undo}"));
    Ok(())
}
