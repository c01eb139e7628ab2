//! Is `${VAR}` replaced, and only where it should be?

use super::{World, line};

fn user(value: &str) -> World {
    World::with_file(&format!("session:\n  user: {value}\n")).env("NAME", "花子").env("EMPTY", "")
}

#[test]
fn references_become_the_variables_text() {
    let cases = [
        ("${NAME}", Some("花子")),
        ("\"<${NAME}${NAME}>\"", Some("<花子花子>")),
        ("${MISSING:-太郎}", Some("太郎")),
        ("${EMPTY:-太郎}", Some("太郎")),
        ("${NAME:-太郎}", Some("花子")),
        ("a${EMPTY}b", Some("ab")),
        ("${MISSING:-}", None),
        ("${MISSING:-a:-b}", Some("a:-b")),
        ("$$", Some("$")),
        ("$${NAME}", Some("${NAME}")),
        ("$$$$", Some("$$")),
        ("cost$5 $NAME $", Some("cost$5 $NAME $")),
        ("'$${x} ${NAME}'", Some("${x} 花子")),
    ];
    for (value, expected) in cases {
        assert_eq!(user(value).load().user.as_deref(), expected, "{value}");
    }
}

#[test]
fn a_variables_text_is_not_expanded_again_and_never_becomes_yaml() {
    let world = World::with_file("session:\n  user: ${TRAP}\n").env("TRAP", "${NAME}\n  meter: bytes4");
    let config = world.load();
    assert_eq!(config.user.as_deref(), Some("${NAME}\n  meter: bytes4"));
    assert_eq!(config.meter, "o200k");
}

#[test]
fn a_number_may_come_from_a_variable() {
    let world = World::with_file("context_storage: {cleanup_days: \"${DAYS}\"}\n").env("DAYS", "9");
    assert_eq!(world.load().cleanup_days, 9);
    let world = World::with_file("context_storage: {cleanup_days: \"${DAYS}\"}\n").env("DAYS", "nine");
    assert!(
        world
            .error()
            .ends_with("must be a whole number from 0 to 36500, or a time such as 30d, 2w or 48h, not: nine"),
        "{}",
        world.error()
    );
}

#[test]
fn an_unset_variable_names_itself_the_key_and_the_place() {
    let world = World::with_file("llm:\n  openai:\n    base_url: \"${BASE}/v1\"\n");
    assert_eq!(
        world.error(),
        "komado.yaml:3:15: llm.openai.base_url refers to an environment variable that is not set: BASE; \
         set it, or write ${BASE:-some default}"
    );
}

#[test]
fn a_key_without_its_variable_stays_unset_with_a_note() {
    let world = World::with_file("llm:\n  openai:\n    model: gpt-4o\n    api_key: \"${OPENAI_API_KEY}\"\n");
    let config = world.load();
    assert_eq!(config.models.of("openai").unwrap().api_key, None);
    assert_eq!(line(&config, "llm.openai.api_key"), "(unset) (komado.yaml:4)");
    assert_eq!(
        config.notes,
        ["llm.openai.api_key is unset: komado.yaml:4:14 refers to OPENAI_API_KEY, which is not set"]
    );
}

#[test]
fn the_note_goes_away_when_another_place_gives_the_key() {
    let world = World::with_file("llm: {openai: {api_key: \"${OPENAI_API_KEY}\"}}\n");
    let config = world.env("KOMADO_LLM_OPENAI_API_KEY", "sk-1").load();
    assert!(config.notes.is_empty());
    assert_eq!(config.models.of("openai").unwrap().api_key.as_deref(), Some("sk-1"));
}

#[test]
fn a_malformed_reference_says_what_is_wrong_with_it() {
    let cases = [
        ("${NAME", "the } is missing", "${NAME"),
        ("${}", "not a variable's name", "${}"),
        ("${1A}", "not a variable's name", "${1A}"),
        ("${名前}", "not a variable's name", "${名前}"),
        ("${NAME-x}", "not a variable's name", "${NAME-x}"),
        ("${A:-${NAME}}", "a default cannot hold another reference", "${A:-${NAME}"),
    ];
    for (value, problem, found) in cases {
        let expected = format!(
            "komado.yaml:2:9: session.user holds a ${{…}} that cannot be expanded ({problem}): {found}; \
             write $$ for a plain $"
        );
        assert_eq!(user(value).error(), expected);
    }
}

#[test]
fn flags_and_variables_are_taken_as_they_are() {
    assert_eq!(World::new().flag("session.user", "${X}").load().user.as_deref(), Some("${X}"));
    assert_eq!(World::new().env("KOMADO_USER", "$$").load().user.as_deref(), Some("$$"));
}
