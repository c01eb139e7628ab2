//! `komado models`: listing, finding, and a newer collection over the one that is built in.
use crate::run;

use run::Place;
use std::fs;

fn put(place: &Place, name: &str, text: &str) -> String {
    let path = place.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn models_are_listed_and_found() {
    let place = Place::new();
    let all = place.json_lines(&["models"]);
    assert!(all.len() >= 300);
    let table = place.ok(&["models"]);
    assert_eq!(table.lines().count(), all.len() + 1);
    let five = place.json(&["models", "openai/gpt-5"]);
    assert_eq!((&five["context"], &five["input_limit"]), (&400_000.into(), &272_000.into()));
    assert_eq!((&five["source"], &five["price"]["output"]), (&"built in".into(), &10.0.into()));
    let text = place.ok(&["models", "gpt-5"]);
    for word in ["openai/gpt-5", "400,000", "272,000", "input 1.25", "built in"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!place.base().exists(), "looking makes no store");
}

#[test]
fn an_unknown_model_says_what_to_do() {
    let place = Place::new();
    let said = place.run(&["models", "llama3.1:8b"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("llama3.1:8b") && said.err.contains("--window"), "{}", said.err);
    let said = place.run(&["models", "claude", "llama3.1:8b"]);
    assert!(said.code == 3 && said.err.contains("komado models WORD"), "{}", said.err);
}

#[test]
fn words_filter_the_list_over_name_and_provider() {
    let place = Place::new();
    let all = place.json_lines(&["models"]);
    let holds = |words: &[&str]| {
        let name = |m: &serde_json::Value| {
            format!("{}/{}", m["provider"].as_str().unwrap(), m["id"].as_str().unwrap()).to_lowercase()
        };
        all.iter().filter(|m| words.iter().all(|word| name(m).contains(word))).cloned().collect::<Vec<_>>()
    };
    let claude = holds(&["claude"]);
    assert!(claude.len() > 3 && claude.len() < all.len());
    assert_eq!(place.json_lines(&["models", "CLAUDE"]), claude);
    assert_eq!(place.json_lines(&["models", "sonnet-4", "anthropic"]), holds(&["sonnet-4", "anthropic"]));
    let said = place.run(&["models", "claude"]);
    assert_eq!(said.out.lines().count(), claude.len() + 1, "{}", said.out);
    assert!(said.err.contains(&format!("{} of {} models", claude.len(), all.len())), "{}", said.err);
    for model in &claude {
        let name = format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap());
        assert!(said.out.lines().any(|line| line.ends_with(&name)), "{name} is whole: {}", said.out);
    }
    let only = all.iter().find(|m| holds(&[m["id"].as_str().unwrap()]).len() == 1).unwrap();
    let id = only["id"].as_str().unwrap();
    assert!(place.ok(&["models", id]).contains("longest answer"), "{id}: one model is shown in full");
}

#[test]
fn a_newer_collection_lies_over_the_one_that_is_built_in() {
    let place = Place::new();
    let own = put(
        &place,
        "own.jsonl",
        "{\"id\":\"gpt-5\",\"provider\":\"openai\",\"context\":500000}\n{\"id\":\"小窓-1\",\"provider\":\"me\",\"context\":8192}\n",
    );
    let text = place.ok(&["models", "update", &own]);
    for word in [
        "2 models: 1 new, 1 changed, 0 as before",
        "openai/gpt-5: window 400,000 → 500,000, input 272,000 → none",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(place.json(&["models", "gpt-5"])["context"], 500_000);
    assert_eq!(place.json(&["models", "小窓-1"])["source"], "file");
    assert_eq!(place.json(&["models", "gpt-4o"])["source"], "built in");
    let again = place.json(&["models", "update", &own]);
    assert_eq!((&again["added"], &again["changed"], &again["same"]), (&0.into(), &0.into(), &2.into()));
    fs::remove_file(place.base().join("models.jsonl")).unwrap();
    assert_eq!(place.json(&["models", "gpt-5"])["context"], 400_000);
}

#[test]
fn other_collections_are_converted() {
    let place = Place::new();
    let api = put(
        &place,
        "api.json",
        r#"{"acme":{"models":{"a-1":{"limit":{"context":9000,"output":900},"cost":{"input":1,"output":2}}}}}"#,
    );
    assert_eq!(place.json(&["models", "update", &api])["rows"], 1);
    assert_eq!(place.json(&["models", "a-1"])["price"]["output"], 2.0);
    let prices = put(
        &place,
        "prices.json",
        r#"{"b-1":{"litellm_provider":"b","mode":"chat","max_input_tokens":7000,"input_cost_per_token":2e-06,"output_cost_per_token":4e-06}}"#,
    );
    place.ok(&["models", "update", &prices]);
    assert_eq!(place.json(&["models", "b-1"])["context"], 7000);
    assert_eq!(place.run(&["models", "a-1"]).code, 3, "the newer file takes the place of the one before");
}

#[test]
fn a_bad_file_changes_nothing_and_is_named() {
    let place = Place::new();
    let good = put(&place, "good.jsonl", r#"{"id":"m","provider":"p","context":10}"#);
    place.ok(&["models", "update", &good]);
    let kept = fs::read(place.base().join("models.jsonl")).unwrap();
    for (name, text, words) in [
        (
            "a.jsonl",
            "{\"id\":\"m\",\"provider\":\"p\",\"context\":10}\n{\"id\":\"n\",\"provider\":\"p\",\"context\":\"big\"}",
            ["a.jsonl: line 2", "`context`"],
        ),
        ("b.json", r#"{"x":{"models":{"y":{"limit":{"context":[]}}}}}"#, ["b.json: x/y", "`limit.context`"]),
        ("c.json", r#"{"x":1}"#, ["c.json", "neither"]),
        ("d.jsonl", "", ["d.jsonl", "no model"]),
        ("e.jsonl", "nonsense", ["e.jsonl: line 1", "nothing was changed"]),
    ] {
        let file = put(&place, name, text);
        let said = place.run(&["models", "update", &file]);
        assert_eq!(said.code, 6, "{name}: {}", said.err);
        words.iter().for_each(|word| assert!(said.err.contains(word), "{word}: {}", said.err));
    }
    assert_eq!(place.run(&["models", "update", "nowhere.json"]).code, 3);
    assert_eq!(fs::read(place.base().join("models.jsonl")).unwrap(), kept);
    let mut left: Vec<_> =
        fs::read_dir(place.base()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["models.jsonl"], "no half-written file stays");
}

#[test]
fn a_file_that_was_broken_by_hand_is_named_and_can_be_replaced() {
    let place = Place::new();
    fs::create_dir_all(place.base()).unwrap();
    fs::write(place.base().join("models.jsonl"), "{\"id\":7}").unwrap();
    let said = place.run(&["models"]);
    assert!(said.code == 6 && said.err.contains("models.jsonl: line 1"), "{}", said.err);
    let good = put(&place, "good.jsonl", r#"{"id":"m","provider":"p","context":10}"#);
    place.ok(&["models", "update", &good]);
    assert_eq!(place.json(&["models", "m"])["context"], 10);
    assert_eq!(place.run(&["admin", "doctor"]).code, 0, "the store does not mind the file");
}

#[test]
fn a_model_that_is_not_known_is_answered_with_the_nearest_that_are() {
    let place = Place::new();
    let near = "did you mean \"claude-sonnet-4";
    let mut ask = place.command(&["ask", "hello", "--provider", "anthropic", "--model", "claud-sonnet"]);
    ask.env("ANTHROPIC_API_KEY", "k");
    let new = ["new", "--provider", "anthropic", "--model", "claud-sonnet"];
    for said in [run::feed(ask, b""), place.run(&new), place.run(&["models", "claud-sonnet"])] {
        assert!(matches!(said.code, 2 | 3) && said.err.contains(near), "{}", said.err);
    }
    let said = place.run(&["new", "--provider", "anthropic", "--model", "quite-another"]);
    assert!(said.code == 2 && !said.err.contains("did you mean"), "{}", said.err);
    let said = place.run(&["new", "--provider", "ollama", "--model", "claud-sonnet"]);
    assert!(said.code == 2 && !said.err.contains("did you mean"), "its server has the window: {}", said.err);
    // With a window it works as it stands.
    place.ok(&["new", "--model", "claud-sonnet", "--window", "8000"]);
}
