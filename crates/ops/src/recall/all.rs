//! Find again what was said, in one session or in all that the caller may see.

use super::one::scope;
use super::{Recalled, Search, lines, look};
use crate::address::AtMoment;
use crate::{Context, Effect, Exit, Fault, Interfaces, Naming, Operation, Outcome, Page, Route};
use komado_core::SessionId;
use komado_engine::recall::Scope;
use schemars::JsonSchema;
use serde::Deserialize;

/// Find again what was said, whether or not the model still sees it: in one session, or in all that may be seen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Recall {
    /// What to look for.
    #[serde(flatten)]
    pub search: Search,
    /// The session or its address; all sessions when left out and none is set
    #[schemars(length(max = 300))]
    pub session: Option<String>,
    /// Only what this thread knows
    #[schemars(length(max = 128))]
    pub thread: Option<String>,
    /// Only sessions of this user
    pub user: Option<String>,
}

impl Operation for Recall {
    const NAME: &'static str = "recall";
    const TITLE: &'static str = "Find again what was said";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere("recall", Route::get("recall", "/recall"));
    type Output = Page<Recalled>;

    fn run(self, context: &Context) -> Outcome<Page<Recalled>> {
        let has_default = matches!(context.naming, Naming::Prefix { default: Some(_) });
        let Self { search, session, thread, user } = self;
        match (&session, &thread, user) {
            (None, None, None) if has_default => {}
            (None, None, user) => return look(context, &everywhere(context, user)?, &search),
            (_, _, Some(_)) => {
                return Err(Fault::usage("user goes with a search over sessions; leave session out"));
            }
            _ => {}
        }
        look(context, &[scope(context, &AtMoment { session, thread, seq: None })?], &search)
    }

    fn text(output: &Page<Recalled>) -> Option<String> {
        Some(lines(output))
    }
}

/// All sessions that the caller may see: all there are, or the user's own and those that the key lists.
fn everywhere(context: &Context, user: Option<String>) -> Outcome<Vec<Scope>> {
    let caller = &context.caller;
    if caller.sees_all {
        return Ok(vec![user.map_or(Scope::All, Scope::User)]);
    }
    let own = caller.user.as_ref();
    if user.is_some() && user.as_ref() != own {
        return Err(Fault::new(
            Exit::Forbidden,
            "this key does not see the sessions of that user; leave user out",
        ));
    }
    let mut scopes: Vec<Scope> = own.cloned().map(Scope::User).into_iter().collect();
    if user.is_none() {
        for id in &caller.sessions {
            let Ok(id) = SessionId::new(id.as_str()) else { continue };
            let Ok(session) = context.session(&id) else { continue };
            // The user's own are searched already.
            if own.is_none() || session.meta.user.as_ref() != own {
                scopes.push(Scope::Session(id));
            }
        }
    }
    Ok(scopes)
}
