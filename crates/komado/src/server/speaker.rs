//! Who speaks, as the doors' documents spell it: the library knows neither of the two ways to describe a schema.

use komado_core::Role;
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa::ToSchema;

/// Who speaks.
#[derive(Deserialize, ToSchema, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub(crate) enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

impl Speaker {
    /// Its name in the journal.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::System => Role::System,
            Self::Developer => Role::Developer,
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
            Self::Tool => Role::Tool,
        }
        .name()
    }
}
