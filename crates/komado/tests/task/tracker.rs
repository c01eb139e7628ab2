//! Issues of a stand-in for GitHub become tasks.

use crate::task::kit::{Shop, Worker, await_that, says, started};
use komado_agent::source::TrackerKind;
use komado_provider::scripted::{ScriptStep, StepCondition};
use komado_testkit::tracker::{CommentPlace, FakeIssue, Limit, TrackerServer};
use std::process::Stdio;

const REPO: &str = "ann/tool";
const LABEL: &str = "coding agent";

fn settings(url: &str) -> String {
    format!(
        "github: {{base_url: '{url}', token: sesame, repos: [{REPO}], label: {LABEL}, patience_seconds: 1}}\n"
    )
}

struct Desk {
    shop: Shop,
    github: TrackerServer,
    issue: CommentPlace,
}

fn desk(steps: Vec<ScriptStep>) -> Desk {
    let github = TrackerServer::start(TrackerKind::GitHub, "sesame").unwrap();
    let issue = github
        .add_issue(REPO, FakeIssue::new("(t) fix the lid").text("It does not close.").label(LABEL).by("ann"));
    let more = settings(github.url());
    Desk { shop: Shop::new(steps, &more), github, issue }
}

impl Desk {
    fn labels(&self) -> Vec<String> {
        self.github.issue(&self.issue).unwrap().labels
    }

    /// How many comments contain these words.
    fn said(&self, words: &str) -> usize {
        let comments = self.github.issue(&self.issue).unwrap().comments;
        comments.iter().filter(|comment| comment.text.contains(words)).count()
    }

