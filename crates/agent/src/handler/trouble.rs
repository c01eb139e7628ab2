//! What is in the way of a task: something that may pass, something that will not, or another process that holds it.

use super::TaskOutcome;
use crate::Error;
use crate::source;
use komado_engine::Error as Engine;
use komado_engine::exchange::UnansweredReason;
use komado_provider::SendError;
use komado_store::Error as Store;

/// What is in the way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// Another process holds the session.
    Elsewhere(String),
    /// Later it may go.
    MayPass(String),
    /// It will be the same every time.
    ForGood(String),
}

impl Trouble {
    /// What an error means for the task.
    pub(super) fn of(error: &Error) -> Self {
        let why = error.to_string();
        match error {
            Error::Engine(Engine::Store(Store::Busy { .. } | Store::TakenOver(_) | Store::Moved { .. })) => {
                Self::Elsewhere(why)
            }
            Error::Engine(Engine::Unanswered { why: reason, .. }) if is_final(reason) => Self::ForGood(why),
            Error::Engine(Engine::Unanswered { .. } | Engine::Store(_) | Engine::Io(_))
            | Error::Source(source::Error::Away { .. })
            | Error::Io(_) => Self::MayPass(why),
            #[cfg(feature = "mcp")]
            Error::Mcp(_) => Self::MayPass(why),
            Error::Order(_) => Self::Elsewhere(why),
            _ => Self::ForGood(why),
        }
    }

    /// What it comes to where nothing can be ended.
    pub(super) fn verdict(self) -> TaskOutcome {
        match self {
            Self::Elsewhere(why) => TaskOutcome::Left(why),
            Self::MayPass(why) | Self::ForGood(why) => TaskOutcome::Again(why),
        }
    }
}

/// True when the model's server will say the same every time: the key, the model or the request is wrong.
fn is_final(why: &UnansweredReason) -> bool {
    match why {
        UnansweredReason::Refused { status, .. } => !matches!(status, 200..300 | 408 | 425 | 429 | 500..),
        UnansweredReason::Send(SendError::Tls { .. } | SendError::Redirected { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16) -> Error {
        let why = UnansweredReason::Refused { url: "http://model".into(), status, body: "no".into() };
        Error::Engine(Engine::Unanswered { seq: 3, why })
    }

    #[test]
    fn a_wrong_key_is_for_good_and_a_busy_server_may_pass() {
        for status in [400, 401, 403, 404, 422] {
            assert!(matches!(Trouble::of(&refused(status)), Trouble::ForGood(_)), "{status}");
        }
        for status in [200, 408, 429, 500, 503, 529] {
            assert!(matches!(Trouble::of(&refused(status)), Trouble::MayPass(_)), "{status}");
        }
    }
}
