//! Plan: what would be done to make the view fit.

use super::{Fit, Fitted, Room};
use crate::address::AtThread;
use crate::operation::Route;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Say what would be done to make the view fit its window. Nothing is changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Plan {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// First take back edits for which the window has room again.
    #[serde(default)]
    pub relax: bool,
    /// Which window, and by which rule.
    #[serde(flatten)]
    pub room: Room,
}

impl Operation for Plan {
    const NAME: &'static str = "plan";
    const TITLE: &'static str = "What would make the view fit";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("view", "/sessions/{session}/threads/{thread}/plan"),
        "`fit --dry-run` does this",
    )
    .not_mcp("`fit` with `dry_run` does this");
    type Output = Fitted;

    fn run(self, context: &Context) -> Outcome<Fitted> {
        Fit { at: self.at, dry_run: true, relax: self.relax, room: self.room }.run(context)
    }
}
