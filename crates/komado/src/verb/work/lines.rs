//! What a worker prints: a line for everything that people want to see happen, or a JSON object for programs.
//!
//! On a terminal a line ends where the terminal does; in a file or a pipe it is whole. At the end it tells what is left: a queue
//! that is not empty is not a queue that is done.

use crate::app::App;
use crate::cli_output::{CliOutput, count, number, say};
use crate::render::took;
use komado_agent::progress::TaskProgress;
use komado_agent::worker::{WorkerEvent, WorkerPace};
use komado_core::notation::tamed;
use komado_ops::{OpResult, OperationContext};
use komado_store::{JobStage, QueuedJob, TakenJob};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) struct WorkerOutput<'a> {
    app: &'a mut App,
    /// The first thing that could not be printed: there is no reader any more.
    unread: OpResult,
}

impl<'a> WorkerOutput<'a> {
    pub(super) fn new(app: &'a mut App) -> Self {
        Self { app, unread: Ok(()) }
    }

    /// A reader that went away is not a reason to stop working; it is told at the end.
    pub(super) fn end(self) -> OpResult {
        self.unread
    }

    pub(super) fn tell(&mut self, happened: &WorkerEvent<'_>) {
        let now = self.app.context.engine.now();
        if self.unread.is_ok() {
            let paper = &mut self.app.paper;
            let printed =
                if paper.json { tell_program(paper, happened) } else { tell_person(paper, &now, happened) };
            self.unread = printed.and_then(|()| paper.flush());
        }
        if let WorkerEvent::Trouble(why) = happened {
            say(format!("komado: {why}"));
        }
    }
}

fn tell_program(paper: &mut CliOutput, happened: &WorkerEvent<'_>) -> OpResult {
    let row = match happened {
        WorkerEvent::Taken(taken) => row(taken, json!({ "kind": "taken", "tries": taken.tries })),
        WorkerEvent::Progress(taken, progress) => row(taken, json!(progress)),
        WorkerEvent::Died(taken, why) => row(taken, json!({ "kind": "died", "why": why })),
        WorkerEvent::Stopping { running } => json!({ "kind": "stopping", "running": running }),
        WorkerEvent::Trouble(_) => return Ok(()),
    };
    paper.json(&row)
}

fn row(taken: &TakenJob, mut row: Value) -> Value {
    row["session"] = json!(taken.job.session.as_str());
    row["task"] = json!(taken.job.key);
    row
}

fn tell_person(paper: &mut CliOutput, now: &str, happened: &WorkerEvent<'_>) -> OpResult {
    if let WorkerEvent::Stopping { running } = happened
        && *running > 0
    {
        say(format!("komado: waiting for {running} to stop; Ctrl-C again ends them at once"));
    }
    line(now, happened).map_or(Ok(()), |line| paper.fit(&line))
}

/// What is told of it, on one line; `None` when nothing is.
fn line(now: &str, happened: &WorkerEvent<'_>) -> Option<String> {
    let (taken, words) = match happened {
        WorkerEvent::Taken(taken) => (taken, format!("Task started: {}{}", taken.job.session, nth(taken))),
        WorkerEvent::Progress(taken, progress) => (taken, words(progress)?),
        WorkerEvent::Died(taken, why) => (taken, format!("died: {why}")),
        WorkerEvent::Stopping { .. } | WorkerEvent::Trouble(_) => return None,
    };
    let time = now.get(11..19).unwrap_or(now);
    Some(format!("{time} {}  {}", one_line(called(taken)), one_line(&words)))
}

/// A short name: a task that has no name but its session's is called by the beginning of that.
fn called(taken: &TakenJob) -> &str {
    let (key, session) = (taken.job.key.as_str(), taken.job.session.as_str());
    match key.strip_prefix("local:") {
        Some(name) if name == session => session.get(..8).unwrap_or(session),
        Some(name) => name,
        None => key,
    }
}

fn nth(taken: &TakenJob) -> String {
    match (taken.tries, &taken.why) {
        (1, _) => String::new(),
        (tries, None) => format!(" (try {tries})"),
        (tries, Some(why)) => format!(" (try {tries}; before: {why})"),
    }
}

fn words(progress: &TaskProgress) -> Option<String> {
    Some(match progress {
        TaskProgress::Begun { model, window, again } => {
            let how = if *again { "goes on" } else { "begins" };
            format!("{how} with {model}, window {}", number(*window))
        }
        TaskProgress::Node { .. } => return None,
        TaskProgress::Turn { turn, tokens, said, calls: 0 } => {
            format!("turn {turn}  {} tokens  {said}", number(*tokens))
        }
        TaskProgress::Turn { turn, tokens, calls, .. } => {
            format!("turn {turn}  {} tokens  {calls} to call", number(*tokens))
        }
        TaskProgress::Tool { name, is_error, duration_ms } => {
            let time = took(*duration_ms as f64);
            format!("{name}{}  {time}", if *is_error { " went wrong" } else { "" })
        }
        TaskProgress::Fitted { before, after } => {
            format!("made smaller  {} -> {} tokens", number(*before), number(*after))
        }
        TaskProgress::Comment { author } => format!("comment by {author}"),
        TaskProgress::Trouble { why } => format!("trouble: {why}"),
        TaskProgress::Ended { status, why: Some(why) } => format!("{status}: {why}"),
        TaskProgress::Ended { status, why: None } => status.clone(),
    })
}

/// The words of a model or of a tracker on one line, with nothing in them that a terminal would obey.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    tamed(&lines.join(" "))
}

