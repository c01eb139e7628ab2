//! `komado thread resume`: let a child thread go on, also days after its end.

use super::child;
use super::spawned::ratio;
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{number, say};
use crate::share;
use crate::verb::{change, fit};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::{Close, Entry, Ratio};
use komado_core::thread::Status;
use komado_engine::engine::Found;
use komado_engine::stelis::Resume;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    pub(crate) address: Address,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// What it gets of its parent's window, between 0.01 and 0.99; as before when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) ratio: Option<Ratio>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    let window = u64::from(fit::window(app, &app.context.session(&found.session)?, args.window)?);
    let undo = undo(app, &found)?;
    let resume = Resume { window, buffer: app.context.config.policy(None).buffer, ratio: args.ratio };
    let seq = app.context.engine.resume_child(&found.session, &found.thread, &resume)?;
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let portion = thread.portion(Some(window))?;
    drop(thread);
    let name = change::name(&found);
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": seq,
            "status": "active",
            "window": window,
            "share": portion.as_ref().map(share::json),
            "undo": undo,
        }));
    }
    app.paper.line(format!("{name} is active"))?;
    if let Some(portion) = &portion {
        say(format!("window: {} = {}", number(window), share::line(portion)));
        say(format!("what it sees of the threads above is as of now: {}", share::seen(portion)));
    }
    say(format!("next: komado ask {name} \"…\""));
    say(format!("undo: {undo}"));
    Ok(())
}

/// The command that makes of a thread what it is now, with the same result or reason; its chronicle stays where it can.
fn undo(app: &App, found: &Found) -> Outcome<String> {
    let thread = app.context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let (verb, more) = match thread.status()? {
        Status::Completed => ("end", " --no-chronicle"),
        Status::Aborted => ("abort", ""),
        Status::Active | Status::Paused => ("pause", ""),
    };
    let closed = thread.view().closed().map(|seq| thread.record(seq)).transpose()?;
    let words = match closed.map(|record| record.entry) {
        Some(Entry::Close(Close { result: Some(words), .. })) => format!(" {}", quoted(&words)),
        _ => String::new(),
    };
    Ok(format!("komado thread {verb} {}{words}{more}", change::name(found)))
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shell_takes_what_is_quoted_for_one_word() {
        assert_eq!(super::quoted("it's 直った"), r"'it'\''s 直った'");
    }
}
