//! Forms: what is refused, by which name, and in which words; pages; conditional reads.

use super::*;

#[tokio::test]
async fn whatever_does_not_fit_is_named() {
    let place = Place::new();
    place.talk("s").await;
    for (path, status, word) in [
        ("/sessions?colour=red", 400, "colour"),
        ("/sessions/s?x=1", 400, "\"x\""),
        ("/sessions?limit=0", 400, "limit"),
        ("/sessions?limit=many", 400, "limit"),
        ("/sessions?status=asleep", 400, "asleep"),
        ("/sessions?cursor=窓", 400, "cursor"),
        ("/sessions?cursor=bm9wZQ", 400, "cursor"),
        ("/sessions/..%2F..%2Fetc", 400, "session id"),
        ("/sessions/none", 404, "none"),
        ("/sessions/s/threads/none/view", 404, "none"),
        ("/sessions/s/threads/root/view?seq=99", 404, "@99"),
        ("/sessions/s/threads/root/entries/99", 404, "@99"),
        ("/sessions/s/threads/root/outputs/@1?regex=true", 422, "grep"),
        ("/sessions/s/recall?query=%5B&mode=regex", 422, "unclosed"),
        ("/nowhere", 404, "/api/v1/nowhere"),
        ("/sessions/s/threads/root/nowhere", 404, "nowhere"),
    ] {
        let why = place.get(&path.replace('窓', "%E7%AA%93")).await.problem(status);
        assert!(why.to_lowercase().contains(word), "{path}: {why}");
    }
    let why = place.post("/sessions", json!({ "colour": "red" })).await.problem(400);
    assert!(why.contains("colour"), "{why}");
    place.post("/sessions", json!([null, null])).await.problem(400);
    let pin = "/sessions/s/threads/root/pin";
    place.post(pin, json!({ "seq": 1.5 })).await.problem(400);
    place.post(pin, json!({ "seq": 1.0 })).await.ok(200);
    let cut = |spans: Value| json!({ "span": spans });
    for spans in [json!([[1, 2]]), json!([{ "from": 1 }]), json!([{ "from": 1, "to": 2, "x": 3 }]), json!([])]
    {
        place.post("/sessions/s/threads/root/truncate", cut(spans)).await.problem(400);
    }
    place.post("/sessions/s/threads/root/truncate", cut(json!([{ "from": 2, "to": 1 }]))).await.problem(422);
}

