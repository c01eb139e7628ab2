//! What is said about a task, in both directions, and whether it is still wanted.

use crate::source::kit::{BOTH, LABEL, REPO, RUNNING, Room};
use komado_agent::source::TrackerKind;
use komado_testkit::tracker::{CommentPlace, FakeIssue, IssueStage, TrackerFault};

#[test]
fn comments_come_in_order_after_the_last_one_and_without_our_own() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("talked of").assigned("bot"));
        let before = room.server.comment_as("ann", &place, "before");
        room.source.say(&task, "s1/began", "I begin.").unwrap();
        room.server.comment_as("花子", &place, "蓋も 🪟");
        room.server.unassign(&place);
        let last = room.server.comment_as("ann", &place, "> <!-- komado:x -->\nno, the other one");
        let look = room.source.look(&task, Some(&before.to_string())).unwrap();
        let said: Vec<(&str, &str)> =
            look.comments.iter().map(|comment| (comment.author.as_str(), comment.text.as_str())).collect();
        assert_eq!(said, [("花子", "蓋も 🪟"), ("ann", "> <!-- komado:x -->\nno, the other one")]);
        assert_eq!(look.comments[1].id, last.to_string());
        let again = room.source.look(&task, Some(&look.comments[1].id)).unwrap();
        assert!(again.comments.is_empty() && again.unwanted.is_none());
        let all = room.source.look(&task, None).unwrap();
        assert_eq!(all.comments.len(), 3);
    }
}

#[test]
fn a_long_talk_comes_in_pieces_and_loses_nothing() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("long"));
        let expect: Vec<String> = (0..230).map(|number| format!("comment {number}")).collect();
        for text in &expect {
            room.server.comment_as("ann", &place, text);
        }
        let (mut heard, mut after) = (Vec::new(), None);
        loop {
            let look = room.source.look(&task, after.as_deref()).unwrap();
            let Some(last) = look.comments.last() else { break };
            after = Some(last.id.clone());
            heard.extend(look.comments.into_iter().map(|comment| comment.text));
        }
        assert_eq!(heard, expect);
    }
}

#[test]
fn what_nobody_wants_any_more_is_said_to_be_so_and_why() {
    for kind in BOTH {
        let ours = || FakeIssue::new("unwanted").assigned("bot");
        let room = || Room::with(kind, |tracker| tracker.user = Some("bot".to_owned()));
        let check = |change: &dyn Fn(&Room, &CommentPlace), why: &str| {
            let mut room = room();
            let (task, place) = room.begun(ours());
            assert_eq!(room.source.look(&task, None).unwrap().unwanted, None);
            change(&room, &place);
            let unwanted = room.source.look(&task, None).unwrap().unwanted.unwrap_or_default();
            assert!(unwanted.contains(why), "{unwanted}");
        };
        check(&|room, place| room.server.close(place), "it was closed");
        check(&|room, place| room.server.unassign(place), "bot is no longer assigned");
        check(&|room, place| room.server.unlabel(place, RUNNING), "was taken off");
        check(&|room, place| room.server.delete(place), "it was deleted");
    }
}

#[test]
fn an_issue_that_was_never_told_that_work_began_is_still_wanted() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        room.issue("untold");
        let task = room.waiting().pop().unwrap();
        assert_eq!(room.source.look(&task, None).unwrap().unwanted, None);
    }
}

#[test]
fn a_merge_request_that_was_merged_is_done_by_somebody_else() {
    let mut room = Room::new(TrackerKind::GitLab);
    let merged = FakeIssue { stage: IssueStage::Merged, ..FakeIssue::new("merged").label(RUNNING) };
    room.server.add_pull(REPO, FakeIssue::new("merge me").label(LABEL));
    let mut task = room.waiting().pop().unwrap();
    let place = room.server.add_pull(REPO, merged);
    task.key.task_id = place.number.to_string();
    let unwanted = room.source.look(&task, None).unwrap().unwanted;
    assert_eq!(unwanted.as_deref(), Some("it was merged at GitLab"));
}

/// More than a page of comments.
fn talk(room: &Room, place: &CommentPlace) {
    for number in 0..130 {
        room.server.comment_as("ann", place, &number.to_string());
    }
}

#[test]
fn what_is_said_twice_stands_there_once_also_behind_many_pages() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("once"));
        room.source.say(&task, "s1/began", "I begin.").unwrap();
        talk(&room, &place);
        room.source.say(&task, "s1/result", "It is done.").unwrap();
        talk(&room, &place);
        room.source.say(&task, "s1/began", "I begin.").unwrap();
        room.source.say(&task, "s1/result", "It is done.").unwrap();
        let said = room.said(&place);
        assert_eq!(said.len(), 262);
        assert_eq!(said[0], "<!-- komado:s1%2Fbegan -->\nI begin.");
        assert_eq!(said[131], "<!-- komado:s1%2Fresult -->\nIt is done.");
    }
}

#[test]
fn a_comment_whose_answer_was_lost_is_not_written_again() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("lost"));
        // The first request looks, the second posts.
        room.server.fail_after(1, 1, TrackerFault::CutAfter);
        room.source.say(&task, "s1/result", "once").unwrap();
        assert_eq!(room.said(&place).len(), 1);
        let posts = room.server.requests().iter().filter(|request| request.method == "POST").count();
        assert_eq!(posts, if kind == TrackerKind::GitHub { 2 } else { 1 }, "a label, and one comment");
    }
}

#[test]
fn a_comment_that_is_too_long_is_cut_to_what_the_tracker_takes() {
    for (kind, most) in [(TrackerKind::GitHub, 65_536), (TrackerKind::GitLab, 1_000_000)] {
        let mut room = Room::new(kind);
        let (task, place) = room.begun(FakeIssue::new("much to say"));
        room.source.say(&task, "m", &"窓".repeat(2_000_000)).unwrap();
        let said = room.said(&place);
        assert!(said[0].chars().count() <= most && said[0].ends_with("cannot be longer)"));
        room.source.say(&task, "m", "again").unwrap();
        assert_eq!(room.said(&place).len(), 1);
    }
}

#[test]
fn what_a_model_says_is_not_carried_out_as_a_command() {
    let mut room = Room::new(TrackerKind::GitLab);
    let (task, place) = room.begun(FakeIssue::new("hostile"));
    room.source.say(&task, "m", "Done.\n/close\n").unwrap();
    assert_eq!(room.server.issue(&place).unwrap().stage, IssueStage::Open);
    assert!(room.said(&place)[0].contains("\\/close"));
}
