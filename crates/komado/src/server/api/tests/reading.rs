//! Reading over HTTP: exports in their media types, ids of any script in URLs and headers, names and entries that are not there.

use super::*;

async fn talk(place: &Place, id: &str, path: &str) {
    let made = place.post("/sessions", json!({ "id": id, "window": 8000, "meter": "bytes4" })).await;
    let location = made.headers["location"].to_str().unwrap().to_owned();
    made.ok(201);
    assert_eq!(location, format!("/api/v1/sessions/{path}"));
    let messages = json!([{ "role": "user", "content": "<b>窓</b>を開ける" }]);
    let entries = format!("/sessions/{path}/threads/root/entries");
    place.post(&entries, json!({ "messages": messages })).await.ok(201);
}

#[tokio::test]
async fn an_export_has_the_media_type_of_its_form() {
    let place = Place::new();
    talk(&place, "s", "s").await;
    for (format, media, file, holds) in [
        ("", "application/x-ndjson", "s.jsonl", "komado_export"),
        ("?format=komado", "application/x-ndjson", "s.jsonl", "komado_export"),
        ("?format=md", "text/markdown; charset=utf-8", "s.md", "> <b>窓</b>"),
        ("?format=html&seq=1", "text/html; charset=utf-8", "s.html", "&lt;b&gt;窓"),
        ("?format=openai&model=m", "application/json", "s.json", "\"model\":\"m\""),
        ("?format=anthropic&model=m&thread=root", "application/json", "s.json", "\"max_tokens\""),
    ] {
        let told = place.get(&format!("/sessions/s/export{format}")).await;
        assert_eq!(told.status.as_u16(), 200, "{format}: {}", told.text());
        assert_eq!(told.headers["content-type"], media, "{format}");
        assert!(told.headers["content-disposition"].to_str().unwrap().contains(file), "{format}");
        assert_eq!(told.headers.contains_key("content-security-policy"), media.starts_with("text/html"));
        assert!(told.text().contains(holds), "{format}: {}", told.text());
    }
    place.get("/sessions/s/export?format=pdf").await.problem(400);
    place.get("/sessions/s/export?seq=1").await.problem(422);
    assert!(place.get("/sessions/s/export?format=md&seq=99").await.problem(404).contains("@99 is not there"));
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_same_words_as_at_a_terminal() {
    let place = Place::new();
    talk(&place, "licences", "licences").await;
    let thread = "/sessions/licences/threads/root";
    let want = "licences/root has 1 entry; @99 is not there; `komado log licences` lists them";
    for path in ["/entries/99", "/view?seq=99", "/log?seq=99"] {
        assert_eq!(place.get(&format!("{thread}{path}")).await.problem(404), want, "{path}");
    }
    for path in ["/rewind", "/revert", "/pin", "/unpin"] {
        let told = place.post(&format!("{thread}{path}"), json!({ "seq": 99 })).await;
        assert_eq!(told.problem(404), want, "{path}");
    }
    let fork = json!({ "seq": 99, "name": "other" });
    assert_eq!(place.post(&format!("{thread}/fork"), fork).await.problem(404), want);
    let told = place.get("/sessions/licenses").await.problem(404);
    assert_eq!(
        told,
        "there is no session \"licenses\"; did you mean \"licences\"? GET /api/v1/sessions lists yours"
    );
    let told = place.get("/sessions/licences/threads/roto/view").await.problem(404);
    assert!(told.contains("has no thread \"roto\"; did you mean \"root\"?"), "{told}");
    // A name that this caller may not see is suggested to no one else.
    let eve = place.key("eve", Sees::Own, &[]);
    let told = place.with("GET", "/sessions/licenses", &[("x-komado-key", &eve)], None).await.problem(404);
    assert!(!told.contains("licences"), "{told}");
}

#[tokio::test]
async fn an_id_of_any_script_stands_percent_encoded_in_urls_and_headers() {
    let place = Place::new();
    let path = "%E5%B0%8F%E7%AA%93-1";
    talk(&place, "小窓-1", path).await;
    assert_eq!(place.get(&format!("/sessions/{path}")).await.ok(200)["session"], "小窓-1");
    let told = place.get(&format!("/sessions/{path}/export?format=md")).await;
    let name = told.headers["content-disposition"].to_str().unwrap();
    assert!(name.ends_with("filename*=UTF-8''%E5%B0%8F%E7%AA%93%2D1%2Emd"), "{name}");
    let fork = json!({ "seq": 1, "name": "枝" });
    place.post(&format!("/sessions/{path}/threads/root/fork"), fork).await.ok(201);
    let view = format!("/sessions/{path}/threads/%E6%9E%9D/view");
    let told = place.get(&view).await;
    let tag = told.headers["etag"].to_str().unwrap().to_owned();
    told.ok(200);
    assert_eq!(place.with("GET", &view, &[("if-none-match", &tag)], None).await.status.as_u16(), 304);
    let append = format!("/sessions/{path}/threads/%E6%9E%9D/entries");
    let more = json!({ "messages": [{ "role": "user", "content": "more" }] });
    place.with("POST", &append, &[("if-match", &tag)], Some(&more)).await.ok(201);
    place.with("POST", &append, &[("if-match", &tag)], Some(&more)).await.problem(412);
    let body =
        json!({ "model": "scripted", "messages": [{ "role": "user", "content": "hello" }] }).to_string();
    for session in [path.as_bytes(), "小窓-2".as_bytes()] {
        let request = Request::post("/v1/chat/completions").header("content-type", "application/json");
        let told = place
            .send(request.header("x-komado-session", session).body(Body::from(body.clone())).unwrap())
            .await;
        assert_eq!(told.status.as_u16(), 200, "{}", told.text());
        let named = told.headers["x-komado-session"].to_str().unwrap();
        assert!(named.starts_with("%E5%B0%8F%E7%AA%93-"), "{named}");
    }
    place.get("/sessions/a%2Fb").await.problem(400);
    place.get("/sessions/%EF%BC%8F").await.problem(400);
}
