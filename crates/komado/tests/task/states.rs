//! Pause, resume, stop and retry, in every state of a task.

use crate::task::kit::{Shop, long, says};
use komado_core::SessionId;
use komado_engine::{Clock, Engine};
use komado_provider::scripted::ScriptStep;
use komado_store::Queue;
use std::sync::Arc;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> String {
        "2026-01-15T12:00:00.000000Z".to_owned()
    }
}

fn verb(shop: &Shop, verb: &str, id: &str) -> String {
    shop.place.json(&["task", verb, id])["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_that_was_never_begun_rests_and_begins_when_it_is_resumed() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let id = shop.add("(t) wait");
    assert!(shop.refused(&["task", "resume", &id], 5).contains("is queued"));
    assert!(shop.refused(&["task", "retry", &id], 5).contains("waits already"));
    assert_eq!(verb(&shop, "pause", &id), "paused");
    assert!(shop.refused(&["task", "pause", &id], 5).contains("rests already"));
    assert!(shop.refused(&["task", "retry", &id], 5).contains("task resume"));
    assert_eq!(shop.state(&id), "paused");
    shop.work();
    assert_eq!((shop.state(&id).as_str(), shop.asked().len()), ("paused", 0));
    assert_eq!(verb(&shop, "resume", &id), "queued");
    shop.work();
    assert_eq!(shop.state(&id), "completed");
    let asked = shop.asked().remove(0);
    assert!(asked["messages"][0]["role"] == "system" && asked["tools"].is_array(), "{asked}");
}

#[test]
fn a_task_that_rests_unbegun_is_resumed_before_anybody_saw_it_or_stopped() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let (first, second) = (shop.add("(t) one"), shop.add("(t) two"));
    verb(&shop, "pause", &first);
    verb(&shop, "resume", &first);
    verb(&shop, "pause", &second);
    assert_eq!(verb(&shop, "stop", &second), "stopped");
    shop.work();
    assert_eq!((shop.state(&first).as_str(), shop.state(&second).as_str()), ("completed", "stopped"));
}

#[test]
fn a_task_that_is_worked_on_rests_and_goes_on() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    let shown = shop.show(&id);
    assert_eq!(
        (&shown["state"], &shown["turns"]),
        (&"running".into(), &1.into()),
        "the turn is counted at once"
    );
    assert!(shop.refused(&["task", "resume", &id], 5).contains("is running"));
    assert!(shop.refused(&["task", "retry", &id], 5).contains("is worked on"));
    assert_eq!(verb(&shop, "pause", &id), "pausing");
    shop.await_state(&id, "paused");
    worker.stop();
    assert_eq!(verb(&shop, "resume", &id), "queued");
    shop.work();
    let shown = shop.show(&id);
    assert_eq!((&shown["state"], &shown["result"]), (&"completed".into(), &"went on to the end".into()));
}

#[test]
fn a_task_that_is_on_its_way_to_rest_goes_on_when_it_is_resumed_at_once() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    assert_eq!(verb(&shop, "pause", &id), "pausing");
    let state = verb(&shop, "resume", &id);
    assert!(["queued", "running"].contains(&state.as_str()), "{state}");
    shop.await_state(&id, "completed");
    worker.stop();
    assert_eq!(shop.show(&id)["result"], "went on to the end");
}

#[test]
fn a_task_whose_job_is_gone_gets_another_when_it_was_begun() {
    let shop = Shop::new(long(), "");
    let (begun, unbegun) = (shop.add("(long) work"), shop.add("(long) never begun"));
    let store = shop.store();
    let withdraw = |id: &str| assert!(store.withdraw(&SessionId::new(id).unwrap()).unwrap());
    verb(&shop, "pause", &unbegun);
    withdraw(&unbegun);
    let worker = shop.worker();
    shop.await_begun();
    verb(&shop, "pause", &begun);
    shop.await_state(&begun, "paused");
    worker.stop();
    withdraw(&begun);
    let said = shop.refused(&["task", "resume", &unbegun], 5);
    assert!(said.contains("never begun") && said.contains("komado task stop"), "{said}");
    assert_eq!(verb(&shop, "stop", &unbegun), "stopped");
    assert_eq!(verb(&shop, "resume", &begun), "queued");
    let job = store.jobs(None, 0).unwrap().remove(0).job;
    assert!(job.body.contains(&*shop.place.path().to_string_lossy()), "its folder: {}", job.body);
    shop.work();
    let shown = shop.show(&begun);
    assert_eq!((&shown["state"], &shown["title"]), (&"completed".into(), &"(long) work".into()));
}

