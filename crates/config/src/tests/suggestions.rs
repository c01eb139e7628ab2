//! Does a misspelling get a helpful answer?

use super::World;

#[test]
fn an_unknown_key_in_the_file_gets_a_suggestion_and_its_place() {
    let cases = [
        (
            "context_storage:\n  cleanup_day: 3\n",
            "2:3: unknown key: context_storage.cleanup_day; did you mean context_storage.cleanup_days?",
        ),
        ("contxt_storage: {}\n", "1:1: unknown key: contxt_storage; did you mean context_storage?"),
        ("cleanup_days: 3\n", "1:1: unknown key: cleanup_days; did you mean context_storage.cleanup_days?"),
        (
            "llm: {openai: {apikey: x}}\n",
            "1:16: unknown key: llm.openai.apikey; did you mean llm.openai.api_key?",
        ),
        (
            "session: {max_depth: 3}\n",
            "1:11: unknown key: session.max_depth; did you mean threads.max_depth?",
        ),
        (
            "context_storage.cleanup_days: 3\n",
            "1:1: unknown key: context_storage.cleanup_days; \
             write cleanup_days on a line of its own under context_storage",
        ),
        ("session:\n  名前: 花子\n", "2:3: unknown key: session.名前; known here: max_history, user, meter"),
    ];
    for (yaml, message) in cases {
        assert_eq!(World::with_file(yaml).error(), format!("komado.yaml:{message}"));
    }
}

#[test]
fn a_misspelt_setting_where_a_provider_could_stand_gets_a_suggestion() {
    assert_eq!(
        World::with_file("llm: {provder: openai}\n").error(),
        "komado.yaml:1:16: llm.provder must be a mapping, not a single value; did you mean llm.provider?"
    );
}

#[test]
fn an_unknown_key_of_a_flag_gets_a_suggestion() {
    let cases = [
        ("cleanup_day", "did you mean context_storage.cleanup_days?"),
        ("storage.base_dir", "did you mean context_storage.base_dir?"),
        ("llm.ollama.contextlength", "did you mean llm.ollama.context_length?"),
        ("xyzzy", "`komado admin config` lists the keys"),
        ("", "`komado admin config` lists the keys"),
        ("llm..model", "did you mean llm.openai.model?"),
    ];
    for (key, hint) in cases {
        assert_eq!(World::new().flag(key, "3").error(), format!("--set: unknown key: {key}; {hint}"));
    }
}

#[test]
fn an_unknown_variable_gets_a_suggestion() {
    let cases = [
        ("KOMADO_BASEDIR", "KOMADO_BASE_DIR"),
        ("KOMADO_CLEANUP_DAYS", "KOMADO_CONTEXT_STORAGE_CLEANUP_DAYS"),
        ("KOMADO_STORAGE_CLEANUP_DAYS", "KOMADO_CONTEXT_STORAGE_CLEANUP_DAYS"),
        ("KOMADO_SESSION_USR", "KOMADO_SESSION_USER"),
        ("KOMADO_LLM_OPENAI_CONTEXT_LENGHT", "KOMADO_LLM_OPENAI_CONTEXT_LENGTH"),
        ("KOMADO_OPENAI_API_KEY", "KOMADO_LLM_OPENAI_API_KEY"),
        ("KOMADO_OLLAMA_MODEL", "KOMADO_LLM_OLLAMA_MODEL"),
    ];
    for (name, near) in cases {
        let expected = format!("the environment variable {name} sets nothing; did you mean {near}?");
        assert_eq!(World::new().env(name, "x").load().notes, [expected]);
    }
}

#[test]
fn a_suggestion_knows_the_providers_of_the_file() {
    let world = World::with_file("llm: {社内: {model: x}, my-gw: {model: y}}\n");
    let notes = world.env("KOMADO_MY_GW_API_KEY", "x").load().notes;
    assert!(notes[0].ends_with("did you mean KOMADO_LLM_MY_GW_API_KEY?"), "{notes:?}");
}

#[test]
fn a_chosen_provider_without_settings_is_a_note() {
    let notes = |name| World::new().flag("llm.provider", name).load().notes;
    assert_eq!(
        notes("opnai"),
        ["llm.provider names a provider without settings: opnai; did you mean openai?"]
    );
    assert_eq!(
        notes("社内"),
        ["llm.provider names a provider without settings: 社内; add a section llm.社内"]
    );
    assert!(notes("lmstudio").is_empty());
}
