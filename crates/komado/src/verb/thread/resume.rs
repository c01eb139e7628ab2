//! `komado thread resume`: let a child thread go on, also days after its end.

use super::child;
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{number, say};
use crate::share::Portion;
use crate::verb::{change, fit};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::stelis::Resume;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    address: Address,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    let window = u64::from(fit::window(app, &app.session(&found.session)?, args.window)?);
    let resume = Resume { window, buffer: app.config.policy(None).buffer };
    let seq = app.engine.resume_child(&found.session, &found.thread, &resume)?;
    let thread = app.engine.open(&found.session, &found.thread, Mode::Read)?;
    let portion = thread.share()?.map(|share| Portion::new(share, Some(window)));
    drop(thread);
    let (name, undo) = (change::name(&found), format!("komado thread pause {}", change::name(&found)));
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": seq,
            "status": "active",
            "window": window,
            "share": portion.as_ref().map(Portion::json),
            "undo": undo,
        }));
    }
    app.paper.line(format!("{name} is active"))?;
    if let Some(portion) = &portion {
        say(format!("window: {} = {}", number(window), portion.line()));
        say(format!("what it sees of the threads above is as of now: {}", portion.seen()));
    }
    say(format!("next: komado ask {name} \"…\""));
    say(format!("undo: {undo}"));
    Ok(())
}
