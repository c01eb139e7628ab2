//! The models that are compiled in, how a name finds its row, and what is refused.
use komado_core::journal::Usage;
use komado_provider::registry::{BadRegistry, PRICES_OF, PriceTable, Registry, RegistrySource};

fn found(name: &str) -> Option<(String, String)> {
    Registry::builtin().find(name).map(|model| (model.provider.clone(), model.id.clone()))
}

fn id(name: &str) -> Option<String> {
    found(name).map(|(_, id)| id)
}

#[test]
fn the_rows_that_are_compiled_in_are_sound_and_sorted() {
    let registry = Registry::builtin();
    let models = registry.models();
    assert!(models.len() >= 300, "{}", models.len());
    assert!(
        models.windows(2).all(|pair| (&pair[0].provider, &pair[0].id) < (&pair[1].provider, &pair[1].id))
    );
    assert!(
        models
            .iter()
            .all(|model| model.input_limit() <= model.context && model.source == RegistrySource::Builtin)
    );
    let text = include_str!("../src/registry/models.jsonl");
    assert!(text.len() < 120 << 10);
    assert_eq!(Registry::read(text).unwrap().models().len(), models.len(), "a row was lost");
    let notice = include_str!("../src/registry/NOTICE");
    for holder in ["spin.dev", "Vladimir Klimontovich", "Berri AI", "Permission is hereby granted"] {
        assert!(notice.contains(holder), "{holder}");
    }
    assert!(
        notice.contains(&format!("Taken on {PRICES_OF}")),
        "the day of the prices is the day they were taken"
    );
}

#[test]
fn tokens_cost_what_their_kind_costs_and_a_model_without_a_price_costs_nothing_that_is_known() {
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 100_000,
        cache_read_tokens: 2_000_000,
        cache_creation_tokens: 10_000,
    };
    let own = r#"{"id":"tiny","provider":"own","context":1000,"price":{"input":2.0,"output":4.0}}
{"id":"free","provider":"own","context":1000,"price":{"input":0.0,"output":0.0}}
{"id":"unpriced","provider":"own","context":1000}"#;
    let registry = Registry::builtin().under(Registry::read(own).unwrap());
    let prices = PriceTable { registry, own_of: Some("2027-01-02".into()) };
    let tiny = prices.price(Some("own"), "tiny").unwrap();
    assert_eq!((tiny.price.of(&usage), tiny.of.as_str()), (2.0 + 0.4 + 4.0 + 0.02, "2027-01-02"));
    assert_eq!(prices.price(Some("own"), "free").unwrap().price.of(&usage), 0.0);
    let five = prices.price(Some("openai"), "gpt-5").unwrap();
    assert_eq!((five.price.of(&usage), five.of.as_str()), (1.25 + 1.0 + 0.25 + 0.0125, PRICES_OF));
    assert_eq!(prices.price(None, "gpt-5"), Some(five));
    for (provider, model) in
        [("own", "unpriced"), ("own", "never-heard-of"), ("ollama", "gpt-5"), ("ollama", "llama3")]
    {
        assert_eq!(prices.price(Some(provider), model), None, "{provider} {model}");
    }
}

#[test]
fn what_may_be_sent_can_be_less_than_the_window() {
    let registry = Registry::builtin();
    let five = registry.find("gpt-5").unwrap();
    assert_eq!((five.context, five.input_limit(), five.output), (400_000, 272_000, Some(128_000)));
    let price = five.price.unwrap();
    assert!((price.input, price.output) == (1.25, 10.0) && price.cache_read == Some(0.125), "{price:?}");
    let sonnet = registry.find("claude-sonnet-4-20250514").unwrap();
    assert_eq!(sonnet.input_limit(), sonnet.context);
}

#[test]
fn a_name_is_found_as_it_stands_and_the_maker_comes_first() {
    assert_eq!(found("gpt-4o"), Some(("openai".into(), "gpt-4o".into())));
    assert_eq!(found("deepseek-chat"), Some(("deepseek".into(), "deepseek-chat".into())));
    let groq = Registry::builtin();
    let there = groq.models().iter().find(|model| model.provider == "groq").unwrap();
    assert_eq!(found(&format!("groq/{}", there.id)).unwrap().0, "groq");
}