    fn fetch(&self) -> Vec<String> {
        let queued = self.shop.place.json(&["task", "fetch"])["queued"].clone();
        queued.as_array().unwrap().iter().map(|task| task["session"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn an_issue_that_is_labelled_again_after_it_was_done_is_a_new_session_that_inherits() {
    let desk = desk(vec![says("(t)", "蓋は青く塗りました")]);
    let first = desk.fetch();
    assert_eq!((first.len(), desk.fetch().len()), (1, 0), "the same issue is not queued twice");
    desk.shop.work();
    assert_eq!((desk.labels(), desk.said("蓋は青く塗りました")), (vec!["coding agent done".to_owned()], 1));
    let by_key = desk.shop.show("github:ann/tool/issue/1");
    assert_eq!(
        (by_key["session"].as_str(), by_key["title"].as_str()),
        (Some(&*first[0]), Some("(t) fix the lid"))
    );
    desk.github.label(&desk.issue, LABEL);
    let second = desk.fetch();
    assert!(second.len() == 1 && second != first, "{second:?}");
    desk.shop.work();
    let asked = desk.shop.asked().pop().unwrap().to_string();
    assert!(asked.contains("Earlier work") && asked.contains("蓋は青く塗りました"), "{asked}");
    assert_eq!(desk.said("蓋は青く塗りました"), 2, "one result for each session");
}

#[test]
fn a_task_that_failed_and_then_went_well_says_both() {
    let desk = desk(vec![ScriptStep::fail(401, None)]);
    let id = desk.fetch().remove(0);
    desk.shop.work();
    assert_eq!((desk.labels(), desk.said("could not be done")), (vec!["coding agent failed".to_owned()], 1));
    let kind = Shop::new(vec![says("(t)", "now it went")], &settings(desk.github.url()));
    desk.shop.place.settings(&std::fs::read_to_string(kind.place.path().join("komado.yaml")).unwrap());
    desk.shop.place.ok(&["task", "retry", &id]);
    desk.shop.work();
    assert_eq!((desk.labels(), desk.said("now it went")), (vec!["coding agent done".to_owned()], 1));
}

#[test]
fn a_tracker_that_is_away_at_the_end_is_told_later_and_the_model_is_not_asked_again() {
    let desk = desk(vec![says("(t)", "蓋は青く塗りました")]);
    let id = desk.fetch().remove(0);
    // Nobody listens there.
    desk.shop.set(&settings("http://127.0.0.1:9"));
    desk.shop.work();
    let shown = desk.shop.show(&id);
    assert!(
        shown["state"] == "completed" && shown["why"].as_str().unwrap().contains("127.0.0.1:9"),
        "{shown}"
    );
    assert_eq!((desk.shop.asked().len(), desk.said("蓋")), (1, 0));
    desk.shop.set(&settings(desk.github.url()));
    desk.shop.place.ok(&["task", "retry", &id]);
    desk.shop.work();
    assert_eq!((desk.labels(), desk.said("蓋は青く塗りました")), (vec!["coding agent done".to_owned()], 1));
    assert_eq!(desk.shop.asked().len(), 1);
    assert!(desk.shop.place.json_lines(&["task", "list"]).is_empty());
}

#[test]
fn a_task_that_is_stopped_before_it_began_leaves_no_label() {
    let desk = desk(vec![]);
    let id = desk.fetch().remove(0);
    desk.shop.place.ok(&["task", "stop", &id]);
    assert_eq!((desk.labels(), desk.fetch().len()), (vec![], 0));
}

#[test]
fn a_task_that_had_ended_keeps_the_label_of_its_end_when_it_is_stopped() {
    let refused = desk(vec![ScriptStep::fail(401, None)]);
    let id = refused.fetch().remove(0);
    refused.shop.work();
    refused.shop.place.ok(&["task", "stop", &id]);
    assert_eq!(refused.labels(), ["coding agent failed"]);
    let untold = desk(vec![says("(t)", "done")]);
    let id = untold.fetch().remove(0);
    untold.shop.set(&settings("http://127.0.0.1:9"));
    untold.shop.work();
    untold.shop.set(&settings(untold.github.url()));
    let stopped = untold.shop.place.json(&["task", "stop", &id]);
    assert_eq!((&stopped["state"], &stopped["undo"]), (&"completed".into(), &serde_json::Value::Null));
    assert_eq!(untold.labels(), ["coding agent done"]);
}

#[test]
fn a_task_that_somebody_opens_after_it_was_completed_is_theirs_and_its_issue_stays_done() {
    let desk = desk(vec![says("(t)", "done")]);
    let id = desk.fetch().remove(0);
    desk.shop.work();
    desk.shop.place.ok(&["session", "resume", &id]);
    desk.shop.work();
    assert_eq!(
        (desk.shop.state(&id).as_str(), desk.labels()),
        ("running", vec!["coding agent done".to_owned()])
    );
    desk.shop.place.ok(&["session", "complete", &id]);
    assert_eq!(desk.shop.state(&id), "completed");
}

#[test]
fn a_worker_that_waits_for_its_tracker_ends_when_it_is_told_to() {
    let desk = desk(vec![]);
    let patient = settings(desk.github.url()).replace("patience_seconds: 1", "patience_seconds: 600");
    desk.shop.set(&patient);
    desk.github.limit_after(0, 1, Limit::Burst(60));
    let worker = desk.shop.worker_with(&["--fetch", "3600"]);
    await_that("the tracker is busy", || !desk.github.requests().is_empty());
    worker.stop();
    assert_eq!(desk.github.requests().len(), 1, "nobody waited until it could be asked again");
}

/// A worker that cannot start itself once more: its program is gone.
fn worker_without_a_program(desk: &Desk) -> Worker {
    let place = &desk.shop.place;
    let (whole, copy) = (place.command(&["task", "work"]), place.path().join("komado-copy"));
    std::fs::hard_link(whole.get_program(), &copy)
        .or_else(|_| std::fs::copy(whole.get_program(), &copy).map(|_| ()))
        .unwrap();
    let mut command = place.program(copy.to_str().unwrap());
    command.args(["task", "work"]).env_remove("PATH");
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let worker = Worker(started(quiet));
    std::fs::remove_file(copy).unwrap();
    worker
}

#[test]
fn a_task_whose_processes_never_come_to_life_is_told_as_failed_by_its_worker() {
    let desk = desk(vec![]);
    let worker = worker_without_a_program(&desk);
    let id = desk.fetch().remove(0);
    desk.shop.await_state(&id, "failed");
    worker.stop();
    assert_eq!(
        (desk.labels(), desk.said("given up after 3 tries")),
        (vec!["coding agent failed".to_owned()], 1)
    );
}

#[test]
fn a_task_that_kills_its_process_each_time_is_told_as_failed() {
    let deadly = ScriptStep::call("shell", r#"{"command":"kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)"}"#)
        .when_anywhere("(t)");
    let desk = desk(vec![deadly]);
    let id = desk.fetch().remove(0);
    desk.shop.work();
    assert_eq!(desk.shop.state(&id), "failed");
    assert_eq!((desk.labels(), desk.said("killed by signal 9")), (vec!["coding agent failed".to_owned()], 1));
}

#[test]
fn a_comment_that_comes_while_the_last_words_are_written_is_answered() {
    let heard = StepCondition { contains: Some("[comment by ann]".into()), ..StepCondition::default() };
    let answer = ScriptStep { when: heard, ..ScriptStep::say("青く、小さく塗りました") };
    let desk = desk(vec![answer, says("(t)", "青く塗りました")]);
    let id = desk.fetch().remove(0);
    desk.github.comment_as("ann", &desk.issue, "小さくもしてください");
    desk.shop.work();
    assert_eq!((desk.shop.state(&id).as_str(), desk.shop.asked().len()), ("completed", 2));
    assert_eq!((desk.said("青く、小さく塗りました"), desk.said("青く塗りました")), (1, 0));
}
