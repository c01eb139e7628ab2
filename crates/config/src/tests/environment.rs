//! Does every variable do what it says, and does a misspelt one speak up?

use super::super::table::SETTINGS;
use super::{World, line};

#[test]
fn each_variable_of_the_seeds_sets_its_key() {
    let cases = [
        ("CONTEXT_STORAGE_ENABLED", "false", "context_storage.enabled"),
        ("COMPRESSION_THRESHOLD", "0.5", "context_storage.compression_threshold"),
        ("CLEANUP_DAYS", "7", "context_storage.cleanup_days"),
        ("STELIS_DEFAULT_WINDOW_RATIO", "0.6", "threads.child_ratio"),
        ("STELIS_MAX_DEPTH", "5", "threads.max_depth"),
        ("MAX_SESSION_HISTORY", "4", "session.max_history"),
        ("TOKEN_LIMIT_REDUCTION_RATIO", "0.7", "overflow.retry_shrink"),
        ("MAX_RETRY_ATTEMPTS", "5", "overflow.tries"),
        ("RETRY_DELAY_SECONDS", "9", "retry.delay_seconds"),
    ];
    for (name, value, key) in cases {
        let config = World::new().env(name, value).load();
        assert_eq!(line(&config, key), format!("{value} (env {name})"));
    }
}

#[test]
fn each_setting_has_a_variable_by_rule() {
    for setting in SETTINGS {
        let key = setting.key_for("openai");
        let name = format!("KOMADO_{}", key.to_uppercase().replace('.', "_"));
        let value = super::settings::another_value(setting);
        let config = super::settings::world_for(setting).env(&name, value).load();
        let shown = if setting.kind.is_secret() { "(set)" } else { value };
        assert_eq!(line(&config, &key), format!("{shown} (env {name})"));
    }
}

#[test]
fn short_names_work_and_the_full_name_is_stronger() {
    let world = World::new().env("KOMADO_BASE_DIR", "a").env("KOMADO_USER", "花子");
    let config = world.load();
    assert_eq!(config.base_dir, world.path("work/a"));
    assert_eq!(line(&config, "session.user"), "花子 (env KOMADO_USER)");
    let world = world.env("KOMADO_SESSION_USER", "太郎");
    assert_eq!(line(&world.load(), "session.user"), "太郎 (env KOMADO_SESSION_USER)");
}

#[test]
fn memory_backend_chooses_the_store() {
    let store = |world: World| (world.load().store_url, line(&world.load(), "store.url"));
    let backend = |name| World::new().env("MEMORY_BACKEND", name);
    assert_eq!(store(backend("file")), (None, "file: (env MEMORY_BACKEND)".into()));
    assert_eq!(store(backend("inmemory")).0.as_deref(), Some("memory:"));
    assert_eq!(store(backend("redis")).0.as_deref(), Some("redis://localhost:6379"));
    let redis = backend("redis").env("REDIS_URL", "rediss://r:1");
    assert_eq!(store(redis), (Some("rediss://r:1".into()), "rediss://r:1 (env REDIS_URL)".into()));
    let postgres = backend("postgres").env("DB_URL", "postgresql://u:p@h/d");
    let (url, shown) = store(postgres);
    assert_eq!(url.as_deref(), Some("postgresql://u:p@h/d"));
    assert_eq!(shown, "postgresql://***@h/d (env DB_URL)");
}

#[test]
fn an_address_without_a_chosen_backend_means_nothing() {
    let world = World::new().env("REDIS_URL", "not for us").env("DB_URL", "nor this");
    assert_eq!(line(&world.load(), "store.url"), "file: (default)");
}

#[test]
fn our_store_url_beats_the_backend() {
    let world = World::new().env("MEMORY_BACKEND", "nonsense").env("KOMADO_STORE_URL", "memory:");
    assert_eq!(line(&world.load(), "store.url"), "memory: (env KOMADO_STORE_URL)");
}

