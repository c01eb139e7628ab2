//! What a provider's error is taken for, as the gateway and the engine would take it.

use crate::{Context, Effect, Interfaces, Offer, Operation, Outcome, Route};
use komado_provider::overflow::{self, classify};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// What an error is taken for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// True when the request was too large for the window, or for the server.
    pub overflow: bool,
    /// The limit in tokens, when the text names it.
    pub limit: Option<u64>,
    /// What was sent, in tokens, when the text names it.
    pub actual: Option<u64>,
    /// The room for an answer that was asked for, when the text names it.
    pub output: Option<u64>,
    /// What would help.
    pub remedy: Remedy,
    /// The rule that held, or what the answer is about instead, and the words it was read from.
    pub why: String,
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The conversation must become smaller.
    Shrink,
    /// The conversation fits; only the answer asked for is too long beside it.
    LowerMaxTokens,
    /// Nothing of this kind: it is no overflow.
    None,
}

impl Operation for ExplainError {
    const NAME: &'static str = "explain_error";
    const TITLE: &'static str = "What a provider's error is taken for";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces {
        cli: Offer::As("explain-error"),
        http: Offer::As(Route::post("models", "/explain-error")),
        mcp: Offer::Not("errors of providers are handled before a model sees anything"),
    };
    type Output = Explained;

    fn run(self, _: &Context) -> Outcome<Explained> {
        let verdict = classify(self.status, &self.body);
        Ok(Explained {
            overflow: verdict.overflow,
            limit: verdict.limit,
            actual: verdict.actual,
            output: verdict.output,
            remedy: match verdict.remedy {
                overflow::Remedy::Shrink => Remedy::Shrink,
                overflow::Remedy::LowerMaxTokens => Remedy::LowerMaxTokens,
                overflow::Remedy::None => Remedy::None,
            },
            why: verdict.why,
        })
    }
}
