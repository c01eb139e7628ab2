//! Which window a view is to fit, and by which rule.

use crate::name::one_of;
use crate::{Context, Fault, Outcome};
use komado_core::budget::{Budget, Preset};
use komado_core::session::Session;
use komado_engine::Thread;
use schemars::JsonSchema;
use serde::Deserialize;

/// Which window, and by which rule.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Room {
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// The rule by which the window is kept; else as the settings say
    #[arg(long, value_parser = one_of(&Preset::ALL, Preset::name))]
    pub preset: Option<Preset>,
}

impl Room {
    /// The budget of a thread. A window that is not known is never guessed.
    pub fn budget(&self, context: &Context, thread: &Thread<'_>) -> Outcome<Budget> {
        let session = context.session(thread.session())?;
        let window = window(context, &session, self.window)?;
        let policy = context.config.policy(self.preset);
        Ok(context.models().own_budget(thread, policy, window, &session.meta.config)?)
    }
}

/// The window of a session in tokens as we count them: `given`, else its own.
pub fn window(context: &Context, session: &Session, given: Option<u32>) -> Outcome<u32> {
    context.models().own_window(&session.meta.config, given).ok_or_else(|| {
        Fault::usage(format!(
            "the window of session {} is not known; say it with --window TOKENS",
            session.meta.uuid
        ))
    })
}
