//! `komado diff`: what the model no longer sees, and what it sees instead.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{Ink, number, say};
use clap::Args as ClapArgs;
use komado_core::{Address, notation};
use komado_engine::diff::{Change, diff};
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The earlier moment, SESSION@SEQ
    pub(crate) before: Address,
    /// The later moment; now when left out
    pub(crate) after: Option<Address>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let a = app.find(&args.before)?;
    let b = match &args.after {
        Some(address) => app.find(address)?,
        None => komado_engine::engine::Found { seq: None, ..a.clone() },
    };
    if a.session != b.session {
        return Err(Fault::usage("two sessions share nothing to compare; name two moments of one"));
    }
    let (old, new) = (
        app.context.engine.open(&a.session, &a.thread, Mode::Read)?,
        app.context.engine.open(&b.session, &b.thread, Mode::Read)?,
    );
    let (before, after) =
        (old.view_at(a.seq.unwrap_or(old.last()))?, new.view_at(b.seq.unwrap_or(new.last()))?);
    let shared = old.shared_with(&new)?;
    let width = if app.paper.json { usize::MAX } else { app.paper.width.saturating_sub(2) };
    for change in diff((&before, old.source()), (&after, new.source()), shared)? {
        let (sign, ink, item, source) = match change {
            Change::Gone(item) => ("-", Ink::Red, item, old.source()),
            Change::New(item) => ("+", Ink::Green, item, new.source()),
        };
        let text = notation::item(&item, source, width)?;
        if app.paper.json {
            let kind = if sign == "-" { "gone" } else { "new" };
            app.paper
                .json(&json!({ "change": kind, "seq": item.seq, "tokens": item.tokens, "text": text }))?;
        } else {
            let line = app.paper.ink(ink, &format!("{sign} {text}"));
            app.paper.line(line)?;
        }
    }
    if !app.paper.json {
        say(format!("{} → {} tokens", number(before.tokens()), number(after.tokens())));
    }
    Ok(())
}
