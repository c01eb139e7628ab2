//! Is the table the only list of settings?

use std::collections::BTreeSet;

use super::super::reference;
use super::super::table::{PROVIDER, SERVER, SETTINGS, Setting, SettingKind};
use super::{World, line};

/// A value that a setting accepts and that is not its default.
pub(super) fn another_value(setting: &Setting) -> &'static str {
    match setting.kind {
        SettingKind::Bool => "false",
        SettingKind::Ratio | SettingKind::Part => "0.25",
        SettingKind::Count { min, .. } if min > 42 => "4242",
        SettingKind::Count { max, .. } if max < 42 => "7",
        SettingKind::Count { .. } => "42",
        SettingKind::Tokens { .. } => "4242",
        SettingKind::Time { .. } => "42",
        SettingKind::Percent => "25",
        SettingKind::Lines => "値\n値",
        SettingKind::Percents => "gpt-4.1=25",
        SettingKind::Hosts => "open",
        SettingKind::Choice(words) if words.contains(&"seed002") => "seed002",
        SettingKind::Url(starts) if starts.contains(&"memory:") => "memory:",
        SettingKind::Url(_) => "http://localhost:1234/",
        SettingKind::Choice(words) if words.contains(&"anthropic") => "anthropic",
        SettingKind::Choice(words) if words.contains(&"stop") => "stop",
        SettingKind::Choice(words) if words.contains(&"never") => "never",
        SettingKind::Choice(words) if words.contains(&"off") => "off",
        SettingKind::Pairs(_) => "名=値",
        SettingKind::Choice(_) => "chars4",
        SettingKind::Text | SettingKind::Path | SettingKind::Secret => "値",
    }
}

/// A world in which a setting may be given by itself: an MCP server needs one of two.
pub(super) fn world_for(setting: &Setting) -> World {
    match (setting.stand_in(), setting.leaf()) {
        (Some(SERVER), leaf) if !["command", "url"].contains(&leaf) => {
            World::new().flag("mcp_servers.openai.command", "x")
        }
        _ => World::new(),
    }
}

/// The name that a setting of a family is given for: a server that is started is not one at an address.
fn name_for(setting: &Setting) -> &'static str {
    let is_of_address = ["url", "headers"].contains(&setting.leaf());
    if setting.stand_in() == Some(SERVER) && is_of_address { "web" } else { "openai" }
}

#[test]
fn every_setting_of_the_table_reaches_its_field() {
    let mut world = World::new();
    for setting in SETTINGS {
        let (key, value) = (setting.key_for(name_for(setting)), another_value(setting));
        world = match setting.kind {
            kind if kind.is_secret() => world.env(&super::super::table::env_name(&key), value),
            _ => world.flag(&key, value),
        };
    }
    let config = world.load();
    assert!(!config.enabled);
    assert_eq!(config.base_dir, world.path("work/値"));
    assert_eq!(config.compression_threshold, 0.25);
    let counts = [
        config.keep_recent_messages,
        config.min_messages_to_summarize,
        config.cleanup_days,
        config.models.max_history.unwrap(),
    ];
    assert_eq!(counts, [42; 4]);
    assert_eq!((config.summary_prompt.as_str(), config.models.provider.as_str()), ("値", "値"));
    assert_eq!((config.user.as_deref(), config.meter.as_str()), (Some("値"), "chars4"));
    assert_eq!(config.store_url.as_deref(), Some("memory:"));
    let llm = config.models.of("openai").unwrap();
    assert_eq!((llm.model.as_deref(), llm.context_length), (Some("値"), Some(4242)));
    assert_eq!(
        (llm.api_key.as_deref(), llm.base_url.as_deref()),
        (Some("値"), Some("http://localhost:1234/"))
    );
    assert_eq!((llm.threshold, llm.dialect), (Some(25.0), Some(komado_provider::Dialect::Messages)));
    assert_eq!((llm.max_tokens, llm.timeout_seconds), (Some(4242), Some(42)));
    assert_eq!(llm.api_key_file, Some(world.path("work/値")));
    assert_eq!((config.models.shrink, config.models.overflow_tries), (0.25, 7));
    let patience = &config.models.patience;
    assert_eq!((patience.tries, patience.delay), (42, std::time::Duration::from_secs(42)));
    check_ladder(&config);
    check_threads(&config);
    check_server(&config.server);
    check_store(&config);
    check_tasks(&config.agent, &world);
    check_trackers(&config.agent);
    check_mcp_servers(&config.agent, &world);
    assert_eq!(llm.models, ["値", "値"]);
    assert_eq!(SETTINGS.len(), 134, "a new setting needs a line in this test");
}

/// What the settings of child threads come to.
fn check_threads(config: &super::super::Config) {
    let threads = config.threads(&Default::default());
    assert!(threads.off.is_some() && !threads.lends);
    assert_eq!((threads.ratio, threads.max_depth, threads.anchor_tokens), (0.25, 42, 4242));
    let persona = config.persona("openai").unwrap();
    assert_eq!(
        (persona.enabled, persona.default_window_ratio, persona.max_depth),
        (Some(false), Some(0.25), Some(42))
    );
}

