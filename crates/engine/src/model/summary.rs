//! What writes summaries: the program or the model that the settings name, else the digest, which needs neither.
//!
//! A model is asked only where one was chosen: a summary that was not ordered must not cost anything. The conversation's
//! own model goes on from what its provider has cached.

use super::{ModelChoice, ModelError, ModelResolver, ResolvedModel};
use crate::condense::{ByModel, Summariser};
use crate::error::Result;
use crate::turn::Asking;
use komado_core::session::MetaConfig;
use komado_core::{Meter, SessionId};
use komado_provider::Cancel;

/// Stands for the conversation's own model.
const SAME: &str = "same";

/// A summariser, and the model it may need to keep running.
pub struct Writer<'a> {
    by: Box<dyn Summariser + 'a>,
    /// The scripted model stops when this is dropped.
    _held: Option<ResolvedModel>,
}

impl<'a> Writer<'a> {
    /// The summariser.
    pub fn by(&mut self) -> &mut (dyn Summariser + 'a) {
        &mut *self.by
    }
}

impl<'a> ModelResolver<'a> {
    /// The summariser of a session, whose conversation is `with` a model where it is resolved already. `cancel` stops it.
    pub fn summariser(
        &self,
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<Writer<'a>> {
        match self.settings.summaries.chosen_model() {
            Some(chosen) => self.by_model(chosen, id, meter, choice, with, cancel),
            None => Ok(Writer { by: self.settings.summaries.without_model(meter)?, _held: None }),
        }
    }

    /// The same, but a model in any case: where the settings name none, the conversation's own.
    pub fn model_summariser(
        &self,
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<Writer<'a>> {
        let is_named = choice.model.is_some() || choice.provider.is_some();
        let chosen = self.settings.summaries.chosen_model().filter(|_| !is_named);
        self.by_model(chosen.unwrap_or((None, Some(SAME))), id, meter, choice, with, cancel)
    }

    fn by_model(
        &self,
        (provider, model): (Option<&str>, Option<&str>),
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<Writer<'a>> {
        let mut held = None;
        // Only settings that leave something to the conversation need its model.
        let talk = match with {
            Some(with) => Some(with),
            None if provider.is_none() || model == Some(SAME) => {
                held = Some(self.resolve(&self.engine.session(id)?.meta.config, choice)?);
                held.as_ref()
            }
            None => None,
        };
        let wanted = self.summary_choice(provider, model, talk)?;
        let is_same = |talk: &&ResolvedModel| {
            let asking = &talk.asking;
            wanted.provider.as_ref() == Some(&asking.provider.name)
                && wanted.model.as_ref() == Some(&asking.model)
        };
        let store = self.engine.store();
        if let Some(talk) = talk.filter(is_same) {
            let asking = Asking { cancel: cancel.clone(), ..talk.asking.clone() };
            let by = ByModel::new(asking, store, id.clone(), meter).sharing();
            return Ok(Writer { by: Box::new(by), _held: held });
        }
        let other = self.resolve(&MetaConfig::default(), &wanted)?;
        let asking = Asking { cancel: cancel.clone(), ..other.asking.clone() };
        let by = ByModel::new(asking, store, id.clone(), meter);
        Ok(Writer { by: Box::new(by), _held: Some(other) })
    }

    /// Provider and model, with what the settings leave to the conversation filled in.
    fn summary_choice(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
        talk: Option<&ResolvedModel>,
    ) -> Result<ModelChoice> {
        let own = talk.map(|talk| (talk.asking.provider.name.as_str(), talk.asking.model.as_str()));
        let provider = provider.or(own.map(|own| own.0));
        let model = match model {
            Some(SAME) => own.map(|own| own.1),
            Some(model) => Some(model),
            None => provider.and_then(|name| self.settings.of(name)?.model.as_deref()),
        };
        let Some(model) = model else {
            let provider = provider.unwrap_or_default().to_owned();
            return Err(ModelError::NoSummaryModel { provider }.into());
        };
        Ok(ModelChoice {
            provider: provider.map(str::to_owned),
            model: Some(model.to_owned()),
            ..ModelChoice::default()
        })
    }
}
