//! A task from the queue to its end, with everybody killed, paused, stopped or away on the way.
mod comments;
mod kit;
mod races;
mod toll;

use kit::{World, call, words};
use komado_agent::Error;
use komado_agent::handler::{TaskOutcome, tried_out};
use komado_agent::limits::TaskLimits;
use komado_agent::playbook::Playbook;
use komado_agent::progress::TaskProgress;
use komado_agent::source::{SourceEnd, TaskComment};
use komado_agent::tools::ToolAnswer;
use komado_agent::worker::{ChildHandle, JobExit, JobRunner, StopWhen, Worker, WorkerEvent, orphans};
use komado_core::SessionId;
use komado_core::session::State;
use komado_engine::Error as Engine;
use komado_engine::exchange::UnansweredReason;
use komado_store::{Holder, JobStage, SessionChange, TakenJob};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn refused(status: u16) -> Error {
    let why = UnansweredReason::Refused { url: "http://model".into(), status, body: "no".into() };
    Error::Engine(Engine::Unanswered { seq: 1, why })
}

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

#[test]
fn a_task_is_told_worked_on_and_its_summary_reaches_the_tracker() {
    let world = World::new();
    let id = world.queue("s1");
    let verdict =
        world.work(|news| Ok(if news.contains("look ok") { words("Done: 直した") } else { call("look") }));
    assert_eq!(verdict, TaskOutcome::Completed);
    assert_eq!((world.state(&id), world.jobs().len()), (State::Completed, 0));
    let said = world.said(&id);
    assert!(said[0].contains("github:ann/tool/issue/27") && said[0].contains("窓を直す"), "{said:?}");
    assert_eq!(world.marks(), ["s1:start", "s1:result"]);
    let board = world.board.lock().unwrap();
    assert!(board.said[1].1.starts_with("Done: 直した") && board.said[1].1.contains("komado log s1"));
    assert!(board.said[1].1.contains("2 turns, 1 tool call, 200 tokens"), "{}", board.said[1].1);
    assert_eq!((board.begun, board.ended.as_slice()), (1, &[SourceEnd::Done][..]));
}

#[test]
fn a_worker_that_follows_a_killed_one_goes_on_where_the_journal_ends() {
    let world = World::new();
    let id = world.queue("s1");
    let taken = world.take();
    let killed = catch_unwind(AssertUnwindSafe(|| {
        world.work_on(&taken, |news| match news.contains("look ok") {
            true => resume_unwind(Box::new("killed")),
            false => Ok(call("look")),
        })
    }));
    assert!(killed.is_err());
    assert_eq!(world.state(&id), State::Running);
    assert_eq!(world.work_on(&taken, |_| Ok(words("finished"))), TaskOutcome::Completed);
    let said = world.said(&id);
    assert_eq!((count(&said, "窓を直す"), count(&said, "look ok")), (1, 1), "{said:?}");
    assert_eq!(world.marks(), ["s1:start", "s1:result"], "each is written once");
    assert!(
        world.told.lock().unwrap().iter().any(|told| matches!(told, TaskProgress::Begun { again: true, .. }))
    );
}

#[test]
fn a_model_that_is_away_is_asked_again_and_given_up_after_so_many_tries() {
    let world = World::new();
    let id = world.queue("s1");
    for _ in 0..2 {
        assert!(matches!(world.work(|_| Err(refused(503))), TaskOutcome::Again(_)));
        assert_eq!((world.state(&id), world.stage()), (State::Running, Some(JobStage::Waiting)));
    }
    let TaskOutcome::Failed(why) = world.work(|_| Err(refused(503))) else { panic!("it is given up") };
    assert!(why.contains("given up after 3 tries") && why.contains("503"), "{why}");
    assert_eq!((world.state(&id), world.stage()), (State::Failed, Some(JobStage::Dead)));
    assert_eq!(world.board.lock().unwrap().ended, [SourceEnd::Failed]);
}

#[test]
fn a_key_that_is_refused_is_the_end_at_once() {
    let world = World::new();
    let id = world.queue("s1");
    let verdict = world.work(|_| Err(refused(401)));
    assert!(matches!(&verdict, TaskOutcome::Failed(why) if why.contains("401")), "{verdict:?}");
    assert_eq!((world.state(&id), world.stage()), (State::Failed, Some(JobStage::Dead)));
}

