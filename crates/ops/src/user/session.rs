//! A user's standing session.

use super::check;
use crate::session::{self, SessionRow};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_core::session::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Open a user's standing session; it is made where it is not there.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "window": 8000 }))]
pub struct UserSession {
    /// The user
    #[schemars(length(min = 1), example = &"ann")]
    pub user: String,
    /// The model it will talk to, where it is made
    #[arg(long)]
    pub model: Option<String>,
    /// The model's window in tokens, where it is made
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// A user's standing session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StandingSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionRow,
    /// True when it was made now.
    pub made: bool,
}

impl Operation for UserSession {
    const NAME: &'static str = "user_session";
    const TITLE: &'static str = "Open a user's standing session";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("user session", Route::make("users", "/users/{user}/session").or_there())
            .not_mcp("`new` makes a session for a model");
    type Output = StandingSession;

    fn run(self, context: &Context) -> Outcome<StandingSession> {
        check(context, &self.user)?;
        let (session, made) = open(context, self)?;
        Ok(StandingSession { session: session.into(), made })
    }

    fn location(opened: &StandingSession) -> Option<String> {
        opened.made.then(|| format!("/sessions/{}", opened.session.id))
    }
}

fn open(context: &Context, wanted: UserSession) -> Outcome<(Session, bool)> {
    let user = wanted.user.as_str();
    let (id, found) = context.engine.standing(user)?;
    if let Some(session) = found {
        return Ok((session, false));
    }
    match session::make(context, &id, user, wanted.model, wanted.window) {
        Ok(()) => Ok((context.session(&id)?, true)),
        // Another caller was faster.
        Err(fault) => match context.engine.standing(user)? {
            (_, Some(session)) => Ok((session, false)),
            (_, None) => Err(fault),
        },
    }
}
