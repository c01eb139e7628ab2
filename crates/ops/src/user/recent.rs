//! What was said lately over all of a user's sessions.

use super::{check, known};
use crate::page::{self, USUAL};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Page, Route};
use komado_engine::user::{self, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct Spoken {
    /// Where, when, by whom and what.
    #[serde(flatten)]
    pub spoken: user::Spoken,
    /// The cursor of what was said before it.
    pub cursor: String,
}

impl Operation for RecentMessages {
    const NAME: &'static str = "messages";
    const TITLE: &'static str = "What a user and models said lately";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("user recent", Route::get("users", "/users/{user}/messages"))
            .not_mcp("`recall` finds what a task needs");
    type Output = Page<Spoken>;

    fn run(self, context: &Context) -> Outcome<Page<Spoken>> {
        check(context, &self.user)?;
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let before: Option<Place> = page::after(Self::NAME, self.cursor.as_deref())?;
        let places = known(&self.user, context.engine.recent(&self.user, before.as_ref(), limit))?;
        let spoken = |place: Place| {
            let cursor = page::cursor(Self::NAME, &place)?;
            Ok(Spoken { spoken: context.engine.spoken(place)?, cursor })
        };
        let items = places.into_iter().map(spoken).collect::<Outcome<Vec<_>>>()?;
        let next = items.last().filter(|_| items.len() == limit).map(|last| last.cursor.clone());
        Ok(Page { items, next })
    }
}