#[test]
fn a_retried_task_goes_on_in_its_session() {
    let world = World::new();
    let id = world.queue("s1");
    world.work(|_| Err(refused(401)));
    world.engine.resume(&id).unwrap();
    assert!(world.engine.store().requeue(&id).unwrap());
    assert_eq!(world.work(|_| Ok(words("now it went"))), TaskOutcome::Completed);
    assert_eq!(count(&world.said(&id), "窓を直す"), 1);
    assert_eq!(world.marks(), ["s1:start", "s1:result", "s1:result"], "its tracker hears of both ends");
    assert!(world.board.lock().unwrap().said[2].1.starts_with("now it went"));
}

#[test]
fn a_paused_task_rests_with_its_call_open_and_goes_on_when_resumed() {
    let mut world = World::new();
    world.pace.hidden = Duration::from_millis(300);
    let id = world.queue("s1");
    let (engine, session) = (world.engine.clone(), id.clone());
    world.does = Arc::new(move |_, cancel| {
        let change = SessionChange::State { to: State::Paused, at: engine.now(), why: None };
        engine.store().change(&session, &change).unwrap();
        while !cancel.is_cancelled() {
            std::thread::yield_now();
        }
        ToolAnswer::wrong("broken off")
    });
    assert!(matches!(world.work(|_| Ok(call("look"))), TaskOutcome::Paused(_)));
    assert_eq!((world.state(&id), world.stage()), (State::Paused, Some(JobStage::Dead)));
    assert_eq!(world.jobs()[0].why.as_deref(), Some("paused"));
    assert_eq!(count(&world.said(&id), "broken off"), 0);
    world.engine.resume(&id).unwrap();
    world.engine.store().requeue(&id).unwrap();
    world.does = Arc::new(|name, _| ToolAnswer::text(format!("{name} ok")));
    assert_eq!(world.work(|_| Ok(words("rested"))), TaskOutcome::Completed);
    assert_eq!(world.board.lock().unwrap().ended, [SourceEnd::Paused, SourceEnd::Done]);
}

/// Works on a task whose job is taken out of the queue during its first call.
pub(crate) fn take_out_at_work(world: &mut World, id: &SessionId) {
    world.pace.hidden = Duration::from_millis(300);
    let (engine, session) = (world.engine.clone(), id.clone());
    world.does = Arc::new(move |_, cancel| {
        engine.store().withdraw(&session).unwrap();
        while !cancel.is_cancelled() {
            std::thread::yield_now();
        }
        ToolAnswer::wrong("broken off")
    });
    assert!(matches!(world.work(|_| Ok(call("look"))), TaskOutcome::Stopped(_)));
}

#[test]
fn a_task_that_is_taken_out_of_the_queue_stops() {
    let mut world = World::new();
    let id = world.queue("s1");
    take_out_at_work(&mut world, &id);
    assert_eq!((world.state(&id), world.jobs().len()), (State::Stopped, 0));
    assert_eq!(world.board.lock().unwrap().ended, [SourceEnd::Stopped]);
}

#[test]
fn an_issue_that_is_assigned_to_none_of_us_any_more_stops() {
    let mut world = World::new();
    let id = world.queue("s1");
    let board = Arc::clone(&world.board);
    world.does = Arc::new(move |_, cancel| {
        board.lock().unwrap().unwanted = Some("nobody of us is assigned".into());
        while !cancel.is_cancelled() {
            std::thread::yield_now();
        }
        ToolAnswer::wrong("broken off")
    });
    assert_eq!(world.work(|_| Ok(call("look"))), TaskOutcome::Stopped("nobody of us is assigned".into()));
    assert_eq!((world.state(&id), world.jobs().len()), (State::Stopped, 0));
}

#[test]
fn a_comment_is_heard_once_also_across_a_death() {
    let mut world = World::new();
    let id = world.queue("s1");
    let board = Arc::clone(&world.board);
    let comment = TaskComment { id: "5".into(), author: "ann".into(), text: "小さく".into() };
    board.lock().unwrap().comments.push(comment);
    world.does = Arc::new(|name, _| ToolAnswer::text(format!("{name} ok")));
    let taken = world.take();
    let killed = catch_unwind(AssertUnwindSafe(|| {
        world.work_on(&taken, |news| match news.contains("[comment by ann]\n小さく") {
            true => resume_unwind(Box::new("killed")),
            false => Ok(call("look")),
        })
    }));
    assert!(killed.is_err());
    let rounds = AtomicU32::new(0);
    let verdict = world.work_on(&taken, move |_| {
        Ok(if rounds.fetch_add(1, Ordering::SeqCst) < 200 { call("look") } else { words("heard") })
    });
    assert_eq!(verdict, TaskOutcome::Completed);
    assert_eq!(count(&world.said(&id), "[comment by ann]"), 1);
}

