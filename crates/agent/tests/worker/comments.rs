//! What people say while a task is being finished.

use crate::worker::count;
use crate::worker::kit::{Shared, World, call, words};
use komado_agent::handler::TaskOutcome;
use komado_agent::playbook::Playbook;
use komado_agent::progress::TaskProgress;
use komado_agent::source::TaskComment;
use komado_core::message::Message;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A world whose tracker is asked by nobody but who ends a task.
fn world() -> World {
    let mut world = World::new();
    world.pace.poll = Duration::from_secs(3_600);
    world
}

/// Says its last words while somebody comments, and others once it heard of that.
fn interrupted(board: &Shared) -> impl FnMut(&str) -> komado_agent::Result<Message> + 'static {
    let board = Arc::clone(board);
    move |news| {
        if news.contains("[comment by ann]\n小さく") {
            assert!(news.contains("write the summary"), "{news}");
            return Ok(words("done, and small"));
        }
        board.lock().unwrap().comments = vec![comment()];
        Ok(words("done"))
    }
}

fn comment() -> TaskComment {
    TaskComment { id: "5".into(), author: "ann".into(), text: "小さく".into() }
}

/// What the tracker was told at the end.
fn result(world: &World) -> String {
    world.board.lock().unwrap().said.last().unwrap().1.clone()
}

#[test]
fn a_comment_that_comes_with_the_last_words_is_answered_before_the_end() {
    let world = world();
    let id = world.queue("s1");
    assert_eq!(world.work(interrupted(&world.board)), TaskOutcome::Completed);
    assert_eq!(count(&world.said(&id), "[comment by ann]"), 1);
    assert!(result(&world).starts_with("done, and small\n"), "{}", result(&world));
    assert_eq!(world.marks(), ["s1:start", "s1:result"], "people hear of one end");
}

#[test]
fn a_comment_that_was_heard_at_the_end_is_answered_also_across_a_death() {
    let mut world = world();
    let id = world.queue("s1");
    let taken = world.take();
    let asked = AtomicU32::new(0);
    // The second time it is on its way to the model, and has noted nothing yet.
    world.hears = Box::new(move |progress| {
        if matches!(progress, TaskProgress::Node { id, .. } if id == "ask")
            && asked.fetch_add(1, Ordering::SeqCst) == 1
        {
            resume_unwind(Box::new("killed"));
        }
    });
    let killed = catch_unwind(AssertUnwindSafe(|| world.work_on(&taken, interrupted(&world.board))));
    assert!(killed.is_err());
    assert_eq!(count(&world.said(&id), "[comment by ann]"), 1);
    assert_eq!(world.work_on(&taken, interrupted(&world.board)), TaskOutcome::Completed);
    assert_eq!(count(&world.said(&id), "[comment by ann]"), 1);
    assert!(result(&world).starts_with("done, and small\n"), "{}", result(&world));
}

#[test]
fn a_tracker_that_cannot_be_asked_keeps_no_task_from_its_end() {
    let world = world();
    world.queue("s1");
    world.board.lock().unwrap().is_deaf = true;
    assert_eq!(world.work(|_| Ok(words("done"))), TaskOutcome::Completed);
    let told = world.told.lock().unwrap();
    let is_told =
        |told: &TaskProgress| matches!(told, TaskProgress::Trouble { why } if why.contains("board"));
    assert_eq!(told.iter().filter(|told| is_told(told)).count(), 1, "{told:?}");
}

#[test]
fn a_task_that_used_up_its_bounds_ends_well_and_says_whom_it_did_not_hear() {
    let mut world = world();
    world.limits.turns = Some(1);
    let id = world.queue("s1");
    assert_eq!(world.work(interrupted(&world.board)), TaskOutcome::Completed);
    assert_eq!(count(&world.said(&id), "[comment by ann]"), 0);
    assert!(result(&world).contains("done\n\nNot taken into account: what ann wrote"), "{}", result(&world));
}

#[test]
fn a_playbook_with_no_way_back_says_whom_it_did_not_hear() {
    let mut world = world();
    let text = r#"{"name":"one","nodes":[{"id":"a","type":"llm","prompt":"go","next":"e"},{"id":"e","type":"end"}]}"#;
    world.playbook = Playbook::parse("one", text).unwrap();
    world.queue("s1");
    assert_eq!(world.work(interrupted(&world.board)), TaskOutcome::Completed);
    assert!(result(&world).contains("Not taken into account: what ann wrote"), "{}", result(&world));
}

