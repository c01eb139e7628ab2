//! What a key that sees only its own sessions reaches with the key of the server's owner.

use crate::gateway::run::Place;
use crate::gateway::stage::{ASKS, Fake, Gateway, Heard, reply, say};

const HELD: &str = "sk-of-the-owner-0123456789";

/// A gateway with keys for ann, for bob, and for one who sees all; the owner's key of the provider is held.
struct Keyed {
    fake: Fake,
    gateway: Gateway,
    ann: String,
    bob: String,
    all: String,
}

fn keyed(dialect: &str, args: &[&str]) -> Keyed {
    let fake = Fake::start(|request, stream| say(stream, 200, &reply(request.path(), "はい")));
    let place = Place::new();
    let key = |args: &[&str]| place.json(args)["key"].as_str().unwrap().to_owned();
    let ann = key(&["admin", "key", "add", "ann"]);
    let bob = key(&["admin", "key", "add", "bob"]);
    let all = key(&["admin", "key", "add", "root", "--sees", "all"]);
    let settings = format!(
        "llm:\n  test: {{base_url: \"{}\", dialect: {dialect}, api_key: {HELD}}}\nserver: {{upstream: test}}\n",
        fake.url
    );
    place.settings(&settings);
    let gateway = Gateway::start(place, args);
    Keyed { fake, gateway, ann, bob, all }
}

impl Keyed {
    fn ask(&self, key: &str, line: &str, headers: &[(&str, &str)], body: &str) -> Heard {
        let is_typed = headers.iter().any(|(name, _)| *name == "content-type");
        let json = (!is_typed).then_some(&("content-type", "application/json"));
        let own: Vec<(&str, &str)> =
            [("x-komado-key", key)].iter().chain(json).chain(headers).copied().collect();
        self.gateway.ask(line, &own, body.as_bytes())
    }

    /// Refused, in words, and the provider heard nothing of it.
    fn is_refused(&self, line: &str, headers: &[(&str, &str)], body: &str, words: &str) {
        let before = self.fake.seen().len();
        let answer = self.ask(&self.ann, line, headers, body);
        assert!(
            [400, 403, 404].contains(&answer.status()),
            "{line} {body}: {} {}",
            answer.line,
            answer.text()
        );
        assert!(answer.text().contains(words), "{line} {body}: {}", answer.text());
        assert_eq!(self.fake.seen().len(), before, "{line} {body}");
    }
}

#[test]
fn a_key_that_sees_only_its_own_reaches_nothing_that_is_kept_with_the_provider() {
    let keyed = keyed("openai", &[]);
    for line in [
        "GET /v1/files",
        "POST /v1/files",
        "DELETE /v1/files/x",
        "GET /v1/files/x/content",
        "GET /v1/organization/users",
        "POST /v1/batches",
        "GET /v1/messages/batches",
        "GET /v1/chat/completions",
        "GET /v1/chat/completions/chatcmpl-1/messages",
        "GET /v1/conversations/conv_1",
        "GET /v1/vector_stores",
        "GET /v1/threads/t",
        "POST /v1/fine_tuning/jobs",
        "DELETE /v1/models/ft:m",
        "GET /v1/containers/c/files",
        "GET /v1/embeddings",
        "GET //v1/files",
        "GET /v1//files",
        "GET /v1/files/",
        "GET /v1/v1/files",
        "GET /v1/%66iles",
        "GET /v1%2Ffiles",
        "GET /test/v1/files",
        "GET /test/files",
        "GET /test/V1/Files",
        "GET /%74est/v1/files",
        "POST /v1/embeddings/../files",
        "POST /v1/embeddings/%2e%2e/files",
        "POST /v1/embeddings%2f..%2ffiles",
        "POST /v1/./files",
        "GET /v1/models/..%2ffiles",
        "GET http://127.0.0.1/v1/files",
        "DELETE /api/delete",
        "POST /api/pull",
        "DELETE /test/api/delete",
    ] {
        keyed.is_refused(line, &[], "{}", "");
    }
    let refused = keyed.ask(&keyed.ann, "GET /v1/files", &[], "");
    assert_eq!(refused.status(), 403);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("key ann")
            && message.contains("GET /v1/files could")
            && message.contains("--sees all"),
        "{message}"
    );
    assert_eq!(keyed.ask(&keyed.ann, "GET /v1/messages/batches", &[], "").json()["type"], "error");
    let open = keyed.ask(&keyed.all, "GET /v1/files", &[], "");
    assert_eq!((open.status(), keyed.fake.seen().last().unwrap().path()), (200, "/v1/files"));
}

