//! The model that follows a script, for as long as a [`Model`](crate::Model) or a session knows it.

use crate::error::Result;
use komado_engine::model::{ModelSettings, ProviderSettings, SCRIPTED_WINDOW};
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps to come, and the server once it was asked for. Clones are one and the same.
#[derive(Clone, Default)]
pub(crate) struct ModelScript(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    steps: Vec<ScriptStep>,
    server: Option<ScriptedServer>,
}

impl ModelScript {
    /// Adds a step, also while the server runs.
    pub(crate) fn add(&self, step: ScriptStep) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.server {
            Some(server) => server.add(step),
            None => state.steps.push(step),
        }
    }

    /// `settings` with the server's address; it is started when it is asked for the first time.
    pub(crate) fn serve(&self, mut settings: ModelSettings, window: Option<u32>) -> Result<ModelSettings> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.unwrap_or(SCRIPTED_WINDOW);
        let server = match state.server.take() {
            Some(server) => server,
            None => {
                let options = ScriptedOptions { window: Some(window.into()), ..ScriptedOptions::default() };
                let server = ScriptedServer::start(options).map_err(komado_engine::Error::from)?;
                state.steps.drain(..).for_each(|step| server.add(step));
                server
            }
        };
        let of = ProviderSettings {
            base_url: Some(server.url().to_owned()),
            context_length: Some(window),
            ..ProviderSettings::default()
        };
        settings.providers.insert(crate::model::CUSTOM.to_owned(), of);
        state.server = Some(server);
        Ok(settings)
    }
}
