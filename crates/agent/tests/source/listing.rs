//! What waits, and how it becomes a task.

use crate::source::kit::{BOTH, LABEL, REPO, Room, client, tracker};
use komado_agent::source::{self, TrackerKind};
use komado_core::session::TaskKey;
use komado_provider::Cancel;
use komado_testkit::tracker::{FakeIssue, TrackerServer};

#[test]
fn an_issue_becomes_a_task_with_all_that_is_known_of_it() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let issue =
            FakeIssue::new("蓋を直す 🪟").text("It leaks.\n\n```sh\nrm -rf /\n```").label(LABEL).by("花子");
        let place = room.server.add_issue(REPO, issue);
        let [task] = &room.waiting()[..] else { panic!("one task") };
        assert_eq!(task.name, format!("{}:ann/tool/issue/{}", kind.name(), place.number));
        assert_eq!(TaskKey::parse(&task.name), Ok(task.key.clone()));
        assert_eq!(task.title, "蓋を直す 🪟");
        assert_eq!(task.text, "It leaks.\n\n```sh\nrm -rf /\n```");
        assert_eq!(task.user.as_deref(), Some("花子"));
        let root = room.server.url().trim_end_matches("/api/v4").to_owned();
        assert_eq!(task.clone_url, Some(format!("{root}/ann/tool.git")));
        assert!(task.url.as_ref().is_some_and(|url| url.ends_with("/issues/1")), "{:?}", task.url);
    }
}

#[test]
fn pull_requests_and_merge_requests_are_tasks_too() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        room.issue("one");
        let place = room.server.add_pull(REPO, FakeIssue::new("two").label(LABEL));
        let names: Vec<String> = room.waiting().into_iter().map(|task| task.name).collect();
        let name = kind.name();
        let expect =
            [format!("{name}:ann/tool/issue/1"), format!("{name}:ann/tool/pull_request/{}", place.number)];
        assert_eq!(names, expect);
    }
}

#[test]
fn two_hundred_and_fifty_issues_come_over_pages_once_each_and_in_order() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        for number in 1..=250 {
            room.issue(&format!("issue {number}"));
        }
        let titles: Vec<String> = room.waiting().into_iter().map(|task| task.title).collect();
        let expect: Vec<String> = (1..=250).map(|number| format!("issue {number}")).collect();
        assert_eq!(titles, expect);
        let lists = room.server.requests().iter().filter(|request| request.path.contains("issues?")).count();
        assert_eq!(lists, 3);
    }
}

#[test]
fn whoever_has_enough_is_handed_no_more_and_no_more_is_asked_for() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        (0..150).for_each(|number| drop(room.issue(&number.to_string())));
        let mut count = 0;
        let handed = room.source.waiting(&mut |_| {
            count += 1;
            count < 7
        });
        handed.unwrap();
        assert_eq!((count, room.server.requests().len()), (7, 1));
    }
}

#[test]
fn only_what_is_open_labelled_and_assigned_to_us_waits() {
    for kind in BOTH {
        let mut room = Room::with(kind, |tracker| tracker.user = Some("bot".to_owned()));
        let add = |issue: FakeIssue| room.server.add_issue(REPO, issue);
        add(FakeIssue::new("of another").label(LABEL).assigned("ann"));
        add(FakeIssue::new("of nobody").label(LABEL));
        add(FakeIssue::new("without the label").assigned("bot"));
        let closed = add(FakeIssue::new("closed").label(LABEL).assigned("bot"));
        room.server.close(&closed);
        add(FakeIssue::new("ours").label("x").label(LABEL).assigned("ann").assigned("bot"));
        let titles: Vec<String> = room.waiting().into_iter().map(|task| task.title).collect();
        assert_eq!(titles, ["ours"]);
    }
}

#[test]
fn an_issue_without_text_and_one_with_far_too_much_are_tasks() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        room.issue("nothing");
        room.server.add_issue(REPO, FakeIssue::new("much").text("窓".repeat(5 << 20)).label(LABEL));
        room.issue("after");
        let tasks = room.waiting();
        assert_eq!(
            tasks.iter().map(|task| task.title.as_str()).collect::<Vec<_>>(),
            ["nothing", "much", "after"]
        );
        assert_eq!(tasks[0].text, "");
        assert!(tasks[1].text.len() < 300 << 10 && tasks[1].text.contains("[cut here: "));
    }
}

#[test]
fn projects_in_sub_groups_work_from_the_list_to_the_comment() {
    let mut room =
        Room::with(TrackerKind::GitLab, |tracker| tracker.repos = vec!["tools/web/front".to_owned()]);
    let place = room.server.add_issue("tools/web/front", FakeIssue::new("deep").label(LABEL));
    let task = room.waiting().pop().unwrap();
    assert_eq!((task.key.owner.as_str(), task.key.repo.as_str()), ("tools/web", "front"));
    assert_eq!(TaskKey::parse(&task.name), Ok(task.key.clone()));
    room.source.begin(&task).unwrap();
    room.source.say(&task, "m", "done").unwrap();
    assert_eq!(room.said(&place).len(), 1);
    assert_eq!(room.source.look(&task, None).unwrap().unwanted, None);
}

#[test]
fn an_enterprise_address_with_a_path_and_one_without_the_apis_path_are_understood() {
    for (kind, from, to) in [(TrackerKind::GitHub, "", "/api/v3/"), (TrackerKind::GitLab, "/api/v4", "")] {
        let mut room = Room::with(kind, |tracker| {
            let root = tracker.base_url.strip_suffix(from).unwrap().to_owned();
            tracker.base_url = format!("{root}{to}");
        });
        room.issue("found");
        assert_eq!(room.waiting().len(), 1);
    }
}

#[test]
fn a_repository_that_was_renamed_is_followed_on_the_same_host() {
    let mut room = Room::new(TrackerKind::GitHub);
    room.issue("moved");
    room.server.rename(REPO, "ann/toolbox");
    assert_eq!(room.waiting().len(), 1);
}

#[test]
fn names_that_are_no_repository_are_refused_with_the_setting() {
    let server = TrackerServer::start(TrackerKind::GitHub, "t").unwrap();
    for (kind, repo) in [
        (TrackerKind::GitHub, "tool"),
        (TrackerKind::GitHub, "a/b/c"),
        (TrackerKind::GitHub, "../tool"),
        (TrackerKind::GitHub, "ann/"),
        (TrackerKind::GitLab, "front"),
        (TrackerKind::GitLab, "tools/../front"),
    ] {
        let mut tracker = tracker(&server, kind);
        tracker.repos = vec![repo.to_owned()];
        let error = source::open(tracker, client(), Cancel::default()).err().unwrap().to_string();
        let setting = if kind == TrackerKind::GitHub { "github.repos" } else { "gitlab.projects" };
        assert!(error.contains(&format!("{repo:?} ({setting})")), "{error}");
    }
}
