//! Stats: sessions by state and user, failures, durations, tokens.

use crate::clock::seconds_between;
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::session::{Session, State, TaskKey};
use komado_store::SessionQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Count the sessions that may be seen, their tokens and their time.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct StatsOf {
    /// Only this user's
    #[arg(long)]
    pub user: Option<String>,
    /// How many running and failed sessions to list; 10 when left out
    #[arg(short = 'n', long)]
    #[schemars(range(min = 0, max = 1000))]
    pub limit: Option<u32>,
}

/// Sums over sessions.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Stats {
    /// Sessions by state.
    pub by_status: BTreeMap<String, u64>,
    /// Sessions by user and state.
    pub by_user: Vec<UserCount>,
    /// Running sessions, the newest first.
    pub running: VecDeque<RunningSession>,
    /// Failed sessions, the newest first.
    pub failed: VecDeque<FailedSession>,
    /// How long completed sessions took, on average.
    pub avg_minutes: Option<f64>,
    /// Tokens of completed sessions.
    pub total_tokens: u64,
    /// The same, on average.
    pub average_tokens: Option<f64>,
}

/// A user's sessions in one state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct UserCount {
    /// The user; `-` for sessions of none.
    pub user: String,
    /// The state.
    pub status: String,
    /// How many.
    pub count: u64,
}

/// A session that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RunningSession {
    /// Its id.
    pub uuid: String,
    /// What it works on.
    pub task_key: TaskKey,
    /// When work began.
    pub started_at: Option<String>,
}

/// A session that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct FailedSession {
    /// Its id.
    pub uuid: String,
    /// Why.
    pub error_message: Option<String>,
    /// When it was made.
    pub created_at: String,
}

impl Operation for StatsOf {
    const ABOUT: OperationLabel = OperationLabel::read("stats", "Count sessions, tokens and time");
    const INTERFACES: Interfaces = Interfaces::everywhere("admin stats", Route::get("sessions", "/stats"))
        .not_mcp("sums over sessions are for people; `sessions` has the counters of each");
    type Output = Stats;

    fn run(self, context: &OperationContext) -> OpResult<Stats> {
        let caller = &context.caller;
        let user = caller.whose(self.user)?;
        let mut sums = Sums { limit: self.limit.unwrap_or(10) as usize, ..Sums::default() };
        context.engine.each_session(SessionQuery { user, ..SessionQuery::default() }, |session| {
            if caller.may_see(session) {
                sums.add(session);
            }
            Ok(())
        })?;
        Ok(sums.told())
    }
}

#[derive(Default)]
struct Sums {
    limit: usize,
    by_user: BTreeMap<(String, &'static str), u64>,
    running: VecDeque<RunningSession>,
    failed: VecDeque<FailedSession>,
    seconds: f64,
    timed: u64,
    completed: u64,
    tokens: u64,
}

impl Sums {
    fn add(&mut self, session: &Session) {
        let user = session.meta.user.clone().unwrap_or_else(|| "-".into());
        *self.by_user.entry((user, session.status.name())).or_default() += 1;
        let uuid = session.meta.uuid.clone();
        match session.status {
            State::Running => {
                let (task_key, started_at) = (session.meta.task_key.clone(), session.started_at.clone());
                keep(&mut self.running, self.limit, RunningSession { uuid, task_key, started_at });
            }
            State::Failed => {
                let created_at = session.meta.created_at.clone();
                let error_message = session.error_message.clone();
                keep(&mut self.failed, self.limit, FailedSession { uuid, error_message, created_at });
            }
            State::Completed => self.complete(session),
            State::Queued | State::Paused | State::Stopped => {}
        }
    }

    fn complete(&mut self, session: &Session) {
        self.completed += 1;
        self.tokens += session.counters.total_tokens;
        let times = session.started_at.as_deref().zip(session.completed_at.as_deref());
        if let Some(seconds) = times.and_then(|(from, to)| seconds_between(from, to)) {
            self.seconds += seconds;
            self.timed += 1;
        }
    }

    fn told(self) -> Stats {
        let (mut by_status, mut by_user) = (BTreeMap::new(), Vec::new());
        for ((user, status), count) in self.by_user {
            let status = status.to_owned();
            *by_status.entry(status.clone()).or_default() += count;
            by_user.push(UserCount { user, status, count });
        }
        Stats {
            by_status,
            by_user,
            running: self.running,
            failed: self.failed,
            avg_minutes: (self.timed > 0).then(|| self.seconds / self.timed as f64 / 60.0),
            total_tokens: self.tokens,
            average_tokens: (self.completed > 0).then(|| self.tokens as f64 / self.completed as f64),
        }
    }
}

/// Keeps the newest ones; they come in the order they were made.
fn keep<T>(list: &mut VecDeque<T>, limit: usize, one: T) {
    list.push_front(one);
    list.truncate(limit);
}
