//! `komado fit`: make the view fit its window now, or say what would be done.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{number, say};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::Seq;
use komado_core::budget::{Budget, Preset, Rule};
use komado_core::ladder::Rung;
use komado_core::session::Session;
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::fit::{Done, Fitted, Ladder, Resliced};
use komado_engine::model::ModelChoice;
use komado_provider::Cancel;
use komado_store::Mode;
use serde_json::{Value, json};

use super::change;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    pub(crate) address: Address,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// First take back edits for which the window has room again
    #[arg(long)]
    pub(crate) relax: bool,
    #[command(flatten)]
    pub(crate) room: Room,
}

/// Which window, and by which rule.
#[derive(ClapArgs, Debug)]
pub(crate) struct Room {
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// The rule by which the window is kept: komado, seed000, seed001 or seed002; else as the settings say
    #[arg(long, value_parser = preset)]
    pub(crate) preset: Option<Preset>,
}

/// The window of a session in tokens as we count them: `given`, else its own.
pub(super) fn window(app: &App, session: &Session, given: Option<u32>) -> Outcome<u32> {
    app.models().own_window(&session.meta.config, given).ok_or_else(|| {
        Fault::usage(format!(
            "the window of session {} is not known; say it with --window TOKENS",
            session.meta.uuid
        ))
    })
}

/// A preset on the command line.
pub(super) fn preset(name: &str) -> Result<Preset, String> {
    Preset::named(name).ok_or_else(|| {
        let known = Preset::ALL.map(Preset::name).join(", ");
        format!("there is no preset {name:?}; there are {known}")
    })
}

impl Room {
    /// The budget of a thread. A window that nobody knows is never guessed.
    pub(super) fn budget(&self, app: &App, thread: &Thread<'_>) -> Outcome<Budget> {
        let session = app.context.session(thread.session())?;
        let window = window(app, &session, self.window)?;
        let policy = app.context.config.policy(self.preset);
        Ok(app.models().own_budget(thread, policy, window, &session.meta.config)?)
    }
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let mode = if args.dry_run { Mode::Read } else { Mode::Write };
    let mut thread = app.context.open(&found, mode)?;
    let budget = args.room.budget(app, &thread)?;
    let mut writer = app.models().summariser(
        &found.session,
        thread.meter(),
        &ModelChoice::default(),
        None,
        &Cancel::default(),
    )?;
    let mut ladder = app.context.config.models.summaries.ladder(budget, writer.by());
    let done = climb(&mut thread, &mut ladder, &args);
    if !args.dry_run {
        // Also after a failure: an edit before it is durable.
        app.settle(&mut thread);
    }
    let (back, fitted) = done?;
    drop((thread, writer));
    if app.paper.json {
        let mut row = json(&found, &fitted);
        (row["dry_run"], row["reverted"]) = (json!(args.dry_run), json!(back));
        return app.paper.json(&row);
    }
    if !back.is_empty() {
        let edits: Vec<String> = back.iter().map(|seq| format!("@{seq}")).collect();
        app.paper.line(format!("taken back, since there is room again: {}", edits.join(", ")))?;
        if !args.dry_run {
            say(format!("undo: komado fit {}", change::name(&found)));
        }
    }
    tell(app, &found, &fitted, args.dry_run)
}

/// Edits taken back, and what was done, or would be.
fn climb(thread: &mut Thread<'_>, ladder: &mut Ladder<'_>, args: &Args) -> Outcome<(Vec<Seq>, Fitted)> {
    Ok(match (args.dry_run, args.relax) {
        (true, true) => thread.plan_relaxed(ladder)?,
        (true, false) => (Vec::new(), thread.plan(ladder)?),
        (false, true) => (thread.relax(&ladder.budget)?, thread.fit(ladder)?),
        (false, false) => (Vec::new(), thread.fit(ladder)?),
    })
}

/// What was done, or would be, as JSON.
pub(super) fn json(found: &Found, fitted: &Fitted) -> Value {
    let edits: Vec<Value> = fitted.done.iter().map(|done| edit_json(found, done)).collect();
    json!({
        "session": found.session.as_str(),
        "thread": found.thread.as_str(),
        "verdict": fitted.verdict,
        "edits": edits,
        "slices": fitted.share.iter().map(slices_json).collect::<Vec<_>>(),
        "declined": fitted.declined,
        "tokens_before": fitted.verdict.tokens,
        "tokens_after": fitted.after,
    })
}

