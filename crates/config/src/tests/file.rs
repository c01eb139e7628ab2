//! Does every mistake in the file name its place and what to do?

use komado_core::session::MetaConfig;

use super::super::ConfigError;
use super::{World, line};

/// Checks the message that a file gives.
#[track_caller]
fn check(yaml: &str, message: &str) {
    assert_eq!(World::with_file(yaml).error(), message);
}

#[test]
fn seed_000s_file_is_read_as_it_stands() {
    let seed = include_str!("fixtures/seed_000.yaml");
    let config = World::with_file(seed).env("OPENAI_API_KEY", "sk-1").load();
    let plain = World::new().load();
    assert_eq!(
        config.summary_prompt, plain.summary_prompt,
        "the default prompt is seed 000's, word for word"
    );
    assert!(plain.summary_prompt.contains("{messages}"));
    let openai = config.models.of("openai").unwrap();
    assert_eq!((openai.model.as_deref(), openai.context_length), (Some("gpt-4o"), Some(128_000)));
    assert_eq!(openai.api_key.as_deref(), Some("sk-1"));
    assert_eq!(openai.base_url.as_deref(), Some("https://api.openai.com/"));
    let ollama = config.models.of("ollama").unwrap();
    assert_eq!((ollama.context_length, ollama.base_url.as_deref()), (Some(32_768), None));
    assert_eq!(line(&config, "llm.ollama.model"), "qwen3-30b (komado.yaml:36)");
}

#[test]
fn an_empty_file_says_nothing() {
    for yaml in ["", "\n", "# 何もない\n", "---\n", "~\n", "llm:\n", "llm:\n  openai:\n    api_key:\n"] {
        let config = World::with_file(yaml).load();
        assert!(config.file.is_some());
        assert!(config.models.of("openai").is_none(), "{yaml:?}");
    }
}

#[test]
fn text_stays_as_it_was_typed() {
    let cases = [("1.10", "1.10"), ("0123", "0123"), ("yes", "yes"), ("1e3", "1e3"), ("\"null\"", "null")];
    for (typed, expected) in cases.into_iter().chain([("花子 🌸", "花子 🌸"), ("0x1F", "0x1F")]) {
        let config = World::with_file(&format!("session: {{user: {typed}}}\n")).load();
        assert_eq!(config.user.as_deref(), Some(expected));
    }
}

#[test]
fn a_file_from_another_editor_is_read_too() {
    let config = World::with_file("\u{feff}session:\r\n  user: 花子\r\n  max_history: 1_000\r\n").load();
    assert_eq!((config.user.as_deref(), config.models.max_history), (Some("花子"), Some(1000)));
}

#[test]
fn anchors_and_merges_work_and_a_block_of_text_is_found_by_its_key() {
    let yaml = "llm:\n  a: &a\n    model: x\n  b:\n    <<: *a\n    context_length: 5\n\
                context_storage:\n  summary_prompt: |\n    要約\n    {messages}\n";
    let config = World::with_file(yaml).load();
    let b = config.models.of("b").unwrap();
    assert_eq!((b.model.as_deref(), b.context_length), (Some("x"), Some(5)));
    assert_eq!(config.summary_prompt, "要約\n{messages}\n");
    assert_eq!(line(&config, "context_storage.summary_prompt"), "要約\n{messages}\n (komado.yaml:8)");
}

#[test]
fn a_home_folder_may_be_written_as_a_tilde() {
    let mut world = World::with_file("context_storage: {base_dir: ~/文脈}\n");
    assert_eq!(world.load().base_dir, world.path("home/文脈"));
    world.home = None;
    assert_eq!(
        world.error(),
        "komado.yaml:1:29: context_storage.base_dir must be a path without ~, since no home folder is known, \
         not: ~/文脈"
    );
    let world = World::with_file("context_storage: {base_dir: /var/文脈}\n");
    assert_eq!(world.load().base_dir.to_str(), Some("/var/文脈"));
}

#[test]
fn a_wrong_type_is_an_error() {
    let cases = [
        (
            "context_storage: {enabled: perhaps}",
            "1:28: context_storage.enabled must be true or false, not: perhaps",
        ),
        (
            "context_storage:\n  # 日数\n  cleanup_days: 三十",
            "3:17: context_storage.cleanup_days must be a whole number from 0 to 36500, or a time such as 30d, 2w or 48h, not: 三十",
        ),
        (
            "threads: {max_depth: 1.5}",
            "1:22: threads.max_depth must be a whole number from 0 to 100, not: 1.5",
        ),
        (
            "threads: {max_depth: ''}",
            "1:22: threads.max_depth must be a whole number from 0 to 100, not: (empty)",
        ),
        (
            "session: {meter: gpt2}",
            "1:18: session.meter must be o200k, cl100k, chars4, bytes4 or o200k-1.5, not: gpt2",
        ),
        (
            "llm: {ollama: {base_url: localhost:11434}}",
            "1:26: llm.ollama.base_url must be an address that begins with http:// or https://, not: localhost:11434",
        ),
        ("llm: {provider: ' '}", "1:17: llm.provider must be a text that is not empty, not: (empty)"),
    ];
    for (yaml, message) in cases {
        check(yaml, &format!("komado.yaml:{message}"));
    }
}

