//! Live events: each entry once, also for a reader who comes back.

use super::*;
use futures_util::StreamExt;

/// Reads events of a session until `count` have come.
async fn hear(place: &Place, path: &str, last: Option<&str>, count: usize) -> String {
    let mut request = Request::get(format!("/api/v1{path}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo("127.0.0.1:9".parse::<SocketAddr>().unwrap()));
    let response = place.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut heard, mut body) = (String::new(), response.into_body().into_data_stream());
    while heard.matches("\n\n").count() < count {
        let piece = tokio::time::timeout(std::time::Duration::from_secs(10), body.next()).await;
        heard.push_str(std::str::from_utf8(&piece.unwrap().unwrap().unwrap()).unwrap());
    }
    heard
}

#[tokio::test]
async fn a_reader_who_comes_back_misses_nothing_and_hears_nothing_twice() {
    let place = Place::new();
    place.talk("s").await;
    let heard = hear(&place, "/sessions/s/events?from=start", None, 2).await;
    assert!(heard.contains("id: root@1\n") && heard.contains("id: root@2\n"), "{heard}");
    assert!(heard.contains("窓を開けて。") && !heard.contains("root@4"), "{heard}");
    place.post("/sessions/s/threads/root/fork", json!({ "seq": 2, "name": "other" })).await.ok(201);
    let words = json!({ "messages": [{ "role": "user", "content": "別の道" }] });
    place.post("/sessions/s/threads/other/entries", words).await.ok(201);
    let heard = hear(&place, "/sessions/s/events", Some("root@2"), 2).await;
    assert!(heard.contains("id: root@3\n") && !heard.contains("id: root@2\n"), "{heard}");
    assert!(heard.contains("id: other@3 root@3\n") && heard.contains("別の道"), "{heard}");
    assert_eq!(heard.matches("event: entry").count(), 2, "{heard}");
    place.with("GET", "/sessions/s/events", &[("last-event-id", "?")], None).await.problem(400);
}

#[tokio::test]
async fn events_end_when_the_server_is_to_stop() {
    let place = Place::new();
    place.talk("s").await;
    let (stop, wait) = (place.house.stop.clone(), std::time::Duration::from_millis(50));
    let stopping = tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        stop.cancel();
    });
    assert_eq!(place.get("/sessions/s/events").await.status, StatusCode::OK);
    assert_eq!(place.get("/events").await.status, StatusCode::OK);
    stopping.await.unwrap();
}