/// What the settings of tasks and of their tools come to.
fn check_tasks(agent: &super::super::AgentConfig, world: &World) {
    use komado_agent::sandbox::{Network, ProcessLimits, Sandbox};
    let seconds = std::time::Duration::from_secs;
    let (work, limits, tools) = (&agent.pace, &agent.limits, &agent.tools);
    assert_eq!((agent.concurrency, work.tries), (42, 42));
    assert_eq!([work.hidden, work.pause, work.grace, work.poll], [seconds(42); 4]);
    assert_eq!((limits.turns, limits.time, limits.tokens), (Some(42), Some(seconds(42 * 60)), Some(4242)));
    assert_eq!((limits.errors, limits.repeats, agent.system_prompt.as_deref()), (42, Some(42), Some("値")));
    let path = Some(world.path("work/値"));
    assert_eq!([&agent.rules_file, &agent.playbook, &tools.work_dir], [&path; 3]);
    assert_eq!((tools.enabled.len(), tools.allow.len(), tools.timeout), (2, 2, seconds(42)));
    assert_eq!((tools.most_output, tools.sandbox), (42 << 20, Sandbox::Off));
    assert_eq!((tools.prepare.as_deref(), &tools.network), (Some("値"), &Network::Open));
    let limits = ProcessLimits { memory: 42 << 20, cpu: 42, processes: 42, disk: 42 << 20 };
    assert_eq!(tools.limits, limits);
}

/// What the settings of GitHub and GitLab come to.
fn check_trackers(agent: &super::super::AgentConfig) {
    assert_eq!(
        agent.trackers.iter().map(|tracker| tracker.kind.name()).collect::<Vec<_>>(),
        ["github", "gitlab"]
    );
    for tracker in &agent.trackers {
        assert_eq!((tracker.base_url.as_str(), tracker.repos.len()), ("http://localhost:1234", 2));
        assert_eq!((tracker.token.as_deref(), tracker.user.as_deref()), (Some("値"), Some("値")));
        let labels = [&tracker.label, &tracker.running, &tracker.done, &tracker.failed, &tracker.paused];
        assert!(labels.iter().all(|label| *label == "値"));
        assert_eq!(tracker.patience.as_secs(), 42);
    }
}

/// What the settings of MCP servers come to.
fn check_mcp_servers(agent: &super::super::AgentConfig, world: &World) {
    use komado_agent::mcp::McpTransport;
    use komado_agent::sandbox::{Network, Sandbox};
    let [started, web] = agent.servers.as_slice() else { panic!("two servers") };
    assert_eq!((started.name.as_str(), web.name.as_str()), ("openai", "web"));
    assert_eq!((started.call.as_secs(), started.start.as_secs(), started.only.len()), (42, 42, 2));
    let pair = vec![("名".to_owned(), "値".to_owned())];
    let McpTransport::Command { program, args, env, folder, confinement, .. } = &started.how else {
        panic!("it is started")
    };
    assert_eq!((confinement.sandbox, &confinement.network), (Sandbox::Off, &Network::Open));
    assert_eq!((program.as_str(), args.len(), env), ("値", 2, &pair));
    assert_eq!(folder, &Some(world.path("work/値")));
    assert!(web.how == McpTransport::Http { url: "http://localhost:1234/".into(), headers: pair });
}

/// What the settings of the server come to.
fn check_server(server: &super::super::ServerConfig) {
    use komado_engine::relay::ToolOffer;
    assert_eq!((server.listen.as_str(), server.upstream.as_deref()), ("値", Some("値")));
    assert_eq!((server.on_fault, server.recall), (super::super::OnFault::Stop, ToolOffer::Never));
    let counts = [server.body_limit_mb, server.concurrency, server.rate, server.timeout_seconds];
    assert_eq!((counts, server.grace_seconds, server.forward_other), ([42; 4], 42, false));
}

/// What the settings of a store on a server, and of traces, come to.
fn check_store(config: &super::super::Config) {
    let (store, traces) = (&config.store, &config.traces);
    let seconds = |n| std::time::Duration::from_secs(n);
    assert_eq!((store.patience, store.lease, store.connections), (seconds(42), seconds(42), 42));
    assert_eq!(store.ttl, Some(seconds(42 * 24 * 3600)));
    assert_eq!((traces.endpoint.as_deref(), traces.service.as_str()), (Some("http://localhost:1234/"), "値"));
    assert_eq!(traces.headers.as_deref(), Some("値"));
}

#[test]
fn a_time_to_live_of_no_days_is_for_ever() {
    assert_eq!(World::new().flag("store.ttl_days", "0").load().store.ttl, None);
}

