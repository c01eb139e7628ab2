//! Is the table the only list of settings?

use std::collections::BTreeSet;

use super::super::reference;
use super::super::table::{Kind, SETTINGS, Setting};
use super::{World, line};

/// A value that a setting accepts and that is not its default.
pub(super) fn another_value(setting: &Setting) -> &'static str {
    match setting.kind {
        Kind::Bool => "false",
        Kind::Ratio => "0.25",
        Kind::Count { .. } => "42",
        Kind::Url(starts) if starts.contains(&"memory:") => "memory:",
        Kind::Url(_) => "http://localhost:1234/",
        Kind::Choice(_) => "chars4",
        Kind::Text | Kind::Path | Kind::Secret => "値",
    }
}

#[test]
fn every_setting_of_the_table_reaches_its_field() {
    let mut world = World::new();
    for setting in SETTINGS {
        world = world.flag(&setting.key_for("openai"), another_value(setting));
    }
    let config = world.load();
    assert!(!config.enabled);
    assert_eq!(config.base_dir, world.path("work/値"));
    assert_eq!((config.compression_threshold, config.child_ratio), (0.25, 0.25));
    let counts = [
        config.keep_recent_messages,
        config.min_messages_to_summarize,
        config.cleanup_days,
        config.max_depth,
        config.max_history.unwrap(),
    ];
    assert_eq!(counts, [42; 5]);
    assert_eq!((config.summary_prompt.as_str(), config.provider.as_str()), ("値", "値"));
    assert_eq!((config.user.as_deref(), config.meter.as_str()), (Some("値"), "chars4"));
    assert_eq!(config.store_url.as_deref(), Some("memory:"));
    let llm = config.llm("openai").unwrap();
    assert_eq!((llm.model.as_deref(), llm.context_length), (Some("値"), Some(42)));
    assert_eq!(
        (llm.api_key.as_deref(), llm.base_url.as_deref()),
        (Some("値"), Some("http://localhost:1234/"))
    );
    assert_eq!(SETTINGS.len(), 18, "a new setting needs a line in this test");
}

#[test]
fn the_listing_has_every_setting_once_in_the_tables_order() {
    let config = World::with_file("llm: {ollama: {model: m}}\n").load();
    let keys: Vec<String> = config.rows().into_iter().map(|row| row.key).collect();
    let single =
        SETTINGS.iter().filter(|setting| !setting.is_family()).map(|setting| setting.path.to_owned());
    let family = ["ollama", "openai"].into_iter().flat_map(|name| {
        SETTINGS.iter().filter(|setting| setting.is_family()).map(move |setting| setting.key_for(name))
    });
    assert_eq!(keys, single.chain(family).collect::<Vec<_>>());
    assert!(config.rows().iter().all(|row| !row.about.is_empty()));
}

#[test]
fn no_two_settings_share_a_variable() {
    let names: Vec<String> = SETTINGS
        .iter()
        .flat_map(|setting| {
            setting.env().into_iter().chain(setting.seed_env.iter().map(|name| (*name).to_owned()))
        })
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn the_manual_names_every_key_variable_and_range() {
    let manual = reference();
    for setting in SETTINGS {
        assert!(manual.contains(&format!("| `{}` |", setting.path)));
        assert!(setting.env().iter().all(|name| manual.contains(&format!("`{name}`"))));
        assert!(setting.seed_env.iter().all(|name| manual.contains(&format!("`{name}`"))));
    }
    assert!(manual.contains("| a whole number from 0 to 36500 | `30` |"));
    assert!(manual.lines().all(|line| line.matches('|').count() == 6), "{manual}");
}

#[test]
fn truth_has_several_spellings() {
    for (text, on) in
        [("true", true), ("YES", true), ("on", true), ("1", true), ("False", false), ("off", false)]
    {
        let config = World::new().env("CONTEXT_STORAGE_ENABLED", text).load();
        assert_eq!(line(&config, "context_storage.enabled"), format!("{on} (env CONTEXT_STORAGE_ENABLED)"));
    }
}

#[test]
fn a_providers_name_may_hold_dots_and_be_in_japanese() {
    let world = World::with_file("llm: {provider: 社内, 社内: {model: 大規模}, qwen2.5: {model: q}}\n");
    let config = world.flag("llm.qwen2.5.context_length", "8").load();
    assert_eq!(config.llm("社内").unwrap().model.as_deref(), Some("大規模"));
    assert_eq!(config.llm("qwen2.5").unwrap().context_length, Some(8));
}
