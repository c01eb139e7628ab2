//! Who writes the summaries of a session that is served: as the settings say, made anew for each summary.
//!
//! A summary is rare and takes long; what is kept between two of them would only be in the way.

use komado_core::{Meter, SessionId};
use komado_engine::condense::{Answer, Failure, Reads, Request, Summariser, Transcript};
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_ops::Context;
use komado_provider::Cancel;
use std::sync::Arc;

/// A summariser that owns what it needs.
pub(super) struct Scribe {
    context: Context,
    id: SessionId,
    meter: Meter,
    talk: Arc<ResolvedModel>,
    cancel: Cancel,
    name: String,
    window: Option<u64>,
    reads: Reads,
}

impl Scribe {
    /// The summariser that the settings name for a session; `None` where the digest is to do it.
    pub(super) fn of(
        context: &Context,
        id: &SessionId,
        meter: Meter,
        talk: &Arc<ResolvedModel>,
        cancel: &Cancel,
    ) -> Option<Box<dyn Summariser>> {
        if context.config.models.summaries.chosen_model().is_none() {
            return context.config.models.summaries.without_model(meter).map_err(|why| warn(&why)).ok();
        }
        let made = context.models().summariser(id, meter, &ModelChoice::default(), Some(talk), cancel);
        let mut writer = made.map_err(|why| warn(&why)).ok()?;
        let by = writer.by();
        Some(Box::new(Self {
            name: by.name().to_owned(),
            window: by.window(),
            reads: by.reads(),
            context: context.clone(),
            id: id.clone(),
            meter,
            talk: Arc::clone(talk),
            cancel: cancel.clone(),
        }))
    }

    fn with<T>(&self, work: impl FnOnce(&mut dyn Summariser) -> T) -> Result<T, Failure> {
        let talk = Some(&*self.talk);
        let made = self.context.models().summariser(
            &self.id,
            self.meter,
            &ModelChoice::default(),
            talk,
            &self.cancel,
        );
        let mut writer = made.map_err(|why| Failure::new(why.to_string()))?;
        Ok(work(writer.by()))
    }
}

fn warn(why: &komado_engine::Error) {
    tracing::warn!(why = why.to_string(), "no model writes summaries; the digest does");
}

impl Summariser for Scribe {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn reads(&self) -> Reads {
        self.reads
    }

    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure> {
        self.with(|by| by.summarise(request))?
    }

    fn go_on(&mut self, talk: &dyn Transcript, request: &Request) -> Option<Result<Answer, Failure>> {
        self.with(|by| by.go_on(talk, request)).unwrap_or_else(|failure| Some(Err(failure)))
    }
}
