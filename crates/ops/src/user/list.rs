//! List users by name.

use crate::page::{self, USUAL};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Page, Route};
use komado_engine::user::User;
use schemars::JsonSchema;
use serde::Deserialize;

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
    const NAME: &'static str = "users";
    const TITLE: &'static str = "List users";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere("user list", Route::get("users", "/users"))
        .not_mcp("who else there is does not help a model with its task");
    type Output = Page<User>;

    fn run(self, context: &Context) -> Outcome<Page<User>> {
        let after: Option<String> = page::after(Self::NAME, self.cursor.as_deref())?.or(self.after);
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
