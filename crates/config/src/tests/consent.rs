//! Which files of a working folder are used, and when?

use super::super::table::SETTINGS;
use super::{ConfigError, InFolder, Unconsented, World, row};
use std::os::unix::fs::symlink;

/// Every setting that a folder may set without consent. A new setting is added here on purpose or not at all.
const HARMLESS: [&str; 35] = [
    "budget.buffer",
    "budget.keep",
    "budget.low",
    "budget.min_gain",
    "budget.preset",
    "budget.reserve",
    "budget.soft",
    "budget.summary",
    "budget.threshold",
    "budget.thresholds",
    "compaction.auto",
    "compaction.enabled",
    "compaction.retain_last_turns",
    "compaction.threshold_ratio",
    "context_storage.compression_threshold",
    "context_storage.keep_recent_messages",
    "context_storage.min_messages_to_summarize",
    "overflow.retry_shrink",
    "overflow.tries",
    "personas.<persona>.stelis_config.default_window_ratio",
    "personas.<persona>.stelis_config.enabled",
    "personas.<persona>.stelis_config.max_depth",
    "retry.delay_seconds",
    "retry.tries",
    "session.max_history",
    "session.meter",
    "threads.anchor_tokens",
    "threads.child_ratio",
    "threads.enabled",
    "threads.lending",
    "threads.max_depth",
    "tool_output_cache.context_budget_tokens",
    "tool_output_cache.enabled",
    "tool_output_cache.max_line_length",
    "tool_output_cache.max_message_bytes",
];

impl World {
    /// A world whose user consented to nothing.
    fn strange(yaml: &str) -> Self {
        Self { consents: false, ..Self::with_file(yaml) }
    }

    #[track_caller]
    fn unconsented(&self) -> Unconsented {
        match self.try_load() {
            Err(ConfigError::NoConsent(file)) => *file,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was used"),
        }
    }
}

#[test]
fn the_settings_that_need_no_consent_are_these_and_no_others() {
    let mut marked: Vec<&str> =
        SETTINGS.iter().filter(|setting| setting.is_harmless).map(|setting| setting.path).collect();
    marked.sort_unstable();
    assert_eq!(marked, HARMLESS);
    for setting in SETTINGS.iter().filter(|setting| setting.is_harmless) {
        use super::super::table::SettingKind;
        let leads = matches!(
            setting.kind,
            SettingKind::Path
                | SettingKind::Url(_)
                | SettingKind::Secret
                | SettingKind::Pairs(_)
                | SettingKind::Lines
        );
        assert!(!leads, "{} names a place, a secret or words", setting.path);
    }
}

#[test]
fn every_setting_of_the_table_that_is_not_harmless_needs_consent() {
    for setting in SETTINGS {
        let key = setting.key_for("x");
        let keys: Vec<&str> = key.split('.').collect();
        let yaml: String = keys
            .iter()
            .enumerate()
            .map(|(n, key)| format!("{}{key}:", "  ".repeat(n)))
            .collect::<Vec<_>>()
            .join("\n");
        let world = World::strange(&format!("{yaml} \"1\"\n"));
        let result = world.try_load();
        match result {
            Err(ConfigError::NoConsent(file)) => {
                assert!(!setting.is_harmless, "{key}");
                assert_eq!(
                    (file.written[0].key.as_str(), file.written[0].needs_consent),
                    (key.as_str(), true)
                );
            }
            _ => assert!(setting.is_harmless, "{key} was used without consent"),
        }
    }
}

#[test]
fn a_file_of_harmless_settings_is_used_without_consent() {
    let world = World::strange("session: {meter: bytes4}\nbudget: {buffer: 0.1}\n");
    let config = world.load();
    assert_eq!((config.meter.as_str(), config.unconsented.is_none()), ("bytes4", true));
}

