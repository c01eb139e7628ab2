//! What a child thread is to be like: asked for on the command line, else as session, persona and settings say.

use crate::app::App;
use crate::fault::Outcome;
use crate::verb::setup;
use clap::Args as ClapArgs;
use komado_core::ThreadId;
use komado_core::journal::{Ratio, Setup};
use komado_core::session::MetaConfig;
use komado_engine::stelis::Spawn;
use std::path::PathBuf;

/// What the command line says.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Wanted {
    /// Its name; stelis_1, stelis_2, … when left out
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What it gets of its parent's window, from 0.01 to 0.99
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) ratio: Option<Ratio>,
    /// How deep threads may nest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) max_depth: Option<u32>,
    /// A system prompt of its own, after those of the threads above
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Tool definitions of its own, in place of those above: a file with a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// What is asked of whoever tells, at the end, what was done
    #[arg(long, value_name = "TEXT")]
    pub(crate) chronicle_prompt: Option<String>,
    /// Do not lend it what the threads above leave of their shares
    #[arg(long)]
    pub(crate) no_lending: bool,
}

/// A part of a window on the command line.
pub(super) fn ratio(text: &str) -> Result<Ratio, String> {
    let wrong = || format!("it must be a number from 0.01 to 0.99, not: {text}");
    Ratio::new(text.trim().parse().map_err(|_| wrong())?).map_err(|_| wrong())
}

impl Wanted {
    /// System prompt and tools of its own; `None` when it has none.
    pub(super) fn setup(&self) -> Outcome<Option<Setup>> {
        let tools = self.tools.as_deref().map(setup::read_tools).transpose()?;
        let dialect = tools.as_ref().map(|_| komado_core::openai::DIALECT.to_owned());
        let setup = Setup { system: self.system.clone(), tools, dialect, ..Setup::default() };
        Ok((setup != Setup::default()).then_some(setup))
    }

    /// All of it, for a session made with `own` and a window of `window` tokens as we count them.
    pub(super) fn spawn(
        &self,
        app: &App,
        own: &MetaConfig,
        window: u64,
        label: Option<String>,
        setup: Option<Setup>,
    ) -> Outcome<Spawn> {
        let threads = app.context.config.threads(own);
        threads.check()?;
        Ok(Spawn {
            name: self.name.clone().map(ThreadId::new).transpose()?,
            label,
            ratio: self.ratio.map_or_else(|| threads.ratio(), Ok)?,
            max_depth: self.max_depth.unwrap_or(threads.max_depth),
            buffer: app.context.config.policy(None).buffer,
            lends: threads.lends && !self.no_lending,
            setup,
            chronicle_prompt: self.chronicle_prompt.clone(),
            anchor_cap: threads.anchor_tokens,
            ..Spawn::new(window)
        })
    }
}
