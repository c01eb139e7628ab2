//! Who wins when several places speak?

use super::{World, line, row};
use crate::BaseDirFrom;
use std::path::PathBuf;

const KEY: &str = "context_storage.cleanup_days";

#[test]
fn without_any_setting_the_defaults_hold() {
    let world = World::new();
    let config = world.load();
    assert!(config.enabled);
    assert_eq!(config.base_dir, world.path("home/.local/share/komado/contexts"));
    assert_eq!(config.compression_threshold, 0.7);
    assert_eq!((config.keep_recent_messages, config.min_messages_to_summarize), (5, 10));
    assert_eq!(config.cleanup_days, 30);
    let threads = config.threads(&Default::default());
    assert_eq!((threads.off, threads.ratio, threads.max_depth), (None, 0.8, 3));
    assert!(threads.lends);
    assert_eq!(threads.anchor_tokens, 1_000);
    assert_eq!(
        (config.models.max_history, config.user.clone(), config.store_url.clone()),
        (None, None, None)
    );
    assert_eq!((config.meter.as_str(), config.models.provider.as_str()), ("o200k", "openai"));
    assert!(config.models.of("openai").is_none());
    assert_eq!(config.file, None);
    assert!(config.notes.is_empty());
    assert_eq!(line(&config, KEY), "30 (default)");
    assert_eq!(line(&config, "llm.openai.context_length"), "(unset) (default)");
}

#[test]
fn the_folder_of_the_contexts_is_the_data_folder_unless_the_working_folder_has_one_or_one_is_named() {
    let mut world = World::new();
    let found = |world: &World| {
        let config = world.load();
        let row = row(&config, "context_storage.base_dir");
        assert_eq!(row.value, config.base_dir.display().to_string());
        (config.base_dir, config.base_dir_from, row.origin)
    };
    let data = |path: PathBuf| (path, BaseDirFrom::DataFolder, "default: your data folder".to_owned());
    assert_eq!(found(&world), data(world.path("home/.local/share/komado/contexts")));
    world.data = Some(world.path("data"));
    assert_eq!(found(&world), data(world.path("data/komado/contexts")));
    world.data = Some("data".into());
    assert_eq!(found(&world), data(world.path("home/.local/share/komado/contexts")), "no absolute path");
    world.contexts = true;
    let own = "default: ./contexts, which is yours".to_owned();
    assert_eq!(found(&world), (world.path("work/contexts"), BaseDirFrom::WorkingFolder, own));
    world.contexts = false;
    world.home = None;
    let (_, from, origin) = found(&world);
    assert_eq!(from, BaseDirFrom::Nowhere);
    assert!(origin.contains("HOME") && origin.contains("XDG_DATA_HOME"), "{origin}");
    let named = world.flag("--base-dir", "here");
    let config = named.load();
    assert_eq!(
        (config.base_dir.clone(), config.base_dir_from),
        (named.path("work/here"), BaseDirFrom::Setting)
    );
    assert_eq!(line(&config, "context_storage.base_dir"), "here (--base-dir)");
}

#[test]
fn the_file_beats_the_default() {
    let config = World::with_file("context_storage:\n  cleanup_days: 31\n").load();
    assert_eq!(config.cleanup_days, 31);
    assert_eq!(line(&config, KEY), "31 (komado.yaml:2)");
    assert_eq!(row(&config, KEY).origin, "komado.yaml:2");
}

#[test]
fn the_environment_beats_the_file() {
    let world = World::with_file("context_storage:\n  cleanup_days: 31\n").env("CLEANUP_DAYS", "32");
    assert_eq!(line(&world.load(), KEY), "32 (env CLEANUP_DAYS)");
}

#[test]
fn our_variable_beats_the_seeds_variable_which_is_then_not_looked_at() {
    let world = World::new().env("CLEANUP_DAYS", "soon").env("KOMADO_CONTEXT_STORAGE_CLEANUP_DAYS", "33");
    assert_eq!(line(&world.load(), KEY), "33 (env KOMADO_CONTEXT_STORAGE_CLEANUP_DAYS)");
}

#[test]
fn a_flag_beats_the_environment() {
    let world = World::with_file("context_storage: {cleanup_days: 31}\n")
        .env("KOMADO_CONTEXT_STORAGE_CLEANUP_DAYS", "33")
        .flag(KEY, "34");
    assert_eq!(line(&world.load(), KEY), "34 (--set)");
}

