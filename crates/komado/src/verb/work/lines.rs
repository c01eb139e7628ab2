//! What a worker prints: a line for everything that people want to see happen, or a JSON object for programs.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{Paper, number, say};
use komado_agent::progress::Progress;
use komado_agent::worker::Happened;
use komado_store::Taken;
use serde_json::{Value, json};

/// Characters of a reason or of words that are shown.
const SHOWN: usize = 100;

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
        let now = self.app.engine.now();
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
    let (taken, words) = match happened {
        Happened::Taken(taken) => (taken, format!("Task started: {}{}", taken.job.session, nth(taken))),
        Happened::Progress(taken, progress) => match words(progress) {
            Some(words) => (taken, words),
            None => return Ok(()),
        },
        Happened::Died(taken, why) => (taken, format!("died: {why}")),
        Happened::Stopping { running: 0 } => return Ok(()),
        Happened::Stopping { running } => {
            say(format!("komado: waiting for {running} to come to rest; Ctrl-C again ends them at once"));
            return Ok(());
        }
        Happened::Trouble(_) => return Ok(()),
    };
    let time = now.get(11..19).unwrap_or(now);
    paper.fit(&format!("{time} {}  {words}", called(taken)))
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
        (tries, Some(why)) => format!(" (try {tries}; before: {})", short(why)),
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
            format!("turn {turn}  {} tokens  {}", number(*tokens), short(said))
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
        Progress::Trouble { why } => format!("trouble: {}", short(why)),
        Progress::Ended { status, why: Some(why) } => format!("{status}: {}", short(why)),
        Progress::Ended { status, why: None } => status.clone(),
    })
}

fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(SHOWN).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
