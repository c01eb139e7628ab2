//! What a child thread is to be like: as a request says, else as session, persona and settings say.

use crate::{Context, Fault, Outcome};
use komado_config::ConfigError;
use komado_core::ThreadId;
use komado_core::journal::{Ratio, Setup};
use komado_core::raw::Raw;
use komado_core::session::MetaConfig;
use komado_engine::stelis::Spawn;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What a request says of a child thread.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ChildOptions {
    /// Its name; stelis_1, stelis_2, … when left out
    #[arg(long)]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// What it gets of its parent's window, from 0.01 to 0.99
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
    /// How deep threads may nest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    #[schemars(range(max = 100))]
    pub max_depth: Option<u32>,
    /// A system prompt of its own, after those of the threads above
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Tool definitions of its own, in place of those above
    #[arg(skip)]
    pub tools: Option<ToolDefinitions>,
    /// What is asked of the writer of its chronicle
    #[arg(long, value_name = "TEXT")]
    pub chronicle_prompt: Option<String>,
    /// Do not lend it what the threads above leave of their shares
    #[arg(long)]
    #[serde(default)]
    pub no_lending: bool,
}

impl ChildOptions {
    /// System prompt and tools of its own; `None` when it has none.
    pub fn setup(&self) -> Option<Setup> {
        let tools = self.tools.clone().map(|tools| tools.0);
        let dialect = tools.as_ref().map(|_| komado_core::openai::DIALECT.to_owned());
        let setup = Setup { system: self.system.clone(), tools, dialect, ..Setup::default() };
        (setup != Setup::default()).then_some(setup)
    }

    /// All of it, for a session made with `own` and a window of `window` tokens as we count them.
    pub fn spawn(&self, context: &Context, own: &MetaConfig, window: u64) -> Outcome<Spawn> {
        let usual = spawn_settings(context, own, window)?;
        Ok(Spawn {
            name: self.name.clone().map(ThreadId::new).transpose()?,
            ratio: self.ratio.unwrap_or(usual.ratio),
            max_depth: self.max_depth.unwrap_or(usual.max_depth),
            lends: usual.lends && !self.no_lending,
            setup: self.setup(),
            chronicle_prompt: self.chronicle_prompt.clone(),
            ..usual
        })
    }

    /// Why a child of a session made with `own` was not started.
    pub fn refused(&self, context: &Context, own: &MetaConfig, error: komado_engine::Error) -> Fault {
        context.config.too_deep(own, &error, self.max_depth).map_or_else(|| error.into(), Fault::from)
    }
}

/// What a child thread of a session made with `own` is spawned with, as persona and settings say; refused when there may be
/// none.
pub fn spawn_settings(context: &Context, own: &MetaConfig, window: u64) -> Result<Spawn, ConfigError> {
    let threads = context.config.threads(own);
    threads.check()?;
    Ok(Spawn {
        ratio: threads.ratio()?,
        max_depth: threads.max_depth,
        buffer: context.config.models.policy.buffer,
        lends: threads.lends,
        anchor_cap: threads.anchor_tokens,
        ..Spawn::new(window)
    })
}

/// A part of a window, as it is written.
pub fn ratio(text: &str) -> Result<Ratio, String> {
    let wrong = || format!("it must be a number from 0.01 to 0.99, not: {text}");
    Ratio::new(text.trim().parse().map_err(|_| wrong())?).map_err(|_| wrong())
}

/// Definitions of tools: a list of JSON objects.
#[derive(Clone, Debug)]
pub struct ToolDefinitions(pub Raw);

impl<'de> Deserialize<'de> for ToolDefinitions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let tools = Vec::<Map<String, Value>>::deserialize(from)?;
        let text = serde_json::to_string(&tools).map_err(serde::de::Error::custom)?;
        Raw::parse(text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ToolDefinitions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ToolDefinitions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Map<String, Value>>::json_schema(generator)
    }
}