/// What is in the queue and cannot be taken now.
#[derive(Default)]
struct QueueLeft {
    /// Those that came after the last was taken.
    came: u64,
    /// Those that wait for their pause to be over.
    again: u64,
    /// The longest of these pauses.
    pause: Duration,
    /// Those that a worker holds.
    held: u64,
    /// One such worker.
    holder: String,
    /// Those that were laid aside.
    aside: u64,
}

/// Tells the person why it ends: what still waits and for what, or that there was nothing to do. Nothing where all that
/// was there was `taken`.
pub(super) fn tell_waiting(context: &OperationContext, taken: u64) -> OpResult {
    let pace = &context.config.agent.pace;
    let mut left = QueueLeft::default();
    for queued in context.engine.jobs() {
        left.add(&queued?, pace);
    }
    left.words(pace, taken).iter().for_each(|words| say(format!("komado: {words}")));
    Ok(())
}

impl QueueLeft {
    fn add(&mut self, queued: &QueuedJob, pace: &WorkerPace) {
        match &queued.stage {
            JobStage::Waiting if queued.tries == 0 => self.came += 1,
            JobStage::Waiting => {
                self.again += 1;
                self.pause = self.pause.max(pace.pause_after(queued.tries));
            }
            JobStage::Held(holder) => {
                self.held += 1;
                self.holder = format!("{}@{}", holder.pid, holder.host);
            }
            JobStage::Dead => self.aside += 1,
        }
    }

    fn words(&self, pace: &WorkerPace, taken: u64) -> Option<String> {
        let mut parts = Vec::new();
        if self.came > 0 {
            parts.push(format!("{} came meanwhile and can be taken now", count(self.came, "task")));
        }
        if self.again > 0 {
            let verb = if self.again == 1 { "waits" } else { "wait" };
            let (tasks, seconds) = (count(self.again, "task"), self.pause.as_secs());
            parts.push(format!("{tasks} {verb} to be tried again, in {seconds} s at the latest"));
        }
        if self.held > 0 {
            let verb = if self.held == 1 { "is" } else { "are" };
            let (tasks, holder, seconds) = (count(self.held, "task"), &self.holder, pace.hidden.as_secs());
            parts.push(format!(
                "{tasks} {verb} held by a worker ({holder}), and can be taken once it was not heard of for {seconds} s"
            ));
        }
        match (parts.is_empty(), taken, self.aside) {
            (false, ..) => Some(parts.join("; ")),
            (true, 0, 0) => Some("nothing is in the queue".to_owned()),
            (true, 0, aside) => Some(format!(
                "nothing waits in the queue; {} laid aside: `komado task list` shows why",
                if aside == 1 { "1 task is".to_owned() } else { format!("{aside} tasks are") }
            )),
            (true, ..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::SessionId;
    use komado_store::{Holder, Job};

    fn taken() -> TakenJob {
        let session = SessionId::new("0d2a").unwrap();
        let (key, body, at) = ("local:窓".to_owned(), "{}".to_owned(), String::new());
        let why = Some("one\n  two \u{1b}[2J".to_owned());
        TakenJob { job: Job { session, key, user: None, body, at }, token: 1, tries: 2, why }
    }

    #[test]
    fn a_reason_is_told_whole_on_one_line_and_moves_no_cursor() {
        let (taken, now) = (taken(), "2026-01-15T10:00:00.000000Z");
        let why = format!("{}\n\n\tend\u{1b}[2J", "理由".repeat(200));
        let told = line(now, &WorkerEvent::Died(&taken, &why)).unwrap();
        assert_eq!(told, format!("10:00:00 窓  died: {} end\\u001b[2J", "理由".repeat(200)));
        let told = line(now, &WorkerEvent::Taken(&taken)).unwrap();
        assert_eq!(told, "10:00:00 窓  Task started: 0d2a (try 2; before: one two \\u001b[2J)");
    }

    fn queued(stage: JobStage, tries: u32) -> QueuedJob {
        let (session, body, at) = (SessionId::new("s").unwrap(), String::new(), String::new());
        let job = Job { session, key: "k".into(), user: None, body, at };
        QueuedJob { job, stage, tries, why: None }
    }

    fn words(left: &[QueuedJob], taken: u64) -> Option<String> {
        let second = Duration::from_secs(1);
        let pace =
            WorkerPace { tries: 3, hidden: 60 * second, pause: 30 * second, grace: second, poll: second };
        let mut all = QueueLeft::default();
        left.iter().for_each(|queued| all.add(queued, &pace));
        all.words(&pace, taken)
    }

    #[test]
    fn what_waits_is_told_with_why_and_an_empty_queue_is_told_only_where_nothing_was_done() {
        let holder = Holder { pid: 7, host: "h".into(), program: "p".into(), since: String::new() };
        let left =
            [queued(JobStage::Waiting, 1), queued(JobStage::Waiting, 2), queued(JobStage::Held(holder), 1)];
        assert_eq!(
            words(&left, 3).unwrap(),
            "2 tasks wait to be tried again, in 60 s at the latest; 1 task is held by a worker (7@h), and can be taken once \
             it was not heard of for 60 s"
        );
        let came = [queued(JobStage::Waiting, 0), queued(JobStage::Waiting, 1)];
        assert_eq!(
            words(&came, 1).unwrap(),
            "1 task came meanwhile and can be taken now; 1 task waits to be tried again, in 30 s at the latest"
        );
        assert_eq!(words(&[], 0).unwrap(), "nothing is in the queue");
        assert_eq!(words(&[], 1), None);
        let aside = [queued(JobStage::Dead, 3)];
        assert!(words(&aside, 0).unwrap().contains("1 task is laid aside"));
        assert_eq!(words(&aside, 1), None);
    }
}
