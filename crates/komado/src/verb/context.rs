//! `komado context`: the window as a gauge, and what fills it.

use crate::app::App;
use crate::fault::Outcome;
use crate::gauge;
use crate::paper::{Ink, count, number};
use crate::share;
use clap::Args as ClapArgs;
use komado_core::journal::Entry;
use komado_core::{Address, View};
use komado_engine::Thread;
use komado_engine::share::Portion;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD, or a moment SESSION@SEQ
    pub(crate) address: Address,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let session = app.context.session(&found.session)?;
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let view = match found.seq {
        Some(seq) => thread.view_at(seq)?,
        None => thread.view().clone(),
    };
    let given = args.window.or(session.meta.config.context_length);
    let share = view.share_in(thread.source()).map_err(komado_engine::Error::from)?;
    let portion = share.map(|share| Portion::new(share, given.map(u64::from)));
    // A child may fill its room beside what it sees of the threads above.
    let window = match &portion {
        Some(portion) => Some(u32::try_from(portion.window()).unwrap_or(u32::MAX)),
        None => given,
    };
    let weight = *view.weight();
    if app.paper.json {
        let parts: serde_json::Map<_, _> =
            gauge::parts(&weight).into_iter().map(|(name, n)| (name.replace('-', "_"), json!(n))).collect();
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": view.last(),
            "status": session.status.name(),
            "model": session.meta.config.model,
            "meter": session.meta.config.meter,
            "window": window,
            "context_tokens": weight.tokens(),
            "free_tokens": window.map(|w| u64::from(w).saturating_sub(weight.tokens())),
            "items": weight.items,
            "above": weight.above,
            "share": portion.as_ref().map(share::json),
            "parts": parts,
            "edits": view.edits().collect::<Vec<_>>(),
            "pins": view.pins().iter().map(|pin| [pin.from, pin.to]).collect::<Vec<_>>(),
            "open_calls": view.open().calls.iter().map(|call| &call.id).collect::<Vec<_>>(),
        }));
    }
    let name = format!("{}/{}@{}", found.session, found.thread, view.last());
    let heading = format!("{}  {}", app.paper.ink(Ink::Bold, &name), session.status.name());
    app.paper.line(heading)?;
    let cells = app.paper.width.saturating_sub(40).clamp(10, 60);
    let line = gauge::line(&app.paper, &weight, window, cells);
    app.paper.line(line)?;
    for line in gauge::legend(&app.paper, &weight) {
        app.paper.line(line)?;
    }
    if let Some(portion) = &portion {
        app.paper.fit(&format!("  share: {}", share::line(portion)))?;
        app.paper.fit(&format!("  seen of the threads above: {}", share::seen(portion)))?;
    }
    for line in details(&thread, &view)? {
        app.paper.fit(&line)?;
    }
    Ok(())
}

/// Edits in force, pins and open calls.
fn details(thread: &Thread<'_>, view: &View) -> Outcome<Vec<String>> {
    let mut lines = vec![format!("  {} shown", count(view.weight().items, "item"))];
    for seq in view.edits() {
        let Entry::Edit(edit) = thread.record(seq)?.entry else { continue };
        let hull = edit.hull().map(|span| span.to_string()).unwrap_or_default();
        let (before, after) = (number(edit.cause.before), number(edit.cause.after));
        lines.push(format!(
            "  @{seq} {} {hull}: {before} → {after} tokens ({})",
            edit.kind.name(),
            edit.cause.rule
        ));
    }
    if !view.pins().is_empty() {
        let pins: Vec<String> = view.pins().iter().map(|pin| format!("@{pin}")).collect();
        lines.push(format!("  pinned: {}", pins.join(", ")));
    }
    if !view.open().calls.is_empty() {
        let calls: Vec<String> = view.open().calls.iter().map(|call| call.to_string()).collect();
        lines.push(format!("  waiting for results: {}", calls.join(", ")));
    }
    Ok(lines)
}