#[test]
fn a_backend_that_cannot_be_used_is_an_error() {
    let backend = |name| World::new().env("MEMORY_BACKEND", name);
    assert_eq!(
        backend("mongo").error(),
        "env MEMORY_BACKEND: the backend must be inmemory, redis, postgres or file, not: mongo"
    );
    assert_eq!(
        backend("postgres").error(),
        "env MEMORY_BACKEND: postgres needs an address, and DB_URL is not set; set DB_URL or store.url"
    );
    assert_eq!(
        backend("redis").env("REDIS_URL", "postgres://u:geheim@h").error(),
        "env REDIS_URL: store.url must be an address that begins with redis://, rediss://, redis+cluster:// \
         or redis+sentinel://, not: postgres://***@h"
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let world = World::with_file("session: {user: file}\n").env("KOMADO_USER", "").env("CLEANUP_DAYS", "");
    let config = world.env("MEMORY_BACKEND", "").env("KOMADO_LLM_OPENAI_MODEL", "").load();
    assert_eq!(line(&config, "session.user"), "file (komado.yaml:1)");
    assert_eq!(config.cleanup_days, 30);
    assert!(config.models.of("openai").is_none());
}

#[test]
fn a_bad_variable_is_named() {
    assert_eq!(
        World::new().env("COMPRESSION_THRESHOLD", "70").error(),
        "env COMPRESSION_THRESHOLD: context_storage.compression_threshold must be a number above 0 \
         and at most 1, not: 70"
    );
    assert_eq!(
        World::new().env("KOMADO_LLM_OLLAMA_CONTEXT_LENGTH", "32q").error(),
        "env KOMADO_LLM_OLLAMA_CONTEXT_LENGTH: llm.ollama.context_length must be a whole number from 1 to 1000000000, \
         such as 8000 or 128k, not: 32q"
    );
}

#[test]
fn an_unknown_variable_of_ours_is_noted_and_others_are_ignored() {
    let world = World::new().env("KOMADO_CONFIG", "").env("KOMADO_DATA", "x").env("KOMADO_LOG", "debug");
    let world = world.env("PATH", "/bin").env("KOMADOS", "x").env("KOMADO_XYZZY", "");
    assert!(world.load().notes.is_empty(), "{:?}", world.load().notes);
    assert_eq!(
        World::new().env("KOMADO_XYZZY", "1").load().notes,
        [
            "the environment variable KOMADO_XYZZY sets nothing; each is KOMADO_ and a key of `komado admin config` in capitals"
        ]
    );
    let notes = World::new().env("KOMADO_LLM_PROVIDER_MODEL", "x").load().notes;
    assert!(
        notes[0].starts_with("the environment variable KOMADO_LLM_PROVIDER_MODEL sets nothing"),
        "{notes:?}"
    );
}

#[test]
fn variables_of_a_kubernetes_service_called_komado_are_passed_over_in_silence() {
    for (name, value) in [
        ("KOMADO_SERVICE_HOST", "10.0.0.1"),
        ("KOMADO_SERVICE_PORT", "8080"),
        ("KOMADO_SERVICE_PORT_HTTP", "8080"),
        ("KOMADO_PORT", "tcp://10.0.0.1:8080"),
        ("KOMADO_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("KOMADO_PORT_8080_TCP_PROTO", "tcp"),
        ("KOMADO_PORT_8080_TCP_PORT", "8080"),
        ("KOMADO_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("KOMADO_PORT_53_UDP", "udp://10.0.0.1:53"),
        ("KOMADO_WEB_SERVICE_HOST", "10.0.0.1"),
        ("KOMADO_WEB_PORT", "tcp://10.0.0.1:80"),
        ("KOMADO_WEB_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("KOMADO_SERVER_SERVICE_PORT", "80"),
        ("KOMADO_SERVER_PORT", "tcp://10.0.0.1:80"),
    ] {
        assert_eq!(World::new().env(name, value).load().notes, Vec::<String>::new(), "{name}");
    }
    for (name, value) in [
        ("KOMADO_PORT", "8080"),
        ("KOMADO_PORT_HTTP", "80"),
        ("KOMADO_PORT_99999_TCP", "x"),
        ("KOMADO_SERVICE", "x"),
    ] {
        assert_eq!(World::new().env(name, value).load().notes.len(), 1, "{name}");
    }
}

#[test]
fn a_provider_that_only_the_environment_names_is_lower_case() {
    let config = World::new().env("KOMADO_LLM_GROQ_API_KEY", "k").load();
    assert_eq!(config.models.of("groq").unwrap().api_key.as_deref(), Some("k"));
}
