//! What a worker prints: a line for everything that people want to see happen, or a JSON object for programs.
//!
//! On a terminal a line ends where the terminal does; in a file or a pipe it is whole, since nobody can ask it for the rest.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{Paper, number, say};
use komado_agent::progress::Progress;
use komado_agent::worker::Happened;
use komado_core::notation::tamed;
use komado_store::Taken;
use serde_json::{Value, json};

pub(super) struct Lines<'a> {
    app: &'a mut App,
    /// The first thing that could not be printed: nobody reads any more.
    unread: Outcome,
}

impl<'a> Lines<'a> {
    pub(super) fn new(app: &'a mut App) -> Self {
        Self { app, unread: Ok(()) }
    }

    /// Whoever stopped reading is no reason to stop working; it is told at the end.
    pub(super) fn end(self) -> Outcome {
        self.unread
    }

    pub(super) fn tell(&mut self, happened: &Happened<'_>) {
        let now = self.app.context.engine.now();
        if self.unread.is_ok() {
            let paper = &mut self.app.paper;
            let printed =
                if paper.json { tell_program(paper, happened) } else { tell_person(paper, &now, happened) };
            self.unread = printed.and_then(|()| paper.flush());
        }
        if let Happened::Trouble(why) = happened {
            say(format!("komado: {why}"));
        }
    }
}

fn tell_program(paper: &mut Paper, happened: &Happened<'_>) -> Outcome {
    let row = match happened {
        Happened::Taken(taken) => row(taken, json!({ "kind": "taken", "tries": taken.tries })),
        Happened::Progress(taken, progress) => row(taken, json!(progress)),
        Happened::Died(taken, why) => row(taken, json!({ "kind": "died", "why": why })),
        Happened::Stopping { running } => json!({ "kind": "stopping", "running": running }),
        Happened::Trouble(_) => return Ok(()),
    };
    paper.json(&row)
}

fn row(taken: &Taken, mut row: Value) -> Value {
    row["session"] = json!(taken.job.session.as_str());
    row["task"] = json!(taken.job.key);
    row
}

fn tell_person(paper: &mut Paper, now: &str, happened: &Happened<'_>) -> Outcome {
    if let Happened::Stopping { running } = happened
        && *running > 0
    {
        say(format!("komado: waiting for {running} to come to rest; Ctrl-C again ends them at once"));
    }
    line(now, happened).map_or(Ok(()), |line| paper.fit(&line))
}

/// What is told of it, on one line; `None` when nothing is.
fn line(now: &str, happened: &Happened<'_>) -> Option<String> {
    let (taken, words) = match happened {
        Happened::Taken(taken) => (taken, format!("Task started: {}{}", taken.job.session, nth(taken))),
        Happened::Progress(taken, progress) => (taken, words(progress)?),
        Happened::Died(taken, why) => (taken, format!("died: {why}")),
        Happened::Stopping { .. } | Happened::Trouble(_) => return None,
    };
    let time = now.get(11..19).unwrap_or(now);
    Some(format!("{time} {}  {}", one_line(called(taken)), one_line(&words)))
}

/// A short name: a task that has no name but its session's is called by the beginning of that.
fn called(taken: &Taken) -> &str {
    let (key, session) = (taken.job.key.as_str(), taken.job.session.as_str());
    match key.strip_prefix("local:") {
        Some(name) if name == session => session.get(..8).unwrap_or(session),
        Some(name) => name,
        None => key,
    }
}

fn nth(taken: &Taken) -> String {
    match (taken.tries, &taken.why) {
        (1, _) => String::new(),
        (tries, None) => format!(" (try {tries})"),
        (tries, Some(why)) => format!(" (try {tries}; before: {why})"),
    }
}

fn words(progress: &Progress) -> Option<String> {
    Some(match progress {
        Progress::Begun { model, window, again } => {
            let how = if *again { "goes on" } else { "begins" };
            format!("{how} with {model}, window {}", number(*window))
        }
        Progress::Node { .. } => return None,
        Progress::Turn { turn, tokens, said, calls: 0 } => {
            format!("turn {turn}  {} tokens  {said}", number(*tokens))
        }
        Progress::Turn { turn, tokens, calls, .. } => {
            format!("turn {turn}  {} tokens  {calls} to call", number(*tokens))
        }
        Progress::Tool { name, is_error, duration_ms } => {
            format!("{name}{}  {duration_ms} ms", if *is_error { " went wrong" } else { "" })
        }
        Progress::Fitted { before, after } => {
            format!("made smaller  {} -> {} tokens", number(*before), number(*after))
        }
        Progress::Comment { author } => format!("comment by {author}"),
        Progress::Trouble { why } => format!("trouble: {why}"),
        Progress::Ended { status, why: Some(why) } => format!("{status}: {why}"),
        Progress::Ended { status, why: None } => status.clone(),
    })
}

/// The words of a model or of a tracker on one line, with nothing in them that a terminal would obey.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    tamed(&lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::SessionId;
    use komado_store::Job;

    fn taken() -> Taken {
        let session = SessionId::new("0d2a").unwrap();
        let (key, body, at) = ("local:窓".to_owned(), "{}".to_owned(), String::new());
        let why = Some("one\n  two \u{1b}[2J".to_owned());
        Taken { job: Job { session, key, user: None, body, at }, token: 1, tries: 2, why }
    }

    #[test]
    fn a_reason_is_told_whole_on_one_line_and_moves_no_cursor() {
        let (taken, now) = (taken(), "2026-01-15T10:00:00.000000Z");
        let why = format!("{}\n\n\tend\u{1b}[2J", "理由".repeat(200));
        let told = line(now, &Happened::Died(&taken, &why)).unwrap();
        assert_eq!(told, format!("10:00:00 窓  died: {} end\\u001b[2J", "理由".repeat(200)));
        let told = line(now, &Happened::Taken(&taken)).unwrap();
        assert_eq!(told, "10:00:00 窓  Task started: 0d2a (try 2; before: one two \\u001b[2J)");
    }
}
