//! The queue: what waits, who has it, and what becomes of it when they are not heard of.

use super::{eventually, sid};
use komado_store::{Error, Holder, Job, JobOutcome, JobStage, QueuedJob, Store, TakenJob};
use std::collections::HashSet;
use std::time::Duration;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);
/// Over before long, and long enough to be looked at.
const SHORT: Duration = Duration::from_millis(300);

fn job(name: &str) -> Job {
    Job {
        session: sid(name),
        key: format!("github:ann/tool/issue/{name}"),
        user: Some("安".into()),
        body: format!(r#"{{"title":"窓が閉まらない 🪟 {name}","quote":"'\\"}}"#),
        at: "2024-01-15T10:30:00Z".into(),
    }
}

fn put(store: &dyn Store, names: &[&str]) {
    for name in names {
        assert!(store.enqueue(&job(name)).unwrap(), "{name}");
    }
}

fn worker(name: &str) -> Holder {
    Holder { pid: 7, host: "機械".into(), program: name.into(), since: "now".into() }
}

fn take(store: &dyn Store, hidden: Duration) -> Option<TakenJob> {
    store.take(&worker("komado task work"), hidden).unwrap()
}

fn taken(store: &dyn Store, hidden: Duration) -> TakenJob {
    take(store, hidden).expect("a job waits")
}

fn names(store: &dyn Store) -> Vec<String> {
    store.jobs(None, 0).unwrap().iter().map(|queued| queued.job.session.to_string()).collect()
}

fn stage(store: &dyn Store, name: &str) -> JobStage {
    let jobs = store.jobs(None, 0).unwrap();
    jobs.into_iter().find(|queued| queued.job.session == sid(name)).expect("it is in the queue").stage
}

fn is_not_theirs(done: komado_store::Result<()>, name: &str) -> bool {
    matches!(done, Err(Error::NotYours(session)) if session == sid(name))
}

pub(crate) fn jobs_are_taken_in_the_order_they_came_as_they_were_put(store: &dyn Store) {
    assert_eq!((take(store, LONG), names(store)), (None, vec![]));
    put(store, &["z", "a", "m"]);
    for name in ["z", "a", "m"] {
        let taken = taken(store, LONG);
        assert_eq!((&taken.job, taken.tries, &taken.why), (&job(name), 1, &None));
    }
    assert_eq!(take(store, LONG), None);
    let bare = Job { user: None, body: String::new(), ..job("bare") };
    assert!(store.enqueue(&bare).unwrap());
    assert_eq!(taken(store, LONG).job, bare);
}

pub(crate) fn a_job_of_another_queue_stands_here_as_it_stood_there(store: &dyn Store) {
    let as_it_stood =
        |name: &str, stage: JobStage| QueuedJob { job: job(name), stage, tries: 3, why: Some("窓".into()) };
    let (dead, waiting) = (as_it_stood("d", JobStage::Dead), as_it_stood("w", JobStage::Waiting));
    assert!(store.adopt(&dead).unwrap() && store.adopt(&waiting).unwrap());
    assert!(!store.adopt(&dead).unwrap() && !store.enqueue(&dead.job).unwrap());
    assert_eq!(store.jobs(None, 0).unwrap(), [dead, waiting]);
    let taken_one = taken(store, LONG);
    assert_eq!((&taken_one.job, taken_one.tries, taken_one.why.as_deref()), (&job("w"), 4, Some("窓")));
    assert_eq!(take(store, LONG), None);
    assert!(store.requeue(&sid("d")).unwrap());
    assert_eq!(taken(store, LONG).job, job("d"));
}

pub(crate) fn a_key_and_a_session_are_in_the_queue_once(store: &dyn Store) {
    put(store, &["a"]);
    let same_key = Job { session: sid("other"), ..job("a") };
    let same_session = Job { key: "another".into(), ..job("a") };
    let refused = |store: &dyn Store| {
        assert!(!store.enqueue(&same_key).unwrap() && !store.enqueue(&same_session).unwrap());
        assert_eq!(names(store), ["a"]);
    };
    refused(store);
    let held = taken(store, LONG);
    refused(store);
    store.finish(&held, &JobOutcome::Dead { why: "no".into() }).unwrap();
    refused(store);
    assert!(store.withdraw(&sid("a")).unwrap());
    assert!(store.enqueue(&same_key).unwrap());
    assert!(!store.enqueue(&job("a")).unwrap(), "its key is there under another session");
}

pub(crate) fn a_job_that_is_done_leaves_the_queue_and_may_come_again(store: &dyn Store) {
    put(store, &["a", "b"]);
    let first = taken(store, LONG);
    assert_eq!(stage(store, "a"), JobStage::Held(worker("komado task work")));
    assert_eq!(stage(store, "b"), JobStage::Waiting);
    store.keep(&first, LONG).unwrap();
    store.finish(&first, &JobOutcome::Done).unwrap();
    assert_eq!(names(store), ["b"]);
    assert!(is_not_theirs(store.finish(&first, &JobOutcome::Done), "a"));
    put(store, &["a"]);
    assert_eq!(names(store), ["b", "a"], "it comes at the end");
    assert!(is_not_theirs(store.keep(&first, LONG), "a"), "it is another one");
    assert!(is_not_theirs(store.finish(&first, &JobOutcome::Done), "a"));
    assert_eq!(names(store), ["b", "a"]);
}

pub(crate) fn a_job_that_is_to_be_tried_again_has_its_old_place_and_says_why(store: &dyn Store) {
    put(store, &["a", "b"]);
    let first = taken(store, LONG);
    let again = |pause| JobOutcome::Again { pause, why: "接続が切れた".into() };
    store.finish(&first, &again(Duration::ZERO)).unwrap();
    assert!(is_not_theirs(store.keep(&first, LONG), "a"), "nobody has it");
    assert_eq!(stage(store, "a"), JobStage::Waiting);
    let second = taken(store, LONG);
    assert_eq!(second.job, job("a"));
    assert_eq!((second.tries, second.why.as_deref()), (2, Some("接続が切れた")));
    store.finish(&second, &again(LONG)).unwrap();
    assert_eq!(taken(store, LONG).job, job("b"), "the pause of the other is not over");
    assert_eq!(take(store, LONG), None);
    assert_eq!(stage(store, "a"), JobStage::Waiting);
    assert!(store.requeue(&sid("a")).unwrap());
    let third = taken(store, LONG);
    assert_eq!((&third.job, third.tries), (&job("a"), 1));
}

pub(crate) fn a_job_that_is_given_back_counts_no_try_and_keeps_its_reason(store: &dyn Store) {
    put(store, &["a", "b"]);
    store.finish(&taken(store, LONG), &JobOutcome::Back).unwrap();
    let listed = store.jobs(None, 1).unwrap().remove(0);
    assert_eq!((listed.stage, listed.tries, listed.why), (JobStage::Waiting, 0, None));
    let why = "落ちた".to_owned();
    store.finish(&taken(store, LONG), &JobOutcome::Again { pause: Duration::ZERO, why }).unwrap();
    let second = taken(store, LONG);
    assert_eq!((&second.job, second.tries), (&job("a"), 2));
    store.finish(&second, &JobOutcome::Back).unwrap();
    assert!(is_not_theirs(store.finish(&second, &JobOutcome::Back), "a"), "nobody has it");
    let third = taken(store, LONG);
    assert_eq!((third.tries, third.why.as_deref()), (2, Some("落ちた")), "what was before counts");
}

pub(crate) fn a_job_that_was_laid_aside_is_kept_until_somebody_decides(store: &dyn Store) {
    put(store, &["a", "b"]);
    store.finish(&taken(store, LONG), &JobOutcome::Dead { why: "三回".into() }).unwrap();
    assert_eq!(taken(store, LONG).job, job("b"));
    assert_eq!(take(store, LONG), None);
    let listed = store.jobs(None, 1).unwrap().remove(0);
    assert_eq!((listed.job, listed.stage, listed.tries), (job("a"), JobStage::Dead, 1));
    assert_eq!(listed.why.as_deref(), Some("三回"));
    assert!(store.requeue(&sid("a")).unwrap());
    assert_eq!(stage(store, "a"), JobStage::Waiting);
    assert_eq!(taken(store, LONG).tries, 1, "as if it had never been taken");
}

pub(crate) fn what_somebody_works_on_is_not_put_back_and_may_be_taken_out(store: &dyn Store) {
    put(store, &["a"]);
    let held = taken(store, LONG);
    assert!(!store.requeue(&sid("a")).unwrap());
    assert!(!store.requeue(&sid("none")).unwrap() && !store.withdraw(&sid("none")).unwrap());
    store.keep(&held, LONG).unwrap();
    assert!(store.withdraw(&sid("a")).unwrap());
    assert!(!store.withdraw(&sid("a")).unwrap());
    assert!(is_not_theirs(store.keep(&held, LONG), "a"));
    assert!(is_not_theirs(store.finish(&held, &JobOutcome::Done), "a"));
    assert_eq!(names(store), Vec::<String>::new());
}

pub(crate) fn jobs_are_listed_page_by_page(store: &dyn Store) {
    put(store, &["e", "c", "a", "b", "d"]);
    store.finish(&taken(store, LONG), &JobOutcome::Dead { why: "x".into() }).unwrap();
    taken(store, LONG);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.jobs(after.as_ref(), 2).unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.job.session.clone());
        seen.extend(page.into_iter().map(|queued| queued.job.session.to_string()));
    }
    assert_eq!(seen, ["e", "c", "a", "b", "d"]);
    assert_eq!(names(store), seen);
}

