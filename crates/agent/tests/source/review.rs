//! What reviewers say of a pull request: in the code, and as a whole.

use crate::source::kit::{BOTH, LABEL, REPO, Room, TOKEN, client, tracker};
use komado_agent::source::{self, TaskNews, TaskSource, TrackerKind};
use komado_agent::task::Task;
use komado_provider::Cancel;
use komado_testkit::tracker::{CommentPlace, FakeIssue, Limit, Review};

/// A pull request whose task was begun.
fn pull(room: &mut Room) -> (Task, CommentPlace) {
    let place = room.server.add_pull(REPO, FakeIssue::new("to be reviewed").label(LABEL));
    let task = room.waiting().pop().unwrap();
    assert_eq!(task.key.task_type, "pull_request");
    room.source.begin(&task).unwrap();
    (task, place)
}

fn words(look: &TaskNews) -> Vec<&str> {
    look.comments.iter().map(|comment| comment.text.as_str()).collect()
}

/// The id to go on from, as whoever keeps it finds it: by length, then by its letters.
fn last(look: &TaskNews) -> Option<String> {
    let mut ids: Vec<&String> = look.comments.iter().map(|comment| &comment.id).collect();
    ids.sort_by_key(|id| (id.len(), id.as_str()));
    let kept = ids.last().map(|id| (*id).clone());
    assert_eq!(kept.as_ref(), look.comments.last().map(|comment| &comment.id));
    kept
}

/// Everything, look after look, each from where the one before ended; `before` each look somebody may change something.
fn heard(source: &mut dyn TaskSource, task: &Task, mut before: impl FnMut(usize)) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None);
    for turn in 0.. {
        before(turn);
        let look = source.look(task, after.as_deref()).unwrap();
        let Some(next) = last(&look) else { break };
        all.extend(look.comments.into_iter().map(|comment| comment.text));
        after = Some(next);
    }
    all
}

/// The requests for this since the first `from` ones.
fn asked(room: &Room, from: usize, what: &str) -> usize {
    room.server.requests()[from..].iter().filter(|request| request.path.contains(what)).count()
}

#[test]
fn what_stands_in_the_code_comes_with_its_place_and_once() {
    for kind in BOTH {
        let mut room = Room::new(kind);
        let (task, place) = pull(&mut room);
        room.server.comment_as("ann", &place, "see below");
        room.server.comment_on("花子", &place, ("src/窓.rs", 12), "狭い");
        room.server.comment_as("ann", &place, "thanks");
        let look = room.source.look(&task, None).unwrap();
        assert_eq!(words(&look), ["see below", "On src/窓.rs, line 12:\n狭い", "thanks"]);
        assert_eq!(look.comments[1].author, "花子");
        let after = last(&look);
        assert_eq!(words(&room.source.look(&task, after.as_deref()).unwrap()), [""; 0]);
        room.server.comment_on("ann", &place, ("src/a.rs", 3), "here, too");
        let look = room.source.look(&task, after.as_deref()).unwrap();
        assert_eq!(words(&look), ["On src/a.rs, line 3:\nhere, too"]);
    }
}

#[test]
fn a_review_is_heard_as_a_whole_and_before_what_it_says_in_the_code() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    let asks =
        Review::new("CHANGES_REQUESTED").text("もう少し").on("b.rs", 2, "no").on("a.rs", 1, "nor this");
    room.server.review_as("ann", &place, asks);
    room.server.review_as("bob", &place, Review::new("APPROVED"));
    room.server.review_as("bob", &place, Review::new("COMMENTED").text("<!-- komado:m -->\nours"));
    room.server.draft_as("komado-bot", &place, Review::new("COMMENTED").text("not sent"));
    let said = heard(&mut *room.source, &task, |_| {});
    assert_eq!(
        said,
        [
            "In a review that asks for changes:\nもう少し",
            "On b.rs, line 2:\nno",
            "On a.rs, line 1:\nnor this"
        ]
    );
}

#[test]
fn a_review_that_was_begun_early_and_sent_late_is_news_when_it_is_sent() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    let slow = Review::new("COMMENTED").text("slowly").on("a.rs", 1, "thought of first");
    let slow = room.server.draft_as("ann", &place, slow);
    let server = &room.server;
    let said = heard(&mut *room.source, &task, |turn| match turn {
        0 => server.comment_on("bob", &place, ("b.rs", 2), "said first"),
        1 => server.send_review(&place, slow),
        _ => {}
    });
    assert_eq!(
        said,
        ["On b.rs, line 2:\nsaid first", "In a review:\nslowly", "On a.rs, line 1:\nthought of first"]
    );
}

