//! Which model is asked: what the command line says of it, and how the application resolves it.

use crate::app::App;
use clap::Args as ClapArgs;
use komado_agent::mind::{ModelMind, SpawnSettings, of};
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_engine::stelis::Spawn;
use komado_provider::Form;

/// Which model is asked, as far as the command line says.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct ModelArgs {
    /// The provider: a known name, one from the settings, or `scripted` for the built-in model
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The model, as its provider spells it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// Where the provider listens
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
    /// Let the answer come in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,
}

impl From<ModelArgs> for ModelChoice {
    fn from(args: ModelArgs) -> Self {
        Self {
            provider: args.provider,
            model: args.model,
            window: args.window,
            base_url: args.base_url,
            max_tokens: args.max_tokens,
            form: args.no_stream.then_some(Form::Whole),
            scripted_window: None,
        }
    }
}

impl App {
    /// What a child thread of a session made with `own` is spawned with.
    pub(crate) fn spawn_settings(&self, own: &MetaConfig, window: u64) -> komado_agent::Result<Spawn> {
        let threads = self.config.threads(own);
        let settings = "the settings of child threads";
        threads.check().map_err(of(settings))?;
        Ok(Spawn {
            ratio: threads.ratio().map_err(of(settings))?,
            max_depth: threads.max_depth,
            buffer: self.config.models.policy.buffer,
            lends: threads.lends,
            anchor_cap: threads.anchor_tokens,
            ..Spawn::new(window)
        })
    }

    /// A resolved model as whatever works on a task asks it.
    pub(crate) fn mind<'a>(
        &'a self,
        model: &'a ResolvedModel,
        choice: ModelChoice,
        spawn: SpawnSettings<'a>,
    ) -> ModelMind<'a> {
        ModelMind::new(self.models(), model, choice, spawn)
    }
}
