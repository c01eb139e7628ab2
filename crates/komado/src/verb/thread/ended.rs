//! What `end`, `abort` and `pause` tell: what became of the thread, and what its parent knows of it.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use crate::verb::change;
use komado_core::journal::Chronicle;
use komado_core::notation::tamed;
use komado_core::thread::Status;
use komado_core::{SessionId, ThreadId};
use komado_engine::engine::Found;
use komado_engine::stelis::Finished;
use serde_json::{Value, json};

/// Tells of a thread that is `status` now.
pub(super) fn tell(app: &mut App, found: &Found, status: Status, finished: &Finished) -> Outcome {
    let undo = format!("komado thread resume {}", change::name(found));
    let again = again(&found.session, finished.aborted.iter().rev());
    if app.paper.json {
        let mut row = as_json(found, status, finished);
        row["undo"] = json!(undo);
        row["undo_aborted"] = json!(again);
        return app.paper.json(&row);
    }
    app.paper.line(format!("{} is {}", change::name(found), status.name()))?;
    beside(finished);
    say(format!("undo: {undo}"));
    again.iter().for_each(|undo| say(format!("      {undo}")));
    Ok(())
}

/// The commands that let threads go on that were aborted with the one above them; those further up are to come first.
pub(crate) fn again<'a>(session: &SessionId, threads: impl Iterator<Item = &'a ThreadId>) -> Vec<String> {
    threads.map(|thread| format!("komado thread resume {session}/{thread}")).collect()
}

/// What else is to be known, on standard error.
pub(super) fn beside(finished: &Finished) {
    if !finished.aborted.is_empty() {
        let names: Vec<&str> = finished.aborted.iter().map(|thread| thread.as_str()).collect();
        say(format!("aborted with it: {}", names.join(", ")));
    }
    if let Some(why) = &finished.declined {
        say(format!("komado: the thread did end, and its chronicle is the digest's, not a model's: {why}"));
    }
    if let Some(chronicle) = &finished.chronicle {
        let first: String = tamed(headline(&chronicle.text)).chars().take(70).collect();
        say(format!("chronicle of {}: {first}", covers(chronicle)));
    }
    if !finished.is_told {
        say("komado: its parent is being changed by someone else; it hears of this when it is opened next");
    }
}

/// The first line of a chronicle that says something: no heading, and not the digest's note about itself.
pub(super) fn headline(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or_default();
    let says = lines.find(|line| !line.starts_with(['#', '[']));
    says.unwrap_or(first).trim_start_matches("- ")
}

/// Which entries a chronicle tells of.
pub(super) fn covers(chronicle: &Chronicle) -> String {
    let [from, to] = chronicle.covers;
    format!("@{from}..{to}{}", if chronicle.partial { " (partial)" } else { "" })
}

/// For programs.
pub(super) fn as_json(found: &Found, status: Status, finished: &Finished) -> Value {
    json!({
        "session": found.session.as_str(),
        "thread": found.thread.as_str(),
        "status": status.name(),
        "chronicle": finished.chronicle.as_ref().map(chronicle_json),
        "aborted": finished.aborted.iter().map(|thread| thread.as_str()).collect::<Vec<_>>(),
        "declined": finished.declined,
        "told": finished.is_told,
    })
}

/// A chronicle for programs.
pub(super) fn chronicle_json(chronicle: &Chronicle) -> Value {
    json!({
        "text": chronicle.text,
        "covers": chronicle.covers,
        "partial": chronicle.partial,
        "by": chronicle.model,
        "usage": chronicle.usage,
    })
}

#[cfg(test)]
mod tests {
    use super::headline;

    #[test]
    fn a_headline_is_the_first_line_that_says_something() {
        assert_eq!(
            headline("[digest @2..@3: 2 messages]\n## 最初の依頼\n- 直して (@2)\n- more"),
            "直して (@2)"
        );
        assert_eq!(headline("\n すべて通った。\n二行目"), "すべて通った。");
        assert_eq!(headline("# only a heading"), "# only a heading");
        assert_eq!(headline(""), "");
    }
}
