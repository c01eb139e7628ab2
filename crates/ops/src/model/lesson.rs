//! What was learned about the model of a session.

use crate::address::AtSession;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was learned about a session's model by talking to it: its true window, how it counts tokens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ModelOfSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// What was learned about a model.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ModelLesson {
    /// The model.
    pub about: String,
    /// What was learned.
    pub lesson: SessionLesson,
}

/// What talking to a model taught.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionLesson {
    /// The most tokens it takes, as it said itself.
    pub window: Option<u64>,
    /// Its tokens for one of ours.
    pub factor: f64,
    /// The window in tokens of ours.
    pub our_window: Option<u32>,
}

impl Operation for ModelOfSession {
    const NAME: &'static str = "lesson";
    const TITLE: &'static str = "What was learned about a session's model";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("models", "/lessons"),
        "`context` shows the window, `models learned` what was learned",
    )
    .not_mcp("`context` tells a model how large its window is");
    type Output = ModelLesson;

    fn run(self, context: &Context) -> Outcome<ModelLesson> {
        let id = context.find(&self.at)?.session;
        let own = context.session(&id)?.meta.config;
        let Some(about) = own.model.clone() else {
            return Err(Fault::new(Exit::NotFound, format!("session {id} names no model")));
        };
        let lesson = context.models().own_lesson(&own);
        let our_window = context.models().own_window(&own, None);
        Ok(ModelLesson {
            about,
            lesson: SessionLesson { window: lesson.window, factor: lesson.factor(), our_window },
        })
    }
}
