//! Tokens of a view, by where they come from.

use komado_core::view::Weight;
use schemars::JsonSchema;
use serde::Serialize;

/// Tokens of a view, by where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Parts {
    /// System prompt and tool definitions.
    pub setup: u64,
    /// What is seen of the threads above.
    pub above: u64,
    /// System messages.
    pub system: u64,
    /// Messages of the user.
    pub user: u64,
    /// Messages of the model.
    pub assistant: u64,
    /// Results of tools.
    pub tool: u64,
    /// Summaries, markers and placeholders.
    pub stand_ins: u64,
}

impl Parts {
    /// Each with its name, in the order they are told.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        let Self { setup, above, system, user, assistant, tool, stand_ins } = *self;
        [
            ("setup", setup),
            ("above", above),
            ("system", system),
            ("user", user),
            ("assistant", assistant),
            ("tool", tool),
            ("stand-ins", stand_ins),
        ]
    }

    /// All of them.
    pub fn tokens(&self) -> u64 {
        self.named().iter().map(|(_, tokens)| tokens).sum()
    }
}

impl From<&Weight> for Parts {
    fn from(weight: &Weight) -> Self {
        let [system, user, assistant, tool] = weight.said;
        let (setup, above, stand_ins) = (weight.setup, weight.above, weight.shown);
        Self { setup, above, system, user, assistant, tool, stand_ins }
    }
}
