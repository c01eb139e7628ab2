//! How large the window of a model is, asked once in a while.
//!
//! A server is probed at most once a minute for each model; what was learned from refusals is read anew for every request,
//! because it may have been learned a moment ago. A window that nobody knows is 0: nothing is edited until a refusal
//! tells.

use super::upstream::Upstream;
use komado_core::session::MetaConfig;
use komado_engine::exchange::Asking;
use komado_engine::lesson::{Told, Window};
use komado_engine::model::{KnownModel, ModelChoice, SCRIPTED};
use komado_ops::Context;
use komado_provider::registry::Registry;
use komado_provider::{Dialect, Form};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer counts.
const LIFE: Duration = Duration::from_secs(60);
/// Models that are remembered; a client may name any.
const MOST: usize = 1024;

type Slot = Arc<Mutex<Option<(Instant, Arc<KnownModel>)>>>;

/// What is known of the models that were asked for.
#[derive(Default)]
pub(super) struct Windows(Mutex<HashMap<(String, String, Dialect), Slot>>);

impl Windows {
    /// Everything a turn needs to ask `model` of `upstream` in the manner of a client that speaks `dialect`, and its
    /// window where somebody knows it.
    pub(super) fn asking(
        &self,
        context: &Context,
        upstream: &Upstream,
        model: &str,
        dialect: Dialect,
        registry: &Registry,
    ) -> (Asking, Option<Window>) {
        let known = self.known(context, upstream, model, dialect, registry);
        let mut asking = known.asking.clone();
        // A store that is away has learned nothing.
        let window = known.window(&context.models().lesson(&asking).unwrap_or_default());
        if let Some(window) = window {
            (asking.window, asking.is_given) = (window.tokens, window.told == Told::Given);
        }
        asking.cancel = Default::default();
        (asking, window)
    }

    fn known(
        &self,
        context: &Context,
        upstream: &Upstream,
        model: &str,
        dialect: Dialect,
        registry: &Registry,
    ) -> Arc<KnownModel> {
        let slot = self.slot(upstream.name(), model, dialect);
        // Held while the server is asked: those who come meanwhile want the same answer.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = slot.as_ref().filter(|(at, _)| at.elapsed() < LIFE) {
            return Arc::clone(known);
        }
        let provider = upstream.as_asked(dialect);
        let mut asking = Asking::new(upstream.client.clone(), provider, model, 0);
        asking.known_as = upstream.is_scripted().then(|| format!("{SCRIPTED}:"));
        asking.form = Form::Stream;
        let (own, choice) = (MetaConfig::default(), ModelChoice::default());
        let known =
            Arc::new(context.models().known(asking, &own, &choice, upstream.scripted_window, registry));
        // A server that is too busy to answer has the window it had.
        let known = slot.take().map(|(_, before)| before).filter(|_| known.is_silent()).unwrap_or(known);
        *slot = Some((Instant::now(), Arc::clone(&known)));
        known
    }

    fn slot(&self, upstream: &str, model: &str, dialect: Dialect) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST {
            slots.clear();
        }
        let name = (upstream.to_owned(), model.to_owned(), dialect);
        Arc::clone(slots.entry(name).or_default())
    }
}
