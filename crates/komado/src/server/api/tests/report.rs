//! Reports over HTTP: their forms, who sees what, and one at a time.

use super::*;
use crate::server::api::report as answer;
use crate::server::api::request::ApiCall;

/// Two users who ask the same; what one of them types would be a script, or a formula.
async fn asked() -> (Place, String, String) {
    let place = Place::new();
    let (ann, bob) = (place.key("ann", Sees::Own, &[]), place.key("bob", Sees::Own, &[]));
    for (key, id, text) in
        [(&ann, "of-ann", "返品したい"), (&bob, "of-bob", "=cmd <script>alert(1)</script>")]
    {
        let key = [("x-komado-key", key.as_str())];
        place.with("POST", "/sessions", &key, Some(&json!({ "id": id, "window": 4000 }))).await.ok(201);
        let messages =
            json!([{ "role": "user", "content": text }, { "role": "assistant", "content": "はい" }]);
        let path = format!("/sessions/{id}/threads/root/entries");
        place.with("POST", &path, &key, Some(&json!({ "messages": messages }))).await.ok(201);
    }
    (place, ann, bob)
}

#[tokio::test]
async fn everyone_sees_their_own_and_who_sees_all_sees_all() {
    let (place, ann, _) = asked().await;
    let (hers, all) = ([("x-komado-key", ann.as_str())], place.key("root", Sees::All, &[]));
    let listed = place.key("eve", Sees::Own, &["of-bob"]);
    let own = place.with("GET", "/report", &hers, None).await.ok(200);
    assert_eq!(own["usage"]["total"]["sessions_made"], 1);
    assert_eq!(own["questions"]["groups"][0]["question"], "返品したい");
    assert!(!own.to_string().contains("of-bob") && !own.to_string().contains("\"bob\""), "{own}");
    place.with("GET", "/report?user=bob", &hers, None).await.problem(403);
    let theirs = place.with("GET", "/report", &[("x-komado-key", all.as_str())], None).await.ok(200);
    assert_eq!(theirs["usage"]["total"]["sessions_made"], 2);
    let one = place.with("GET", "/report", &[("x-komado-key", listed.as_str())], None).await.ok(200);
    assert_eq!(one["usage"]["by_user"][0]["key"], "bob");
}

#[tokio::test]
async fn the_form_is_what_the_caller_takes_and_nothing_in_it_runs() {
    let (place, _, bob) = asked().await;
    let with = |accept: &'static str| [("x-komado-key", bob.clone()), ("accept", accept.to_owned())];
    for (path, accept, media) in [
        ("/report", "*/*", "application/json"),
        ("/report", "text/csv", "text/csv; charset=utf-8"),
        ("/report", "text/html,application/xhtml+xml", "text/html; charset=utf-8"),
        ("/report?format=html&lang=ja", "*/*", "text/html; charset=utf-8"),
        ("/report?format=csv&what=questions", "*/*", "text/csv; charset=utf-8"),
    ] {
        let headers = with(accept);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let told = place.with("GET", path, &headers, None).await;
        assert_eq!(
            (told.status.as_u16(), &told.headers["content-type"]),
            (200, &media.parse().unwrap()),
            "{path}"
        );
        let text = told.text();
        match media.starts_with("text/csv") {
            true => assert!(text.contains("'=cmd <script>") && text.ends_with("\r\n"), "{text}"),
            false if media.starts_with("text/html") => {
                assert!(!text.contains("<script") && text.contains("&lt;script&gt;"), "{text}");
                assert!(
                    told.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'")
                );
            }
            false => assert!(told.json()["performance"]["overall"].is_object()),
        }
    }
    let key = [("x-komado-key", bob.as_str()), ("accept", "image/png")];
    place.with("GET", "/report", &key, None).await.problem(406);
}

#[tokio::test]
async fn what_cannot_be_meant_is_named() {
    let place = Place::new();
    for (query, status, word) in [
        ("from=soon", 422, "soon"),
        ("from=today&to=yesterday", 422, "begin before the end"),
        ("utc_offset=JST", 422, "JST"),
        ("top=0", 422, "top"),
        ("what=questions&quick=true", 422, "quick"),
        ("what=everything", 400, "what"),
        ("colour=red", 400, "colour"),
    ] {
        let why = place.get(&format!("/report?{query}")).await.problem(status);
        assert!(why.contains(word), "{query}: {why}");
    }
    let quick = place.get("/report?quick=true").await.ok(200);
    assert_eq!((&quick["questions"], &quick["usage"]["total"]["turns"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn one_report_is_made_at_a_time() {
    let place = Place::new();
    place.talk("s").await;
    let context = place.house.context.clone();
    let (began, begun) = std::sync::mpsc::channel();
    let (free, freed) = std::sync::mpsc::channel::<()>();
    let held = std::thread::spawn(move || {
        context.report(|| {
            began.send(()).unwrap();
            freed.recv().unwrap();
            Ok(())
        })
    });
    begun.recv().unwrap();
    let told = place.get("/report").await;
    assert_eq!(told.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(told.headers.contains_key("retry-after"));
    let told = place.get("/users/ann").await;
    assert_eq!(told.status, StatusCode::TOO_MANY_REQUESTS, "habits read every session of a user");
    free.send(()).unwrap();
    held.join().unwrap().unwrap();
    // The place is given back before the last byte of a report can be read.
    for _ in 0..3 {
        place.get("/report").await.ok(200);
    }
}

#[tokio::test]
async fn a_slow_reader_keeps_no_other_caller_waiting() {
    let place = Place::new();
    let (house, context) = (Arc::clone(&place.house), place.house.context.clone());
    let call = ApiCall { context, house, answers: Arc::default(), headers: HeaderMap::new() };
    // A row for each day of nine years: more than is sent ahead of a reader.
    let mut wanted = komado_ops::NamedArguments::default();
    wanted.insert("from", &json!("3300d"));
    let unread = answer(call, wanted).await.unwrap();
    place.house.context.report(|| Ok(())).expect("the place was not given back");
    assert!(to_bytes(unread.into_body(), 64 << 20).await.unwrap().len() > 400_000);
}
