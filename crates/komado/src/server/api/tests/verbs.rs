//! Each verb does over HTTP what it does on the command line.

use super::*;

const ROOT: &str = "/sessions/s/threads/root";

async fn seen(place: &Place, at: &str) -> String {
    place.get(&format!("{ROOT}/view{at}")).await.ok(200)["items"].to_string()
}

#[tokio::test]
async fn edits_change_what_is_seen_now_and_nothing_that_was_seen_before() {
    let place = Place::new();
    place.talk("s").await;
    let before = seen(&place, "").await;
    assert!(before.contains("窓を開けて。"));
    let long = "とても長い話。".repeat(200);
    let words = json!({ "messages": [{ "role": "user", "content": long }, { "role": "assistant", "content": "はい" }] });
    place.post(&format!("{ROOT}/entries"), words).await.ok(201);
    let cut = json!({ "span": [{ "from": 1, "to": 4 }], "text": "長い話の要約" });
    let edit = place.post(&format!("{ROOT}/condense"), cut).await.ok(200);
    assert!(edit["tokens_after"].as_u64() < edit["tokens_before"].as_u64(), "{edit}");
    assert!(seen(&place, "").await.contains("長い話の要約"));
    assert_eq!(seen(&place, "?seq=3").await, before);
    let gone = place.get("/sessions/s/diff?from=root@5&to=root").await.ok(200);
    assert!(gone["items"].to_string().contains("gone"), "{gone}");
    place.post(&format!("{ROOT}/revert"), json!({ "seq": edit["seq"] })).await.ok(200);
    assert!(!seen(&place, "").await.contains("長い話の要約"));
    place.post(&format!("{ROOT}/pin"), json!({ "seq": 1 })).await.ok(200);
    let context = place.get(&format!("{ROOT}/context")).await.ok(200);
    assert_eq!(context["pins"], json!([[1, 1]]));
    place.post(&format!("{ROOT}/unpin"), json!({ "seq": 1 })).await.ok(200);
    place.post(&format!("{ROOT}/rewind"), json!({ "seq": 3 })).await.ok(200);
    assert_eq!(seen(&place, "").await, before);
}

#[tokio::test]
async fn a_plan_changes_nothing_and_a_fit_does_what_the_plan_says() {
    let place = Place::new();
    place.talk("s").await;
    let words: Vec<Value> = (0..40)
        .map(|i| json!({ "role": if i % 2 == 0 { "assistant" } else { "user" }, "content": "言葉 ".repeat(60) }))
        .collect();
    place.post(&format!("{ROOT}/entries"), json!({ "messages": words })).await.ok(201);
    let tokens = seen(&place, "").await;
    let plan = place.get(&format!("{ROOT}/plan?window=3000")).await.ok(200);
    assert!(!plan["edits"].as_array().unwrap().is_empty(), "{plan}");
    assert_eq!(seen(&place, "").await, tokens);
    let done = place.post(&format!("{ROOT}/fit"), json!({ "window": 3000 })).await.ok(200);
    assert_eq!(done["tokens_after"], plan["tokens_after"]);
    place.get(&format!("{ROOT}/plan?window=0")).await.problem(400);
}

#[tokio::test]
async fn a_session_ends_waits_goes_on_and_is_removed() {
    let place = Place::new();
    place.talk("s").await;
    assert_eq!(
        place.post("/sessions/s/pause", json!({ "reason": "昼休み" })).await.ok(200)["status"],
        "paused"
    );
    place.post("/sessions/s/resume", json!({})).await.ok(200);
    let done = place.post("/sessions/s/complete", json!({ "result": "完了" })).await.ok(200);
    assert_eq!((&done["status"], done.get("folder")), (&json!("completed"), None));
    let words = json!({ "messages": [{ "role": "user", "content": "まだ" }] });
    let why = place.post(&format!("{ROOT}/entries"), words).await.problem(409);
    assert!(why.contains("resume"), "{why}");
    assert_eq!(place.get("/stats").await.ok(200)["by_status"]["completed"], 1);
    place.with("DELETE", "/sessions/s", &[], None).await.ok(204);
    place.get("/sessions/s").await.problem(404);
}

