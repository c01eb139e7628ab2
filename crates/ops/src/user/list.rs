//! List users by name.

use crate::page::{self, USUAL};
use crate::{Context, Effect, Interfaces, Offer, Operation, Outcome, Page, Route};
use komado_engine::user::User;
use schemars::JsonSchema;
use serde::Deserialize;

/// List the users that may be seen, by name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ListUsers {
    /// At most so many
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// `next` of the page before
    pub cursor: Option<String>,
}

impl ListUsers {
    /// Users after `user` by name.
    pub fn after(user: Option<&str>, limit: u32) -> Outcome<Self> {
        let cursor = user.map(|user| page::cursor(Self::NAME, &user)).transpose()?;
        Ok(Self { limit: Some(limit), cursor })
    }
}

impl Operation for ListUsers {
    const NAME: &'static str = "users";
    const TITLE: &'static str = "List users";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces {
        cli: Offer::As("user list"),
        http: Offer::As(Route::get("users", "/users")),
        mcp: Offer::Not("who else there is does not help a model with its task"),
    };
    type Output = Page<User>;

    fn run(self, context: &Context) -> Outcome<Page<User>> {
        let after: Option<String> = page::after(Self::NAME, self.cursor.as_deref())?;
        if !context.caller.sees_all {
            let own =
                context.caller.user.as_deref().map(|user| context.engine.user(user)).transpose()?.flatten();
            let own = own.filter(|own| after.as_ref().is_none_or(|after| own.user > *after));
            return Ok(Page::whole(own.into_iter().collect()));
        }
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let items = context.engine.users(after.as_deref(), limit)?;
        let last = items.last().filter(|_| items.len() == limit);
        let next = last.map(|last| page::cursor(Self::NAME, &last.user)).transpose()?;
        Ok(Page { items, next })
    }
}
