//! Find again what was said in one session.

use super::{Recalled, Search, look};
use crate::address::AtMoment;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Page, Route};
use komado_engine::recall::Scope;
use schemars::JsonSchema;
use serde::Deserialize;

/// Find again what was said in one session, seen by the model or not.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RecallSession {
    /// The session; with a thread only what this thread knows, up to a moment of it.
    #[serde(flatten)]
    pub at: AtMoment,
    /// What to look for.
    #[serde(flatten)]
    pub search: Search,
}

impl Operation for RecallSession {
    const NAME: &'static str = "recall_session";
    const TITLE: &'static str = "Search one session";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("recall", Route::get("recall", "/sessions/{session}/recall"))
            .not_mcp("`recall` with a session does the same");
    type Output = Page<Recalled>;

    fn run(self, context: &Context) -> Outcome<Page<Recalled>> {
        look(context, &[scope(context, &self.at)?], &self.search)
    }
}

/// The session, or where a thread or a moment is named, what that thread knows.
pub(super) fn scope(context: &Context, at: &AtMoment) -> Outcome<Scope> {
    let found = context.find(at)?;
    let names_thread = at.thread.is_some() || at.session.as_deref().is_some_and(|text| text.contains('/'));
    Ok(match (names_thread, found.seq) {
        (false, None) => Scope::Session(found.session),
        (_, upto) => Scope::Thread { session: found.session, thread: found.thread, upto },
    })
}
