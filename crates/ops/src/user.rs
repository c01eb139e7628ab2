//! Users: who there are, their standing sessions, what was said lately, habits; and forgetting one.
//!
//! A key that does not see all sees one user, its own; any other is told not to be there, in the same words as one that is
//! not.

mod erasures;
mod forget;
mod habits;
mod list;
mod recent;
mod session;

pub use forget::{ForgetUser, Forgetting, Forgotten, Remaining, WouldForget};
pub use habits::ShowUser;
pub use list::ListUsers;
pub use recent::{RecentMessages, Spoken};
pub use session::{StandingSession, UserSession};

use crate::{Context, Fault, Missing, Outcome};

/// Refuses a user whom the caller may not see.
fn check(context: &Context, user: &str) -> Outcome {
    match context.caller.sees_all || context.caller.user.as_deref() == Some(user) {
        true => Ok(()),
        false => Err(no_user(user)),
    }
}

fn no_user(user: &str) -> Fault {
    Fault::missing(Missing::User(user.to_owned()))
}

/// A user of whom nothing is known is not there.
fn known<T>(user: &str, found: komado_engine::Result<T>) -> Outcome<T> {
    found.map_err(|error| match error {
        komado_engine::Error::Unknown { .. } => no_user(user),
        other => other.into(),
    })
}
