//! At the door: limits, errors, keys, health.

use crate::gateway::run::Place;
use crate::gateway::stage::{ASKS, Fake, Gateway, Heard, answer, reply};
use std::io::Write;

#[test]
fn a_request_over_the_limit_is_refused_in_the_words_of_its_api() {
    for (dialect, path, _) in ASKS {
        let fake = Fake::saying("はい");
        let gateway = Gateway::before(&fake, dialect, &["--set", "server.body_limit_mb=1"]);
        let answer = gateway.ask(&format!("POST {path}"), &[], &vec![b'x'; (1 << 20) + 1]);
        assert_eq!(answer.status(), 413, "{dialect}");
        let error = &answer.json()["error"];
        let message = error["message"].as_str().or(error.as_str()).unwrap();
        assert!(message.contains("1048576 bytes") && message.contains("body_limit_mb"), "{message}");
        assert!(fake.seen().is_empty());
    }
}

#[test]
fn who_comes_too_often_is_told_when_to_come_again() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "server.rate=1"]);
    let (_, path, body) = ASKS[0];
    let statuses: Vec<u16> = (0..6)
        .map(|_| gateway.ask(&format!("POST {path}"), &[], body.as_bytes()))
        .map(|a| a.status())
        .collect();
    assert!(statuses[0] == 200 && statuses.contains(&429), "{statuses:?}");
    let last = (0..6)
        .map(|_| gateway.ask(&format!("POST {path}"), &[], body.as_bytes()))
        .find(|a| a.status() == 429);
    let last = last.unwrap();
    assert_eq!(
        (last.header("retry-after"), last.json()["error"]["type"].as_str()),
        ("1", Some("rate_limit_error"))
    );
    assert_eq!(gateway.get("/healthz").status(), 200, "who watches is not counted");
}

#[test]
fn one_more_than_may_be_at_once_is_turned_away_and_let_in_later() {
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let (asked, is_asked) = std::sync::mpsc::channel::<()>();
    let ends = std::sync::Mutex::new((gate, asked));
    let fake = Fake::start(move |request, stream| {
        {
            let ends = ends.lock().unwrap();
            ends.1.send(()).unwrap();
            let _ = ends.0.recv();
        }
        crate::gateway::stage::say(stream, 200, &reply(request.path(), "はい"));
    });
    let gateway = Gateway::before(&fake, "openai", &["--set", "server.concurrency=1"]);
    let (_, path, body) = ASKS[0];
    let line = format!("POST {path}");
    let mut first = std::io::BufReader::new(gateway.send(&line, &[], body.as_bytes()));
    is_asked.recv().unwrap();
    let turned_away = gateway.ask(&line, &[], body.as_bytes());
    assert_eq!((turned_away.status(), turned_away.header("retry-after")), (503, "1"));
    assert!(gateway.get("/metrics").text().contains("komado_in_flight 1"));
    go.send(()).unwrap();
    assert_eq!(crate::gateway::stage::answer(&mut first).status(), 200);
    go.send(()).unwrap();
    // The place is free when the thread has ended, a moment after the answer.
    let later =
        (0..200).map(|_| gateway.ask(&line, &[], body.as_bytes())).find(|answer| answer.status() == 200);
    assert!(later.is_some());
}

#[test]
fn no_key_is_ever_written_to_the_log_and_ours_never_leaves() {
    let fake = Fake::start(|_, stream| crate::gateway::stage::say(stream, 401, "{\"error\":\"bad key\"}"));
    let gateway = Gateway::before(&fake, "openai", &[]);
    let (_, path, body) = ASKS[0];
    let headers = [("authorization", "Bearer sk-sesame-0123456789abcdef"), ("x-api-key", "sk-sesame-2")];
    gateway.ask(&format!("POST {path}?key=sk-sesame-3"), &headers, body.as_bytes());
    let heard = &fake.seen()[0];
    assert_eq!(heard.header("authorization"), "Bearer sk-sesame-0123456789abcdef");
    assert!(gateway.log().contains("request"), "{}", gateway.log());
    assert!(!gateway.log().contains("sesame"), "{}", gateway.log());
}

#[test]
fn a_path_that_leads_nowhere_says_what_there_is() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &[]);
    let answer = gateway.get("/nowhere");
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        answer.status() == 404 && message.contains("/v1/messages") && message.contains("test"),
        "{message}"
    );
    let head = gateway.ask("HEAD /", &[], b"");
    assert_eq!(head.status(), 200);
    assert!(gateway.get("/").text().contains("in front of test"));
    assert!(fake.seen().is_empty());
}

