//! Who is asked.

use crate::gateway::run::Place;
use crate::gateway::stage::{ASKS, Fake, Gateway};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

fn two() -> (Fake, Fake, Gateway) {
    let (one, other) = (Fake::saying("one"), Fake::saying("other"));
    let place = Place::new();
    let settings = format!(
        "llm:\n  one: {{base_url: \"{}\", models: [\"gpt-*\"]}}\n  社内: {{base_url: \"{}\", models: [窓]}}\n\
         server: {{upstream: one}}\n",
        one.url, other.url
    );
    place.settings(&settings);
    let gateway = Gateway::start(place, &[]);
    (one, other, gateway)
}

fn ask(gateway: &Gateway, path: &str, model: &str) -> String {
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{path} {model}"}}]}}"#);
    let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
    answer.json()["choices"][0]["message"]["content"].as_str().unwrap_or(&answer.text()).to_owned()
}

#[test]
fn the_path_the_models_name_the_lists_and_the_default_choose_in_this_order() {
    let (_one, _other, gateway) = two();
    assert_eq!(ask(&gateway, "/v1/chat/completions", "anything"), "one");
    assert_eq!(ask(&gateway, "/v1/chat/completions", "窓"), "other");
    assert_eq!(ask(&gateway, "/chat/completions", "gpt-5"), "one");
    assert_eq!(ask(&gateway, "/%E7%A4%BE%E5%86%85/v1/chat/completions", "gpt-5"), "other");
    assert_eq!(ask(&gateway, "/one/chat/completions", "窓"), "one");
}

#[test]
fn a_provider_before_the_models_name_is_taken_out_of_what_is_sent() {
    let (_one, other, gateway) = two();
    assert_eq!(ask(&gateway, "/v1/chat/completions", "社内/大規模"), "other");
    assert_eq!(other.seen()[0].json()["model"], "大規模");
}

