//! A session of one key cannot be read by another: every route of the document, asked by someone else.

use super::*;

/// What must never leave.
const SECRET: &str = "青い鍵4711";
const HERS: &str = "of-ann";

/// Calls that name no session in their path: what someone else is answered.
fn elsewhere(method: &str, path: &str) -> Option<(&'static str, Option<Value>, &'static [u16])> {
    Some(match (method, path) {
        ("get", "/api/v1/sessions") => ("?prefix=of", None, &[200]),
        ("post", "/api/v1/sessions") => ("", Some(json!({ "id": HERS, "window": 1000 })), &[403]),
        ("get", "/api/v1/report") => ("", None, &[200]),
        ("get", "/api/v1/stats") => ("", None, &[200]),
        ("post", "/api/v1/cleanup") => ("", Some(json!({ "days": 0 })), &[403]),
        ("get", "/api/v1/recall") => ("?query=%E9%9D%92%E3%81%84%E9%8D%B54711&mode=exact", None, &[200]),
        ("get", "/api/v1/models") => ("", None, &[200]),
        ("get", "/api/v1/models/learned") => ("", None, &[403]),
        ("delete", "/api/v1/models/learned") => ("?about=m", None, &[403]),
        ("post", "/api/v1/explain-error") => ("", Some(json!({ "status": 400, "body": "x" })), &[200]),
        ("get", "/api/v1/lessons") => ("?session=of-ann", None, &[404]),
        ("get", "/api/v1/events") => ("", None, &[200]),
        ("post", "/api/v1/import") => ("", None, &[403]),
        ("get", "/api/v1/tasks") => ("?all=true", None, &[200]),
        ("get", "/api/v1/tasks/{task}") => ("", None, &[404]),
        ("post", "/api/v1/tasks") => ("", Some(json!({ "text": "x" })), &[403]),
        ("post", path) if path.starts_with("/api/v1/tasks/{task}/") => ("", None, &[403]),
        ("get", "/api/v1/users") => ("", None, &[200]),
        ("get", "/api/v1/users/{user}" | "/api/v1/users/{user}/messages") => ("", None, &[404]),
        ("delete", "/api/v1/users/{user}") => ("", None, &[404]),
        ("post", "/api/v1/users/{user}/session") => ("", Some(json!({ "window": 1000 })), &[404]),
        _ => return None,
    })
}

async fn furnished() -> (Place, String, String) {
    let place = Place::new();
    let (ann, bob) = (place.key("ann", Sees::Own, &[]), place.key("bob", Sees::Own, &[]));
    let key = [("x-komado-key", ann.as_str())];
    place.with("POST", "/sessions", &key, Some(&json!({ "id": HERS, "window": 4000 }))).await.ok(201);
    let messages = json!([{ "role": "user", "content": SECRET }, { "role": "assistant", "content": SECRET }]);
    let path = format!("/sessions/{HERS}/threads/root/entries");
    place.with("POST", &path, &key, Some(&json!({ "messages": messages }))).await.ok(201);
    (place, ann, bob)
}

/// A body that the operation would take: the example of its schema.
fn example(document: &Value, operation: &Value) -> Option<Value> {
    let content = operation["requestBody"]["content"].as_object()?;
    let body = content.values().next()?;
    if let Some(example) = body.get("example") {
        return Some(example.clone());
    }
    let schema = body.get("schema")?;
    let name = |schema: &Value| schema["$ref"].as_str().map(|name| name.trim_start_matches('#').to_owned());
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let reference = name(schema).or_else(|| choices.filter_map(name).next())?;
    let example = document.pointer(&reference)?.get("example")?;
    Some(example.clone())
}

fn filled(path: &str, operation: &Value, session: &str) -> String {
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        if parameter["in"] == "query" && parameter["required"] == true {
            let example = parameter["example"].as_str().unwrap_or("x");
            query.push(format!("{}={example}", parameter["name"].as_str().unwrap()));
        }
    }
    let path = path.replace("{session}", session).replace("{thread}", "root").replace("{seq}", "1");
    let path = path.replace("{ref_id}", "@1").replacen("/api/v1", "", 1);
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// Every operation of the document, those that remove last.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((method.clone(), path.clone(), operation.clone()));
        }
    }
    all.sort_by_key(|(method, path, _)| (method == "delete", path.clone()));
    all
}

