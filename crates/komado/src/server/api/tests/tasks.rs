//! Tasks over HTTP: what an operator does to them, and who may not.

use super::*;
use komado_core::{SessionId, ThreadId};
use komado_store::{FileStore, Holder, OpenMode, Store};

async fn add(place: &Place, key: &[(&str, &str)], body: Value) -> String {
    let told = place.with("POST", "/tasks", key, Some(&body)).await;
    let location = told.headers.get("location").map(|path| path.to_str().unwrap().to_owned());
    let added = told.ok(201);
    let session = added["session"].as_str().unwrap().to_owned();
    assert_eq!(location.unwrap(), format!("/api/v1/tasks/{session}"));
    assert_eq!(
        (&added["state"], &added["undo"]),
        (&json!("queued"), &json!(format!("komado task stop {session}")))
    );
    session
}

async fn change(place: &Place, id: &str, verb: &str) -> Value {
    place.with("POST", &format!("/tasks/{id}/{verb}"), &[], None).await.ok(200)["state"].clone()
}

#[tokio::test]
async fn a_task_is_added_read_paused_resumed_stopped_and_taken_up_again() {
    let place = Place::new();
    assert_eq!(place.get("/tasks").await.ok(200), json!({ "items": [], "next": null }));
    let key = "github:ann/tool/issue/27";
    let id = add(&place, &[], json!({ "text": "窓を直す\nall of them", "key": key, "user": "ann" })).await;
    let listed = place.get("/tasks").await.ok(200);
    let row = &listed["items"][0];
    assert_eq!((&row["session"], &row["task"], &row["user"]), (&json!(id), &json!(key), &json!("ann")));
    assert_eq!((&row["title"], &row["tries"], &row["worker"]), (&json!("窓を直す"), &json!(0), &Value::Null));
    for name in [id.as_str(), "github%3Aann%2Ftool%2Fissue%2F27"] {
        let shown = place.get(&format!("/tasks/{name}")).await.ok(200);
        assert_eq!((&shown["state"], &shown["text"]), (&json!("queued"), &json!("窓を直す\nall of them")));
        let told = ["folder", "playbook", "files"].map(|field| shown.get(field).is_some());
        assert_eq!(told, [false; 3], "where things lie on the server is told: {shown}");
    }
    for (verb, state) in [("pause", "paused"), ("resume", "queued"), ("stop", "stopped"), ("retry", "queued")]
    {
        assert_eq!(change(&place, &id, verb).await, state, "{verb}");
    }
    let problem = place.with("POST", &format!("/tasks/{id}/retry"), &[], None).await.problem(409);
    assert!(problem.contains("waits already"), "{problem}");
    assert_eq!(change(&place, &id, "stop").await, "stopped");
    assert_eq!(place.get("/tasks").await.ok(200)["items"], json!([]));
    let ended = place.get("/tasks?all=true&limit=5").await.ok(200);
    assert_eq!((&ended["items"][0]["session"], &ended["items"][0]["state"]), (&json!(id), &json!("stopped")));
}

#[tokio::test]
async fn what_is_no_task_and_what_names_a_path_of_the_server_is_refused() {
    let place = Place::new();
    for body in [
        json!({}),
        json!({ "text": "" }),
        json!({ "text": "x", "folder": "/" }),
        json!({ "text": "x", "playbook": "/p" }),
    ] {
        place.post("/tasks", body).await.problem(400);
    }
    place.post("/tasks", json!({ "text": " \n" })).await.problem(422);
    place.post("/tasks", json!({ "text": "x", "key": "github:nowhere" })).await.problem(422);
    let id = add(&place, &[], json!({ "text": "x", "key": "once" })).await;
    let known = place.post("/tasks", json!({ "text": "y", "key": "once" })).await.problem(409);
    assert!(known.contains("local:once is in the queue already"), "{known}");
    // Over HTTP a task is named in full.
    place.get(&format!("/tasks/{}", &id[..8])).await.problem(404);
    place.get("/tasks/once").await.ok(200);
    place.with("POST", "/tasks/nobody/stop", &[], None).await.problem(404);
}