#[tokio::test]
async fn a_wrong_value_is_named_with_its_field_and_what_to_give() {
    let place = Place::new();
    place.talk("s").await;
    let root = "/sessions/s/threads/root";
    for (path, body, words) in [
        ("/pin", r#"{"seq":"two"}"#, &["seq is \"two\"", "a whole number"][..]),
        ("/entries", r#"{"text":7}"#, &["text is 7", "a text"]),
        ("/entries", r#"{"text":"\ud800"}"#, &["text", "hex escape"]),
        ("/truncate", r#"{"span":[[1,2]]}"#, &["a span is a text such as", "[{\"from\": 3"]),
        ("/setup", r#"{"params":{"x":"\ud800"}}"#, &["params", "hex escape"]),
        ("/setup", r#"{"params":{"temperature":1e999}}"#, &["params", "out of range"]),
        ("/setup", r#"{"tools":[{"name":"\udc00"}]}"#, &["tools[0]", "hex escape"]),
    ] {
        let request =
            Request::post(format!("/api/v1{root}{path}")).header("content-type", "application/json");
        let why = place.send(request.body(Body::from(body)).unwrap()).await.problem(400);
        assert!(words.iter().all(|word| why.contains(word)), "{path} {body}: {why}");
    }
    let entries = place.get(&format!("{root}/entries")).await.ok(200);
    assert_eq!(entries["items"].as_array().unwrap().len(), 3, "nothing was kept: {entries}");
}

#[tokio::test]
async fn how_a_closed_session_is_opened_is_said_once() {
    let place = Place::new();
    place.talk("s").await;
    place.post("/sessions/s/pause", json!({})).await.ok(200);
    let why = place.post("/sessions/s/threads/root/entries", json!({ "text": "more" })).await.problem(409);
    assert_eq!(why.matches("`komado session resume s`").count(), 1, "{why}");
}

#[tokio::test]
async fn methods_and_media_types_are_told_apart() {
    let place = Place::new();
    place.talk("s").await;
    let told = place.with("PUT", "/sessions/s", &[], None).await;
    assert!(told.headers["allow"].to_str().unwrap().contains("DELETE"));
    told.problem(405);
    place.with("GET", "/sessions", &[("accept", "text/html")], None).await.problem(406);
    place.with("GET", "/sessions", &[("accept", "text/html, */*;q=0.1")], None).await.ok(200);
    let form = Request::post("/api/v1/sessions/s/fail").header("content-type", "text/plain");
    place.send(form.body(Body::from("{\"reason\":\"x\"}")).unwrap()).await.problem(415);
    let bare = Request::post("/api/v1/sessions/s/pause").body(Body::empty()).unwrap();
    place.send(bare).await.ok(200);
}

#[tokio::test]
async fn pages_bring_everything_once_and_in_order() {
    let place = Place::new();
    for i in 0..5 {
        place.post("/sessions", json!({ "id": format!("s{i}"), "window": 1000 })).await.ok(201);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = place.get(&format!("/sessions?limit=2&cursor={cursor}")).await.ok(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["session"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["s0", "s1", "s2", "s3", "s4"]);
    place.talk("t").await;
    let page = place.get("/sessions/t/threads/root/entries?limit=2").await.ok(200);
    let next = page["next"].as_str().unwrap();
    let rest = place.get(&format!("/sessions/t/threads/root/entries?cursor={next}")).await.ok(200);
    assert_eq!((rest["items"][0]["seq"].as_u64(), &rest["next"]), (Some(3), &Value::Null));
    place.get(&format!("/sessions?cursor={next}")).await.problem(400);
    place.get(&format!("/sessions/s0/threads/root/entries?cursor={next}")).await.problem(400);
}

#[tokio::test]
async fn who_has_it_is_not_sent_it_again() {
    let place = Place::new();
    place.talk("s").await;
    for path in [
        "/sessions/s",
        "/sessions/s/threads/root/view",
        "/sessions/s/threads/root/view?format=items&seq=2",
        "/sessions/s/threads/root/entries",
        "/sessions/s/threads/root/entries/2",
    ] {
        let first = place.get(path).await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        first.ok(200);
        let again = place.with("GET", path, &[("if-none-match", &tag)], None).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0), "{path}");
        place.post("/sessions/s/redact", json!({ "text": "開けて", "reason": "x" })).await.ok(200);
        let _ = place
            .post(
                "/sessions/s/threads/root/entries",
                json!({ "messages": [{ "role": "user", "content": "開けて" }] }),
            )
            .await;
    }
}

#[tokio::test]
async fn a_secret_that_was_taken_out_changes_the_tag_of_what_held_it() {
    let place = Place::new();
    place.talk("s").await;
    let path = "/sessions/s/threads/root/view";
    let tag = place.get(path).await.headers["etag"].to_str().unwrap().to_owned();
    place.post("/sessions/s/redact", json!({ "text": "開けて", "reason": "a secret" })).await.ok(200);
    let now = place.with("GET", path, &[("if-none-match", &tag)], None).await;
    assert!(!now.text().contains("開けて"));
    now.ok(200);
}

#[tokio::test]
async fn the_document_names_every_route_with_its_problems() {
    let place = Place::new();
    let document = place.get("/openapi.json").await.ok(200);
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 40, "{}", paths.len());
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let responses = &operation["responses"];
            assert!(responses["404"]["content"]["application/problem+json"].is_object(), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    assert!(document["components"]["securitySchemes"]["bearer"].is_object());
    place.get("").await.ok(200);
}
