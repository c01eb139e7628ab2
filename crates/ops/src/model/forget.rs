//! Forget what was learned about a model.
//!
//! A provider's word is believed. When it was wrong, or its server was started anew, nothing but a larger answer would
//! prove it, and nothing larger is sent any more.

use super::learned;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Page, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Forget what was learned about a model.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ForgetLesson {
    /// The model's name, or the address and the name as `komado models learned` lists them
    #[arg(value_name = "NAME|ABOUT")]
    #[schemars(length(min = 1))]
    pub about: String,
}

/// A lesson that is forgotten.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Forgotten {
    /// What it was about.
    pub forgotten: String,
}

impl Operation for ForgetLesson {
    const NAME: &'static str = "models_forget";
    const TITLE: &'static str = "Forget what was learned about a model";
    const EFFECT: Effect = Effect::Remove;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("models forget", Route::delete("models", "/models/learned"))
            .not_mcp("a model at work does not choose models");
    type Output = Page<Forgotten>;

    fn run(self, context: &Context) -> Outcome<Page<Forgotten>> {
        context.check_sees_all()?;
        let mut forgotten = Vec::new();
        for about in learned::all(context)?.into_iter().map(|learned| learned.about) {
            // An address holds no space; a model's name may.
            let model = about.split_once(' ').map_or(about.as_str(), |(_, model)| model);
            if (about == self.about || model == self.about) && context.engine.store().forget(&about)? {
                forgotten.push(Forgotten { forgotten: about });
            }
        }
        if forgotten.is_empty() {
            let hint = "`komado models learned` lists what was";
            let why = format!("nothing was learned about {:?}; {hint}", self.about);
            return Err(Fault::new(Exit::NotFound, why));
        }
        Ok(Page::whole(forgotten))
    }
}