#[tokio::test]
async fn no_route_shows_a_session_to_another_key() {
    let (place, ann, bob) = furnished().await;
    let (hers, his) = ([("x-komado-key", ann.as_str())], [("x-komado-key", bob.as_str())]);
    let document = place.with("GET", "/openapi.json", &his, None).await.ok(200);
    let export = place.with("GET", &format!("/sessions/{HERS}/export"), &hers, None).await;
    assert!(export.text().contains(SECRET));
    let all = operations(&document);
    // What waits without end would never be answered here.
    place.house.stop.cancel();
    for (method, path, operation) in &all {
        let name = format!("{method} {path}");
        if !path.contains("{session}") {
            let Some((query, body, statuses)) = elsewhere(method, path) else {
                panic!("no one asks {name} yet")
            };
            let short = format!("{}{query}", path.replacen("/api/v1", "", 1).replace("{user}", "ann"));
            let short = short.replace("{task}", HERS);
            let told = match path.ends_with("/import") {
                true => import(&place, &bob, &export.bytes).await,
                false => place.with(&method.to_uppercase(), &short, &his, body.as_ref()).await,
            };
            assert!(statuses.contains(&told.status.as_u16()), "{name}: {} {}", told.status, told.text());
            assert!(
                !told.text().contains(SECRET) && !told.text().contains("\"of-ann\""),
                "{name}: {}",
                told.text()
            );
            continue;
        }
        let body = example(&document, operation);
        assert_eq!(body.is_some(), operation.get("requestBody").is_some(), "{name} has no example");
        let ask = |session: &'static str| (method.to_uppercase(), filled(path, operation, session));
        let (verb, there) = ask(HERS);
        let told = place.with(&verb, &there, &his, body.as_ref()).await;
        let (verb, nowhere) = ask("of-eve");
        let absent = place.with(&verb, &nowhere, &his, body.as_ref()).await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{name}: {}", told.text());
        assert_eq!(
            told.text(),
            absent.text().replace("of-eve", HERS),
            "{name} tells it from one that is not there"
        );
        assert_eq!(told.headers, absent.headers, "{name}");
    }
    hers_are_plausible(&place, &hers, &document, &all).await;
}

/// The same calls by the owner are understood, so that they were refused for the right reason.
async fn hers_are_plausible(
    place: &Place,
    hers: &[(&str, &str)],
    document: &Value,
    all: &[(String, String, Value)],
) {
    for (method, path, operation) in all.iter().filter(|(_, path, _)| path.contains("{session}")) {
        let body = example(document, operation);
        let there = filled(path, operation, HERS);
        let told = place.with(&method.to_uppercase(), &there, hers, body.as_ref()).await;
        let text = told.text();
        assert!(![400, 403, 415, 500, 503].contains(&told.status.as_u16()), "{method} {there}: {text}");
        assert!(
            !text.contains("that you may see") && !text.contains("there is no session"),
            "{method} {there}: {text}"
        );
    }
}

async fn import(place: &Place, key: &str, export: &[u8]) -> Told {
    let request = Request::post("/api/v1/import?as=mine-now")
        .header("x-komado-key", key)
        .header("content-type", "application/x-ndjson");
    place.send(request.body(Body::from(export.to_vec())).unwrap()).await
}

