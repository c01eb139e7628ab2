//! Do no harm: what would have worked without us works with us.

use crate::gateway::run::Place;
use crate::gateway::stage::{ASKS, Fake, Gateway, reply};

/// A gateway whose store goes away once it serves: where its folder should be there is a file.
fn without_store(fake: &Fake, dialect: &str, args: &[&str]) -> Gateway {
    let gateway = Gateway::before(fake, dialect, args);
    let base = gateway.place.base();
    // The server may be making the folder anew in the very moment in which it is taken away.
    for _ in 0..1000 {
        let _ = std::fs::remove_dir_all(&base);
        if std::fs::write(&base, "no folder").is_ok() {
            return gateway;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the folder {} comes back each time it is taken away", base.display());
}

#[test]
fn a_store_that_is_away_lets_requests_through_untouched_and_says_so() {
    for (dialect, path, body) in ASKS {
        let fake = Fake::saying("はい");
        let gateway = without_store(&fake, dialect, &[]);
        let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
        assert_eq!((answer.status(), answer.text()), (200, reply(path, "はい")), "{dialect}");
        assert!(!answer.header("x-komado-fault").is_empty(), "{answer:?}");
        assert_eq!(fake.seen()[0].text(), body);
        assert!(gateway.log().contains("an internal fault"), "{}", gateway.log());
        assert!(gateway.get("/metrics").text().contains("komado_faults_total{kind=\"store\"} 1"));
        let ready = gateway.get("/readyz");
        assert!(ready.status() == 200 && ready.text().starts_with("degraded"), "{}", ready.text());
    }
}

#[test]
fn a_store_that_is_away_stops_nobody_whose_provider_speaks_another_api() {
    for (dialect, at, (_, path, body)) in
        [("anthropic", "/v1/messages", ASKS[0]), ("openai", "/v1/chat/completions", ASKS[2])]
    {
        let fake = Fake::saying("はい");
        let gateway = without_store(&fake, dialect, &[]);
        let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
        assert_eq!(answer.status(), 200, "{dialect}: {}", answer.text());
        assert!(answer.text().contains("はい"), "{}", answer.text());
        let (said, heard) = (answer.json(), fake.seen()[0].json());
        assert_eq!(said["choices"].is_array(), dialect == "anthropic", "in the client's words: {said}");
        // Anthropic's API must be told how long an answer may be, though the client of the other did not say.
        assert!(heard["max_tokens"].is_number(), "in the provider's: {heard}");
        assert!(!answer.header("x-komado-fault").is_empty(), "{answer:?}");
        assert_eq!(fake.seen()[0].path(), at);
    }
}

#[test]
fn who_would_rather_stop_is_refused_in_the_words_of_their_api() {
    for (dialect, path, body) in ASKS {
        let fake = Fake::saying("はい");
        let gateway = without_store(&fake, dialect, &["--on-fault", "stop"]);
        let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
        assert_eq!(answer.status(), 503, "{dialect}: {}", answer.text());
        let error = &answer.json()["error"];
        let message = error["message"].as_str().or(error.as_str()).unwrap();
        assert!(message.contains("told to stop"), "{message}");
        assert_eq!(answer.json()["type"].as_str(), (dialect == "anthropic").then_some("error"));
        assert!(fake.seen().is_empty());
        assert_eq!(gateway.get("/readyz").status(), 503);
    }
}

#[test]
fn what_cannot_be_read_goes_through_untouched() {
    for body in ["no JSON 窓", "", "{\"model\":\"m\"", "[1,2]", "{}"] {
        let fake = Fake::saying("はい");
        let gateway = Gateway::before(&fake, "openai", &[]);
        let answer = gateway.ask("POST /v1/chat/completions", &[], body.as_bytes());
        assert_eq!(answer.status(), 200, "{body}");
        assert!(answer.header("x-komado-fault").starts_with("unread"), "{body}: {answer:?}");
        assert_eq!(fake.seen()[0].text(), body);
        let stops = Gateway::before(&fake, "openai", &["--on-fault", "stop"]);
        let answer = stops.ask("POST /v1/chat/completions", &[], body.as_bytes());
        assert_eq!(answer.status(), 400, "{body}");
        assert_eq!(fake.seen().len(), 1);
    }
}

#[test]
fn errors_of_a_provider_are_the_providers() {
    let fake = Fake::start(|request, stream| match request.header("x-want") {
        "429" => crate::gateway::stage::say(stream, 429, "{\"error\":{\"message\":\"slow down\"}}"),
        "500" => crate::gateway::stage::say(stream, 500, "odd <html>"),
        _ => {}
    });
    let gateway = Gateway::before(&fake, "openai", &[]);
    let (_, path, body) = ASKS[0];
    let slow = gateway.ask(&format!("POST {path}"), &[("x-want", "429")], body.as_bytes());
    assert_eq!((slow.status(), slow.text().as_str()), (429, "{\"error\":{\"message\":\"slow down\"}}"));
    assert_eq!(slow.header("x-request-id"), "r1");
    let odd = gateway.ask(&format!("POST {path}"), &[("x-want", "500")], body.as_bytes());
    assert_eq!((odd.status(), odd.text().as_str()), (500, "odd <html>"));
    assert_eq!(fake.seen().len(), 2, "never tried again by us");
    let gone = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
    assert_eq!(gone.status(), 502, "{}", gone.text());
}

#[test]
fn a_provider_that_is_away_is_told_in_the_words_of_the_api() {
    for (dialect, path, body) in ASKS {
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let base = format!("llm.test.base_url=http://{free}");
        let dialect_is = format!("llm.test.dialect={dialect}");
        let gateway = Gateway::start(Place::new(), &["--set", &base, "--set", &dialect_is]);
        let answer = gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
        assert_eq!(answer.status(), 502, "{dialect}");
        let error = &answer.json()["error"];
        let message = error["message"].as_str().or(error.as_str()).unwrap();
        assert!(message.contains("cannot reach"), "{message}");
        assert!(gateway.get("/metrics").text().contains("komado_upstream_away_total{upstream=\"test\"} 1"));
    }
}

/// Clients that talk, turn after turn; between two turns of all of them `then` happens. Gives status and fault of each answer.
fn under_load(
    gateway: &Gateway,
    clients: usize,
    turns: usize,
    then: impl Fn(usize) + Sync,
) -> Vec<(u16, String)> {
    let (barrier, said) = (std::sync::Barrier::new(clients), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for n in 0..clients {
            let (barrier, said, then) = (&barrier, &said, &then);
            scope.spawn(move || {
                let mut messages = Vec::new();
                for turn in 0..turns {
                    if barrier.wait().is_leader() {
                        then(turn);
                    }
                    barrier.wait();
                    let text = format!("窓 {n}.{turn} {}", "硝子".repeat(400));
                    messages.push(serde_json::json!({ "role": "user", "content": text }));
                    let body = serde_json::json!({ "model": "m", "messages": messages }).to_string();
                    let answer = gateway.ask("POST /v1/chat/completions", &[], body.as_bytes());
                    let fault = answer.header("x-komado-fault").to_owned();
                    said.lock().unwrap().push((answer.status(), fault));
                    messages.push(serde_json::json!({ "role": "assistant", "content": "はい" }));
                }
            });
        }
    });
    said.into_inner().unwrap()
}

#[test]
fn every_call_succeeds_while_the_store_goes_away_under_load_and_comes_back() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &[]);
    let (base, aside) = (gateway.place.base(), gateway.place.path().join("aside"));
    let said = under_load(&gateway, 12, 6, |turn| match turn {
        2 => {
            std::fs::rename(&base, &aside).unwrap();
            std::fs::write(&base, "no folder").unwrap();
        }
        4 => {
            std::fs::remove_file(&base).unwrap();
            std::fs::rename(&aside, &base).unwrap();
        }
        _ => {}
    });
    assert_eq!(said.len(), 72);
    assert!(said.iter().all(|(status, _)| *status == 200), "{said:?}");
    assert_eq!(said.iter().filter(|(_, fault)| !fault.is_empty()).count(), 24, "{said:?}");
    gateway.stop();
}

#[test]
fn every_call_succeeds_on_a_disk_that_fills_up_under_load() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::on_full_disk(&fake, 1536, &[]);
    let said = under_load(&gateway, 8, 16, |_| ());
    assert!(said.iter().all(|(status, _)| *status == 200), "{said:?}");
    assert!(said.iter().any(|(_, fault)| !fault.is_empty()), "the disk never filled up");
    assert!(said.iter().any(|(_, fault)| fault.is_empty()), "it was full from the beginning");
    let seen = fake.seen();
    assert_eq!(seen.len(), 8 * 16);
    drop(gateway);
    let gateway = Gateway::on_full_disk(&fake, 1536, &["--on-fault", "stop"]);
    let said = under_load(&gateway, 8, 16, |_| ());
    assert!(said.iter().any(|(status, _)| *status == 503), "{said:?}");
    assert!(
        said.iter().all(|(status, fault)| *status == 200 || *status == 503 && !fault.is_empty()),
        "{said:?}"
    );
}
