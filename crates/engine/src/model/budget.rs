//! How much of a window a conversation has, by what was learned about its model.

use super::{ModelResolver, ResolvedModel};
use crate::error::Result;
use crate::lesson::{self, Lesson};
use crate::thread::Thread;
use crate::turn::Asking;
use crate::window::Told;
use komado_core::budget::{Budget, Policy};
use komado_core::clip::Limits;
use komado_core::session::MetaConfig;

impl ModelResolver<'_> {
    /// What was learned about the model that is asked.
    pub fn lesson(&self, asking: &Asking) -> Result<Lesson> {
        lesson::known(self.engine.store(), &asking.about())
    }

    /// What was learned about a session's own model; nothing when it has none, or its provider is not known any more.
    pub fn own_lesson(&self, own: &MetaConfig) -> Lesson {
        let about = || {
            let place = self.place(own.llm_provider.as_deref()?)?;
            Some(lesson::about(&place, own.model.as_deref()?))
        };
        about().and_then(|about| lesson::known(self.engine.store(), &about).ok()).unwrap_or_default()
    }

    /// The window of a session in tokens as we count them: `given`, else its own, as far as nothing better was learned.
    pub fn own_window(&self, own: &MetaConfig, given: Option<u32>) -> Option<u32> {
        let lesson = self.own_lesson(own);
        let was_given = own.window_from.as_deref().is_none_or(|from| from == Told::Given.name());
        let learned = lesson.window.filter(|_| !was_given);
        let window = given.map(u64::from).or(learned).or(own.context_length.map(u64::from))?;
        u32::try_from(lesson.ours(window).max(1)).ok()
    }

    /// The window of a model in tokens as we count them.
    pub fn our_window(&self, model: &ResolvedModel) -> Result<u64> {
        let lesson = self.lesson(&model.asking)?;
        // What was learned since the model was resolved counts at once, but never over the user's word.
        let learned = lesson.window.filter(|_| !model.asking.is_given).unwrap_or(u64::MAX);
        Ok(lesson.ours(model.window.tokens.min(learned)).max(1))
    }

    /// The budget of a conversation with a model, in tokens as we count them: of the thread's share, where it was spawned.
    pub fn budget(&self, thread: &Thread<'_>, model: &ResolvedModel) -> Result<Budget> {
        let Asking { model: name, provider, .. } = &model.asking;
        thread.budget(self.settings.policy.clone(), self.our_window(model)?, &[name, &provider.name])
    }

    /// The budget of a thread of a session made with `own`: of its share, where it was spawned.
    pub fn own_budget(
        &self,
        thread: &Thread<'_>,
        policy: Policy,
        window: u32,
        own: &MetaConfig,
    ) -> Result<Budget> {
        let names = own.model.as_deref().into_iter().chain([self.settings.provider.as_str()]);
        thread.budget(policy, u64::from(window), &names.collect::<Vec<_>>())
    }

    /// Limits of an output on arrival: as the settings say, and less in a small window.
    pub fn output_limits(&self, thread: &Thread<'_>) -> Option<Limits> {
        let (own, limits) = (thread.config(), self.settings.output_limits);
        let Some(window) = self.own_window(own, None) else { return limits };
        match self.own_budget(thread, self.settings.policy.clone(), window, own) {
            Ok(budget) => limits.map(|limits| budget.limits(&limits)),
            // A share without room is an error where something is to be said in it; nothing is clipped by it.
            Err(_) => limits,
        }
    }
}
