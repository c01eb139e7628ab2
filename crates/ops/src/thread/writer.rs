//! What writes a chronicle: a model, or the digest, which needs none.

use crate::choice::ModelArgs;
use crate::{Context, Outcome};
use komado_engine::engine::Found;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::Telling;
use komado_provider::Cancel;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Deserialize;

/// What writes a chronicle.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ChronicleWriter {
    /// What writes it: model, digest, or as the settings of compaction say when left out
    #[arg(long)]
    pub by: Option<WrittenBy>,
    /// The model that writes it; only a command line chooses one.
    #[command(flatten)]
    #[serde(skip)]
    pub model: ModelArgs,
}

/// What writes a chronicle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WrittenBy {
    /// A model.
    Model,
    /// What can be told without a model.
    Digest,
}

impl ChronicleWriter {
    /// Hands `op` what writes the chronicle of the thread `found`.
    pub(super) fn tell<T>(
        self,
        context: &Context,
        found: &Found,
        op: impl FnOnce(Telling<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let summaries = &context.config.models.summaries;
        if self.by == Some(WrittenBy::Digest) || self.by.is_none() && !summaries.has_writer() {
            return op(Telling::Digest);
        }
        let meter = context.engine.open(&found.session, &found.thread, Mode::Read)?.meter();
        let (choice, cancel) = (ModelChoice::from(self.model), Cancel::default());
        let models = context.models();
        let mut writer = match self.by {
            Some(_) => models.model_summariser(&found.session, meter, &choice, None, &cancel)?,
            None => models.summariser(&found.session, meter, &choice, None, &cancel)?,
        };
        op(Telling::By { by: writer.by(), settings: summaries.settings.clone() })
    }
}