#[tokio::test]
async fn child_threads_start_tell_and_end() {
    let place = Place::new();
    place.talk("s").await;
    let tools =
        json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let made = place
        .post(&format!("{ROOT}/start"), json!({ "label": "調査", "name": "c", "tools": tools }))
        .await
        .ok(201);
    assert_eq!(made["thread"], "c");
    place.post("/sessions/s/threads/c/tell", json!({ "to": "root", "text": "もうすぐ" })).await.ok(200);
    place.post("/sessions/s/threads/c/tell", json!({ "to": "nobody", "text": "x" })).await.problem(404);
    let ended =
        place.post("/sessions/s/threads/c/end", json!({ "chronicle": "原因を見つけた" })).await.ok(200);
    assert_eq!(ended["status"], "completed");
    assert_eq!(place.get("/sessions/s/threads/c/chronicle").await.ok(200)["text"], "原因を見つけた");
    assert_eq!(place.get("/sessions/s/tree").await.ok(200)["threads"].as_array().unwrap().len(), 2);
    assert_eq!(place.get("/sessions/s/threads").await.ok(200)["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn long_outputs_are_listed_read_searched_and_taken_whole() {
    let place = Place::new();
    place.talk("s").await;
    let long: String = (0..5000).map(|i| format!("行 {i}\n")).collect();
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "sh", "arguments": "{}" } });
    let words = json!({ "messages": [
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": long },
    ] });
    place.post(&format!("{ROOT}/entries"), words).await.ok(201);
    let outputs = place.get(&format!("{ROOT}/outputs")).await.ok(200);
    let id = outputs["items"][0]["ref"].as_str().unwrap().to_owned();
    let read = place.get(&format!("{ROOT}/outputs/{id}?offset=4000&limit=2")).await.ok(200);
    assert!(read["text"].as_str().unwrap().contains("行 3999"), "{read}");
    let found = place.get(&format!("{ROOT}/outputs/{}?grep=4321", &id[..12])).await.ok(200);
    assert!(found["text"].as_str().unwrap().contains("行 4321"), "{found}");
    assert_eq!(place.get(&format!("{ROOT}/outputs/{id}/raw")).await.text(), long);
}

#[tokio::test]
async fn an_export_comes_back_as_it_was() {
    let place = Place::new();
    place.talk("s").await;
    let export = place.get("/sessions/s/export").await;
    let request = Request::post("/api/v1/import?as=t").header("content-type", "application/x-ndjson");
    let told = place.send(request.body(Body::from(export.bytes.clone())).unwrap()).await;
    assert_eq!(told.ok(201)["session"], "t");
    let view = |text: Value| text["items"].clone();
    let (s, t) = (
        place.get(&format!("{ROOT}/view")).await.ok(200),
        place.get("/sessions/t/threads/root/view").await.ok(200),
    );
    assert_eq!(view(s), view(t));
    let broken = Request::post("/api/v1/import?as=u").header("content-type", "application/x-ndjson");
    place.send(broken.body(Body::from("{}\n")).unwrap()).await.problem(422);
    let cut = Request::post("/api/v1/import?as=u").header("content-type", "application/x-ndjson");
    let part = export.bytes[..export.bytes.len() / 2].to_vec();
    place.send(cut.body(Body::from(part)).unwrap()).await.problem(422);
    place.get("/sessions/u").await.problem(404);
}

#[tokio::test]
async fn a_setup_keeps_what_is_not_given() {
    let place = Place::new();
    place.talk("s").await;
    place.post(&format!("{ROOT}/setup"), json!({ "system": "丁寧に。" })).await.ok(200);
    place.post(&format!("{ROOT}/setup"), json!({ "params": { "temperature": 0 } })).await.ok(200);
    let entry = place.get(&format!("{ROOT}/entries/5")).await.ok(200);
    assert!(entry.to_string().contains("丁寧に。") && entry.to_string().contains("temperature"), "{entry}");
    place.post(&format!("{ROOT}/setup"), json!({})).await.problem(422);
}

#[tokio::test]
async fn a_secret_that_stays_somewhere_is_no_success() {
    let place = Place::new();
    place.talk("s").await;
    place.post(&format!("{ROOT}/fork"), json!({ "name": "hunter2" })).await.ok(201);
    let why =
        place.post("/sessions/s/redact", json!({ "text": "hunter2", "reason": "x" })).await.problem(409);
    assert!(why.contains("still in"), "{why}");
}
