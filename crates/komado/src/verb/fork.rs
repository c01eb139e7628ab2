//! `komado fork`: go on from a moment in another thread.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use clap::Args as ClapArgs;
use komado_core::{Address, ThreadId};
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The moment to go on from, SESSION@SEQ; now when SEQ is left out
    pub(crate) address: Address,
    /// The new thread's name; one is made up when left out
    pub(crate) name: Option<String>,
    /// What it is about, for people
    #[arg(long)]
    pub(crate) label: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let thread = app.context.open(&found, Mode::Read)?;
    let at = found.seq.unwrap_or(thread.last());
    let name = match args.name {
        Some(name) => ThreadId::new(name)?,
        None => free_name(app, &found.session, at)?,
    };
    let header = thread.fork(at, name, args.label)?;
    drop(thread);
    let address = format!("{}/{}", header.session, header.thread);
    if app.paper.json {
        return app.paper.json(&json!({
            "session": header.session.as_str(),
            "thread": header.thread.as_str(),
            "address": address,
            "parent": header.parent.as_ref().map(|parent| json!({ "thread": parent.thread.as_str(), "seq": parent.seq })),
            "base": header.base.map(|base| json!({ "thread": base.thread.as_str(), "seq": base.seq })),
        }));
    }
    app.paper.line(&address)?;
    say(format!("shares everything up to @{at}; the thread it left is as it was"));
    say(format!("next: komado append {address} \"…\""));
    Ok(())
}

/// `fork-SEQ`, or the first of `fork-SEQ-2`, `fork-SEQ-3`, … that is free.
fn free_name(app: &App, session: &komado_core::SessionId, at: u32) -> Outcome<ThreadId> {
    let taken = app.context.engine.store().threads(session)?;
    let free = |name: &String| !taken.iter().any(|header| header.thread.as_str() == name);
    let names = std::iter::once(format!("fork-{at}")).chain((2u32..).map(|n| format!("fork-{at}-{n}")));
    Ok(ThreadId::new(names.into_iter().find(free).unwrap_or_default())?)
}