#[test]
fn a_task_that_was_opened_without_the_queue_and_has_no_job_goes_on() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    verb(&shop, "pause", &id);
    shop.await_state(&id, "paused");
    worker.stop();
    assert!(shop.store().withdraw(&SessionId::new(id.as_str()).unwrap()).unwrap());
    assert!(shop.refused(&["session", "resume", &id], 5).contains("komado task resume"));
    Engine::new(Arc::new(shop.store()), Arc::new(Noon))
        .resume(&SessionId::new(id.as_str()).unwrap())
        .unwrap();
    assert_eq!((shop.state(&id).as_str(), verb(&shop, "resume", &id).as_str()), ("running", "queued"));
    shop.work();
    assert_eq!(shop.state(&id), "completed");
}

#[test]
fn a_task_that_is_worked_on_is_stopped_and_its_worker_goes_on_with_another() {
    let shop = Shop::new(long().into_iter().chain([says("(t)", "done")]).collect(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    assert_eq!(verb(&shop, "stop", &id), "stopping");
    shop.await_state(&id, "stopped");
    let other = shop.add("(t) other");
    shop.await_state(&other, "completed");
    worker.stop();
    for verb in ["pause", "resume", "stop"] {
        for (id, state) in [(&id, "stopped"), (&other, "completed")] {
            let said = shop.refused(&["task", verb, id], 5);
            assert!(said.contains(state), "{verb} {state}: {said}");
        }
    }
    assert!(shop.refused(&["task", "retry", &other], 5).contains("completed"));
}

#[test]
fn a_task_that_failed_is_retried_in_its_session() {
    let refuses = ScriptStep::fail(401, None).when_anywhere("(refused)");
    let shop = Shop::new(vec![refuses], "");
    let id = shop.add("(refused) once");
    shop.work();
    let shown = shop.show(&id);
    assert!(shown["state"] == "failed" && shown["why"].as_str().unwrap().contains("401"), "{shown}");
    assert!(shop.refused(&["task", "pause", &id], 5).contains("failed"));
    assert!(shop.refused(&["task", "resume", &id], 5).contains("failed"));
    let kind = Shop::new(vec![says("(refused)", "now it went")], "");
    shop.place.settings(&std::fs::read_to_string(kind.place.path().join("komado.yaml")).unwrap());
    assert_eq!(verb(&shop, "retry", &id), "queued");
    shop.work();
    let shown = shop.show(&id);
    assert!(shown["state"] == "completed" && shown["result"] == "now it went", "{shown}");
}

#[test]
fn a_task_that_nobody_knows_is_not_found() {
    let shop = Shop::new(vec![], "");
    shop.add("a");
    for verb in ["show", "pause", "resume", "stop", "retry"] {
        for task in ["no-such", "github:ann/tool/issue/27", "ffffffff-ffff"] {
            assert!(shop.refused(&["task", verb, task], 3).contains(task), "{verb}");
        }
        assert!(shop.refused(&["task", verb, ""], 2).contains("which task?"), "{verb}");
    }
    assert!(shop.refused(&["task", "fetch"], 2).contains("github.repos"));
    shop.refused(&["task", "work", "--concurrency", "0"], 2);
    assert!(shop.refused(&["task", "work", "--job"], 6).contains("no job"));
}

#[test]
fn a_task_that_names_what_is_not_there_fails_at_once_and_a_queue_that_is_broken_is_told() {
    let shop = Shop::new(vec![], "");
    let playbook = shop.place.path().join("gone.json");
    std::fs::write(&playbook, r#"{"name":"p","nodes":[{"id":"a","type":"end"}]}"#).unwrap();
    let added = shop.place.json(&["task", "add", "x", "--playbook", "gone.json"]);
    std::fs::remove_file(playbook).unwrap();
    let id = added["session"].as_str().unwrap();
    shop.work();
    assert_eq!((shop.state(id).as_str(), shop.asked().len()), ("failed", 0));
    std::fs::write(shop.place.base().join("queue.db"), "garbage").unwrap();
    assert!(shop.refused(&["task", "work", "--once"], 1).contains("queue.db"));
    let mine = shop.place.session();
    shop.place.ok(&["session", "pause", &mine]);
    shop.place.ok(&["session", "resume", &mine]);
    assert!(
        shop.refused(&["session", "resume", id], 1).contains("queue.db"),
        "that of a task could be in the queue"
    );
}