#[test]
fn routers_dates_tags_and_latest_make_no_difference() {
    for name in ["openai/gpt-4o", "openrouter/openai/gpt-4o", "gpt-4o:free", "GPT-4o", "gpt-4o-latest"] {
        assert_eq!(id(name).as_deref(), Some("gpt-4o"), "{name}");
    }
    assert_eq!(id("gpt-4.1-2025-04-14").as_deref(), Some("gpt-4.1"));
    for name in [
        "claude-sonnet-4",
        "anthropic/claude-sonnet-4",
        "claude-sonnet-4@20250514",
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
    ] {
        assert!(id(name).is_some_and(|id| id.contains("claude-sonnet-4")), "{name}: {:?}", id(name));
    }
    assert!(id("anthropic/claude-3.5-haiku:beta").unwrap().starts_with("claude-3-5-haiku"));
    assert_eq!(id("ft:gpt-4o-mini-2024-07-18:acme::abc").as_deref(), Some("gpt-4o-mini"));
    assert_eq!(
        id("gemini-2.5-pro-preview-05-06").as_deref().map(|id| id.starts_with("gemini-2.5-pro")),
        Some(true)
    );
}

#[test]
fn a_beginning_counts_only_up_to_a_word_and_never_names_another_model() {
    assert_eq!(id("gpt-4-0613").as_deref(), Some("gpt-4"));
    assert_eq!(id("gpt-4o-2030-01-01-preview").as_deref(), Some("gpt-4o"));
    assert_eq!(id("gpt-4.1-preview").as_deref(), Some("gpt-4.1"));
    for name in [
        "gpt-4.7",
        "gpt-4x",
        "gpt-4-32k",
        "gpt-4-7b",
        "gpt-4-supermini-mini",
        "gpt-45",
        "claude",
        "gpt",
        "",
        " ",
    ] {
        assert_eq!(id(name), None, "{name}");
    }
    assert_ne!(id("gpt-4o-audio-preview").as_deref(), Some("gpt-4o"));
}

#[test]
fn what_runs_locally_is_not_looked_up() {
    for name in [
        "llama3.1:8b",
        "llama3.1:latest",
        "qwen3:30b-a3b-q4_K_M",
        "gpt-oss:20b",
        "gpt-4o:7b",
        "deepseek-r1:14b",
        "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        "models/gpt-4-Q8_0.gguf",
        "/models/gpt-4",
        "TheBloke/gpt-4-GPTQ",
        "mlx-community/gpt-4o-4bit",
        "gpt-4-iq3",
    ] {
        assert_eq!(id(name), None, "{name}");
    }
}