#[test]
fn one_setting_that_needs_consent_keeps_the_whole_file_out() {
    let world = World::strange(
        "session: {meter: bytes4}\nllm:\n  openai:\n    base_url: http://evil.example/v1\ncompaction:\n  command: sh x\n",
    );
    let file = world.unconsented();
    assert_eq!(file.path, world.path("work/komado.yaml"));
    let error = world.error();
    for part in [
        "llm.openai.base_url (line 4)",
        "compaction.command (line 6)",
        "`komado admin trust`",
        "--config FILE",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("session.meter"), "{error}");
    let told = World { in_folder: InFolder::Told, ..world };
    let config = told.load();
    assert_eq!((config.meter.as_str(), config.file.as_ref()), ("o200k", None), "no half of it is used");
    assert_eq!(row(&config, "session.meter").origin, "default");
    assert!(config.unconsented.is_some());
}

#[test]
fn a_harmless_value_that_refers_to_a_variable_needs_consent_and_is_not_expanded() {
    let world = World::strange("session: {meter: \"${SECRET}\"}\n").env("SECRET", "sesame");
    let file = world.unconsented();
    assert_eq!((file.written[0].value.as_str(), file.written[0].needs_consent), ("${SECRET}", true));
    assert!(!format!("{file:?}{}", world.error()).contains("sesame"));
}

#[test]
fn a_file_that_is_named_or_the_users_own_needs_no_consent() {
    let yaml = "store: {url: \"redis://h:1\"}\n";
    let named = World::strange(yaml).config("komado.yaml");
    assert_eq!(named.load().store_url.as_deref(), Some("redis://h:1"));
    let named = World::strange(yaml).env("KOMADO_CONFIG", "komado.yaml");
    assert_eq!(named.load().store_url.as_deref(), Some("redis://h:1"));
    let own = World { consents: false, ..World::new() }.file("home/.config/komado/komado.yaml", yaml);
    std::fs::create_dir_all(own.path("work")).unwrap();
    assert_eq!(own.load().store_url.as_deref(), Some("redis://h:1"));
}

#[test]
fn a_home_that_is_not_absolute_does_not_make_a_folders_file_the_users_own() {
    let world = World { consents: false, ..World::new() }
        .file("work/.config/komado/komado.yaml", "session: {user: x}\n");
    for home in ["", ".", "work"] {
        let world = World { home: Some(home.into()), folder: tempfile::tempdir().unwrap(), ..World::new() };
        let world = world.file("work/.config/komado/komado.yaml", "session: {user: x}\n");
        assert_eq!(world.load().user, None, "{home:?}");
    }
    assert_eq!(world.load().user, None);
}

#[test]
fn a_harmless_file_that_takes_the_place_of_the_users_own_needs_consent() {
    let world = World::strange("session: {meter: bytes4}\n").file("home/.config/komado/komado.yaml", "");
    let error = world.error();
    assert!(
        error.contains("it takes the place of ") && error.contains("home/.config/komado/komado.yaml"),
        "{error}"
    );
    let world = World { consents: true, ..world };
    assert_eq!(world.load().meter, "bytes4");
}

#[test]
fn the_digest_is_that_of_the_file_and_of_the_rules_and_playbook_it_names_wherever_they_are() {
    let yaml = "agent: {playbook: flow.json, rules_file: ../outside.md}\n";
    let world = World::strange(yaml);
    let digest = |world: &World| world.unconsented().digest;
    let mut seen = vec![digest(&world)];
    for (path, content) in [
        ("work/flow.json", ""),
        ("work/flow.json", "{}"),
        ("outside.md", "x"),
        ("outside.md", "y"),
        ("work/komado.yaml", "agent: {playbook: flow.json}\n"),
    ] {
        std::fs::write(world.path(path), content).unwrap();
        let now = digest(&world);
        assert!(!seen.contains(&now), "{path} was changed");
        seen.push(now);
    }
    std::fs::write(world.path("work/komado.yaml"), yaml).unwrap();
    assert_eq!(digest(&world), seen[4], "the same content has the same digest");
}

