//! Labels tell people where a task is.

use crate::source::kit::{BOTH, DONE, FAILED, LABEL, PAUSED, REPO, RUNNING, Room};
use komado_agent::source::{Error, SourceEnd, TrackerKind};
use komado_testkit::tracker::{FakeIssue, TrackerFault};

#[test]
fn begin_and_end_change_the_label_and_leave_those_of_others() {
    for kind in BOTH {
        for (ended, expect) in [
            (SourceEnd::Done, vec!["bug", DONE]),
            (SourceEnd::Failed, vec!["bug", FAILED]),
            (SourceEnd::Paused, vec!["bug", PAUSED]),
            (SourceEnd::Stopped, vec!["bug"]),
        ] {
            let mut room = Room::new(kind);
            let (task, place) = room.begun(FakeIssue::new("labelled").label("bug"));
            assert_eq!(room.labels(&place), ["bug", RUNNING]);
            assert!(room.waiting().is_empty());
            room.source.end(&task, ended).unwrap();
            assert_eq!(room.labels(&place), expect);
        }
    }
}

#[test]
fn to_begin_and_to_end_twice_is_to_do_it_once() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("twice"));
        room.source.begin(&task).unwrap();
        assert_eq!(room.labels(&place), [RUNNING]);
        room.source.end(&task, SourceEnd::Paused).unwrap();
        room.source.end(&task, SourceEnd::Paused).unwrap();
        assert_eq!(room.labels(&place), [PAUSED]);
        room.source.begin(&task).unwrap();
        assert_eq!(room.labels(&place), [RUNNING]);
        room.source.end(&task, SourceEnd::Stopped).unwrap();
        room.source.end(&task, SourceEnd::Stopped).unwrap();
        assert!(room.labels(&place).is_empty());
    }
}

#[test]
fn whoever_wants_it_once_more_while_it_runs_is_not_forgotten() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("again"));
        room.server.label(&place, LABEL);
        room.source.end(&task, SourceEnd::Done).unwrap();
        assert_eq!(room.waiting().len(), 1);
        room.source.begin(&task).unwrap();
        assert_eq!(room.labels(&place), [RUNNING]);
    }
}

#[test]
fn a_task_whose_beginning_the_tracker_never_heard_of_is_not_done_twice() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let place = room.issue("unheard");
        let task = room.waiting().pop().unwrap();
        room.server.fail_next(5, TrackerFault::Status(503));
        assert!(matches!(room.source.begin(&task), Err(Error::Away { .. })));
        room.source.end(&task, SourceEnd::Done).unwrap();
        assert_eq!(room.labels(&place), [DONE]);
        assert!(room.waiting().is_empty());
    }
}

#[test]
fn github_does_not_tell_small_letters_from_large_ones_and_neither_do_we() {
    let mut room = Room::with(TrackerKind::GitHub, |tracker| {
        (tracker.label, tracker.running) = ("komado".to_owned(), "In Work".to_owned());
    });
    let place = room.server.add_issue(REPO, FakeIssue::new("large").label("Komado").label("IN WORK"));
    let task = room.waiting().pop().unwrap();
    room.source.begin(&task).unwrap();
    assert_eq!(room.labels(&place), ["IN WORK"]);
    assert_eq!(room.source.look(&task, None).unwrap().unwanted, None);
}

#[test]
fn of_an_issue_that_was_deleted_nothing_is_said_and_it_cannot_begin() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("gone"));
        room.server.delete(&place);
        room.source.say(&task, "m", "words").unwrap();
        room.source.end(&task, SourceEnd::Stopped).unwrap();
        let error = room.source.begin(&task).unwrap_err().to_string();
        assert!(error.contains(&task.name) && error.contains("it is gone"), "{error}");
    }
}
