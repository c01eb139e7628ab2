//! Two workers with the same job, slow trackers, tasks that panic.

use crate::worker::holder;
use crate::worker::kit::{World, call, words};
use komado_agent::handler::{self, TaskMark, TaskOutcome};
use komado_agent::progress::TaskProgress;
use komado_agent::source::SourceEnd;
use komado_agent::worker::{ChildHandle, JobExit, JobRunner, StopWhen, Worker, WorkerEvent};
use komado_core::ThreadId;
use komado_core::journal::Ending;
use komado_core::session::State;
use komado_store::{FileStore, JobOutcome, JobStage, OpenMode, TakenJob};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn whoever_lost_a_job_does_not_bring_it_back() {
    let mut world = World::new();
    world.pace.hidden = Duration::ZERO;
    let id = world.queue("s1");
    let slow = world.take();
    let other = world.take();
    world.engine.store().finish(&other, &JobOutcome::Dead { why: "paused".into() }).unwrap();
    assert_eq!(
        world.attend(&slow, |_| TaskOutcome::Left("another worker has it".into())),
        TaskOutcome::Left("another worker has it".into())
    );
    assert_eq!((world.stage(), world.jobs()[0].why.as_deref()), (Some(JobStage::Dead), Some("paused")));
    assert!(world.engine.store().requeue(&id).unwrap(), "only somebody who wants it does");
}

/// Until when the only job is hidden from other workers.
fn hidden_until(folder: &Path) -> i64 {
    let queue = rusqlite::Connection::open(folder.join("queue.db")).unwrap();
    queue.query_row("SELECT hidden_until FROM jobs", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_tracker_that_is_slow_to_answer_does_not_make_a_job_look_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::on(Arc::new(FileStore::new(dir.path(), holder())));
    world.pace.hidden = Duration::from_millis(300);
    let id = world.queue("s1");
    let taken = world.take();
    let (folder, first) = (dir.path().to_owned(), hidden_until(dir.path()));
    // The tracker answers only when the job was kept for longer than it was taken for, and the model after the tracker.
    let answered = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&answered);
    world.board.lock().unwrap().while_asked = Some(Arc::new(move || {
        while hidden_until(&folder) <= first + 300 {
            std::thread::sleep(Duration::from_millis(10));
        }
        answers.store(true, Ordering::SeqCst);
    }));
    let verdict = world.work_on(&taken, move |news| {
        while !answered.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(if news.contains("look ok") { words("done") } else { call("look") })
    });
    assert_eq!((verdict, world.state(&id)), (TaskOutcome::Completed, State::Completed));
    assert!(world.jobs().is_empty());
}

#[test]
fn a_tracker_that_never_hears_of_the_end_is_given_up_and_the_end_stands() {
    let world = World::new();
    let id = world.queue("s1");
    let away = Arc::clone(&world.board);
    world.work(move |_| {
        away.lock().unwrap().is_away = true;
        Ok(words("all is done"))
    });
    for last in [false, true] {
        let verdict = world.attend(&world.take(), |kit| handler::told(&world.engine, kit).unwrap());
        assert_eq!(matches!(verdict, TaskOutcome::Failed(_)), last, "{verdict:?}");
    }
    assert_eq!((world.state(&id), world.stage()), (State::Completed, Some(JobStage::Dead)));
    world.board.lock().unwrap().is_away = false;
    assert!(world.engine.store().requeue(&id).unwrap());
    world.attend(&world.take(), |kit| handler::told(&world.engine, kit).unwrap());
    assert_eq!(
        (world.board.lock().unwrap().ended.as_slice(), world.jobs().len()),
        (&[SourceEnd::Done][..], 0)
    );
}

#[test]
fn a_task_that_was_given_up_before_it_could_begin_has_its_prompt_and_tools_when_retried() {
    let mut world = World::new();
    world.pace.tries = 1;
    let id = world.queue("s1");
    let verdict = world.attend(&world.take(), |kit| handler::unable(&world.engine, kit, "no key is set"));
    assert!(matches!(verdict, TaskOutcome::Failed(_)), "{verdict:?}");
    world.engine.resume(&id).unwrap();
    world.engine.store().requeue(&id).unwrap();
    assert_eq!(world.work(|_| Ok(words("done"))), TaskOutcome::Completed);
    let root = world.engine.open(&id, &ThreadId::root(), OpenMode::Read).unwrap();
    assert!(root.view().setup().is_some());
    let mark = TaskMark::of(&root).unwrap().unwrap();
    assert_eq!(mark.title.as_deref(), Some("窓を直す"), "its title outlives its job");
}

/// Works on a thread of the worker, and panics.
struct Panicking;

impl JobRunner for Panicking {
    fn run(&self, _taken: &TakenJob, _leash: &ChildHandle, _tell: &(dyn Fn(TaskProgress) + Sync)) -> JobExit {
        std::panic::resume_unwind(Box::new("an internal fault"))
    }

    fn give_up(&self, _taken: &TakenJob, _why: &str, _tell: &(dyn Fn(TaskProgress) + Sync)) {
        std::panic::resume_unwind(Box::new("another fault of ours"))
    }
}

#[test]
fn a_task_that_panics_is_one_that_died_and_its_worker_goes_on() {
    let world = World::new();
    world.queue("s1");
    let worker = Worker::new(&world.engine, &Panicking, holder(), world.pace, 1);
    let mut died = 0;
    worker
        .run(StopWhen::Empty, &mut |happened| died += u32::from(matches!(happened, WorkerEvent::Died(..))))
        .unwrap();
    assert_eq!((died, world.stage()), (4, Some(JobStage::Dead)));
}

#[test]
fn a_task_whose_journal_ended_before_the_table_could_follow_is_ended_there_too() {
    let world = World::new();
    let id = world.queue("s1");
    let verdict = world.work(|_| Err(std::io::Error::other("the model is away").into()));
    assert!(matches!(verdict, TaskOutcome::Again(_)), "{verdict:?}");
    world.engine.store().requeue(&id).unwrap();
    let mut root = world.engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    root.close(Ending::Completed, Some("it is done".into())).unwrap();
    drop(root);
    assert_eq!(world.state(&id), State::Running);
    assert_eq!(world.work(|_| panic!("nobody is asked")), TaskOutcome::Completed);
    assert_eq!((world.state(&id), world.jobs().len()), (State::Completed, 0));
    assert!(world.marks().iter().any(|mark| mark.contains("result")), "{:?}", world.marks());
}
