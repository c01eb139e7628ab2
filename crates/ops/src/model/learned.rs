//! List what answers and refusals of models taught.

use crate::{Context, Effect, Interfaces, Operation, Outcome, Page, Route};
use komado_engine::lesson::Lesson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List what was learned from the answers and refusals of models.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ListLessons {}

/// What was learned about a model at an address.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Learned {
    /// The address and the name of the model.
    pub about: String,
    /// What was learned.
    #[serde(flatten)]
    pub lesson: Lesson,
}

impl Operation for ListLessons {
    const NAME: &'static str = "models_learned";
    const TITLE: &'static str = "What was learned about models";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("models learned", Route::get("models", "/models/learned"))
            .not_mcp("a model at work does not choose models");
    type Output = Page<Learned>;

    fn run(self, context: &Context) -> Outcome<Page<Learned>> {
        context.check_sees_all()?;
        all(context).map(Page::whole)
    }
}

/// Every lesson. One that cannot be read teaches nothing, and can be forgotten all the same.
pub(super) fn all(context: &Context) -> Outcome<Vec<Learned>> {
    let lessons = context.engine.store().lessons()?.into_iter();
    let read = |(about, text): (String, String)| Learned {
        about,
        lesson: serde_json::from_str(&text).unwrap_or_default(),
    };
    Ok(lessons.map(read).collect())
}
