//! `komado stats`: sessions by state and user, failures, durations, tokens.

use crate::app::App;
use crate::clock::seconds_between;
use crate::fault::Outcome;
use crate::paper::{Ink, number};
use crate::table::table;
use clap::Args as ClapArgs;
use komado_core::session::{Session, State};
use komado_store::Query;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Only this user's
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// How many running and failed sessions to list
    #[arg(short = 'n', long, default_value_t = 10)]
    pub(crate) limit: usize,
}

#[derive(Default)]
struct Stats {
    by_state: BTreeMap<&'static str, u64>,
    by_user: BTreeMap<(String, &'static str), u64>,
    running: VecDeque<Session>,
    failed: VecDeque<Session>,
    seconds: f64,
    timed: u64,
    completed: u64,
    tokens: u64,
}

impl Stats {
    fn add(&mut self, session: &Session, limit: usize) {
        let status = session.status.name();
        *self.by_state.entry(status).or_default() += 1;
        let user = session.meta.user.clone().unwrap_or_else(|| "-".into());
        *self.by_user.entry((user, status)).or_default() += 1;
        match session.status {
            State::Running => keep_last(&mut self.running, session, limit),
            State::Failed => keep_last(&mut self.failed, session, limit),
            State::Completed => {
                self.completed += 1;
                self.tokens += session.counters.total_tokens;
                let times = (session.started_at.as_deref(), session.completed_at.as_deref());
                if let (Some(from), Some(to)) = times
                    && let Some(seconds) = seconds_between(from, to)
                {
                    self.seconds += seconds;
                    self.timed += 1;
                }
            }
            State::Queued | State::Paused | State::Stopped => {}
        }
    }

    fn mean_minutes(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.seconds / self.timed as f64 / 60.0)
    }

    fn mean_tokens(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.tokens as f64 / self.completed as f64)
    }
}

fn keep_last(list: &mut VecDeque<Session>, session: &Session, limit: usize) {
    list.push_front(session.clone());
    list.truncate(limit);
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut stats = Stats::default();
    app.context.engine.each_session(Query { user: args.user, ..Query::default() }, |session| {
        stats.add(session, args.limit);
        Ok(())
    })?;
    if app.paper.json { as_json(app, &stats) } else { as_text(app, &stats) }
}

fn as_json(app: &mut App, stats: &Stats) -> Outcome {
    let users: Vec<_> = stats
        .by_user
        .iter()
        .map(|((user, status), n)| json!({ "user": user, "status": status, "count": n }))
        .collect();
    let failed: Vec<_> = stats
        .failed
        .iter()
        .map(|s| json!({ "uuid": s.meta.uuid, "error_message": s.error_message, "created_at": s.meta.created_at }))
        .collect();
    let running: Vec<_> = stats
        .running
        .iter()
        .map(|s| json!({ "uuid": s.meta.uuid, "task_key": s.meta.task_key, "started_at": s.started_at }))
        .collect();
    app.paper.json(&json!({
        "by_status": stats.by_state,
        "by_user": users,
        "running": running,
        "failed": failed,
        "avg_minutes": stats.mean_minutes(),
        "total_tokens": stats.tokens,
        "average_tokens": stats.mean_tokens(),
    }))
}

fn as_text(app: &mut App, stats: &Stats) -> Outcome {
    let head = |app: &App, text: &str| app.paper.ink(Ink::Bold, text);
    let states: Vec<String> =
        stats.by_state.iter().map(|(state, n)| format!("{state} {}", number(*n))).collect();
    let states = if states.is_empty() { "no sessions".into() } else { states.join(", ") };
    let line = format!("{}  {states}", head(app, "sessions"));
    app.paper.line(line)?;
    let minutes = stats.mean_minutes().map_or_else(|| "-".into(), |m| format!("{m:.1} minutes"));
    let mean = stats.mean_tokens().map_or_else(|| "-".into(), |t| number(t.round() as u64));
    let line = format!(
        "{}  mean time {minutes}, tokens {} in all, {mean} on average",
        head(app, "completed"),
        number(stats.tokens)
    );
    app.paper.line(line)?;
    let mut rows = vec![vec!["user".to_owned(), "status".to_owned(), "count".to_owned()]];
    rows.extend(
        stats.by_user.iter().map(|((user, status), n)| vec![user.clone(), (*status).to_owned(), number(*n)]),
    );
    let list = |title: &str, sessions: &VecDeque<Session>, tell: fn(&Session) -> Vec<String>| {
        let mut rows = vec![vec![title.to_owned()]];
        rows.extend(sessions.iter().map(tell));
        rows
    };
    let running = list("running", &stats.running, |s| {
        vec![s.meta.uuid.clone(), s.meta.task_key.to_string(), s.started_at.clone().unwrap_or_default()]
    });
    let failed = list("failed", &stats.failed, |s| {
        vec![s.meta.uuid.clone(), s.error_message.clone().unwrap_or_default(), s.meta.created_at.clone()]
    });
    for rows in [rows, running, failed].iter().filter(|rows| rows.len() > 1) {
        app.paper.line("")?;
        table(rows, &[]).into_iter().try_for_each(|line| app.paper.fit(&line))?;
    }
    Ok(())
}
