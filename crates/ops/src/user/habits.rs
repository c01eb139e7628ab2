//! How a user talks.

use super::{check, known};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_engine::user::Habits;
use schemars::JsonSchema;
use serde::Deserialize;

/// Show how a user talks: sessions, models, tools, hours, common words.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ShowUser {
    /// The user
    #[schemars(length(min = 1), example = &"ann")]
    pub user: String,
}

impl Operation for ShowUser {
    const NAME: &'static str = "user";
    const TITLE: &'static str = "How a user talks";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere("user show", Route::get("users", "/users/{user}"))
        .not_mcp("habits of people are for people to look at");
    type Output = Habits;

    fn run(self, context: &Context) -> Outcome<Habits> {
        check(context, &self.user)?;
        // Like a report, it reads every session of the user.
        context.report(|| known(&self.user, context.engine.habits(&self.user)))
    }
}
