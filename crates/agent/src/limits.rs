//! How much a task may take before it is ended: turns, time, tokens, errors in a row.

use std::fmt;
use std::time::Duration;

/// Bounds of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Requests to the model.
    pub turns: Option<u32>,
    /// Time at work, of all workers together.
    pub time: Option<Duration>,
    /// Tokens of all requests and answers, as the provider counts them.
    pub tokens: Option<u64>,
    /// Calls in a row that went wrong.
    pub errors: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: Some(5_000), time: None, tokens: None, errors: 8 }
    }
}

/// The bound that was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// So many turns.
    Turns(u32),
    /// So long.
    Time(Duration),
    /// So many tokens.
    Tokens(u64),
    /// So many errors in a row, and the last one.
    Errors(u32, String),
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns(turns) => {
                write!(f, "the task took its {} (agent.max_turns)", count((*turns).into(), "turn"))
            }
            Self::Time(time) => {
                let minutes = count(time.as_secs().div_ceil(60), "minute");
                write!(f, "the task took its {minutes} (agent.max_minutes)")
            }
            Self::Tokens(tokens) => {
                write!(f, "the task took its {} (agent.max_total_tokens)", count(*tokens, "token"))
            }
            Self::Errors(errors, last) => {
                let calls = count((*errors).into(), "call");
                write!(f, "{calls} in a row went wrong (agent.max_errors); the last one: {last}")
            }
        }
    }
}

/// So many of something, as people say it.
pub(crate) fn count(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}