#[test]
fn what_keeps_nothing_is_open_to_every_key() {
    let keyed = keyed("openai", &[]);
    for (line, body) in [
        ("POST /v1/embeddings", r#"{"model":"m","input":"窓"}"#),
        ("POST /test/v1/moderations", r#"{"input":"窓"}"#),
        ("POST /v1/images/generations", r#"{"prompt":"a small window"}"#),
        ("POST /v1/audio/transcriptions", r#"{"model":"voxtral","language":"ja"}"#),
        ("GET /v1/models", ""),
        ("GET /v1/models/m", ""),
    ] {
        assert_eq!(keyed.ask(&keyed.ann, line, &[], body).status(), 200, "{line}");
        let heard = keyed.fake.seen().pop().unwrap();
        assert_eq!(heard.header("authorization"), format!("Bearer {HELD}"), "{line}");
    }
}

#[test]
fn a_form_goes_on_only_when_none_of_its_fields_names_what_is_kept() {
    let keyed = keyed("openai", &[]);
    let form = |head: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b\r\n{head}\r\n\r\n\
             file-of-ann\r\n--b--\r\n"
        )
    };
    let typed = [("content-type", "multipart/form-data; boundary=b")];
    for line in ["POST /v1/audio/transcriptions", "POST /test/v1/audio/translations"] {
        let model = form("Content-Disposition: form-data; name=\"model\"");
        assert_eq!(keyed.ask(&keyed.bob, line, &typed, &model).status(), 200, "{line}");
        let heard = keyed.fake.seen().pop().unwrap();
        assert_eq!(
            (heard.text(), heard.header("content-type")),
            (model, typed[0].1.to_owned().as_str()),
            "{line}"
        );
        for (head, words) in [
            ("Content-Disposition: form-data; name=\"file_id\"", "file_id"),
            ("Content-Disposition: form-data; name=file_id", "file_id"),
            ("Content-Disposition: form-data; name=\"model\"; name*=utf-8''file_id", "in one way only"),
            ("Content-Disposition: form-data; name=\"model\";\r\n name=\"file_id\"", "in one way only"),
        ] {
            keyed.is_refused(line, &typed, &form(head), words);
        }
        let named = form("Content-Disposition: form-data; name=\"file_id\"");
        assert_eq!(keyed.ask(&keyed.bob, line, &typed, &named).status(), 403);
        for other in
            ["multipart/form-data; boundary=c; boundary=b", "multipart/mixed; boundary=b", "text/plain"]
        {
            keyed.is_refused(line, &[("content-type", other)], &named, "Content-Type");
        }
        let twice = [("content-type", "application/json"), typed[0]];
        keyed.is_refused(line, &twice, &named, "Content-Type");
        keyed.is_refused(line, &[], r#"{"model":"voxtral","file_id":"file-of-ann"}"#, "file_id");
        assert_eq!(keyed.ask(&keyed.all, line, &typed, &named).status(), 200, "{line}");
    }
}

#[test]
fn a_body_that_was_checked_leaves_as_the_json_it_was_checked_as() {
    let keyed = keyed("openai", &[]);
    for line in ["POST /v1/embeddings", "POST /v1/chat/completions", "POST /v1/audio/translations"] {
        let odd = [("content-type", "application/json; charset=utf-7"), ("content-encoding", "deflate")];
        assert_eq!(keyed.ask(&keyed.ann, line, &odd, ASKS[0].2).status(), 200, "{line}");
        let heard = keyed.fake.seen().pop().unwrap();
        assert_eq!(
            (heard.header("content-type"), heard.header("content-encoding")),
            ("application/json", ""),
            "{line}"
        );
    }
}

#[test]
fn a_path_that_servers_read_in_different_ways_is_refused_to_a_key_that_sees_only_its_own() {
    let keyed = keyed("openai", &[]);
    for path in ["a;/..;/files", "a%3B/x", ".hidden", "%252e%252e/files", "a%00", "a%0d"] {
        keyed.is_refused(&format!("GET /v1/models/{path}"), &[], "", "begins with a dot");
    }
    assert_eq!(keyed.ask(&keyed.ann, "GET /v1/models/org/m:8b-v1.5", &[], "").status(), 200);
    assert_eq!(keyed.ask(&keyed.all, "GET /v1/models/a;b", &[], "").status(), 200);
}

#[test]
fn headers_that_mean_another_method_path_or_account_do_not_leave() {
    let keyed = keyed("openai", &[]);
    let headers = [
        ("x-http-method-override", "DELETE"),
        ("x-method-override", "DELETE"),
        ("x-original-url", "/v1/files"),
        ("openai-organization", "org-other"),
        ("openai-project", "proj-other"),
        ("openai-beta", "kept"),
    ];
    for line in ["POST /v1/embeddings", "GET /v1/models/ft:m", "GET /v1/models", "POST /v1/chat/completions"]
    {
        let body = if line.starts_with("POST") { ASKS[0].2 } else { "" };
        assert_eq!(keyed.ask(&keyed.ann, line, &headers, body).status(), 200, "{line}");
        let heard = keyed.fake.seen().pop().unwrap();
        assert_eq!(heard.header("openai-beta"), "kept", "{line}");
        for (name, _) in &headers[..5] {
            assert_eq!(heard.header(name), "", "{line}: {name}");
        }
    }
    keyed.ask(&keyed.all, "GET /v1/models", &headers, "");
    assert_eq!(keyed.fake.seen().pop().unwrap().header("openai-project"), "proj-other");
}

#[test]
fn a_response_is_gone_on_from_and_read_only_by_the_client_that_was_given_it() {
    let keyed = keyed("responses", &["--set", "llm.test.context_length=100000"]);
    let agent = [("user-agent", "agent")];
    let first = keyed.ask(&keyed.bob, "POST /v1/responses", &agent, ASKS[1].2);
    assert_eq!((first.status(), first.json()["id"].as_str()), (200, Some("resp_1")), "{}", first.text());
    let next = r#"{"model":"m","previous_response_id":"resp_1","input":"and?"}"#;
    for (line, body) in [
        ("POST /v1/responses", next),
        ("POST /test/v1/responses", next),
        ("POST /v1/responses/compact", next),
        ("GET /v1/responses/resp_1", ""),
        ("DELETE /v1/responses/resp_1", ""),
        ("POST /v1/responses/resp_1/cancel", ""),
        ("GET /v1/responses/resp_1/input_items", ""),
    ] {
        keyed.is_refused(line, &agent, body, "resp_1");
        let advises = keyed.ask(&keyed.ann, line, &agent, body).text().contains("the whole conversation");
        assert_eq!(advises, body == next, "{line}: only a request that goes on can send all of it");
    }
    assert_eq!(keyed.ask(&keyed.bob, "POST /v1/responses", &agent, next).status(), 200);
    assert!(keyed.fake.seen().pop().unwrap().text().contains("resp_1"));
    assert_eq!(keyed.ask(&keyed.bob, "GET /v1/responses/resp_1", &agent, "").status(), 200);
    assert_eq!(keyed.ask(&keyed.all, "GET /v1/responses/resp_9", &agent, "").status(), 200);
}

#[test]
fn a_body_that_names_what_is_kept_is_refused_in_every_dialect() {
    let keyed = keyed("openai", &[]);
    for (line, body, field) in [
        ("POST /v1/responses", r#"{"model":"m","input":"x","conversation":"conv_1"}"#, "conversation"),
        (
            "POST /v1/responses",
            r#"{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}"#,
            "item_reference",
        ),
        (
            "POST /v1/responses",
            r#"{"model":"m","input":"x","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
            "vector_store_ids",
        ),
        (
            "POST /v1/chat/completions",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file_1"}}]}]}"#,
            "file_id",
        ),
        (
            "POST /v1/messages",
            r#"{"model":"m","max_tokens":9,"container":"c_1","messages":[{"role":"user","content":"x"}]}"#,
            "container",
        ),
        (
            "POST /v1/messages/count_tokens",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}"#,
            "file_id",
        ),
        ("POST /v1/embeddings", r#"{"input":[{"file_id":"f"}]}"#, "file_id"),
        ("POST /v1/audio/speech", r#"{"input":"x","voice":{"id":"voice_1"}}"#, "voice.id"),
        ("POST /v1/chat/completions", r#"{"messages":[],"libraryIds":["l_1"]}"#, "library_ids"),
        // What cannot be read here could be read there.
        ("POST /v1/responses", "\u{feff}{\"previous_response_id\":\"resp_1\"}", "cannot be read"),
        ("POST /v1/chat/completions", r#"{"messages":[]} {"file_id":"f"}"#, "cannot be read"),
        ("POST /v1/embeddings", "no JSON", "cannot be read"),
    ] {
        keyed.is_refused(line, &[], body, field);
    }
}

#[test]
fn a_made_up_key_of_a_provider_opens_nothing() {
    let keyed = keyed("openai", &[]);
    let own = [("authorization", "Bearer sk-made-up-0123456789abcdef")];
    keyed.is_refused("GET /v1/files", &own, "", "--sees all");
}