pub(crate) fn a_pause_of_any_length_is_one(store: &dyn Store) {
    put(store, &["a", "b"]);
    let held = taken(store, Duration::MAX);
    store.keep(&held, Duration::MAX).unwrap();
    store.finish(&held, &JobOutcome::Again { pause: Duration::MAX, why: "x".into() }).unwrap();
    assert_eq!(taken(store, LONG).job, job("b"));
    assert_eq!(take(store, LONG), None);
}

pub(crate) fn who_is_not_heard_of_loses_the_job_to_the_next(store: &dyn Store) {
    put(store, &["a", "b"]);
    let slow = taken(store, SHORT);
    assert_eq!(taken(store, LONG).job, job("b"), "the first is hidden");
    let next = eventually(|| take(store, LONG));
    assert_eq!((&next.job, next.tries), (&job("a"), 2));
    assert_ne!(next.token, slow.token);
    assert!(is_not_theirs(store.keep(&slow, LONG), "a"));
    for outcome in [
        JobOutcome::Done,
        JobOutcome::Dead { why: "x".into() },
        JobOutcome::Again { pause: LONG, why: "x".into() },
    ] {
        assert!(is_not_theirs(store.finish(&slow, &outcome), "a"));
        let listed = store.jobs(None, 1).unwrap().remove(0);
        assert_eq!((listed.stage, listed.tries), (JobStage::Held(worker("komado task work")), 2));
        assert_eq!(listed.why, None, "nothing was changed");
    }
    store.finish(&next, &JobOutcome::Done).unwrap();
}

