//! How is a window kept, in the words of the settings?
//!
//! A preset gives every number; a setting that somebody gave changes one of them. Nothing else is changed: a default
//! in the table of settings is for those who read it, not a wish.

use super::check::Value;
use super::{Config, Sources};
use komado_core::budget::{Budget, Keep, Policy, Preset, Thresholds, ToolBudget, Trigger};
use komado_core::clip::Limits;
use komado_engine::condense::Settings;
use komado_engine::model::{ModelSettings, SummarySettings, key_variables};
use std::collections::{BTreeMap, BTreeSet};

/// What was wished for.
#[derive(Clone, Default)]
pub(super) struct LadderWishes {
    /// Numbers that were given, by key.
    ratios: BTreeMap<String, f64>,
    counts: BTreeMap<String, u32>,
    switches: BTreeMap<String, bool>,
    texts: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    thresholds: Vec<(String, f64)>,
    /// Keys that somebody spoke of.
    given: BTreeSet<String>,
}

impl LadderWishes {
    pub(super) fn note_given(&mut self, key: &str) {
        self.given.insert(key.to_owned());
    }

    pub(super) fn apply(&mut self, key: &str, value: Value) {
        let key = key.to_owned();
        match value {
            Value::Ratio(v) => drop(self.ratios.insert(key, v)),
            Value::Count(v) => drop(self.counts.insert(key, v)),
            Value::Bool(v) => drop(self.switches.insert(key, v)),
            Value::Text(v) => drop(self.texts.insert(key, v)),
            Value::Lines(v) => drop(self.lists.insert(key, v)),
            Value::Percents(v) => self.thresholds = v,
            Value::Path(_) | Value::Pairs(_) | Value::Network(_) => {}
        }
    }

    pub(super) fn is_given(&self, key: &str) -> bool {
        self.given.contains(key)
    }

    fn ratio(&self, key: &str) -> Option<f64> {
        self.ratios.get(key).copied()
    }

    fn is_on(&self, key: &str) -> bool {
        self.switches.get(key).copied().unwrap_or(true)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.lists.get(key).cloned().unwrap_or_default()
    }
}

impl Config {
    /// The policy that the settings ask for; `preset` over the one they name.
    pub fn policy(&self, preset: Option<Preset>) -> Policy {
        let wishes = &self.ladder;
        let named = wishes.text("budget.preset").and_then(Preset::named);
        let mut policy = preset.or(named).unwrap_or_default().policy();
        let set = |key: &str, place: &mut f64| {
            if let Some(value) = wishes.ratio(key) {
                *place = value;
            }
        };
        set("budget.buffer", &mut policy.buffer);
        set("budget.low", &mut policy.low);
        set("budget.min_gain", &mut policy.min_gain);
        set("budget.summary", &mut policy.summary);
        if let Some(reserve) = wishes.counts.get("budget.reserve") {
            policy.reserve = Some(u64::from(*reserve));
        }
        if !wishes.is_on("compaction.enabled") || !wishes.is_on("compaction.auto") {
            policy.rungs.condense = false;
        }
        if !wishes.is_on("tool_output_cache.enabled") {
            policy.rungs.trim = false;
        }
        if let Some(tokens) = wishes.counts.get("tool_output_cache.context_budget_tokens") {
            policy.tools = ToolBudget::Tokens(u64::from(*tokens));
        }
        self.when(&mut policy);
        self.what_stays(&mut policy);
        policy
    }

