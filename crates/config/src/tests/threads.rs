//! What do child threads get, and whose word counts?

use komado_core::session::{MetaConfig, StelisConfig};

use super::{World, line};

fn session(persona: Option<&str>, stelis: Option<StelisConfig>) -> MetaConfig {
    MetaConfig { persona: persona.map(str::to_owned), stelis_config: stelis, ..MetaConfig::default() }
}

#[test]
fn the_session_is_trusted_over_its_persona_and_the_persona_over_the_settings() {
    let config = World::with_file(
        "threads: {child_ratio: 0.6, max_depth: 5}\n\
         personas: {航海士: {stelis_config: {default_window_ratio: 0.7, max_depth: 4}}}\n",
    )
    .load();
    let got = |own: &MetaConfig| {
        let threads = config.threads(own);
        (threads.ratio, threads.max_depth)
    };
    assert_eq!(got(&session(None, None)), (0.6, 5));
    assert_eq!(got(&session(Some("航海士"), None)), (0.7, 4));
    let own = StelisConfig { default_window_ratio: Some(0.5), ..StelisConfig::default() };
    assert_eq!(got(&session(Some("航海士"), Some(own))), (0.5, 4));
    assert_eq!(got(&session(Some("someone else"), None)), (0.6, 5));
}

#[test]
fn the_setting_that_turned_threads_off_is_named_and_a_nearer_one_turns_them_on() {
    let config = World::with_file(
        "threads: {enabled: false}\npersonas: {a: {stelis_config: {enabled: true}}, b: {stelis_config: {enabled: false}}}\n",
    )
    .load();
    let off = |persona, enabled| {
        let own = StelisConfig { enabled, ..StelisConfig::default() };
        config.threads(&session(persona, Some(own))).off
    };
    assert!(off(None, None).unwrap().contains("threads.enabled is false"));
    assert_eq!(off(Some("a"), None), None);
    assert!(off(Some("b"), None).unwrap().contains("personas.b.stelis_config.enabled is false"));
    assert_eq!(off(Some("b"), Some(true)), None);
    assert!(off(Some("a"), Some(false)).unwrap().contains("stelis_config"));
}

#[test]
fn a_persona_may_be_set_by_variable_flag_and_file_under_one_name() {
    let world = World::with_file("personas: {Air.City: {stelis_config: {max_depth: 2}}}\n")
        .env("KOMADO_PERSONAS_AIR_CITY_STELIS_CONFIG_DEFAULT_WINDOW_RATIO", "0.9")
        .flag("personas.Air.City.stelis_config.enabled", "false");
    let config = world.load();
    let persona = config.persona("Air.City").unwrap();
    assert_eq!(
        (persona.enabled, persona.default_window_ratio, persona.max_depth),
        (Some(false), Some(0.9), Some(2))
    );
    assert_eq!(
        line(&config, "personas.Air.City.stelis_config.default_window_ratio"),
        "0.9 (env KOMADO_PERSONAS_AIR_CITY_STELIS_CONFIG_DEFAULT_WINDOW_RATIO)"
    );
}

#[test]
fn a_share_that_leaves_nothing_on_one_side_is_refused_by_name_and_range() {
    for value in ["0", "1", "1.2", "-0.5", "NaN", "abc"] {
        let error = World::new().env("STELIS_DEFAULT_WINDOW_RATIO", value).error();
        let expected = format!("threads.child_ratio must be a number from 0.01 to 0.99, not: {value}");
        assert!(error.contains(&expected) && error.contains("STELIS_DEFAULT_WINDOW_RATIO"), "{error}");
        let key = "personas.a.stelis_config.default_window_ratio";
        let error = World::new().flag(key, value).error();
        assert!(error.contains(key) && error.contains("0.01 to 0.99"), "{error}");
    }
    for value in ["-1", "1.5", "101", "deep"] {
        let error = World::new().env("STELIS_MAX_DEPTH", value).error();
        let expected = format!("threads.max_depth must be a whole number from 0 to 100, not: {value}");
        assert!(error.contains(&expected), "{error}");
    }
}
