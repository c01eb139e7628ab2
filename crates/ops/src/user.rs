//! Users: who there are, their standing sessions, what was said lately, habits; and forgetting one.
//!
//! A key that does not see all sees one user, its own; any other is told not to be there, in the same words as one that is
//! not.

mod forget;

pub use forget::{ForgetUser, Forgetting, ForgottenUser, Remaining, WouldForget};

use crate::page::{self, USUAL};
use crate::session::{self, SessionRow};
use crate::{
    Interfaces, Missing, OpFault, OpResult, Operation, OperationContext, OperationLabel, ResultPage, Route,
};
use komado_core::session::Session;
use komado_engine::user::{self, Habits, SpokenPlace, UserSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Refuses a user whom the caller may not see.
fn check(context: &OperationContext, user: &str) -> OpResult {
    match context.caller.sees_all || context.caller.user.as_deref() == Some(user) {
        true => Ok(()),
        false => Err(no_user(user)),
    }
}

fn no_user(user: &str) -> OpFault {
    OpFault::missing(Missing::User(user.to_owned()))
}

/// A user of whom nothing is known is not there.
fn known<T>(user: &str, found: komado_engine::Result<T>) -> OpResult<T> {
    found.map_err(|error| match error {
        komado_engine::Error::Unknown { .. } => no_user(user),
        other => other.into(),
    })
}

/// List the users that may be seen, by name.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ListUsers {
    /// At most so many; 100 when left out
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Only those after this one by name
    #[arg(long, value_name = "USER")]
    pub after: Option<String>,
    /// `next` of the page before
    #[arg(skip)]
    pub cursor: Option<String>,
}

impl Operation for ListUsers {
    const ABOUT: OperationLabel = OperationLabel::read("users", "List users");
    const INTERFACES: Interfaces = Interfaces::everywhere("user list", Route::get("users", "/users"))
        .not_mcp("who else there is does not help a model with its task");
    type Output = ResultPage<UserSummary>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<UserSummary>> {
        let after: Option<String> = page::after(Self::ABOUT.name, self.cursor.as_deref())?.or(self.after);
        if !context.caller.sees_all {
            let own =
                context.caller.user.as_deref().map(|user| context.engine.user(user)).transpose()?.flatten();
            let own = own.filter(|own| after.as_ref().is_none_or(|after| own.user > *after));
            return Ok(ResultPage::whole(own.into_iter().collect()));
        }
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let items = context.engine.users(after.as_deref(), limit)?;
        let last = items.last().filter(|_| items.len() == limit);
        let next = last.map(|last| page::cursor(Self::ABOUT.name, &last.user)).transpose()?;
        Ok(ResultPage { items, next })
    }
}

/// Show how a user talks: sessions, models, tools, hours, common words.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ShowUser {
    /// The user
    #[schemars(length(min = 1), example = &"ann")]
    pub user: String,
}

impl Operation for ShowUser {
    const ABOUT: OperationLabel = OperationLabel::read("user", "How a user talks");
    const INTERFACES: Interfaces = Interfaces::everywhere("user show", Route::get("users", "/users/{user}"))
        .not_mcp("habits of people are for people to look at");
    type Output = Habits;

    fn run(self, context: &OperationContext) -> OpResult<Habits> {
        check(context, &self.user)?;
        // Like a report, it reads every session of the user.
        context.report(|| known(&self.user, context.engine.habits(&self.user)))
    }
}

/// Read what was said lately over all of a user's sessions, the newest first.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct RecentMessages {
    /// The user
    #[schemars(length(min = 1), example = &"ann")]
    pub user: String,
    /// At most so many
    #[arg(short = 'n', long, default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// `next` of the page before, or `cursor` of a message
    #[arg(
        long = "before",
        value_name = "CURSOR",
        help = "Only what was said before this: the `cursor` of the last message shown with --json"
    )]
    pub cursor: Option<String>,
}

/// Something that was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct UserMessage {
    /// Where, when, by whom and what.
    #[serde(flatten)]
    pub spoken: user::SpokenText,
    /// The cursor of what was said before it.
    pub cursor: String,
}

impl Operation for RecentMessages {
    const ABOUT: OperationLabel = OperationLabel::read("messages", "A user's latest messages");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("user recent", Route::get("users", "/users/{user}/messages"))
            .not_mcp("`recall` finds what a task needs");
    type Output = ResultPage<UserMessage>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<UserMessage>> {
        check(context, &self.user)?;
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let before: Option<SpokenPlace> = page::after(Self::ABOUT.name, self.cursor.as_deref())?;
        let places = known(&self.user, context.engine.recent(&self.user, before.as_ref(), limit))?;
        let spoken = |place: SpokenPlace| {
            let cursor = page::cursor(Self::ABOUT.name, &place)?;
            Ok(UserMessage { spoken: context.engine.spoken(place)?, cursor })
        };
        let items = places.into_iter().map(spoken).collect::<OpResult<Vec<_>>>()?;
        let next = items.last().filter(|_| items.len() == limit).map(|last| last.cursor.clone());
        Ok(ResultPage { items, next })
    }
}

/// Open a user's standing session, or create it.
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
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
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
    const ABOUT: OperationLabel = OperationLabel::add("user_session", "Open a user's standing session");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "user session",
        Route { may_be_there: true, ..Route::make("users", "/users/{user}/session") },
    )
    .not_mcp("`new` makes a session for a model");
    type Output = StandingSession;

    fn run(self, context: &OperationContext) -> OpResult<StandingSession> {
        check(context, &self.user)?;
        let (session, made) = open(context, self)?;
        Ok(StandingSession { session: session.into(), made })
    }

    fn location(opened: &StandingSession) -> Option<String> {
        opened.made.then(|| format!("/sessions/{}", opened.session.id))
    }
}

fn open(context: &OperationContext, wanted: UserSession) -> OpResult<(Session, bool)> {
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
