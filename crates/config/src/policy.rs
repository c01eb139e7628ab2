//! How is a window kept, in the words of the settings?
//!
//! A preset gives every number; a setting that was given changes one of them. Nothing else is changed: a default
//! in the table of settings is for those who read it, not a wish.

use super::check::SettingsSection;
use super::{BaseDirFrom, Config, Sources};
use komado_core::budget::{Budget, KeepRule, Policy, Preset, Thresholds, ToolBudget, Trigger};
use komado_core::clip::ClipLimits;
use komado_engine::condense::CondenseSettings;
use komado_engine::model::{ModelSettings, SummarySettings, key_variables};
use std::collections::BTreeMap;

impl Config {
    fn section(&self, name: &str) -> SettingsSection<'_> {
        SettingsSection::of(&self.given, name)
    }

    /// The policy that the settings ask for; `preset` over the one they name.
    pub fn policy(&self, preset: Option<Preset>) -> Policy {
        let (budget, compaction) = (self.section("budget"), self.section("compaction"));
        let outputs = self.section("tool_output_cache");
        let named = Preset::named(&budget.get::<String>("preset"));
        let mut policy = preset.or(named).unwrap_or_default().policy();
        let set = |leaf: &str, place: &mut f64| *place = budget.get::<Option<f64>>(leaf).unwrap_or(*place);
        set("buffer", &mut policy.buffer);
        set("low", &mut policy.low);
        set("min_gain", &mut policy.min_gain);
        set("summary", &mut policy.summary);
        policy.reserve = budget.get::<Option<u32>>("reserve").map(u64::from).or(policy.reserve);
        policy.rungs.condense &= compaction.get::<bool>("enabled") && compaction.get("auto");
        policy.rungs.trim &= outputs.get::<bool>("enabled");
        if let Some(tokens) = outputs.get::<Option<u32>>("context_budget_tokens") {
            policy.tools = ToolBudget::Tokens(u64::from(tokens));
        }
        self.when(&mut policy);
        self.what_stays(&mut policy);
        policy
    }

    /// When something is done: the most particular wish decides.
    fn when(&self, policy: &mut Policy) {
        let (budget, compaction) = (self.section("budget"), self.section("compaction"));
        let is_of_000 = self.section("context_storage").is_given("compression_threshold");
        if is_of_000 {
            policy.trigger = Trigger::AboveWindow(self.compression_threshold);
        }
        if let Some(ratio) = compaction.get("threshold_ratio") {
            policy.trigger = Trigger::AtWindow(ratio);
        }
        if let Some(soft) = budget.get("soft") {
            policy.trigger = Trigger::Movable(soft);
        }
        let mut named: BTreeMap<String, f64> = budget.get::<Vec<_>>("thresholds").into_iter().collect();
        named.extend(
            self.models.providers.iter().filter_map(|(name, of)| Some((name.clone(), of.threshold?))),
        );
        let global = budget.get::<Option<f64>>("threshold").filter(|percent| *percent > 0.0);
        // A wish for another trigger is one against the preset's percentage.
        let is_other = is_of_000 || budget.is_given("soft") || compaction.is_given("threshold_ratio");
        let preset = policy.thresholds.global.filter(|_| !is_other);
        policy.thresholds = Thresholds { global: global.or(preset), named };
    }

    fn what_stays(&self, policy: &mut Policy) {
        let storage = self.section("context_storage");
        if storage.is_given("keep_recent_messages") {
            policy.keep = KeepRule::Messages(self.keep_recent_messages);
        }
        if storage.is_given("min_messages_to_summarize") {
            policy.min_messages = self.min_messages_to_summarize;
        }
        if let Some(turns) = self.section("compaction").get("retain_last_turns") {
            policy.keep = KeepRule::Turns(turns);
        }
        if let Some(share) = self.section("budget").get("keep") {
            policy.keep = KeepRule::Share(share);
        }
    }

    /// Limits of an output on arrival; `None` when outputs are shown whole.
    fn output_limits(&self) -> Option<ClipLimits> {
        let outputs = self.section("tool_output_cache");
        outputs.get::<bool>("enabled").then(|| ClipLimits {
            max_message_bytes: outputs.get::<u32>("max_message_bytes") as usize,
            max_line_length: outputs.get::<u32>("max_line_length") as usize,
        })
    }

    /// How a span is condensed. A prompt that was not given leaves the choice to the conversation's language.
    fn condense_settings(&self) -> CondenseSettings {
        let compaction = self.section("compaction");
        let is_of_000 = self.section("context_storage").is_given("summary_prompt");
        let of_000 = is_of_000.then(|| self.summary_prompt.clone());
        CondenseSettings {
            auto: compaction.get("auto"),
            model: compaction.get("model"),
            summary_prompt: compaction.get::<Option<_>>("summary_prompt").or(of_000),
            summary_directives: compaction.get("summary_directives"),
            retain_prompt: compaction.get("retain_prompt"),
            retain_directives: compaction.get("retain_directives"),
            ..CondenseSettings::default()
        }
    }

    /// What follows for models from all settings together, and the keys in the environment.
    pub(super) fn complete_models(&mut self, sources: &Sources<'_>) {
        let compaction = self.section("compaction");
        let summaries = SummarySettings {
            provider: compaction.get("provider"),
            model: compaction.get("model"),
            command: compaction.get("command"),
            settings: self.condense_settings(),
        };
        let key = |name: &str| (sources.env)(name).filter(|text| !text.trim().is_empty());
        let environment = key_variables().filter_map(|name| Some((name.to_owned(), key(name)?))).collect();
        self.models = ModelSettings {
            is_provider_set: self.section("llm").is_given("provider"),
            environment,
            // What lies in a folder that is not used is not read.
            models_file: (self.base_dir_from != BaseDirFrom::Nowhere)
                .then(|| self.base_dir.join("models.jsonl")),
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