pub(crate) fn a_job_whose_holder_is_not_heard_of_waits_and_may_be_put_back(store: &dyn Store) {
    put(store, &["a"]);
    let slow = taken(store, SHORT);
    eventually(|| (stage(store, "a") == JobStage::Waiting).then_some(()));
    // Nobody else took it: it is still theirs, and they may go on.
    store.keep(&slow, SHORT).unwrap();
    eventually(|| store.requeue(&sid("a")).unwrap().then_some(()));
    assert!(is_not_theirs(store.keep(&slow, LONG), "a"));
    assert_eq!(taken(store, LONG).tries, 1);
}

pub(crate) fn a_job_comes_back_when_its_pause_is_over(store: &dyn Store) {
    put(store, &["a", "b"]);
    let pause = JobOutcome::Again { pause: SHORT, why: "later".into() };
    store.finish(&taken(store, LONG), &pause).unwrap();
    assert_eq!(taken(store, LONG).job, job("b"));
    assert_eq!(eventually(|| take(store, LONG)).job, job("a"));
}

pub(crate) fn two_takers_never_have_the_same_job(store: &dyn Store, other: &dyn Store) {
    let all: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    put(store, &all.iter().map(String::as_str).collect::<Vec<_>>());
    let work = |store: &dyn Store| {
        let mut mine = Vec::new();
        while let Some(taken) = take(store, LONG) {
            mine.push(taken.job.session.to_string());
            store.finish(&taken, &JobOutcome::Done).unwrap();
        }
        mine
    };
    let mine: Vec<String> = std::thread::scope(|scope| {
        let hands: Vec<_> =
            [store, other, store, other].map(|store| scope.spawn(move || work(store))).into_iter().collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    assert_eq!(mine.len(), all.len());
    assert_eq!(mine.into_iter().collect::<HashSet<_>>(), all.into_iter().collect());
    assert_eq!(names(other), Vec::<String>::new());
}

pub(crate) fn of_two_who_bring_the_same_job_one_does(store: &dyn Store, other: &dyn Store) {
    let put = |store: &dyn Store| (0..20).filter(|n| store.enqueue(&job(&format!("s{n}"))).unwrap()).count();
    let put: usize = std::thread::scope(|scope| {
        let hands = [store, other].map(|store| scope.spawn(move || put(store)));
        hands.into_iter().map(|hand| hand.join().unwrap()).sum()
    });
    assert_eq!((put, names(store).len(), names(other)), (20, 20, names(store)));
}