/// What the settings of the ladder come to.
fn check_ladder(config: &super::super::Config) {
    use komado_core::budget::{KeepRule, Preset, ToolBudget, Trigger};
    let policy = config.policy(None);
    assert_eq!(
        (policy.preset, policy.reserve, policy.tools),
        (Preset::Seed002, Some(4242), ToolBudget::Tokens(4242))
    );
    assert_eq!((policy.buffer, policy.low, policy.min_gain, policy.summary), (0.25, 0.25, 0.25, 0.25));
    assert_eq!(
        (policy.trigger, policy.keep, policy.min_messages),
        (Trigger::Movable(0.25), KeepRule::Share(0.25), 42)
    );
    assert!(!policy.rungs.trim && !policy.rungs.condense);
    assert_eq!(policy.thresholds.global, Some(25.0));
    assert_eq!(policy.thresholds.effective(&["gpt-4.1"]), Some(25.0));
    assert_eq!(config.models.output_limits, None);
    let settings = &config.models.summaries.settings;
    assert!(!settings.auto);
    assert_eq!((settings.model.as_deref(), settings.summary_prompt.as_deref()), (Some("値"), Some("値")));
    assert_eq!((settings.retain_prompt.as_deref(), settings.summary_directives.len()), (Some("値"), 2));
    assert_eq!(settings.retain_directives, ["値", "値"]);
    let by = config.models.summaries.without_model(komado_core::Meter::O200k).ok().unwrap();
    assert_eq!(by.name(), "値");
}

#[test]
fn each_switch_alone_turns_summaries_off() {
    for (switches, on) in
        [("enabled: true, auto: true", true), ("enabled: false", false), ("auto: false", false)]
    {
        let config = World::with_file(&format!("compaction: {{{switches}}}\n")).load();
        assert_eq!(config.policy(None).rungs.condense, on, "{switches}");
    }
}

#[test]
fn limits_turns_and_lists_are_read_as_seed_001_spells_them() {
    let config = World::with_file(
        "tool_output_cache: {maxMessageBytes: 4096, maxLineLength: 100, contextBudgetTokens: 30000}\n\
         compaction: {thresholdRatio: 0.6, retainLastTurns: 2, summaryDirectives: [keep ids, keep paths]}\n",
    )
    .load();
    use komado_core::budget::{KeepRule, ToolBudget, Trigger};
    let limits = config.models.output_limits.unwrap();
    assert_eq!((limits.max_message_bytes, limits.max_line_length), (4096, 100));
    let policy = config.policy(None);
    assert_eq!(policy.tools, ToolBudget::Tokens(30_000));
    assert_eq!((policy.trigger, policy.keep), (Trigger::AtWindow(0.6), KeepRule::Turns(2)));
    assert_eq!(config.models.summaries.settings.summary_directives, ["keep ids", "keep paths"]);
}

#[test]
fn a_threshold_may_be_inherited_and_others_than_5_to_100_are_refused() {
    let config = World::with_file(
        "budget: {threshold: 80}\nllm: {openai: {threshold: -1}, ollama: {threshold: 50}}\n",
    );
    let policy = config.load().policy(None);
    assert_eq!(policy.thresholds.effective(&["openai"]), Some(80.0));
    assert_eq!(policy.thresholds.effective(&["ollama"]), Some(50.0));
    let error = World::new().flag("llm.openai.threshold", "4").error();
    assert!(error.contains("from 5 to 100") && error.contains('4'), "{error}");
}

#[test]
fn the_listing_has_every_setting_once_in_the_tables_order() {
    let config = World::with_file("llm: {ollama: {model: m}}\n").load();
    let keys: Vec<String> = config.rows().into_iter().map(|row| row.key).collect();
    let single =
        SETTINGS.iter().filter(|setting| !setting.is_family()).map(|setting| setting.path.to_owned());
    let family = ["ollama", "openai"].into_iter().flat_map(|name| {
        SETTINGS
            .iter()
            .filter(|setting| setting.stand_in() == Some(PROVIDER))
            .map(move |setting| setting.key_for(name))
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
    assert!(manual.contains("| a whole number from 0 to 36500, or a time such as 30d, 2w or 48h | `30` |"));
    assert!(manual.lines().all(|line| line.matches('|').count() == 6), "{manual}");
}

#[test]
fn tokens_and_times_are_written_as_people_write_them() {
    let config = World::new()
        .flag("llm.openai.context_length", "128k")
        .flag("budget.reserve", "4_000")
        .flag("context_storage.cleanup_days", "2w")
        .flag("retry.delay_seconds", "1m")
        .load();
    let value = |key: &str| super::row(&config, key).value;
    assert_eq!(
        (value("llm.openai.context_length"), value("budget.reserve")),
        ("128000".into(), "4000".into())
    );
    assert_eq!((config.cleanup_days, value("retry.delay_seconds")), (14, "60".into()));
    let bounded = World::new().flag("retry.delay_seconds", "2h").error();
    assert!(bounded.contains("from 0 to 3600") && bounded.ends_with("not: 2h"), "{bounded}");
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
    assert_eq!(config.models.of("社内").unwrap().model.as_deref(), Some("大規模"));
    assert_eq!(config.models.of("qwen2.5").unwrap().context_length, Some(8));
}
