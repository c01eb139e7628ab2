//! Tasks come in, are listed and shown.

use crate::task::kit::{Shop, says};
use crate::task::run::feed;
use komado_provider::scripted::ScriptStep;
use komado_store::{Holder, Queue};
use std::fs;
use std::time::Duration;

fn shop() -> Shop {
    Shop::new(vec![says("(t)", "すべて終わりました")], "")
}

#[test]
fn text_standard_input_and_files_become_tasks() {
    let shop = shop();
    let first = shop.add("(t) one");
    let second = shop.place.feed(&["task", "add", "-", "--title", "二つ目"], "(t) two\nwith more".as_bytes());
    assert_eq!(second.code, 0, "{}", second.err);
    fs::write(shop.place.path().join("more.txt"), "(t) three\n---\n(t) four\n").unwrap();
    assert_eq!(shop.place.ok(&["task", "add", "--file", "more.txt"]).lines().count(), 2);
    let listed = shop.place.json_lines(&["task", "list"]);
    let titles: Vec<&str> = listed.iter().map(|task| task["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["(t) one", "二つ目", "(t) three", "(t) four"]);
    assert!(listed.iter().all(|task| task["state"] == "queued"));
    let shown = shop.place.ok(&["task", "show", &first[..8]]);
    assert!(shown.contains("state     queued") && shown.contains("title     (t) one"), "{shown}");
}

#[test]
fn what_is_no_task_is_named_with_its_place_and_nothing_is_queued() {
    let shop = shop();
    let path = shop.place.path();
    fs::write(path.join("bad.jsonl"), "{\"title\":\"a\",\"text\":\"b\"}\n{\"titel\":\"c\"}\n").unwrap();
    let said = shop.refused(&["task", "add", "--file", "bad.jsonl"], 6);
    assert!(said.contains("bad.jsonl:2") && said.contains("titel"), "{said}");
    fs::write(path.join("away.jsonl"), "{\"text\":\"a\"}\n{\"text\":\"b\",\"folder\":\"no-such\"}\n")
        .unwrap();
    let said = shop.refused(&["task", "add", "--file", "away.jsonl"], 3);
    assert!(said.contains("no-such"), "{said}");
    assert!(shop.refused(&["task", "add", "--file", "none.md"], 3).contains("none.md"));
    assert!(shop.refused(&["task", "add", "  "], 2).contains("there is no task: write it"));
    shop.refused(&["task", "add"], 2);
    shop.refused(&["task", "add", "a", "--key", "github:nonsense"], 2);
    shop.refused(&["task", "add", "--file", "bad.jsonl", "--key", "k"], 2);
    assert_eq!(shop.place.ok(&["task", "list"]), "no tasks; --all lists those that ended\n");
}

#[test]
fn of_two_with_the_same_key_one_is_queued_and_the_later_inherits() {
    let shop = shop();
    shop.place.ok(&["task", "add", "(t) paint", "--key", "paint"]);
    assert!(shop.refused(&["task", "add", "(t) again", "--key", "paint"], 5).contains("local:paint"));
    shop.work();
    shop.place.ok(&["task", "add", "(t) once more", "--key", "paint"]);
    shop.work();
    let last = shop.asked().pop().unwrap().to_string();
    assert!(last.contains("once more") && last.contains("すべて終わりました"), "{last}");
}

#[test]
fn a_file_that_grew_is_added_again_and_only_what_is_new_is_queued() {
    let shop = shop();
    let file = shop.place.path().join("list.txt");
    fs::write(&file, "(t) one\n").unwrap();
    shop.place.ok(&["task", "add", "--file", "list.txt"]);
    assert!(shop.refused(&["task", "add", "--file", "list.txt"], 5).contains("already"));
    fs::write(&file, "(t) one\n---\n(t) two\n").unwrap();
    assert_eq!(shop.place.ok(&["task", "add", "--file", "list.txt"]).lines().count(), 1);
    assert_eq!(shop.place.json_lines(&["task", "list"]).len(), 2);
}

#[test]
fn a_task_that_is_done_keeps_its_title_and_fits_the_screen() {
    let shop = shop();
    let id = shop.add(
        "(t) 窓をとても小さくしてください、そしてその理由を長い長い文章で説明してください、お願いします",
    );
    let told = shop.work();
    assert!(told.lines().all(|line| !line[9..].starts_with("local:")), "{told}");
    assert!(told.contains(&format!(" {}  completed", &id[..8])), "{told}");
    assert_eq!(shop.place.ok(&["task", "list"]), "no tasks; --all lists those that ended\n");
    shop.place.ok(&["task", "add", "(t) more", "--key", "github:some-long-owner/some-long-name/issue/12345"]);
    let mut list = shop.place.command(&["task", "list", "--all"]);
    list.env("COLUMNS", "80");
    let listed = feed(list, b"").out;
    assert!(listed.contains("…") && listed.contains("issue/12345"), "{listed}");
    assert!(listed.contains("(t) 窓をとても") && listed.contains("completed"), "{listed}");
    assert!(listed.lines().all(|line| komado_core::notation::width(line) <= 80), "{listed}");
    let shown = shop.show(&id);
    assert_eq!((&shown["state"], &shown["result"]), (&"completed".into(), &"すべて終わりました".into()));
    assert!(shown["title"].as_str().unwrap().starts_with("(t) 窓"), "{shown}");
}

#[test]
fn tasks_are_done_on_threads_of_the_worker_when_that_is_wanted() {
    let shop = shop();
    let ids = [shop.add("(t) a"), shop.add("(t) b"), shop.add("(t) c")];
    let rows = shop.place.json_lines(&["task", "work", "--once", "--in-process", "--concurrency", "2"]);
    assert_eq!(rows.iter().filter(|row| row["kind"] == "ended" && row["status"] == "completed").count(), 3);
    assert!(ids.iter().all(|id| shop.state(id) == "completed"));
}

#[test]
fn a_key_that_is_taken_is_told_with_where_the_other_stands_and_what_can_be_done() {
    let shop = Shop::new(vec![ScriptStep::fail(401, None).when_anywhere("(refused)")], "");
    let add = ["task", "add", "(refused) paint", "--key", "paint"];
    shop.place.ok(&add);
    let said = shop.refused(&add, 5);
    assert!(
        said.contains("is in the queue already") && said.contains("komado task show local:paint"),
        "{said}"
    );
    shop.work();
    let said = shop.refused(&add, 5);
    assert!(said.contains("failed before") && said.contains("komado task retry local:paint"), "{said}");
    shop.place.ok(&["task", "add", "(t) rest", "--key", "rest"]);
    shop.place.ok(&["task", "pause", "rest"]);
    let said = shop.refused(&["task", "add", "(t) rest", "--key", "rest"], 5);
    assert!(said.contains("rests") && said.contains("komado task resume local:rest"), "{said}");
}

#[test]
fn what_a_task_could_not_begin_with_is_refused_when_it_is_added() {
    let shop = shop();
    shop.set_sandbox("required");
    let path = shop.place.path();
    // The sessions are in the working folder where it has a folder for them.
    fs::create_dir(shop.place.contexts()).unwrap();
    fs::write(path.join("bad.json"), r#"{"name":"p","nodes":[{"id":"a","type":"llm","next":"gone"}]}"#)
        .unwrap();
    let said = shop.refused(&["task", "add", "a", "--playbook", "bad.json"], 6);
    assert!(said.contains("bad.json") && said.contains("gone"), "{said}");
    let said = shop.refused(&["task", "add", "a", "--folder", "."], 6);
    assert!(said.contains("context_storage.base_dir"), "{said}");
    fs::write(path.join("odd.jsonl"), "{\"title\":\"a\"}\n{\"title\":\"b\",\"text\":5}\n").unwrap();
    let said = shop.refused(&["task", "add", "--file", "odd.jsonl"], 6);
    assert!(said.contains("odd.jsonl:2") && said.contains("\"text\" is 5"), "{said}");
    let said = shop.refused(&["task", "add", "a", "--key", &"窓".repeat(201)], 2);
    assert!(said.contains("201 characters") && said.contains("at most 200"), "{said}");
    assert_eq!(shop.place.ok(&["task", "list"]), "no tasks; --all lists those that ended\n");
    shop.place.ok(&["task", "add", "a", "--key", &"窓".repeat(200)]);
}

#[test]
fn a_task_of_one_line_is_said_once() {
    let shop = shop();
    shop.add("(t) only this");
    shop.work();
    let first = shop.last_seen()[1].to_string();
    assert_eq!(first.matches("(t) only this").count(), 1, "{first}");
}

#[test]
fn a_worker_that_ends_says_what_still_waits_and_that_nothing_does() {
    let shop = Shop::new(vec![ScriptStep::fail(503, None).when_anywhere("(busy)")], "");
    let said = shop.place.run(&["task", "work", "--once"]);
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (0, "", "komado: nothing is in the queue\n")
    );
    shop.add("(busy) work");
    let taken = shop.store().take(&holder(), Duration::from_secs(600)).unwrap();
    assert!(taken.is_some());
    let said = shop.place.run(&["task", "work", "--once"]);
    assert!(said.err.contains("1 task is held by a worker (7@elsewhere)"), "{}", said.err);
}

fn holder() -> Holder {
    let (host, program, since) = ("elsewhere".to_owned(), "test".to_owned(), "now".to_owned());
    Holder { pid: 7, host, program, since }
}

#[test]
fn a_task_shows_its_folder_and_playbook_and_says_why_it_failed_once() {
    let shop = Shop::new(vec![ScriptStep::fail(401, None).when_anywhere("(refused)")], "");
    let playbook = shop.place.path().join("p.json");
    fs::write(
        &playbook,
        r#"{"name":"p","nodes":[{"id":"a","type":"llm","next":"b"},{"id":"b","type":"end"}]}"#,
    )
    .unwrap();
    let folder = shop.place.path().display().to_string();
    let add =
        ["task", "add", "(refused) paint", "--playbook", "p.json", "--folder", &folder, "--key", "paint"];
    shop.place.ok(&add);
    let row = shop.show("paint");
    assert_eq!(
        (&row["folder"], &row["playbook"]),
        (&folder.as_str().into(), &playbook.to_str().unwrap().into())
    );
    shop.work();
    let shown = shop.place.ok(&["task", "show", "paint"]);
    assert!(shown.contains(&format!("folder    {folder}\n")) && shown.contains("p.json"), "{shown}");
    // A session id may hold the number by chance.
    assert_eq!(shown.matches("HTTP 401").count(), 1, "{shown}");
}

#[test]
fn a_file_with_rules_that_is_not_there_is_named_with_its_setting() {
    let shop = Shop::new(vec![], "agent: {rules_file: gone.md}\n");
    let id = shop.add("(t) rules");
    shop.work();
    let shown = shop.show(&id);
    let why = shown["why"].as_str().unwrap();
    assert!(why.contains("agent.rules_file") && why.contains("gone.md"), "{why}");
}
