//! A task that was stopped, taken up again: whatever had become of it, nothing of it is lost.

use crate::task::kit::{Shop, long, says};
use komado_provider::scripted::ScriptStep;
use komado_store::{JobStage, Queue, QueuedJob};
use serde_json::Value;

/// Stops a task; gives the words of the undo.
fn stop(shop: &Shop, id: &str, state: &str) -> Vec<String> {
    let stopped = shop.place.json(&["task", "stop", id]);
    assert_eq!(stopped["state"], state, "{stopped}");
    let undo = stopped["undo"].as_str().unwrap().to_owned();
    assert_eq!(undo, format!("komado task retry {id}"));
    undo.split(' ').skip(1).map(str::to_owned).collect()
}

fn undo(shop: &Shop, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(shop.place.json(&words)["state"], "queued");
}

fn listed(shop: &Shop, id: &str) -> Value {
    let all = shop.place.json_lines(&["task", "list", "--all"]);
    all.into_iter().find(|task| task["session"] == id).unwrap()
}

#[test]
fn one_that_was_never_begun_keeps_its_words_and_is_done_when_it_is_taken_up_again() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let folder = shop.place.path().display().to_string();
    let text = "(t) 窓を小さく\nand the frame";
    let id = shop.place.ok(&["task", "add", text, "--folder", &folder, "--key", "A"]).trim().to_owned();
    let again = stop(&shop, &id, "stopped");
    for name in [id.as_str(), "local:A", "A"] {
        let shown = shop.show(name);
        assert_eq!((&shown["state"], &shown["text"]), (&"stopped".into(), &text.into()), "{name}");
        assert_eq!((&shown["title"], &shown["folder"]), (&"(t) 窓を小さく".into(), &folder.as_str().into()));
    }
    assert_eq!(listed(&shop, &id)["title"], "(t) 窓を小さく");
    assert!(shop.refused(&["task", "stop", &id], 5).contains("stopped already"));
    assert!(shop.refused(&["task", "resume", &id], 5).contains("komado task retry"));
    assert!(shop.refused(&["session", "resume", &id], 5).contains("komado task retry"));
    shop.work();
    assert_eq!(shop.asked().len(), 0, "nobody works on it");
    undo(&shop, &again);
    shop.work();
    let shown = shop.show(&id);
    assert_eq!((&shown["state"], &shown["result"]), (&"completed".into(), &"done".into()));
    assert!(shop.last_seen()[1].to_string().contains("and the frame"));
}

#[test]
fn one_that_rested_unbegun_and_waited_again_keeps_its_words() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let id = shop.add("(t) rest first");
    shop.place.ok(&["task", "pause", &id]);
    shop.place.ok(&["task", "resume", &id]);
    let again = stop(&shop, &id, "stopped");
    let shown = shop.show(&id);
    assert_eq!((&shown["title"], &shown["text"]), (&"(t) rest first".into(), &"(t) rest first".into()));
    undo(&shop, &again);
    shop.work();
    assert_eq!(shop.state(&id), "completed");
}

#[test]
fn one_that_was_worked_on_goes_on_in_its_session() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    let again = stop(&shop, &id, "stopping");
    shop.await_state(&id, "stopped");
    worker.stop();
    undo(&shop, &again);
    assert_eq!(shop.show(&id)["text"], "(long) work");
    shop.work();
    let shown = shop.show(&id);
    assert_eq!((&shown["state"], &shown["result"]), (&"completed".into(), &"went on to the end".into()));
}

#[test]
fn one_that_failed_is_out_of_the_queue_and_can_be_retried_all_the_same() {
    let shop = Shop::new(vec![ScriptStep::fail(401, None).when_anywhere("(refused)")], "");
    let id = shop.add("(refused) once");
    shop.work();
    let again = stop(&shop, &id, "failed");
    assert_eq!(shop.state(&id), "failed");
    assert_eq!(shop.place.ok(&["task", "list"]), "no tasks; --all lists those that ended\n");
    undo(&shop, &again);
    assert_eq!(shop.state(&id), "queued");
    assert!(shop.show(&id)["text"] == "(refused) once");
}

#[test]
fn one_that_somebody_failed_unbegun_stays_failed_with_its_reason_and_keeps_its_words() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let id = shop.add("(t) 窓");
    shop.place.ok(&["task", "pause", &id]);
    shop.place.ok(&["session", "fail", &id, "枠がない"]);
    let again = stop(&shop, &id, "failed");
    let shown = shop.show(&id);
    assert_eq!((&shown["why"], &shown["text"]), (&"枠がない".into(), &"(t) 窓".into()));
    undo(&shop, &again);
    shop.work();
    assert_eq!(shop.state(&id), "completed");
}

#[test]
fn one_that_several_take_up_at_once_is_queued_once_and_nobody_hears_of_another_task() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let id = shop.add("(t) all at once");
    stop(&shop, &id, "stopped");
    let said = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| shop.place.run(&["task", "retry", &id]))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(said.iter().any(|said| said.code == 0));
    assert!(said.iter().all(|said| [0, 5].contains(&said.code) && !said.err.contains("another task")));
    assert_eq!((shop.state(&id).as_str(), shop.store().jobs(None, 0).unwrap().len()), ("queued", 1));
    shop.work();
    assert_eq!(shop.state(&id), "completed");
}

#[test]
fn one_whose_taking_up_was_cut_off_rests_and_goes_on_when_it_is_resumed() {
    let shop = Shop::new(vec![says("(t)", "done")], "");
    let id = shop.add("(t) cut off");
    let job = shop.store().jobs(None, 0).unwrap().remove(0).job;
    stop(&shop, &id, "stopped");
    let at_rest = QueuedJob { job, stage: JobStage::Dead, tries: 0, why: Some("paused".into()) };
    assert!(shop.store().adopt(&at_rest).unwrap());
    shop.work();
    assert_eq!(shop.state(&id), "paused");
    shop.place.ok(&["task", "resume", &id]);
    shop.work();
    assert_eq!(shop.state(&id), "completed");
}

#[test]
fn another_with_its_key_is_queued_and_keeps_it_from_being_taken_up() {
    let shop = Shop::new(vec![], "");
    let id = shop.place.ok(&["task", "add", "one", "--key", "paint"]).trim().to_owned();
    stop(&shop, &id, "stopped");
    let other = shop.place.ok(&["task", "add", "two", "--key", "paint"]).trim().to_owned();
    assert!(shop.refused(&["task", "retry", &id], 5).contains("another task has its key"));
    assert_eq!((shop.state(&id).as_str(), shop.state(&other).as_str()), ("stopped", "queued"));
}