#[test]
fn out_of_range_is_an_error() {
    for value in ["0", "1.01", "-0.5", ".nan", ".inf", "1e999"] {
        let world = World::with_file(&format!("threads: {{child_ratio: {value}}}\n"));
        let expected = "komado.yaml:1:24: threads.child_ratio must be a number from 0.01 to 0.99, not: ";
        assert_eq!(world.error(), format!("{expected}{value}"));
    }
    let config = World::with_file("threads: {child_ratio: 0.99}\n").load();
    assert_eq!(config.threads(&MetaConfig::default()).ratio, 0.99);
    for value in ["101", "-1", "99999999999999999999"] {
        let world = World::with_file(&format!("threads: {{max_depth: {value}}}\n"));
        assert!(world.error().ends_with(&format!("from 0 to 100, not: {value}")), "{}", world.error());
    }
}

#[test]
fn a_list_or_mapping_is_no_value_and_a_value_is_no_section() {
    check(
        "session:\n  user: [a, b]\n",
        "komado.yaml:2:9: session.user must be a text that is not empty, not a list; \
         write the value on the key's own line",
    );
    check(
        "llm:\n  provider: {a: b}\n",
        "komado.yaml:2:13: llm.provider must be a text that is not empty, not a mapping; \
         write the value on the key's own line",
    );
    check(
        "llm:\n  openai: gpt-4o\n",
        "komado.yaml:2:11: llm.openai must be a mapping, not a single value; \
         keys that may stand in it: model, models, context_length, threshold, api_key, api_key_file, base_url, \
         dialect, max_tokens, timeout_seconds",
    );
    check(
        "- a\n",
        "komado.yaml:1:1: the file must be a mapping, not a list; \
         keys that may stand in it: context_storage, budget, tool_output_cache, compaction, overflow, retry, store, \
         threads, personas, session, server, telemetry, llm, work, agent, tools, mcp_servers, github, gitlab",
    );
}

#[test]
fn invalid_yaml_is_an_error_with_its_place() {
    check(
        "session: {user: ${NAME}}\n",
        "komado.yaml:1:18: not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'; \
         put quotes around a value that holds ${…}",
    );
    check(
        "session:\n\tuser: x\n",
        "komado.yaml:2:2: not valid YAML: tabs disallowed within this context (block indentation); \
         indent with spaces",
    );
    for yaml in ["a: b: c\n", "a: \"x\n", "a: [1\n", "a: *nope\n", "? [a]\n: 1\n", "llm: 1\n---\nllm: 2\n"] {
        let error = World::with_file(yaml).error();
        assert!(error.starts_with("komado.yaml:") && error.contains(": not valid YAML: "), "{error}");
        assert!(!error.contains(" at line "), "{error}");
    }
}

#[test]
fn a_duplicate_key_is_an_error() {
    check(
        "session:\n  user: a\n  meter: chars4\n  user: b\n",
        "komado.yaml:4:3: this key is given twice: user; keep one of the two",
    );
}

#[test]
fn invalid_utf8_is_an_error_with_its_place() {
    let world = World::new().file("work/komado.yaml", b"session:\n  user: \xe8\x8a\xb1\xff\n");
    assert_eq!(world.error(), "komado.yaml:2:10: the file is not UTF-8 from here on; save it as UTF-8");
}

#[test]
fn a_named_file_must_exist() {
    assert_eq!(
        World::new().config("なし.yaml").error(),
        "--config names a file that does not exist: なし.yaml; create it, or leave --config out"
    );
    assert_eq!(
        World::new().env("KOMADO_CONFIG", "nope.yaml").error(),
        "KOMADO_CONFIG names a file that does not exist: nope.yaml; create it, or leave KOMADO_CONFIG out"
    );
}

#[test]
fn an_unreadable_file_is_an_error() {
    let world = World::new().file("work/komado.yaml/inside", "");
    assert!(matches!(world.try_load(), Err(ConfigError::Unreadable { .. })));
    let error = world.error();
    assert!(error.starts_with("cannot read komado.yaml: "), "{error}");
    assert!(error.ends_with("; check that it is a file and that you may read it"), "{error}");
}

#[test]
fn a_long_value_is_shown_by_its_beginning() {
    let world = World::new().flag("session.meter", &"漢".repeat(500)).error();
    assert!(world.ends_with(&format!("not: {}…", "漢".repeat(60))), "{world}");
    let world = World::new().flag("session.meter", "a\u{1b}[31m\nb").error();
    assert!(world.ends_with("not: a\u{fffd}[31m…"), "{world}");
}