#[test]
fn models_of_all_providers_are_listed_by_both_names() {
    let list = |id: &'static str| {
        Fake::start(move |_, stream| {
            crate::gateway::stage::say(stream, 200, &format!(r#"{{"data":[{{"id":"{id}","x":1}}]}}"#))
        })
    };
    let (one, other) = (list("m"), list("窓"));
    let sets = [format!("llm.one.base_url={}", one.url), format!("llm.other.base_url={}", other.url)];
    let gateway = Gateway::start(Place::new(), &["--set", &sets[0], "--set", &sets[1]]);
    let models = gateway.get("/v1/models").json();
    let ids: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m", "one/m", "窓", "other/窓"]);
    let anthropic = gateway.ask("GET /v1/models", &[("anthropic-version", "2023-06-01")], b"").json();
    assert_eq!(
        (anthropic["has_more"].as_bool(), anthropic["data"][0]["type"].as_str()),
        (Some(false), Some("model"))
    );
    let own = gateway.get("/other/v1/models").text();
    assert_eq!(own, r#"{"data":[{"id":"窓","x":1}]}"#, "untouched");
}

#[test]
fn a_clients_key_goes_to_nobody_it_is_not_meant_for() {
    let (one, other) = (Fake::saying("one"), Fake::saying("other"));
    let place = Place::new();
    let settings = format!(
        "llm:\n  one: {{base_url: \"{}\"}}\n  other: {{base_url: \"{}\", dialect: anthropic, models: [窓]}}\n\
         server: {{upstream: one}}\n",
        one.url, other.url
    );
    place.settings(&settings);
    let gateway = Gateway::start(place, &[]);
    let key = [("authorization", "Bearer sk-of-the-client-0123456789")];
    let carried = |fake: &Fake| {
        let all = fake.seen();
        all.iter().filter(|heard| format!("{:?}", heard.headers).contains("sk-of-the-client")).count()
    };
    gateway.ask("GET /v1/models", &key, b"");
    assert_eq!((one.seen().len(), other.seen().len()), (1, 1));
    assert_eq!((carried(&one), carried(&other)), (0, 0), "a list of all is asked for without it");
    let body = r#"{"model":"窓","messages":[{"role":"user","content":"a"}]}"#;
    gateway.ask("POST /v1/chat/completions", &key, body.as_bytes());
    assert_eq!(carried(&other), 0, "another API's provider does not get it");
    gateway.ask("POST /v1/chat/completions", &key, body.replace("窓", "m").as_bytes());
    assert_eq!(carried(&one), 1, "the one that speaks the client's API does");
    gateway.ask("POST /other/v1/messages", &key, ASKS[2].2.as_bytes());
    assert_eq!(carried(&other), 1, "and so does one that the path names");
}

#[test]
fn a_models_name_cannot_lead_out_of_the_version() {
    let fake = Fake::saying("x");
    let gateway = Gateway::before(&fake, "openai", &[]);
    for path in ["/v1/models/..%2F..%2Fadmin", "/v1/%2e%2e/admin", "/test/v1/models/%2e%2e"] {
        assert_eq!(gateway.get(path).status(), 404, "{path}");
    }
    assert!(fake.seen().is_empty(), "{:?}", fake.seen());
    gateway.get("/v1/models/a%2Fb%3Fc");
    assert_eq!(fake.seen()[0].line, "GET /v1/models/a/b%3Fc HTTP/1.1");
}

#[test]
fn with_nothing_set_up_the_server_does_not_start_and_says_what_to_do() {
    // To say something of the built-in model is not to choose it.
    for about in [&[][..], &["--set", "llm.scripted.context_length=5000"]] {
        let place = Place::new();
        let args: Vec<&str> =
            ["serve", "--listen", "127.0.0.1:0", "--json"].iter().chain(about).copied().collect();
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if let Ok(ready) = serde_json::from_str::<serde_json::Value>(&line) {
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(ready["found"], "local", "only a model that runs on this machine may have been found");
            continue;
        }
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{err}");
        for part in ["no model provider", "--upstream NAME", "OPENAI_API_KEY", "--upstream scripted"] {
            assert!(err.contains(part), "{part}: {err}");
        }
    }
}

#[test]
fn the_scripted_model_is_served_where_it_is_named() {
    let gateway = Gateway::start(Place::new(), &["--upstream", "scripted"]);
    let names: Vec<&str> = gateway.ready["upstreams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["scripted"]);
    for (_, path, body) in ASKS {
        let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
        assert!(answer.text().contains("You said"), "{}", answer.text());
    }
    let tags = gateway.get("/api/tags");
    assert_eq!((tags.status(), tags.json()["models"][0]["name"].as_str()), (200, Some("scripted")));
}

#[test]
fn keys_in_the_environment_are_found_and_never_shown() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command
        .env("OPENAI_API_KEY", "sk-sesame-0123456789")
        .env("ANTHROPIC_API_KEY", "sk-ant-sesame-0123456789");
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let _ = child.kill();
    let _ = child.wait();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let names: Vec<&str> =
        ready["upstreams"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((names, ready["found"].as_str()), (vec!["openai", "anthropic"], Some("environment")));
    assert!(!line.contains("sesame"), "{line}");
}

#[test]
fn tokens_are_counted_by_the_provider_where_it_can_and_by_us_where_not() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"one two three"}]}"#;
    let can = Fake::start(|_, stream| crate::gateway::stage::say(stream, 200, r#"{"input_tokens":77}"#));
    let cannot = Fake::start(|_, stream| crate::gateway::stage::say(stream, 404, "{}"));
    for (fake, dialect, theirs) in
        [(&can, "anthropic", true), (&cannot, "anthropic", false), (&can, "openai", false)]
    {
        let gateway = Gateway::before(fake, dialect, &[]);
        let answer = gateway.ask("POST /v1/messages/count_tokens", &[], body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let tokens = answer.json()["input_tokens"].as_u64().unwrap();
        assert!(if theirs { tokens == 77 } else { (3..40).contains(&tokens) }, "{tokens}");
    }
    let gateway = Gateway::before(&cannot, "anthropic", &[]);
    let bad = gateway.ask("POST /v1/messages/count_tokens", &[], b"{\"messages\":3}");
    assert_eq!((bad.status(), bad.json()["type"].as_str()), (400, Some("error")));
}

#[test]
fn the_gateway_stands_in_front_of_any_address() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::start(Place::new(), &["--upstream", &fake.url]);
    assert_eq!(gateway.ready["upstreams"][0]["url"], fake.url.as_str(), "{}", gateway.ready);
    assert_eq!(ask(&gateway, "/v1/chat/completions", "any"), "はい");
    let body = br#"{"model":"any","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}"#;
    let answer = gateway.ask("POST /v1/messages", &[("x-api-key", "sk-of-the-client-itself")], body);
    assert_eq!(answer.json()["content"][0]["text"], "はい", "{}", answer.text());
    // What the session was asked through it is asked there again, without a gateway.
    let session = answer.header("x-komado-session").to_owned();
    let said = gateway.place.run(&["ask", &session, "and then?", "--window", "9000"]);
    assert_eq!((said.code, said.out.as_str()), (0, "はい\n"), "{}", said.err);
    let said = Place::new().run(&["serve", "--upstream", "nosuch", "--listen", "127.0.0.1:0"]);
    assert!(said.code == 2 && said.err.contains("given by its address"), "{}", said.err);
    assert!(!said.err.contains("--base-url"), "serve has no such option: {}", said.err);
}