#[test]
fn each_bound_ends_a_task_with_a_summary_and_nothing_more_is_run() {
    let bounds = [
        (TaskLimits { turns: Some(2), ..TaskLimits::default() }, "2 turns"),
        (TaskLimits { tokens: Some(150), ..TaskLimits::default() }, "150 tokens"),
        (TaskLimits { time: Some(Duration::ZERO), ..TaskLimits::default() }, "0 minutes"),
        (TaskLimits { errors: 2, ..TaskLimits::default() }, "2 calls in a row went wrong"),
    ];
    for (limits, reason) in bounds {
        let mut world = World::new();
        world.limits = limits;
        world.does = Arc::new(|_, _| ToolAnswer::wrong("うまくいきません"));
        let id = world.queue("s1");
        let verdict = world.work(|news| match news.contains("Write a summary") {
            true => Ok(words("ここまでの要約")),
            false => Ok(call("look")),
        });
        let TaskOutcome::Failed(why) = verdict else { panic!("{reason}: {verdict:?}") };
        assert!(why.contains(reason) && why.ends_with("ここまでの要約"), "{why}");
        assert_eq!((world.state(&id), world.stage()), (State::Failed, Some(JobStage::Dead)));
        world.engine.resume(&id).unwrap();
        world.engine.store().requeue(&id).unwrap();
        if limits.time.is_none() {
            assert_eq!(
                world.work(|_| Ok(words("more"))),
                TaskOutcome::Completed,
                "{reason}: it has as much again"
            );
        }
    }
}

#[test]
fn the_summary_of_earlier_work_on_the_same_issue_is_inherited() {
    let world = World::new();
    world.queue("s1");
    world.work(|_| Ok(words("前回の要約: the frame is painted")));
    let second = world.queue("s2");
    world.work(|_| Ok(words("done as well")));
    let said = world.said(&second);
    assert!(
        said[0].contains("Earlier work") && said[0].contains("前回の要約: the frame is painted"),
        "{said:?}"
    );
}

#[test]
fn a_task_that_ended_before_the_tracker_heard_is_only_told() {
    let world = World::new();
    let id = world.queue("s1");
    let board = Arc::clone(&world.board);
    let away = Arc::clone(&world.board);
    let verdict = world.work(move |_| {
        away.lock().unwrap().is_away = true;
        Ok(words("all is done"))
    });
    assert!(matches!(verdict, TaskOutcome::Again(_)), "{verdict:?}");
    assert_eq!((world.state(&id), world.stage()), (State::Completed, Some(JobStage::Waiting)));
    board.lock().unwrap().is_away = false;
    assert_eq!(world.work(|_| panic!("nobody is asked")), TaskOutcome::Completed);
    assert_eq!((world.marks(), world.jobs().len()), (vec!["s1:start".to_owned(), "s1:result".to_owned()], 0));
}

#[test]
fn an_unknown_tool_is_an_answer_that_names_the_known_ones() {
    let world = World::new();
    let id = world.queue("s1");
    world.work(|news| Ok(if news.contains("there is no tool") { words("ok") } else { call("fly") }));
    let said = world.said(&id);
    assert!(said.iter().any(|line| line.contains("\"fly\"") && line.contains("look, push")), "{said:?}");
}

/// A process that dies each time; whoever started it can still tell so.
struct Mortal<'w> {
    world: &'w World,
    died: AtomicU32,
}

impl JobRunner for Mortal<'_> {
    fn run(&self, _taken: &TakenJob, _leash: &ChildHandle, _tell: &(dyn Fn(TaskProgress) + Sync)) -> JobExit {
        self.died.fetch_add(1, Ordering::SeqCst);
        JobExit::Died("its process was killed by signal 9".into())
    }

    fn give_up(&self, taken: &TakenJob, _why: &str, _tell: &(dyn Fn(TaskProgress) + Sync)) {
        self.world.attend(taken, |kit| tried_out(&self.world.engine, kit).expect("it was tried too often"));
    }
}