#[test]
fn a_playbook_goes_back_to_where_the_model_answers_and_not_to_a_prompt() {
    let mut world = world();
    let text = r#"{"name":"two","nodes":[
        {"id":"plan","type":"llm","prompt":"plan it","next":"free"},
        {"id":"free","type":"llm","next":"work"},
        {"id":"work","type":"tool","next":"check"},
        {"id":"check","type":"llm","prompt":"check it","next":"e"},
        {"id":"e","type":"end"}]}"#;
    world.playbook = Playbook::parse("two", text).unwrap();
    let id = world.queue("s1");
    let (board, heard) = (Arc::clone(&world.board), Arc::new(AtomicU32::new(0)));
    let hears = Arc::clone(&heard);
    let verdict = world.work(move |news| {
        hears.fetch_add(u32::from(news.contains("[comment by ann]")), Ordering::SeqCst);
        if news.contains("check it") {
            board.lock().unwrap().comments = vec![comment()];
        }
        Ok(if news.contains("plan it") { words("a plan") } else { call("look") })
    });
    // Nobody carries out what the last reply calls for, so nothing can be said after it.
    assert_eq!((verdict, heard.load(Ordering::SeqCst)), (TaskOutcome::Completed, 0));
    assert!(result(&world).contains("Not taken into account"), "{}", result(&world));
    let (board, said) = (Arc::clone(&world.board), world.said(&id));
    assert_eq!((count(&said, "plan it"), count(&said, "check it")), (1, 1), "{said:?}");
    board.lock().unwrap().comments.clear();
    let id = world.queue("s2");
    let verdict = world.work(move |news| {
        if news.contains("check it") {
            board.lock().unwrap().comments = vec![comment()];
            return Ok(words("checked"));
        }
        Ok(if news.contains("plan it") { words("a plan") } else { call("look") })
    });
    let said = world.said(&id);
    assert_eq!(verdict, TaskOutcome::Completed);
    assert_eq!(
        (count(&said, "plan it"), count(&said, "check it"), count(&said, "look ok")),
        (1, 2, 2),
        "{said:?}"
    );
}

/// Answers everything; somebody comments while it does so the first time, and that is known before it is done.
fn while_it_speaks(world: &World) -> impl FnMut(&str) -> komado_agent::Result<Message> + 'static {
    let (board, looks) = (Arc::clone(&world.board), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&looks);
    let count_look = move || _ = counted.fetch_add(1, Ordering::SeqCst);
    board.lock().unwrap().while_asked = Some(Arc::new(count_look));
    move |_| {
        let is_first = board.lock().unwrap().comments.is_empty();
        if is_first {
            board.lock().unwrap().comments = vec![comment()];
            let (seen, until) = (looks.load(Ordering::SeqCst), Instant::now() + Duration::from_secs(60));
            while looks.load(Ordering::SeqCst) < seen + 3 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(words("done"))
    }
}

#[test]
fn words_that_come_in_the_last_turn_of_a_child_or_before_a_call_are_not_said_where_nobody_hears_them() {
    let in_child = r#"{"name":"child","nodes":[{"id":"in","type":"stelis_start","next":"a"},
        {"id":"a","type":"llm","prompt":"go","next":"out"},{"id":"out","type":"stelis_end","next":"e"},{"id":"e","type":"end"}]}"#;
    let before_call = r#"{"name":"call","nodes":[{"id":"a","type":"llm","prompt":"go","next":"t"},
        {"id":"t","type":"tool","tool":"look","next":"e"},{"id":"e","type":"end"}]}"#;
    for text in [in_child, before_call] {
        let mut world = World::new();
        world.pace.poll = Duration::from_millis(10);
        world.playbook = Playbook::parse("p", text).unwrap();
        let id = world.queue("s1");
        assert_eq!(world.work(while_it_speaks(&world)), TaskOutcome::Completed);
        assert_eq!(count(&world.said(&id), "[comment by ann]"), 0);
        assert!(result(&world).contains("Not taken into account: what ann wrote"), "{}", result(&world));
    }
}
