//! How much a task may take before it is ended: turns, time, tokens, errors in a row, repetitions of a call.

use std::time::{Duration, Instant};

/// Most of an error that a reason repeats.
const SHOWN: usize = 300;

/// Bounds of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskLimits {
    /// Requests to the model.
    pub turns: Option<u32>,
    /// Time at work, of all workers together.
    pub time: Option<Duration>,
    /// Tokens of all requests and answers, as the provider counts them.
    pub tokens: Option<u64>,
    /// Calls in a row that went wrong.
    pub errors: u32,
    /// The same call, made again while an edit hides its answer.
    pub repeats: Option<u32>,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { turns: Some(5_000), time: None, tokens: None, errors: 8, repeats: Some(8) }
    }
}

/// The bound that was reached.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitReached {
    /// So many turns.
    #[error("the task took its {} (agent.max_turns)", count((*.0).into(), "turn"))]
    Turns(u32),
    /// So long.
    #[error("the task took its {} (agent.max_minutes)", count(.0.as_secs().div_ceil(60), "minute"))]
    Time(Duration),
    /// So many tokens.
    #[error("the task took its {} (agent.max_total_tokens)", count(*.0, "token"))]
    Tokens(u64),
    /// So many errors in a row, and the last one.
    #[error("{calls} in a row went wrong (agent.max_errors); the last one: {1}", calls = count((*.0).into(), "call"))]
    Errors(u32, String),
    /// The same call so many times, of that tool.
    #[error(
        "the model called {1} {calls} for an answer that its window cannot keep (agent.max_repeats); a model with a larger \
         window may finish it",
        calls = count((*.0).into(), "time")
    )]
    Repeats(u32, String),
}

/// What a task took so far, against what it may take.
pub(crate) struct LimitsUsed {
    limits: TaskLimits,
    since: Instant,
    /// Time that others took before.
    pub(crate) spent: Duration,
    pub(crate) turns: u64,
    pub(crate) tokens: u64,
    pub(crate) calls: u64,
    errors: u32,
    last_error: String,
    /// How often the last call was made that was repeated, and its tool.
    repeated: (u32, String),
}

impl LimitsUsed {
    /// Nothing yet.
    pub(crate) fn new(limits: TaskLimits) -> Self {
        let (spent, last_error, repeated) = (Duration::ZERO, String::new(), (0, String::new()));
        let (turns, tokens, calls, errors) = (0, 0, 0, 0);
        Self { limits, since: Instant::now(), spent, turns, tokens, calls, errors, last_error, repeated }
    }

    /// Time at work, of all workers together.
    pub(crate) fn spent(&self) -> Duration {
        self.spent + self.since.elapsed()
    }

    /// A request was answered.
    pub(crate) fn turn(&mut self, tokens: u64) {
        self.turns += 1;
        self.tokens += tokens;
    }

    /// A call was answered; `wrong` says how it went wrong.
    pub(crate) fn call(&mut self, wrong: Option<String>) {
        self.calls += 1;
        match wrong {
            None => self.errors = 0,
            Some(why) => {
                self.errors += 1;
                self.last_error = why.trim().chars().take(SHOWN).collect();
            }
        }
    }

    /// A call was made again, because an edit hides its answer: so many times in all.
    pub(crate) fn repeat(&mut self, times: u32, tool: &str) {
        self.repeated = (times, tool.to_owned());
    }

    /// The bound that was reached, if one was.
    pub(crate) fn reached(&self) -> Option<LimitReached> {
        let TaskLimits { turns, time, tokens, errors, repeats } = self.limits;
        let turns = turns.filter(|most| self.turns >= u64::from(*most)).map(LimitReached::Turns);
        let time = time.filter(|most| self.spent() >= *most).map(LimitReached::Time);
        let tokens = tokens.filter(|most| self.tokens >= *most).map(LimitReached::Tokens);
        let errors = (errors > 0 && self.errors >= errors)
            .then(|| LimitReached::Errors(errors, self.last_error.clone()));
        let (times, tool) = &self.repeated;
        let repeats =
            repeats.filter(|most| times >= most).map(|_| LimitReached::Repeats(*times, tool.clone()));
        turns.or(time).or(tokens).or(errors).or(repeats)
    }
}

/// So many of something, as people say it.
pub(crate) fn count(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}
