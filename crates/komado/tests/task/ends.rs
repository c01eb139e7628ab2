//! Workers and processes of tasks that are asked to end, or killed.

use crate::task::kit::{Shop, await_that, long};

/// How often the task was told, and what it came to.
fn told_once(shop: &Shop, id: &str) {
    let shown = shop.show(id);
    assert_eq!((&shown["state"], &shown["result"]), (&"completed".into(), &"went on to the end".into()));
    let messages = shop.last_seen();
    let prompts =
        messages.iter().filter(|message| message["role"] == "user" && message.to_string().contains("(long)"));
    assert_eq!(prompts.count(), 1, "{messages:?}");
    let calls = messages.iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(calls, 1, "{messages:?}");
}

#[test]
fn a_worker_that_is_asked_to_end_gives_its_tasks_back_without_a_try_lost() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    worker.stop();
    let shown = shop.show(&id);
    assert_eq!((&shown["state"], &shown["tries"]), (&"queued".into(), &0.into()), "{shown}");
    shop.work();
    told_once(&shop, &id);
}

#[test]
fn a_process_of_a_task_that_is_killed_is_followed_by_another() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    worker.kill_children();
    shop.await_state(&id, "completed");
    worker.stop();
    told_once(&shop, &id);
}

#[test]
fn a_worker_that_is_killed_leaves_a_task_that_the_next_one_ends() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    worker.kill();
    await_that("its process gives the job back", || shop.state(&id) == "queued");
    shop.work();
    told_once(&shop, &id);
}

#[test]
fn a_worker_and_its_task_that_are_killed_together_are_followed_by_the_next_one() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    // The worker cannot put back what it does not live to see.
    let pid = worker.0.id();
    let stopped = std::process::Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
    assert!(stopped.success());
    worker.kill_children();
    worker.kill();
    await_that("nobody has it any more", || shop.state(&id) == "retry");
    shop.work();
    told_once(&shop, &id);
}

#[test]
fn a_session_whose_job_is_gone_is_stopped_by_the_next_worker_and_that_is_told() {
    let shop = Shop::new(long(), "");
    let id = shop.add("(long) work");
    let worker = shop.worker();
    shop.await_begun();
    let pid = worker.0.id();
    assert!(std::process::Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
    worker.kill_children();
    worker.kill();
    await_that("nobody has it any more", || shop.state(&id) == "retry");
    komado_store::Queue::withdraw(&shop.store(), &komado_core::SessionId::new(id.as_str()).unwrap()).unwrap();
    let said = shop.place.run(&["task", "work", "--once"]);
    assert!(said.code == 0 && said.err.contains(&id) && said.err.contains("stopped"), "{}", said.err);
    assert_eq!(shop.state(&id), "stopped");
}

#[test]
fn no_task_is_worked_on_by_a_model_that_nobody_named() {
    let shop = Shop::new(vec![], "");
    std::fs::remove_file(shop.place.path().join("komado.yaml")).unwrap();
    let added = shop.place.ok(&["task", "add", "Repair the window"]);
    let id = added.trim();
    assert!(shop.refused(&["task", "work", "--once"], 2).contains("--provider scripted"));
    assert_eq!(shop.state(id), "queued");
    shop.place.ok(&["task", "work", "--once", "--provider", "scripted"]);
    assert_eq!(shop.state(id), "completed");
}