#[test]
fn whoever_takes_over_goes_on_in_the_middle_and_misses_nothing() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    let mut expect = Vec::new();
    for number in 0..4 {
        room.server.comment_as("ann", &place, &format!("talk {number}"));
        let review = Review::new("COMMENTED").text("whole").on("a.rs", 1, "first").on("b.rs", 2, "second");
        room.server.review_as("bob", &place, review);
        expect.push(format!("talk {number}"));
        expect.extend(
            ["In a review:\nwhole", "On a.rs, line 1:\nfirst", "On b.rs, line 2:\nsecond"].map(str::to_owned),
        );
    }
    let all = room.source.look(&task, None).unwrap();
    assert_eq!(words(&all), expect);
    for (at, comment) in all.comments.iter().enumerate() {
        let mut other =
            source::open(tracker(&room.server, TrackerKind::GitHub), client(), Cancel::default()).unwrap();
        let rest = other.look(&task, Some(&comment.id)).unwrap();
        assert_eq!(words(&rest), expect[at + 1..], "after {}", comment.id);
    }
}

#[test]
fn an_id_of_before_reviews_were_heard_is_one_of_the_talk() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    room.server.comment_on("ann", &place, ("a.rs", 1), "never heard");
    let old = room.server.comment_as("ann", &place, "heard").to_string();
    room.server.comment_as("ann", &place, "not yet");
    let look = room.source.look(&task, Some(&old)).unwrap();
    assert_eq!(words(&look), ["On a.rs, line 1:\nnever heard", "not yet"]);
    assert!(look.comments.iter().all(|comment| comment.id.len() > old.len()), "each is later than {old}");
}

#[test]
fn many_reviews_come_in_pieces_and_lose_nothing() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    let mut expect = Vec::new();
    let mut long = Review::new("COMMENTED");
    for line in 1..=130 {
        long = long.on("long.rs", line, "窓");
        expect.push(format!("On long.rs, line {line}:\n窓"));
    }
    room.server.review_as("ann", &place, long);
    for number in 1..=130 {
        room.server.comment_on("bob", &place, ("a.rs", number), "each on its own");
        room.server.comment_as("ann", &place, &number.to_string());
        expect.push(format!("On a.rs, line {number}:\neach on its own"));
        expect.push(number.to_string());
    }
    assert_eq!(heard(&mut *room.source, &task, |_| {}), expect);
}

#[test]
fn when_nothing_is_new_nobody_asks_for_comments_in_the_code() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    room.server.comment_on("ann", &place, ("a.rs", 1), "this");
    room.server.review_as("bob", &place, Review::new("APPROVED"));
    let after = last(&room.source.look(&task, None).unwrap());
    let from = room.server.requests().len();
    for _ in 0..3 {
        assert_eq!(words(&room.source.look(&task, after.as_deref()).unwrap()), [""; 0]);
    }
    assert_eq!((asked(&room, from, "/reviews"), asked(&room, from, "/pulls/1/comments")), (3, 0));
    assert_eq!(asked(&room, from, ""), 9, "the pull request, its talk, its reviews");
}

#[test]
fn an_issue_is_not_asked_for_reviews() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = room.begun(FakeIssue::new("no code"));
    let id = room.server.comment_as("ann", &place, "talk").to_string();
    let look = room.source.look(&task, None).unwrap();
    assert_eq!((words(&look), look.comments[0].id.as_str()), (vec!["talk"], id.as_str()));
    assert_eq!(asked(&room, 0, "/pulls"), 0);
}

#[test]
fn a_look_that_breaks_off_at_the_reviews_is_repeated_as_a_whole() {
    let mut room = Room::new(TrackerKind::GitHub);
    let (task, place) = pull(&mut room);
    room.server.comment_as("ann", &place, "talk");
    room.server.comment_on("ann", &place, ("a.rs", 1), "code");
    // The pull request and its talk are answered; then there are too many, for longer than anybody waits.
    room.server.limit_after(2, 1, Limit::Quota(3_600));
    let error = room.source.look(&task, None).unwrap_err().to_string();
    assert!(error.contains("the reviews of github:ann/tool/pull_request/1"), "{error}");
    assert!(!error.contains(TOKEN), "{error}");
    assert_eq!(words(&room.source.look(&task, None).unwrap()), ["talk", "On a.rs, line 1:\ncode"]);
}