    /// When something is done: the most particular wish decides.
    fn when(&self, policy: &mut Policy) {
        let wishes = &self.ladder;
        if wishes.is_given("context_storage.compression_threshold") {
            policy.trigger = Trigger::AboveWindow(self.compression_threshold);
        }
        if let Some(ratio) = wishes.ratio("compaction.threshold_ratio") {
            policy.trigger = Trigger::AtWindow(ratio);
        }
        if let Some(soft) = wishes.ratio("budget.soft") {
            policy.trigger = Trigger::Usable(soft);
        }
        let mut named: BTreeMap<String, f64> = wishes.thresholds.iter().cloned().collect();
        named.extend(
            self.models.providers.iter().filter_map(|(name, of)| Some((name.clone(), of.threshold?))),
        );
        let global = wishes.ratio("budget.threshold").filter(|percent| *percent > 0.0);
        // A wish for another trigger is one against the preset's percentage.
        let triggers = ["budget.soft", "compaction.threshold_ratio", "context_storage.compression_threshold"];
        let preset = policy.thresholds.global.filter(|_| !triggers.iter().any(|key| wishes.is_given(key)));
        policy.thresholds = Thresholds { global: global.or(preset), named };
    }

    fn what_stays(&self, policy: &mut Policy) {
        let wishes = &self.ladder;
        if wishes.is_given("context_storage.keep_recent_messages") {
            policy.keep = Keep::Messages(self.keep_recent_messages);
        }
        if wishes.is_given("context_storage.min_messages_to_summarize") {
            policy.min_messages = self.min_messages_to_summarize;
        }
        if let Some(turns) = wishes.counts.get("compaction.retain_last_turns") {
            policy.keep = Keep::Turns(*turns);
        }
        if let Some(share) = wishes.ratio("budget.keep") {
            policy.keep = Keep::Share(share);
        }
    }

    /// Limits of an output on arrival; `None` when outputs are shown whole.
    fn output_limits(&self) -> Option<Limits> {
        let wishes = &self.ladder;
        let count = |key: &str, or: usize| wishes.counts.get(key).map_or(or, |n| *n as usize);
        let or = Limits::default();
        wishes.is_on("tool_output_cache.enabled").then(|| Limits {
            max_message_bytes: count("tool_output_cache.max_message_bytes", or.max_message_bytes),
            max_line_length: count("tool_output_cache.max_line_length", or.max_line_length),
        })
    }

    /// How a span is condensed. A prompt that was not given leaves the choice to the conversation's language.
    fn condense_settings(&self) -> Settings {
        let wishes = &self.ladder;
        let own = |key: &str| wishes.text(key).map(str::to_owned);
        let of_000 = wishes.is_given("context_storage.summary_prompt").then(|| self.summary_prompt.clone());
        Settings {
            auto: wishes.is_on("compaction.auto"),
            model: own("compaction.model"),
            summary_prompt: own("compaction.summary_prompt").or(of_000),
            summary_directives: wishes.list("compaction.summary_directives"),
            retain_prompt: own("compaction.retain_prompt"),
            retain_directives: wishes.list("compaction.retain_directives"),
            ..Settings::default()
        }
    }

    /// What follows for models from all settings together, and the keys in the environment.
    pub(super) fn complete_models(&mut self, sources: &Sources<'_>) {
        let own = |key: &str| self.ladder.text(key).map(str::to_owned);
        let summaries = SummarySettings {
            provider: own("compaction.provider"),
            model: own("compaction.model"),
            command: own("compaction.command"),
            settings: self.condense_settings(),
        };
        let key = |name: &str| (sources.env)(name).filter(|text| !text.trim().is_empty());
        let environment = key_variables().filter_map(|name| Some((name.to_owned(), key(name)?))).collect();
        self.models = ModelSettings {
            is_provider_set: self.ladder.is_given("llm.provider"),
            environment,
            models_file: Some(self.base_dir.join("models.jsonl")),
            policy: self.policy(None),
            output_limits: self.output_limits(),
            summaries,
            ..std::mem::take(&mut self.models)
        };
    }

    /// The budget for a window; the model's and the provider's thresholds count.
    pub fn budget(&self, preset: Option<Preset>, window: u32, model: Option<&str>) -> Budget {
        let names: Vec<&str> = model.into_iter().chain([self.models.provider.as_str()]).collect();
        Budget::new(self.policy(preset), u64::from(window), &names)
    }
}
