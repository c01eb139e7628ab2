//! Is a secret ever shown?

use super::super::mask;
use super::{World, line};

const SECRET: &str = "sk-very-secret";

#[test]
fn a_key_is_known_and_never_shown() {
    let worlds = [
        World::with_file(&format!("llm: {{openai: {{api_key: {SECRET}}}}}\n")),
        World::with_file("llm: {openai: {api_key: '${K}'}}\n").env("K", SECRET),
        World::new().env("KOMADO_LLM_OPENAI_API_KEY", SECRET),
    ];
    for world in worlds {
        let config = world.load();
        assert_eq!(config.models.of("openai").unwrap().api_key.as_deref(), Some(SECRET));
        assert!(line(&config, "llm.openai.api_key").starts_with("(set) "));
        let shown =
            format!("{config:?} {:#?} {:?} {:?}", config.models.of("openai"), config.rows(), config.notes);
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn an_error_about_a_key_does_not_show_it() {
    let errors = [
        World::with_file(&format!("llm: {{openai: {{api_key: [{SECRET}]}}}}\n")),
        World::with_file(&format!("llm: {{openai: {{api_key: '{SECRET}${{'}}}}\n")),
        World::with_file(&format!("llm: {{openai: {{api_key: '${{{SECRET}}}'}}}}\n")),
        World::with_file(&format!("llm: {{openai: {{apikey: {SECRET}}}}}\n")),
        World::with_file(&format!("llm: {{openai: {{api_key: \"{SECRET}}}}}\n")),
        World::new().flag("llm.openai.apikey", SECRET),
        World::new().flag("llm.openai.api_key", SECRET),
    ];
    for world in errors {
        let shown = format!("{} {:?}", world.error(), world.try_load().err());
        assert!(!shown.contains("secret"), "{shown}");
    }
    let notes = World::new().env("KOMADO_LLM_OPENAI_APIKEY", SECRET).load().notes;
    assert!(notes.len() == 1 && !notes[0].contains("secret"), "{notes:?}");
}

#[test]
fn a_password_in_an_address_is_never_shown() {
    let url = format!("postgresql://hanako:{SECRET}@db/komado");
    let config = World::new().flag("store.url", &url).load();
    assert_eq!(config.store_url.as_deref(), Some(url.as_str()));
    assert_eq!(line(&config, "store.url"), "postgresql://***@db/komado (--set)");
    assert!(!format!("{config:?}").contains(SECRET));
    let config = World::new().flag("llm.x.base_url", &format!("https://{SECRET}@gw/")).load();
    assert!(!format!("{config:?} {:?}", config.models.of("x")).contains(SECRET));
    let error = World::new().flag("store.url", &format!("mysql://hanako:{SECRET}@db")).error();
    assert!(error.ends_with("not: mysql://***@db"), "{error}");
}

#[test]
fn an_address_is_masked_generously() {
    let cases = [
        ("file:", "file:"),
        ("https://api.openai.com/v1?x=1", "https://api.openai.com/v1?x=1"),
        ("redis://:p@h:1", "redis://***@h:1"),
        ("postgres://u:a/b@c@h/d", "postgres://***@h/d"),
        ("postgres://u:a?b@h/d", "postgres://***@h/d"),
        ("u:p@h", "***@h"),
        ("https://h/?api_key=1&q=2&Token=3", "https://h/?api_key=***&q=2&Token=***"),
        ("postgres://u:p@h/d?password=1", "postgres://***@h/d?password=***"),
        ("redis://:p", "redis://***"),
        ("postgres://u:p/d", "postgres://***"),
        ("redis://h:7000,h2:7001/0", "redis://h:7000,h2:7001/0"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("host=h user=u password=p", "***"),
    ];
    for (url, shown) in cases {
        assert_eq!(mask::url(url), shown);
    }
}

#[test]
fn a_key_loses_the_newline_that_a_file_left_on_it() {
    let config = World::new().env("KOMADO_LLM_OPENAI_API_KEY", "k\n").load();
    assert_eq!(config.models.of("openai").unwrap().api_key.as_deref(), Some("k"));
}

#[test]
fn a_key_is_never_taken_from_a_flag() {
    let error = World::new().flag("llm.my-gw.api_key", SECRET).error();
    for part in ["list of processes", "KOMADO_LLM_MY_GW_API_KEY", "llm.my-gw.api_key_file"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(
        World::new().flag("llm.openai.api_key", "").load().models.of("openai").is_some(),
        "unsetting it is fine"
    );
}