#[test]
fn the_last_of_two_equal_flags_wins() {
    assert_eq!(World::new().flag(KEY, "34").flag(KEY, "35").load().cleanup_days, 35);
}

#[test]
fn a_mapped_flag_keeps_its_own_name() {
    let world = World::new().flag("--base-dir", "文脈").flag("--user", "花子");
    let config = world.load();
    assert_eq!(config.base_dir, world.path("work/文脈"));
    assert_eq!(line(&config, "context_storage.base_dir"), "文脈 (--base-dir)");
    assert_eq!(line(&config, "session.user"), "花子 (--user)");
}

#[test]
fn a_provider_can_be_made_of_several_places() {
    let world = World::with_file("llm:\n  my-gw:\n    model: a\n")
        .env("KOMADO_LLM_MY_GW_CONTEXT_LENGTH", "9000")
        .flag("llm.my-gw.base_url", "http://localhost:1/")
        .flag("llm.provider", "my-gw");
    let config = world.load();
    let llm = config.models.of("my-gw").unwrap();
    assert_eq!((llm.model.as_deref(), llm.context_length), (Some("a"), Some(9000)));
    assert_eq!(llm.base_url.as_deref(), Some("http://localhost:1/"));
    assert!(config.notes.is_empty());
    assert!(config.models.of("my_gw").is_none());
}

#[test]
fn a_broken_value_is_an_error_even_where_a_stronger_place_overrides_it() {
    let world = World::with_file("context_storage: {cleanup_days: soon}\n").flag(KEY, "3");
    assert!(world.error().starts_with("komado.yaml:1:33: "), "{}", world.error());
}

#[test]
fn an_empty_flag_unsets_what_may_be_unset() {
    let world = World::with_file("session: {user: hanako, max_history: 3}\n");
    let config = world.flag("session.user", "").flag("session.max_history", "").load();
    assert_eq!((config.user.clone(), config.models.max_history), (None, None));
    assert_eq!(line(&config, "session.user"), "(unset) (--set)");
}

#[test]
fn the_named_file_is_the_only_one_read() {
    let world = World::with_file("session: {user: work}\n")
        .file("other.yaml", "session: {user: other}\n")
        .file("third.yaml", "session: {user: third}\n");
    let third = world.path("third.yaml");
    let world = world.env("KOMADO_CONFIG", third.to_str().unwrap());
    assert_eq!(world.load().user.as_deref(), Some("third"));
    let world = world.config("../other.yaml");
    let config = world.load();
    assert_eq!(line(&config, "session.user"), "other (../other.yaml:1)");
    assert_eq!(config.file, Some(world.path("work/../other.yaml")));
}

#[test]
fn the_configuration_folder_is_looked_at_after_the_working_folder() {
    let mut world = World::new().file("home/.config/komado/komado.yaml", "session: {user: home}\n");
    assert_eq!(world.load().user.as_deref(), Some("home"));
    world = world.file("xdg/komado/komado.yaml", "session: {user: xdg}\n");
    world.xdg = Some(world.path("xdg"));
    assert_eq!(world.load().user.as_deref(), Some("xdg"));
    world.xdg = Some("xdg".into());
    assert_eq!(world.load().user.as_deref(), Some("home"), "a relative XDG_CONFIG_HOME is ignored");
    world = world.file("work/komado.yaml", "");
    assert_eq!(world.load().user, None, "an empty file in the working folder is still the file");
    world.home = None;
    std::fs::remove_file(world.path("work/komado.yaml")).unwrap();
    assert_eq!(world.load().file, None);
}

#[test]
fn an_address_for_traces_that_is_meant_for_other_programs_is_passed_over_and_noted() {
    const ENDPOINT: &str = "telemetry.otlp_endpoint";
    let file = "telemetry:\n  otlp_endpoint: http://here:4318\n";
    let world = World::with_file(file).env("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://collector:4317");
    let config = world.load();
    assert_eq!(line(&config, ENDPOINT), "http://here:4318 (komado.yaml:2)");
    assert!(config.notes[0].contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{:?}", config.notes);
    let ours = World::new().env("KOMADO_TELEMETRY_OTLP_ENDPOINT", "grpc://collector:4317");
    assert!(ours.error().contains("KOMADO_TELEMETRY_OTLP_ENDPOINT"), "{}", ours.error());
}
