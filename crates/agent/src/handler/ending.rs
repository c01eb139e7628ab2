//! The end, in this order: the journal says it, the tracker is told, and only then the queue hears of it.
//!
//! Each step may be the last one of a process. Whoever follows finds the end in the journal and does the rest: comments
//! have a mark by which they are written once, and labels are set to what they shall be.

use super::{Kit, Verdict, earlier, kept};
use crate::error::Result;
use crate::limits::count;
use crate::progress::Progress;
use crate::source::{self, Ended};
use komado_core::Seq;
use komado_core::journal::{Close, Ending};
use komado_core::session::{Counters, State};
use komado_engine::Engine;

/// Ends it well.
pub(super) fn complete(engine: &Engine, kit: &Kit<'_>, result: &str) -> Result<Verdict> {
    let result = Some(result.trim().to_owned()).filter(|text| !text.is_empty());
    engine.complete(kit.session, result)?;
    tell(engine, kit)
}

/// Ends it with a reason.
pub(super) fn fail(engine: &Engine, kit: &Kit<'_>, why: &str) -> Result<Verdict> {
    kept::keep(engine, kit.session, kit.task)?;
    engine.fail(kit.session, why)?;
    tell(engine, kit)
}

/// Ends it because it is not wanted any more.
pub(super) fn stop(engine: &Engine, kit: &Kit<'_>, why: &str) -> Result<Verdict> {
    kept::keep(engine, kit.session, kit.task)?;
    engine.stop(kit.session, Some(why.to_owned()))?;
    tell(engine, kit)
}

/// Ends it as its journal says that it ended: whoever wrote that was killed before the table could follow.
pub(super) fn again(engine: &Engine, kit: &Kit<'_>, close: Close) -> Result<Verdict> {
    match close.ending {
        Ending::Completed => engine.complete(kit.session, close.result)?,
        Ending::Failed => engine.fail(kit.session, &close.result.unwrap_or_default())?,
        _ => engine.stop(kit.session, close.result)?,
    };
    tell(engine, kit)
}

/// Lets it rest.
pub(super) fn pause(engine: &Engine, kit: &Kit<'_>, why: &str) -> Result<Verdict> {
    // A row may say so before the journal does, and the other way round.
    if earlier::closing(engine, kit.session)?.is_none() {
        kept::keep(engine, kit.session, kit.task)?;
        engine.pause(kit.session, Some(why.to_owned()))?;
    }
    if let Err(untold) = kit.source().end(kit.task, Ended::Paused) {
        (kit.tell)(Progress::Trouble { why: untold.to_string() });
    }
    Ok(Verdict::Paused(why.to_owned()))
}

/// Tells how a session ended that has ended.
pub(super) fn tell(engine: &Engine, kit: &Kit<'_>) -> Result<Verdict> {
    let session = engine.session(kit.session)?;
    let (at, result) = match earlier::closing(engine, kit.session)? {
        Some((at, Close { result, .. })) => (at, result),
        None => (0, None),
    };
    let result = result.or(session.error_message).unwrap_or_default();
    let (words, ended, verdict) = match session.status {
        State::Completed => (done(&result), Ended::Done, Verdict::Completed),
        State::Failed => (failed(&result), Ended::Failed, Verdict::Failed(result)),
        _ => (format!("Work on this was stopped: {result}."), Ended::Stopped, Verdict::Stopped(result)),
    };
    let words = format!("{words}\n\n{}", figures(kit, &session.counters));
    match told(kit, at, &words, ended) {
        Ok(()) => Ok(verdict),
        Err(error @ source::Error::Away { .. }) => Ok(Verdict::Again(error.to_string())),
        Err(error) => {
            (kit.tell)(Progress::Trouble { why: error.to_string() });
            Ok(verdict)
        }
    }
}

/// The comment, once, and the label. A task that is tried again ends again, and that is news: its mark has the entry.
fn told(kit: &Kit<'_>, at: Seq, words: &str, ended: Ended) -> std::result::Result<(), source::Error> {
    let mut source = kit.source();
    source.say(kit.task, &format!("{}:result:{at}", kit.session), words)?;
    source.end(kit.task, ended)
}

fn done(result: &str) -> String {
    if result.is_empty() { "This is done.".to_owned() } else { result.to_owned() }
}

fn failed(why: &str) -> String {
    format!("This could not be done: {why}")
}

fn figures(kit: &Kit<'_>, counters: &Counters) -> String {
    let Counters { llm_call_count, tool_call_count, total_tokens, .. } = *counters;
    let (turns, calls) = (count(llm_call_count, "turn"), count(tool_call_count, "tool call"));
    let tokens = count(total_tokens, "token");
    format!("{turns}, {calls}, {tokens}; `komado log {}` shows all of it.", kit.session)
}