/// Slices that were cut anew, as JSON.
pub(super) fn slices_json(cut: &Resliced) -> Value {
    json!({
        "seq": cut.seq,
        "window": cut.window,
        "tokens_before": cut.before,
        "tokens_after": cut.after,
    })
}

/// The same, in one line.
pub(super) fn slices_line(cut: &Resliced) -> String {
    let (before, after) = (number(u64::from(cut.before)), number(u64::from(cut.after)));
    let window = number(cut.window);
    format!("slices of the threads above: {before} → {after} tokens for a window of {window} (@{})", cut.seq)
}

pub(super) fn edit_json(found: &Found, done: &Done) -> Value {
    let spans: Vec<[u32; 2]> = done.touched().iter().map(|span| [span.from, span.to]).collect();
    json!({
        "seq": done.seq,
        "rung": done.rung.name(),
        "op": done.edit.kind.name(),
        "rule": done.edit.cause.rule,
        "note": done.edit.cause.note,
        "spans": spans,
        "tokens_before": done.edit.cause.before,
        "tokens_after": done.edit.cause.after,
        "model": done.edit.cause.model,
        "undo": format!("komado revert {}@{}", change::name(found), done.seq),
    })
}

/// What was done, or would be, for people.
pub(super) fn tell(app: &mut App, found: &Found, fitted: &Fitted, dry_run: bool) -> Outcome {
    app.paper.line(format!("{}: {}", fitted.verdict.rule.name(), fitted.verdict.numbers()))?;
    fitted.declined.iter().for_each(|why| say(format!("komado: no summary: {why}")));
    if let Some(cut) = &fitted.share {
        say(slices_line(cut));
    }
    for done in &fitted.done {
        app.paper.line(line(done))?;
    }
    if !dry_run {
        // The newest first: one that lies under a later edit cannot be taken back alone.
        for done in fitted.done.iter().rev() {
            say(format!("undo: komado revert {}@{}", change::name(found), done.seq));
        }
    }
    if fitted.done.is_empty() && fitted.share.is_none() {
        let nothing = match fitted.verdict.rule {
            Rule::Fits => "there is room",
            Rule::HardGate => "nothing more can leave; the answer has less room than it should",
            _ => "nothing is worth an edit yet",
        };
        app.paper.line(format!("{nothing}; nothing {} changed", if dry_run { "would be" } else { "was" }))?;
    } else if dry_run {
        say("this is a dry run: nothing was changed");
    }
    Ok(())
}

/// One edit, in one line.
pub(super) fn line(done: &Done) -> String {
    let cause = &done.edit.cause;
    let (rung, before, after) = (done.rung.name(), number(cause.before), number(cause.after));
    format!("@{} {rung:<8} {}: {before} → {after} tokens", done.seq, what(done))
}

fn what(done: &Done) -> String {
    let several = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let n = done.edit.replace.len();
    match (done.rung, &done.edit.hide[..]) {
        (Rung::Trim, _) => format!("{} left out", several(n, "old output")),
        (Rung::Clip, _) => format!("{} shown in part", several(n, "message")),
        (_, [span]) => format!("entries {span}"),
        (_, [first, .., last]) => {
            format!("entries {}..{} in {} spans", first.from, last.to, done.edit.hide.len())
        }
        (_, []) => String::new(),
    }
}

/// Condenses now, whether or not there is room.
pub(super) fn condense_now(
    app: &mut App,
    found: &Found,
    budget: impl FnOnce(&App, &Thread<'_>) -> Outcome<Budget>,
    choice: &ModelChoice,
) -> Outcome {
    let mut thread: Thread<'_> = app.context.open(found, Mode::Write)?;
    let budget = budget(app, &thread)?;
    let mut writer =
        app.models().summariser(&found.session, thread.meter(), choice, None, &Cancel::default())?;
    let condensed = thread.condense_now(&mut app.context.config.models.summaries.ladder(budget, writer.by()));
    // Also after a failure: that a model was asked is in the journal.
    app.settle(&mut thread);
    drop((thread, writer));
    let fitted = condensed?;
    if fitted.done.is_empty() {
        return Err(Fault::new(Exit::Refused, fitted.declined.join("; ")));
    }
    if app.paper.json { app.paper.json(&json(found, &fitted)) } else { tell(app, found, &fitted, false) }
}
