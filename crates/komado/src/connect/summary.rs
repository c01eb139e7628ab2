//! Who writes summaries: the program or the model that the settings name, else the digest, which needs neither.
//!
//! A model is asked only where somebody wished for it: a summary that nobody ordered must not cost anything. The
//! conversation's own model goes on from what its provider has cached.

use super::{Connection, Wishes};
use crate::app::App;
use crate::fault::{Fault, Outcome};
use komado_core::Meter;
use komado_core::SessionId;
use komado_core::session::MetaConfig;
use komado_engine::condense::{ByModel, Summariser};
use komado_engine::turn::Asking;
use komado_provider::Cancel;

/// Stands for the conversation's own model.
const SAME: &str = "same";

/// A summariser, and the connection it may need to keep open.
pub(crate) struct Writer<'a> {
    by: Box<dyn Summariser + 'a>,
    /// The built-in model stops when this is dropped.
    _held: Option<Connection>,
}

impl<'a> Writer<'a> {
    /// The summariser.
    pub(crate) fn by(&mut self) -> &mut (dyn Summariser + 'a) {
        &mut *self.by
    }
}

impl App {
    /// The summariser of a session, whose conversation goes over `with` where there is one already. `cancel` stops it.
    pub(crate) fn summariser<'a>(
        &'a self,
        id: &SessionId,
        meter: Meter,
        wishes: &Wishes,
        with: Option<&Connection>,
        cancel: &Cancel,
    ) -> Outcome<Writer<'a>> {
        match self.config.summary_model() {
            Some(wished) => self.by_model(wished, id, meter, wishes, with, cancel),
            None => Ok(Writer { by: self.config.summariser(meter)?, _held: None }),
        }
    }

    /// The same, but a model in any case: where the settings name none, the conversation's own.
    pub(crate) fn model_summariser<'a>(
        &'a self,
        id: &SessionId,
        meter: Meter,
        wishes: &Wishes,
        with: Option<&Connection>,
        cancel: &Cancel,
    ) -> Outcome<Writer<'a>> {
        let is_named = wishes.model.is_some() || wishes.provider.is_some();
        let wished = self.config.summary_model().filter(|_| !is_named).unwrap_or((None, Some(SAME)));
        self.by_model(wished, id, meter, wishes, with, cancel)
    }

    fn by_model<'a>(
        &'a self,
        (provider, model): (Option<&str>, Option<&str>),
        id: &SessionId,
        meter: Meter,
        wishes: &Wishes,
        with: Option<&Connection>,
        cancel: &Cancel,
    ) -> Outcome<Writer<'a>> {
        let own = self.session(id)?.meta.config;
        let mut held = None;
        // Only a wish that leaves something to the conversation has to know with whom it is.
        let talk = match with {
            Some(with) => Some(with),
            None if provider.is_none() || model == Some(SAME) => {
                held = Some(self.connect(&own, wishes)?);
                held.as_ref()
            }
            None => None,
        };
        let wanted = self.wanted(provider, model, talk)?;
        let is_same = |talk: &&Connection| {
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
        let other = self.connect(&MetaConfig::default(), &wanted)?;
        let asking = Asking { cancel: cancel.clone(), ..other.asking.clone() };
        let by = ByModel::new(asking, store, id.clone(), meter);
        Ok(Writer { by: Box::new(by), _held: Some(other) })
    }

    /// Provider and model, with what the settings leave to the conversation filled in.
    fn wanted(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
        talk: Option<&Connection>,
    ) -> Outcome<Wishes> {
        let own = talk.map(|talk| (talk.asking.provider.name.as_str(), talk.asking.model.as_str()));
        let provider = provider.or(own.map(|own| own.0));
        let model = match model {
            Some(SAME) => own.map(|own| own.1),
            Some(model) => Some(model),
            None => provider.and_then(|name| self.config.llm(name)?.model.as_deref()),
        };
        let Some(model) = model else {
            let name = provider.unwrap_or_default();
            return Err(Fault::usage(format!(
                "which model of {name} writes summaries? set compaction.model, or llm.{name}.model"
            )));
        };
        Ok(Wishes {
            provider: provider.map(str::to_owned),
            model: Some(model.to_owned()),
            ..Wishes::default()
        })
    }
}