#[test]
fn no_way_to_name_a_file_of_the_folder_keeps_it_out_of_the_digest() {
    let world =
        World::strange("").file("work/RULES.md", "one").file("real/deep/x", "").file("real/RULES.md", "one");
    symlink(".", world.path("work/here")).unwrap();
    symlink(world.path("work"), world.path("back")).unwrap();
    // `link/..` is `real`, and not the folder that holds the link.
    symlink("../real/deep", world.path("work/link")).unwrap();
    // As /proc/self/cwd does, these lead to the folder by a path that does not begin with it.
    let through_proc = format!("/proc/{}/root{}", std::process::id(), world.path("work/RULES.md").display());
    let back = world.path("back/RULES.md").display().to_string();
    for (name, file) in [
        ("RULES.md", "work/RULES.md"),
        ("here/here/RULES.md", "work/RULES.md"),
        ("link/../RULES.md", "real/RULES.md"),
        (back.as_str(), "work/RULES.md"),
        (through_proc.as_str(), "work/RULES.md"),
    ] {
        if name.starts_with("/proc") && !cfg!(target_os = "linux") {
            continue;
        }
        for setting in ["rules_file", "playbook"] {
            std::fs::write(world.path(file), "one").unwrap();
            std::fs::write(world.path("work/komado.yaml"), format!("agent: {{{setting}: {name}}}\n"))
                .unwrap();
            let before = world.unconsented().digest;
            std::fs::write(world.path(file), "two").unwrap();
            assert_ne!(world.unconsented().digest, before, "{setting}: {name}");
        }
    }
    std::fs::write(world.path("work/komado.yaml"), "agent: {rules_file: /dev/zero}\n").unwrap();
    assert!(world.error().contains("not a regular file"), "{}", world.error());
}

#[test]
fn secrets_are_hidden_and_nothing_that_a_terminal_acts_on_is_shown() {
    let world = World::strange(
        "llm:\n  \"e\\e[2Jvil\":\n    api_key: sk-sesame\n    base_url: \"http://ann:sesame@h/\\u202e\"\n\
         mcp_servers:\n  x:\n    command: \"one\\ntwo\\e]0;t\\a\"\n    env: [LD_PRELOAD=sesame]\n\
         github: {token: \"${GITHUB_TOKEN}\"}\n",
    );
    let file = world.unconsented();
    let shown: Vec<String> = file.written.iter().map(|one| format!("{} {}", one.key, one.value)).collect();
    let all = format!("{}{}", shown.join("\n"), world.error());
    assert!(!all.contains("sesame"), "{all}");
    assert!(!all.replace('\n', "").contains(|c: char| c.is_control() || c == '\u{202e}'), "{all:?}");
    for part in
        ["api_key (set)", "http://***@h/", "one ⏎ two", "LD_PRELOAD=***", "github.token ${GITHUB_TOKEN}"]
    {
        assert!(all.contains(part), "{part}: {all}");
    }
}

#[test]
fn a_file_that_is_a_pipe_a_device_or_endless_is_refused_at_once() {
    let world = World { consents: false, ..World::new() };
    std::fs::create_dir_all(world.path("work")).unwrap();
    let yaml = world.path("work/komado.yaml");
    let made = std::process::Command::new("mkfifo").arg(&yaml).status().unwrap();
    assert!(made.success());
    assert!(world.error().contains("not a regular file"), "{}", world.error());
    std::fs::remove_file(&yaml).unwrap();
    symlink("/dev/zero", &yaml).unwrap();
    assert!(world.error().contains("not a regular file"), "{}", world.error());
    std::fs::remove_file(&yaml).unwrap();
    std::fs::File::create(&yaml).unwrap().set_len(1 << 40).unwrap();
    assert!(world.error().contains("larger than 1048576 bytes"), "{}", world.error());
}

#[test]
fn a_link_counts_by_its_own_path_and_by_what_it_leads_to() {
    let world = World { consents: false, ..World::new() }.file("elsewhere.yaml", "session: {user: x}\n");
    std::fs::create_dir_all(world.path("work")).unwrap();
    symlink(world.path("elsewhere.yaml"), world.path("work/komado.yaml")).unwrap();
    let file = world.unconsented();
    assert_eq!(file.path, world.path("work/komado.yaml"));
    std::fs::write(world.path("elsewhere.yaml"), "session: {user: y}\n").unwrap();
    assert_ne!(world.unconsented().digest, file.digest);
}

#[test]
fn an_ignored_file_is_not_even_read() {
    let world = World { in_folder: InFolder::Ignored, ..World::strange("not: [valid\n") };
    assert!(world.load().file.is_none());
}