#[test]
fn beyond_this_machine_nobody_is_served_without_keys() {
    let place = Place::new();
    let said = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("0.0.0.0:0") && said.err.contains("keys"), "{}", said.err);
    for (args, words) in [
        (&["serve", "--listen", "nowhere"][..], "nowhere"),
        (&["serve", "--on-fault", "maybe"], "pass and stop"),
        (&["serve", "--listen", "127.0.0.1:0", "--upstream", "acme"], "acme"),
        (&["serve", "--log", "=,="], "--log"),
        (&["serve", "--log", "loud"], "debug"),
    ] {
        let said = place.run(args);
        assert!(said.code != 0 && said.err.contains(words), "{args:?}: {} {}", said.code, said.err);
    }
}

#[test]
fn who_watches_finds_health_and_numbers() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &[]);
    assert_eq!(gateway.get("/healthz").text(), "ok\n");
    assert_eq!(gateway.get("/readyz").text(), "ready\n");
    let (_, path, body) = ASKS[0];
    gateway.ask(&format!("POST {path}"), &[], body.as_bytes());
    let numbers = gateway.get("/metrics");
    assert!(numbers.header("content-type").starts_with("text/plain"));
    for line in [
        "komado_requests_total{dialect=\"openai\",status=\"200\"",
        "komado_request_seconds_bucket",
        "komado_in_flight 0",
    ] {
        assert!(numbers.text().contains(line), "{line}: {}", numbers.text());
    }
}

/// Asks with exactly these lines as its head.
fn raw(gateway: &Gateway, head: &str, body: &str) -> Heard {
    let mut stream = gateway.connect();
    let length = body.len();
    write!(stream, "{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    answer(&mut std::io::BufReader::new(stream))
}

#[test]
fn a_page_with_a_null_origin_is_refused_in_every_dialect() {
    for (dialect, path, body) in ASKS {
        let fake = Fake::saying("はい");
        let gateway = Gateway::before(&fake, dialect, &[]);
        for header in [
            "origin: null",
            "origin: file://",
            "origin: https://evil.example",
            "origin: http://localhost:3000\r\norigin: null",
            "sec-fetch-site: cross-site",
        ] {
            let refused =
                raw(&gateway, &format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{header}"), body);
            assert_eq!(refused.status(), 403, "{dialect} {header}: {}", refused.text());
            let error = &refused.json()["error"];
            let message = error["message"].as_str().or(error.as_str()).unwrap();
            assert!(message.contains("without a key"), "{dialect} {header}: {message}");
        }
        assert!(fake.seen().is_empty(), "{dialect}");
        // A page of this machine, also one at another port or name, and an application's own.
        for header in [
            "origin: http://localhost:3000\r\nsec-fetch-site: cross-site",
            "origin: app://agent",
            "sec-fetch-site: none",
        ] {
            let served = raw(&gateway, &format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{header}"), body);
            assert_eq!(served.status(), 200, "{dialect} {header}: {}", served.text());
        }
    }
}

#[test]
fn no_route_answers_to_a_name_that_a_page_can_have_lead_here() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &[]);
    for path in ["/metrics", "/readyz", "/healthz", "/", "/v1/models", "/api/v1/sessions", "/mcp"] {
        for head in [
            format!("GET {path} HTTP/1.1\r\nhost: evil.example:4141"),
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\norigin: null"),
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: cross-site"),
            format!("GET http://evil.example{path} HTTP/1.1\r\nhost: localhost"),
        ] {
            let refused = raw(&gateway, &head, "");
            assert_eq!(refused.status(), 403, "{head}: {}", refused.text());
            assert!(!refused.text().contains("komado_"), "{head}");
        }
    }
    // Probes and collectors ask for an address, or for a container's name.
    for path in ["/metrics", "/readyz", "/healthz"] {
        for host in ["10.1.2.3:4141", "[fd00::1]:4141", "komado:4141", "localhost"] {
            assert_eq!(
                raw(&gateway, &format!("GET {path} HTTP/1.1\r\nhost: {host}"), "").status(),
                200,
                "{host}"
            );
        }
        assert_eq!(raw(&gateway, &format!("GET {path} HTTP/1.0\r\nx: y"), "").status(), 200);
    }
}

#[test]
fn with_keys_figures_are_shown_to_programs_of_this_machine_or_to_a_key() {
    let place = Place::new();
    let key = place.json(&["admin", "key", "add", "watch"])["key"].as_str().unwrap().to_owned();
    let gateway = Gateway::start(place, &["--upstream", "scripted"]);
    for path in ["/metrics", "/readyz"] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: komado.example:4141");
        assert_eq!(raw(&gateway, &head, "").status(), 403, "{path}");
        assert_eq!(
            raw(&gateway, &format!("{head}\r\nauthorization: Bearer {key}"), "").status(),
            200,
            "{path}"
        );
        assert_eq!(
            raw(&gateway, &format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1"), "").status(),
            200,
            "{path}"
        );
    }
    assert_eq!(raw(&gateway, "GET /healthz HTTP/1.1\r\nhost: komado.example:4141", "").text(), "ok\n");
}
