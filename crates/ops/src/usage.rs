//! What a provider counted.

use komado_core::journal::Usage;
use schemars::JsonSchema;
use serde::Serialize;

/// Tokens that a request took; their sum is the total.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TokenUsage {
    /// Read and paid in full.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Read and put into the provider's cache.
    pub cache_creation_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_tokens: u64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens } = usage;
        Self { input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens }
    }
}