#[tokio::test]
async fn a_listed_session_and_a_key_that_sees_all_open_what_they_say() {
    let (place, _, _) = furnished().await;
    let eve = place.key("eve", Sees::Own, &[HERS]);
    let root = place.key("root", Sees::All, &[]);
    for key in [&eve, &root] {
        let key = [("x-komado-key", key.as_str())];
        place.with("GET", &format!("/sessions/{HERS}"), &key, None).await.ok(200);
        let listed = place.with("GET", "/sessions", &key, None).await.ok(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
        let found = place.with("GET", "/recall?query=4711&mode=exact", &key, None).await.ok(200);
        assert!(!found["items"].as_array().unwrap().is_empty());
    }
    let key = [("x-komado-key", eve.as_str())];
    place.with("GET", "/recall?query=4711&user=ann", &key, None).await.problem(403);
    place.with("POST", "/sessions", &key, Some(&json!({ "user": "ann", "window": 1000 }))).await.problem(403);
    let made = place.with("POST", "/sessions", &key, Some(&json!({ "window": 1000 }))).await.ok(201);
    assert_eq!(made["user"], "eve");
}

#[tokio::test]
async fn without_a_key_nothing_is_told_once_there_are_keys() {
    let (place, _, _) = furnished().await;
    let told = place.get("/sessions").await;
    assert_eq!(told.headers["www-authenticate"], "Bearer realm=\"komado\"");
    told.problem(401);
    place.with("GET", "/openapi.json", &[("authorization", "Bearer kmd_0")], None).await.problem(401);
}

#[tokio::test]
async fn no_way_through_the_gateway_leads_into_a_session_of_another_key() {
    let (place, ann, bob) = furnished().await;
    let journal = |place: &Place| {
        std::fs::read(place.folder.path().join(format!("running/{HERS}/messages.jsonl"))).unwrap()
    };
    let before = journal(&place);
    let talk = json!({ "model": "scripted", "max_tokens": 50, "messages": [{ "role": "user", "content": "find: 4711" }] });
    let items = json!({ "model": "scripted", "input": "find: 4711" });
    let ways = [
        ("/v1/chat/completions", &talk),
        ("/v1/messages", &talk),
        ("/v1/responses", &items),
        ("/v1/responses/compact", &items),
        ("/api/chat", &talk),
        ("/scripted/v1/chat/completions", &talk),
    ];
    for (path, body) in ways {
        let ask = |key: &str, session: &str| {
            let request = Request::post(path).header("x-komado-key", key).header("x-komado-session", session);
            let request = request.header("content-type", "application/json");
            place.send(request.body(Body::from(body.to_string())).unwrap())
        };
        let told = ask(&bob, HERS).await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{path}: {}", told.text());
        assert!(!told.text().contains(SECRET) && !told.headers.contains_key("x-komado-session"), "{path}");
        assert!(ask(&bob, "of-bob").await.status.is_success(), "{path}");
    }
    assert_eq!(journal(&place), before, "something was written into her session");
    // The same by its owner is understood.
    let request = Request::post(ways[0].0).header("x-komado-key", &ann).header("x-komado-session", HERS);
    let told = place.send(request.body(Body::from(talk.to_string())).unwrap()).await;
    assert_eq!((told.status, &told.headers["x-komado-session"]), (StatusCode::OK, &HERS.parse().unwrap()));
}

#[tokio::test]
async fn a_user_is_forgotten_only_by_callers_that_may_remove_their_sessions() {
    let (place, ann, bob) = furnished().await;
    let (hers, his) = ([("x-komado-key", ann.as_str())], [("x-komado-key", bob.as_str())]);
    place.with("POST", "/sessions", &his, Some(&json!({ "id": "of-bob", "window": 1000 }))).await.ok(201);
    place.with("DELETE", "/users/ann", &his, None).await.problem(404);
    let would = place.with("DELETE", "/users/ann?dry_run=true", &hers, None).await.ok(200);
    assert_eq!((&would["would_erase"], &would["erased"]), (&1.into(), &0.into()));
    let id = komado_core::SessionId::new(HERS).unwrap();
    let store = place.house.context.engine.store();
    let held = store.open(&id, &komado_core::ThreadId::root(), komado_store::OpenMode::Write).unwrap();
    let busy = place.with("DELETE", "/users/ann", &hers, None).await;
    assert!(
        busy.text().contains("of-ann by process") && busy.text().contains("force=true"),
        "{}",
        busy.text()
    );
    busy.problem(409);
    let forced = place.with("DELETE", "/users/ann?force=true", &hers, None).await.ok(200);
    assert_eq!((&forced["erased"], &forced["left"][0]["session"]), (&0.into(), &HERS.into()));
    drop(held);
    let done = place.with("DELETE", "/users/ann", &hers, None).await.ok(200);
    assert_eq!(done, json!({ "erased": 1, "jobs": 0, "left": [], "remains": [], "keys": ["key-ann"] }));
    assert!(!place.folder.path().join(format!("running/{HERS}")).exists());
    place.with("DELETE", "/users/ann", &hers, None).await.problem(404);
    place.with("GET", "/sessions/of-bob", &his, None).await.ok(200);
    let record = std::fs::read_to_string(place.folder.path().join("erasures.jsonl")).unwrap();
    assert!(record.contains("\"by\":\"key key-ann\"") && record.contains("\"erased\":1"), "{record}");
    assert!(!record.contains(HERS) && !record.contains(SECRET), "{record}");
}

#[tokio::test]
async fn the_name_of_a_standing_session_is_kept_for_the_user_it_stands_for() {
    let (place, ann, bob) = furnished().await;
    let (hers, his) = ([("x-komado-key", ann.as_str())], [("x-komado-key", bob.as_str())]);
    let wanted = json!({ "id": "session_ann", "window": 1000 });
    place.with("POST", "/sessions", &his, Some(&wanted)).await.problem(403);
    let own = json!({ "id": "session_bob", "window": 1000 });
    place.with("POST", "/sessions", &his, Some(&own)).await.ok(201);
    let export = place.with("GET", "/sessions/session_bob/export", &his, None).await.bytes;
    let request = Request::post("/api/v1/import?as=session_ann").header("x-komado-key", &bob);
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(export)).unwrap();
    place.send(request).await.problem(403);
    let talk = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "窓" }] });
    let request = Request::post("/v1/chat/completions").header("x-komado-session", "session_ann");
    let request = request.header("x-komado-key", &bob).header("content-type", "application/json");
    let told = place.send(request.body(Body::from(talk.to_string())).unwrap()).await;
    assert_eq!(told.status, StatusCode::NOT_FOUND, "{}", told.text());
    let made =
        place.with("POST", "/users/ann/session", &hers, Some(&json!({ "window": 1000 }))).await.ok(201);
    assert_eq!((&made["session"], &made["user"]), (&"session_ann".into(), &"ann".into()));
}