#[test]
fn a_bad_row_is_named_by_line_and_field() {
    let says = |text: &str| Registry::read(text).unwrap_err().to_string();
    let good = r#"{"id":"m","provider":"p","context":10}"#;
    let field = |row: &str| says(&format!("# note\n\n{good}\n{row}"));
    assert_eq!(says(""), "there is no model in it");
    assert!(says("{\"id\":").starts_with("line 1: "), "{}", says("{\"id\":"));
    for (row, start) in [
        (r#"{"provider":"p","context":10}"#, "line 4: field `id`: missing"),
        (r#"{"id":"","provider":"p","context":10}"#, "line 4: field `id`: missing or empty"),
        (r#"{"id":"n","provider":7,"context":10}"#, "line 4: field `provider`: "),
        (r#"{"id":"n","provider":"p"}"#, "line 4: field `context`: missing"),
        (r#"{"id":"n","provider":"p","context":"10"}"#, "line 4: field `context`: "),
        (r#"{"id":"n","provider":"p","context":0}"#, "line 4: field `context`: must be more than 0"),
        (r#"{"id":"n","provider":"p","context":-1}"#, "line 4: field `context`: "),
        (
            r#"{"id":"n","provider":"p","context":10,"input":11}"#,
            "line 4: field `input`: 11 is more than the window",
        ),
        (r#"{"id":"n","provider":"p","context":10,"output":11}"#, "line 4: field `output`: 11 is more"),
        (r#"{"id":"n","provider":"p","context":10,"price":{"input":1}}"#, "line 4: field `price`: "),
        (
            r#"{"id":"n","provider":"p","context":10,"price":{"input":-1,"output":1}}"#,
            "line 4: field `price`: -1",
        ),
        (r#"{"id":"n","provider":"p","context":10,"window":5}"#, "line 4: field `window`: not known"),
        (good, "line 4: field `id`: \"m\" of \"p\" is on line 3"),
    ] {
        let said = field(row);
        assert!(said.starts_with(start), "{row}: {said}");
    }
}

#[test]
fn the_users_rows_lie_over_those_that_are_compiled_in() {
    let own = r#"{"id":"gpt-5","provider":"openai","context":1000}
{"id":"gpt-4o","provider":"my-proxy","context":2000,"price":{"input":0.1,"output":0.2}}
{"id":"小窓-1","provider":"わたし","context":3000}"#;
    let before = Registry::builtin();
    let both = Registry::builtin().under(Registry::read(own).unwrap());
    assert_eq!(both.models().len(), before.models().len() + 2);
    assert_eq!(both.find("gpt-5").unwrap().context, 1000);
    assert_eq!(both.find("gpt-4o").unwrap().provider, "my-proxy");
    assert_eq!(both.find("openai/gpt-4o").unwrap().provider, "openai");
    assert_eq!(both.find("小窓-1").unwrap().source, RegistrySource::File);
    let again = Registry::read(&both.write()).unwrap();
    assert_eq!(again.models().len(), both.models().len());
    assert_eq!(again.get("my-proxy", "gpt-4o").unwrap().price, both.get("my-proxy", "gpt-4o").unwrap().price);
}

#[test]
fn models_dev_and_litellm_are_converted() {
    let api = r#"{"acme":{"id":"acme","models":{
        "a-1":{"id":"a-1","limit":{"context":400000,"input":272000,"output":128000},"cost":{"input":1.25,"output":10,"cache_read":0.125},"modalities":{"output":["text"]}},
        "a-draw":{"limit":{"context":1000},"modalities":{"output":["image"]}},
        "a-none":{"limit":{"context":0,"output":0}},
        "a-odd":{"limit":{"context":100,"input":100,"output":500}}}}}"#;
    let registry = Registry::read_any(api).unwrap();
    let ids: Vec<&str> = registry.models().iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["a-1", "a-odd"]);
    let (one, odd) = (&registry.models()[0], &registry.models()[1]);
    assert_eq!((one.input_limit(), one.price.unwrap().cache_read), (272_000, Some(0.125)));
    assert_eq!((odd.input, odd.output), (None, Some(100)));

    let prices = r#"{"sample_spec":{"max_tokens":"words","litellm_provider":"one of"},
        "b-1":{"litellm_provider":"b","mode":"chat","max_input_tokens":200000,"max_output_tokens":64000,"max_tokens":64000,"input_cost_per_token":3e-06,"output_cost_per_token":1.5e-05,"cache_creation_input_token_cost":3.75e-06},
        "b/b-2":{"litellm_provider":"b","mode":"completion","max_tokens":4096.0},
        "b-e":{"litellm_provider":"b","mode":"embedding","max_input_tokens":8191}}"#;
    let registry = Registry::read_any(prices).unwrap();
    let rows: Vec<_> = registry.models().iter().map(|model| (model.id.as_str(), model.context)).collect();
    assert_eq!(rows, [("b-1", 200_000), ("b-2", 4096)]);
    let price = registry.models()[0].price.unwrap();
    assert!((price.input, price.output, price.cache_write) == (3.0, 15.0, Some(3.75)), "{price:?}");
}

#[test]
fn a_foreign_file_that_is_wrong_is_named_by_its_entry() {
    let api = r#"{"acme":{"models":{"a-1":{"limit":{"context":"many"}}}}}"#;
    assert_eq!(
        Registry::read_any(api).unwrap_err().to_string(),
        r#"acme/a-1: field `limit.context`: "many" is not a number"#
    );
    let prices = r#"{"b":{"litellm_provider":"b","mode":"chat","max_input_tokens":-5}}"#;
    assert_eq!(
        Registry::read_any(prices).unwrap_err().to_string(),
        "b: field `max_input_tokens`: -5 is not a number"
    );
    assert_eq!(Registry::read_any(r#"{"a":{"b":1}}"#), Err(BadRegistry::UnknownForm));
    assert_eq!(Registry::read_any(r#"{"a":{"models":{}}}"#), Err(BadRegistry::Empty));
    let own = r#"{"id":"m","provider":"p","context":10}"#;
    assert_eq!(Registry::read_any(own).unwrap().models().len(), 1);
}
