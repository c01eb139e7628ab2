//! What a task took: told at once, and the same whether or not somebody was killed on the way.

use crate::worker::kit::{World, call, words};
use crate::worker::take_out_at_work;
use komado_agent::handler::{TaskOutcome, kept};
use komado_agent::limits::TaskLimits;
use komado_agent::playbook::Playbook;
use komado_core::ThreadId;
use komado_core::journal::{Entry, Reply};
use komado_core::message::{Message, MessagePart, Role};
use komado_store::OpenMode;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// So many times: asks the model, then makes a call of its own.
fn asks_and_calls(times: usize) -> Playbook {
    let mut nodes: Vec<Value> = Vec::new();
    for n in 1..=times {
        nodes.push(json!({ "id": format!("ask{n}"), "type": "llm", "next": format!("look{n}") }));
        let next = if n == times { "end".to_owned() } else { format!("ask{}", n + 1) };
        nodes.push(
            json!({ "id": format!("look{n}"), "type": "tool", "tool": "look", "args": {}, "next": next }),
        );
    }
    nodes.push(json!({ "id": "end", "type": "end" }));
    Playbook::parse("six", &json!({ "name": "six", "nodes": nodes }).to_string()).unwrap()
}

#[test]
fn a_task_whose_process_was_killed_may_take_as_many_turns_as_one_that_was_not() {
    let mut world = World::new();
    world.playbook = asks_and_calls(6);
    world.limits = TaskLimits { turns: Some(7), ..TaskLimits::default() };
    let id = world.queue("s1");
    let taken = world.take();
    let mut asked = 0;
    let killed = catch_unwind(AssertUnwindSafe(|| {
        world.work_on(&taken, move |_| {
            asked += 1;
            if asked == 5 { resume_unwind(Box::new("killed")) } else { Ok(words("next")) }
        })
    }));
    assert!(killed.is_err());
    let mut root = world.engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    for _ in 0..3 {
        root.append(Entry::Lost(Reply::default())).unwrap();
    }
    root.settle().unwrap();
    drop(root);
    assert_eq!(
        world.engine.session(&id).unwrap().counters.llm_call_count,
        7,
        "answers that were lost count there"
    );
    assert_eq!(world.work_on(&taken, |_| Ok(words("next"))), TaskOutcome::Completed);
}

#[test]
fn the_table_hears_of_each_turn_and_each_call_before_the_next() {
    let world = World::new();
    let id = world.queue("s1");
    let (engine, session) = (world.engine.clone(), id.clone());
    let mut asked = 0;
    let verdict = world.work(move |_| {
        let counters = engine.session(&session).unwrap().counters;
        assert_eq!((counters.llm_call_count, counters.tool_call_count), (asked, asked));
        asked += 1;
        Ok(if asked == 4 { words("done") } else { call("look") })
    });
    assert_eq!(verdict, TaskOutcome::Completed);
}

#[test]
fn calls_that_a_bound_kept_from_being_made_are_said_not_to_have_been_run() {
    let mut world = World::new();
    world.limits = TaskLimits { turns: Some(1), ..TaskLimits::default() };
    world.does = Arc::new(|_, _| panic!("nothing is run"));
    let id = world.queue("s1");
    let verdict = world.work(|news| match news.contains("Write a summary") {
        true => Ok(words("the summary")),
        false => Ok(both()),
    });
    assert!(
        matches!(&verdict, TaskOutcome::Failed(why) if why.contains("took its 1 turn (agent.max_turns)")),
        "{verdict:?}"
    );
    let said = world.said(&id);
    assert_eq!(
        said.iter().filter(|line| line.contains("[not run: the task has reached its bounds]")).count(),
        2
    );
    assert!(!said.iter().any(|line| line.contains("[no result")), "{said:?}");
    let root = world.engine.open(&id, &ThreadId::root(), OpenMode::Read).unwrap();
    for seq in 1..=root.last() {
        if let Entry::Message(message, _) = root.record(seq).unwrap().entry
            && let Some(outcome) = message.outcome()
        {
            assert_eq!(outcome.duration_ms, Some(0));
        }
    }
}

/// Two calls at once.
fn both() -> Message {
    let part = |id: &str| match call("look").parts.remove(0) {
        MessagePart::Call(call) => {
            MessagePart::Call(komado_core::message::Call { id: id.to_owned(), ..call })
        }
        other => other,
    };
    Message::of(Role::Assistant, vec![part("a"), part("b")])
}

#[test]
fn a_task_that_was_stopped_at_work_keeps_what_its_job_said() {
    let mut world = World::new();
    let id = world.queue("s1");
    let job = world.jobs().remove(0).job;
    take_out_at_work(&mut world, &id);
    let root = world.engine.open(&id, &ThreadId::root(), OpenMode::Read).unwrap();
    let task = kept(&root).unwrap().unwrap();
    assert_eq!(serde_json::to_string(&task).unwrap(), job.body);
}