#[tokio::test]
async fn a_key_sees_the_tasks_of_its_user_and_only_one_that_sees_all_changes_any() {
    let place = Place::new();
    let [ann, eve, root] = [
        place.key("ann", Sees::Own, &[]),
        place.key("eve", Sees::Own, &[]),
        place.key("root", Sees::All, &[]),
    ];
    let [ann, eve, root] = [&ann, &eve, &root].map(|key| [("x-komado-key", key.as_str())]);
    let hers = add(&place, &root, json!({ "text": "合言葉", "key": "hers", "user": "ann" })).await;
    let rests = add(&place, &root, json!({ "text": "合言葉", "key": "rests", "user": "ann" })).await;
    let of_root = add(&place, &root, json!({ "text": "合言葉", "key": "roots" })).await;
    place.with("POST", &format!("/tasks/{rests}/stop"), &root, None).await.ok(200);
    let sees = async |key: &[(&str, &str)]| {
        let listed = place.with("GET", "/tasks?all=true", key, None).await.ok(200);
        let all = listed["items"].as_array().unwrap();
        all.iter().map(|task| task["session"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sees(&root).await, [&hers, &of_root, &rests].map(String::clone));
    assert_eq!(sees(&ann).await, [&hers, &rests].map(String::clone));
    assert!(sees(&eve).await.is_empty());
    for id in [&hers, &rests] {
        assert_eq!(place.with("GET", &format!("/tasks/{id}"), &ann, None).await.ok(200)["user"], "ann");
        let told = place.with("GET", &format!("/tasks/{id}"), &eve, None).await.problem(404);
        let absent = place.with("GET", "/tasks/absent", &eve, None).await.problem(404);
        assert_eq!(told.replace(id.as_str(), "absent"), absent);
    }
    place.with("GET", "/tasks/roots", &ann, None).await.problem(404);
    for verb in ["pause", "resume", "stop", "retry"] {
        let told = place.with("POST", &format!("/tasks/{hers}/{verb}"), &ann, None).await.problem(403);
        assert!(told.contains("--sees all"), "{told}");
    }
    let told = place.with("POST", "/tasks", &ann, Some(&json!({ "text": "rm -rf /" }))).await.problem(403);
    assert!(told.contains("run commands on this machine"), "{told}");
    assert_eq!(place.with("GET", &format!("/tasks/{hers}"), &ann, None).await.ok(200)["state"], "queued");
    // A session that a key lists is seen with its task.
    let listed = place.key("zoe", Sees::Own, &[&hers]);
    assert_eq!(sees(&[("x-komado-key", listed.as_str())]).await, [hers]);
}

#[tokio::test]
async fn a_task_that_another_process_writes_is_not_stopped_and_keeps_its_words() {
    let place = Place::new();
    let id = add(&place, &[], json!({ "text": "mend the window", "key": "mend" })).await;
    assert_eq!(change(&place, &id, "pause").await, "paused");
    let holder = Holder { pid: 1, host: "elsewhere".into(), program: "other".into(), since: String::new() };
    let other = FileStore::new(place.folder.path(), holder);
    let held = other.open(&SessionId::new(id.as_str()).unwrap(), &ThreadId::root(), OpenMode::Write).unwrap();
    let why = place.with("POST", &format!("/tasks/{id}/stop"), &[], None).await.problem(409);
    assert!(why.contains(&id), "{why}");
    assert_eq!(place.get(&format!("/tasks/{id}")).await.ok(200)["state"], "paused");
    drop(held);
    assert_eq!(change(&place, &id, "stop").await, "stopped");
    let shown = place.get(&format!("/tasks/{id}")).await.ok(200);
    assert_eq!((&shown["text"], &shown["state"]), (&json!("mend the window"), &json!("stopped")));
}
