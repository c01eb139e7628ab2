//! What arrives is what leaves, and what comes back is what the client gets.

use crate::stage::{ASKS, Fake, Gateway, reply};

/// The same request, written in ways that a parser would not write it.
fn odd(body: &str) -> Vec<String> {
    let inner = body.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    vec![
        body.to_owned(),
        format!("  {{ \"unknown\" :\t[1.0, 1e2, null], {inner}\n}}\n"),
        format!(
            "{{\"z\":\"\\u7a93\\/\\\"\",{inner},\"a\":{{\"cache_control\":{{\"type\":\"ephemeral\"}}}}}}"
        ),
        body.replace("\"窓\"", "\"\\u7a93 \\ud83e\\ude9f 🪟\""),
        body.replace("\"m\"", "\"モデル-1.0\""),
        format!("{{{inner},\"metadata\":{{\"user_id\":\"{}\"}}}}", "x".repeat(200_000)),
    ]
}

#[test]
fn under_budget_the_bytes_that_arrive_are_the_bytes_that_leave_in_every_api() {
    for (dialect, path, body) in ASKS {
        let fake = Fake::saying("はい");
        // A window that is given is asked for of Ollama, which is a change; one that nobody knows changes nothing.
        let window = ["--set", "llm.test.context_length=1000000"];
        let gateway = Gateway::before(&fake, dialect, if dialect == "ollama" { &[] } else { &window });
        let sent = odd(body);
        for (n, body) in sent.iter().enumerate() {
            let query = if dialect == "anthropic" { "?beta=true" } else { "" };
            let headers = [
                ("content-type", "application/json"),
                ("anthropic-beta", "b,a"),
                ("x-odd", "Ünïcode"),
                ("user-agent", &format!("agent/{n}")),
            ];
            let answer = gateway.ask(&format!("POST {path}{query}"), &headers, body.as_bytes());
            assert_eq!((answer.status(), answer.text()), (200, reply(path, "はい")), "{dialect} {n}");
            assert!(answer.is_whole && answer.header("x-request-id") == "r1", "{answer:?}");
            assert_eq!(answer.header("x-komado-fault"), "", "{dialect} {n}");
            let seen = fake.seen();
            let heard = seen.last().unwrap();
            assert!(heard.body == body.as_bytes(), "{dialect} {n}: {}", heard.text());
            assert_eq!(heard.line, format!("POST {path}{query} HTTP/1.1"));
            assert_eq!((heard.header("anthropic-beta"), heard.header("x-odd")), ("b,a", "Ünïcode"));
            assert_eq!(heard.header("accept-encoding"), "identity");
        }
        assert_eq!(fake.seen().len(), sent.len(), "nothing is asked twice");
    }
}

#[test]
fn other_paths_and_methods_go_through_as_they_come() {
    let fake = Fake::saying("x");
    let gateway = Gateway::before(&fake, "openai", &[]);
    gateway.ask("POST /v1/embeddings?a=b", &[("content-type", "text/odd")], "窓\0".as_bytes());
    gateway.ask("DELETE /test/v1/files/f-1", &[], b"");
    let seen = fake.seen();
    assert_eq!(seen[0].line, "POST /v1/embeddings?a=b HTTP/1.1");
    assert_eq!((seen[0].text().as_str(), seen[0].header("content-type")), ("窓\0", "text/odd"));
    assert_eq!(seen[1].line, "DELETE /v1/files/f-1 HTTP/1.1");

    let closed = Gateway::before(&fake, "openai", &["--set", "server.forward_other=false"]);
    let answer = closed.ask("POST /v1/embeddings", &[], b"{}");
    assert_eq!(answer.status(), 404);
    assert!(answer.text().contains("forward_other"), "{}", answer.text());
    assert_eq!(fake.seen().len(), 2);
}