pub(crate) fn holder() -> Holder {
    Holder { pid: 1, host: "here".into(), program: "test".into(), since: String::new() }
}

#[test]
fn a_job_whose_process_always_dies_is_laid_aside_and_its_tracker_is_told() {
    let world = World::new();
    let id = world.queue("s1");
    let mortal = Mortal { world: &world, died: AtomicU32::new(0) };
    let worker = Worker::new(&world.engine, &mortal, holder(), world.pace, 2);
    let mut died = 0;
    worker
        .run(StopWhen::Empty, &mut |happened| died += u32::from(matches!(happened, WorkerEvent::Died(..))))
        .unwrap();
    assert_eq!((mortal.died.load(Ordering::SeqCst), died), (4, 4), "three tries, and one to give it up");
    assert_eq!((world.state(&id), world.stage()), (State::Failed, Some(JobStage::Dead)));
    let board = world.board.lock().unwrap();
    assert_eq!(board.ended, [SourceEnd::Failed]);
    assert!(
        board.said[0].1.contains("given up after 3 tries") && board.said[0].1.contains("signal 9"),
        "{:?}",
        board.said
    );
}

/// One that works until it is asked to rest.
struct Patient;

impl JobRunner for Patient {
    fn run(&self, _taken: &TakenJob, leash: &ChildHandle, tell: &(dyn Fn(TaskProgress) + Sync)) -> JobExit {
        let (say, asked) = std::sync::mpsc::channel();
        leash.tie(
            move || {
                let _ = say.send(());
            },
            || {},
        );
        tell(TaskProgress::Trouble { why: "at work".into() });
        asked.recv().unwrap();
        JobExit::Died("left".into())
    }

    fn give_up(&self, taken: &TakenJob, _why: &str, _tell: &(dyn Fn(TaskProgress) + Sync)) {
        panic!("nobody gives {} up: its worker only ends", taken.job.session);
    }
}

/// A worker that is told to stop as soon as its task is under way.
fn stop_a_worker_at_work(world: &World) {
    let worker = Worker::new(&world.engine, &Patient, holder(), world.pace, 1);
    let bell = worker.bell();
    worker
        .run(StopWhen::Told, &mut |happened| {
            if let WorkerEvent::Progress(..) = happened {
                bell.stop();
            }
        })
        .unwrap();
}

#[test]
fn a_worker_that_stops_asks_its_tasks_to_rest_and_gives_them_back_untried() {
    let world = World::new();
    world.queue("s1");
    stop_a_worker_at_work(&world);
    assert_eq!((world.stage(), world.jobs()[0].tries), (Some(JobStage::Waiting), 0));
}

#[test]
fn a_job_that_is_given_back_keeps_the_tries_it_had() {
    let world = World::new();
    world.queue("s1");
    world.work(|_| Err(refused(503)));
    stop_a_worker_at_work(&world);
    let left = world.take();
    assert_eq!((left.tries, left.why.as_ref().is_some_and(|why| why.contains("503"))), (2, true));
    world.attend(&left, |_| TaskOutcome::Left("its worker ends".into()));
    assert_eq!((world.stage(), world.jobs()[0].tries), (Some(JobStage::Waiting), 1));
}

#[test]
fn a_call_of_the_playbook_is_no_turn() {
    let mut world = World::new();
    let text = r#"{"name":"own","nodes":[
        {"id":"first","type":"tool","tool":"look","args":{},"next":"ask"},
        {"id":"ask","type":"llm","next":"end"},
        {"id":"end","type":"end"}]}"#;
    world.playbook = Playbook::parse("own", text).unwrap();
    let id = world.queue("s1");
    assert_eq!(world.work(|_| Ok(words("done"))), TaskOutcome::Completed);
    let counters = world.engine.session(&id).unwrap().counters;
    assert_eq!((counters.llm_call_count, counters.tool_call_count), (1, 1));
}

#[test]
fn a_session_whose_job_is_gone_is_stopped_and_others_are_let_be() {
    let world = World::new();
    let id = world.queue("s1");
    world.work(|_| Err(refused(503)));
    assert_eq!(orphans(&world.engine).unwrap(), []);
    world.engine.store().withdraw(&id).unwrap();
    let found = orphans(&world.engine).unwrap();
    assert_eq!((found.len(), world.state(&id)), (1, State::Stopped));
    assert_eq!(orphans(&world.engine).unwrap(), []);
}
