//! What a provider's error is taken for, as the gateway and the engine would take it.

use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_provider::overflow::{Verdict, classify};
use schemars::JsonSchema;
use serde::Deserialize;

/// Say what a provider's error is taken for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ExplainError {
    /// The HTTP status the body came with; 200 for an error inside a stream
    #[schemars(range(min = 100, max = 599), example = 400)]
    pub status: u16,
    /// The body
    #[schemars(example = &"too long: 9000 tokens > 8000 maximum")]
    pub body: String,
}

impl Operation for ExplainError {
    const NAME: &'static str = "explain_error";
    const TITLE: &'static str = "What a provider's error is taken for";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("explain-error", Route::post("models", "/explain-error"))
            .not_mcp("errors of providers are handled before a model sees anything");
    type Output = Verdict;

    fn run(self, _: &Context) -> Outcome<Verdict> {
        Ok(classify(self.status, &self.body))
    }
}
