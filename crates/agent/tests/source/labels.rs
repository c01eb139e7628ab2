//! Labels tell people where a task is.

use crate::source::kit::{BOTH, DONE, FAILED, LABEL, PAUSED, REPO, RUNNING, Room};
use komado_agent::source::{Ended, Error, Kind};
use komado_testkit::tracker::{Fault, Issue};

#[test]
fn begin_and_end_change_the_label_and_leave_those_of_others() {
    for kind in BOTH {
        for (ended, expect) in [
            (Ended::Done, vec!["bug", DONE]),
            (Ended::Failed, vec!["bug", FAILED]),
            (Ended::Paused, vec!["bug", PAUSED]),
            (Ended::Stopped, vec!["bug"]),
        ] {
            let mut room = Room::new(kind);
            let (task, place) = room.begun(Issue::new("labelled").label("bug"));
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
        let (task, place) = room.begun(Issue::new("twice"));
        room.source.begin(&task).unwrap();
        assert_eq!(room.labels(&place), [RUNNING]);
        room.source.end(&task, Ended::Paused).unwrap();
        room.source.end(&task, Ended::Paused).unwrap();
        assert_eq!(room.labels(&place), [PAUSED]);
        room.source.begin(&task).unwrap();
        assert_eq!(room.labels(&place), [RUNNING]);
        room.source.end(&task, Ended::Stopped).unwrap();
        room.source.end(&task, Ended::Stopped).unwrap();
        assert!(room.labels(&place).is_empty());
    }
}

#[test]
fn whoever_wants_it_once_more_while_it_runs_is_not_forgotten() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(Issue::new("again"));
        room.server.label(&place, LABEL);
        room.source.end(&task, Ended::Done).unwrap();
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
        room.server.fail_next(5, Fault::Status(503));
        assert!(matches!(room.source.begin(&task), Err(Error::Away { .. })));
        room.source.end(&task, Ended::Done).unwrap();
        assert_eq!(room.labels(&place), [DONE]);
        assert!(room.waiting().is_empty());
    }
}

#[test]
fn github_does_not_tell_small_letters_from_large_ones_and_neither_do_we() {
    let mut room = Room::with(Kind::GitHub, |tracker| {
        (tracker.label, tracker.running) = ("komado".to_owned(), "In Work".to_owned());
    });
    let place = room.server.add_issue(REPO, Issue::new("large").label("Komado").label("IN WORK"));
    let task = room.waiting().pop().unwrap();
    room.source.begin(&task).unwrap();
    assert_eq!(room.labels(&place), ["IN WORK"]);
    assert_eq!(room.source.look(&task, None).unwrap().unwanted, None);
}

#[test]
fn of_an_issue_that_was_deleted_nothing_is_said_and_it_cannot_begin() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(Issue::new("gone"));
        room.server.delete(&place);
        room.source.say(&task, "m", "words").unwrap();
        room.source.end(&task, Ended::Stopped).unwrap();
        let error = room.source.begin(&task).unwrap_err().to_string();
        assert!(error.contains(&task.name) && error.contains("it is gone"), "{error}");
    }
}
