//! Takes tasks from the queue and gives each its own process.
//!
//! The worker knows nothing of a task but its name: it takes a job, has it worked on, and hears line by line how it goes.
//! The process that works on it keeps the job and ends it; the worker steps in only where that died. So a task that brings its
//! process down brings nothing else down, and a worker that is killed leaves jobs that come back by themselves.

mod process;

pub use process::TaskProcess;

use crate::Result;
use crate::handler::{TaskMark, TaskOrders, TaskOutcome, TaskWatch, watch};
use crate::progress::TaskProgress;
use komado_core::journal::{Close, Ending, Entry};
use komado_core::session::{State, TaskKey};
use komado_core::{Kind, SessionId, ThreadId, head};
use komado_engine::{Engine, Error as EngineError};
use komado_store::{Error as Store, Holder, JobOutcome, OpenMode, SessionQuery, TakenJob};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How often an idle worker looks into the queue.
const LOOK: Duration = Duration::from_millis(500);
/// How much longer than its grace a task may take to say that it rests, before it is ended.
const SLACK: Duration = Duration::from_secs(5);
/// The longest pause before a job is tried again.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How jobs are taken, kept and given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerPace {
    /// How often one is tried before it is laid aside.
    pub tries: u32,
    /// How long one is hidden from others after its worker was last heard of.
    pub hidden: Duration,
    /// Before one is tried again; doubles from there.
    pub pause: Duration,
    /// How long a step under way may take when its task is to rest.
    pub grace: Duration,
    /// How often the tracker of a running task is asked for news.
    pub poll: Duration,
}

impl WorkerPace {
    /// The pause after so many tries.
    pub fn pause_after(&self, tries: u32) -> Duration {
        let double = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        self.pause.saturating_mul(double).min(LONGEST)
    }
}

/// When a worker ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopWhen {
    /// Never.
    Told,
    /// When nothing can be taken now, and nothing is worked on.
    Empty,
}

/// How the process that worked on a job left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobExit {
    /// The job is finished, one way or the other.
    Finished,
    /// They died, or never began.
    Died(String),
}

/// Has a job worked on, by a process or a thread. Called on a thread of its own.
pub trait JobRunner: Sync {
    /// Works on it until it ended. `leash` is pulled when it shall rest.
    fn run(&self, taken: &TakenJob, leash: &ChildHandle, tell: &(dyn Fn(TaskProgress) + Sync)) -> JobExit;

    /// The process that was to give the job up has died, too, `why` says how: lets those who wait for it know. The worker lays it
    /// aside afterwards, whatever comes of this.
    fn give_up(&self, taken: &TakenJob, why: &str, tell: &(dyn Fn(TaskProgress) + Sync));
}

/// What a worker hears.
enum Event {
    Told(u64, TaskProgress),
    Left(u64, JobExit),
    Stop,
}

/// Tells a worker to stop: once to let the tasks come to rest, twice to end them at once.
#[derive(Clone)]
pub struct StopHandle(Sender<Event>);

impl StopHandle {
    /// Says so.
    pub fn stop(&self) {
        // A worker that has ended needs no telling.
        let _ = self.0.send(Event::Stop);
    }
}

/// What happens, with the job it happens to.
pub enum WorkerEvent<'a> {
    /// A job was taken.
    Taken(&'a TakenJob),
    /// Something happened in it.
    Progress(&'a TakenJob, &'a TaskProgress),
    /// The process that worked on it died.
    Died(&'a TakenJob, &'a str),
    /// The queue could not be asked; it is asked again.
    Trouble(String),
    /// Nothing new is taken; the tasks under way come to rest.
    Stopping {
        /// How many are under way.
        running: usize,
    },
}

/// Takes jobs and has them worked on.
pub struct Worker<'w> {
    engine: &'w Engine,
    launch: &'w dyn JobRunner,
    holder: Holder,
    pace: WorkerPace,
    concurrency: usize,
    bell: StopHandle,
    events: Receiver<Event>,
}

struct Running {
    taken: Arc<TakenJob>,
    leash: Arc<ChildHandle>,
}

/// What a worker has in its hands.
#[derive(Default)]
struct Hand {
    running: BTreeMap<u64, Running>,
    next: u64,
    /// How often it was told to stop.
    stops: u32,
    /// When tasks that do not come to rest are ended.
    due: Option<Instant>,
    /// True when the queue had nothing when it was last asked.
    is_empty: bool,
    /// Why the queue could not be asked the last time.
    trouble: Option<Store>,
}

impl<'w> Worker<'w> {
    /// A worker under the name of `holder`.
    pub fn new(
        engine: &'w Engine,
        launch: &'w dyn JobRunner,
        holder: Holder,
        pace: WorkerPace,
        concurrency: u32,
    ) -> Self {
        let (say, events) = channel();
        let concurrency = usize::try_from(concurrency).unwrap_or(usize::MAX).max(1);
        Self { engine, launch, holder, pace, concurrency, bell: StopHandle(say), events }
    }

    /// What tells it to stop.
    pub fn bell(&self) -> StopHandle {
        self.bell.clone()
    }

    /// Works until it is told to stop, or until there is nothing left to do.
    pub fn run(&self, until: StopWhen, tell: &mut dyn FnMut(WorkerEvent<'_>)) -> Result<()> {
        std::thread::scope(|scope| {
            let mut hand = Hand::default();
            loop {
                if hand.stops == 0 {
                    self.fill(scope, &mut hand, tell);
                }
                if until == StopWhen::Empty
                    && hand.running.is_empty()
                    && let Some(why) = hand.trouble.take()
                {
                    return Err(why.into());
                }
                let is_done = hand.stops > 0 || (until == StopWhen::Empty && hand.is_empty);
                if hand.running.is_empty() && is_done {
                    return Ok(());
                }
                self.hear(&mut hand, tell);
            }
        })
    }

    /// Takes as many jobs as may be worked on at once.
    fn fill<'s>(&'s self, scope: &'s Scope<'s, '_>, hand: &mut Hand, tell: &mut dyn FnMut(WorkerEvent<'_>)) {
        hand.is_empty = false;
        while hand.running.len() < self.concurrency {
            let taken = self.engine.store().take(&self.holder, self.pace.hidden);
            let was_away = hand.trouble.is_some();
            hand.trouble = None;
            match taken {
                Ok(Some(taken)) => {
                    tell(WorkerEvent::Taken(&taken));
                    self.start(scope, hand, taken);
                }
                Ok(None) => {
                    hand.is_empty = true;
                    return;
                }
                Err(why) => {
                    // Once is enough, however long it lasts.
                    if !was_away {
                        tell(WorkerEvent::Trouble(why.to_string()));
                    }
                    hand.trouble = Some(why);
                    return;
                }
            }
        }
    }

    fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, hand: &mut Hand, taken: TakenJob) {
        let running = Running { taken: Arc::new(taken), leash: Arc::default() };
        let (taken, leash) = (Arc::clone(&running.taken), Arc::clone(&running.leash));
        let (id, say, launch, most) = (hand.next, self.bell.0.clone(), self.launch, self.pace.tries);
        hand.next += 1;
        hand.running.insert(id, running);
        scope.spawn(move || {
            let told = say.clone();
            let tell = move |progress| {
                let _ = told.send(Event::Told(id, progress));
            };
            // One that panics on a thread of ours must be heard of, too: else its worker waits for it for ever.
            let ran = catch_unwind(AssertUnwindSafe(|| launch.run(&taken, &leash, &tell)));
            let exit = ran.unwrap_or_else(|_| JobExit::Died("its worker panicked".to_owned()));
            leash.untie();
            if let JobExit::Died(why) = &exit
                && taken.tries > most
                && !leash.is_pulled()
                && catch_unwind(AssertUnwindSafe(|| launch.give_up(&taken, why, &tell))).is_err()
            {
                tell(TaskProgress::Trouble { why: "giving it up panicked".to_owned() });
            }
            let _ = say.send(Event::Left(id, exit));
        });
    }

    /// Waits for what happens next, and does what follows from it.
    fn hear(&self, hand: &mut Hand, tell: &mut dyn FnMut(WorkerEvent<'_>)) {
        if hand.due.is_some_and(|due| due <= Instant::now()) {
            hand.running.values().for_each(|running| running.leash.kill());
        }
        match self.events.recv_timeout(LOOK) {
            Ok(Event::Told(id, progress)) => {
                if let Some(running) = hand.running.get(&id) {
                    tell(WorkerEvent::Progress(&running.taken, &progress));
                }
            }
            Ok(Event::Left(id, exit)) => {
                let Some(Running { taken, .. }) = hand.running.remove(&id) else { return };
                if let JobExit::Died(why) = exit {
                    tell(WorkerEvent::Died(&taken, &why));
                    if let Err(trouble) = self.give_back(&taken, &why, hand.stops > 0) {
                        tell(WorkerEvent::Trouble(trouble.to_string()));
                    }
                }
            }
            Ok(Event::Stop) => self.stop(hand, tell),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn stop(&self, hand: &mut Hand, tell: &mut dyn FnMut(WorkerEvent<'_>)) {
        hand.stops += 1;
        if hand.stops > 1 {
            hand.running.values().for_each(|running| running.leash.kill());
            return;
        }
        tell(WorkerEvent::Stopping { running: hand.running.len() });
        hand.due = Instant::now().checked_add(self.pace.grace + SLACK);
        hand.running.values().for_each(|running| running.leash.pull());
    }

    /// Puts back the job of a process that died; laid aside when the one that was to give it up died, too. One that was ended
    /// because the worker stops has done nothing wrong, and what it did before still counts.
    fn give_back(&self, taken: &TakenJob, why: &str, is_stopping: bool) -> Result<()> {
        let store = self.engine.store();
        if is_stopping {
            return yours(store.finish(taken, &JobOutcome::Back));
        }
        if taken.tries > self.pace.tries {
            let failed = match self.engine.fail(&taken.job.session, why) {
                Ok(_) | Err(EngineError::Store(Store::NoSession(_) | Store::Ended(..))) => Ok(()),
                Err(other) => Err(other.into()),
            };
            // Also where its session cannot be told: else it would come back for ever.
            yours(store.finish(taken, &JobOutcome::Dead { why: why.to_owned() }))?;
            return failed;
        }
        let pause = self.pace.pause_after(taken.tries);
        yours(store.finish(taken, &JobOutcome::Again { pause, why: why.to_owned() }))
    }
}

/// A job that another worker has by now, or gone, is none of ours, and nothing more is to be done to it.
fn yours(done: komado_store::Result<()>) -> Result<()> {
    match done {
        Ok(()) | Err(Store::NotYours(_)) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

// One job in this process: watched over while it is worked on, and finished in the queue when it came to rest.

/// Has `work` done while its job is kept and its tracker watched, and ends the job in the queue. Progress hears of the end
/// once the queue has.
pub fn attend(
    vigil: &TaskWatch<'_>,
    pace: &WorkerPace,
    work: impl FnOnce() -> TaskOutcome,
) -> Result<TaskOutcome> {
    let verdict = std::thread::scope(|scope| {
        scope.spawn(|| watch(vigil));
        let _over = Over(vigil.orders);
        work()
    });
    finish(vigil.engine, vigil.taken, &verdict, pace)?;
    (vigil.tell)(verdict.progress());
    Ok(verdict)
}

/// Says that the task came to rest, also when it did so by a panic: the watch would wait for ever.
struct Over<'o>(&'o TaskOrders);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// What the queue hears of it.
fn finish(engine: &Engine, taken: &TakenJob, verdict: &TaskOutcome, pace: &WorkerPace) -> Result<()> {
    let outcome = match verdict.clone() {
        TaskOutcome::Completed | TaskOutcome::Stopped(_) => JobOutcome::Done,
        TaskOutcome::Failed(why) => JobOutcome::Dead { why },
        TaskOutcome::Paused(_) => JobOutcome::Dead { why: "paused".to_owned() },
        // Nothing was wrong with it: this taking does not count.
        TaskOutcome::Left(_) => JobOutcome::Back,
        TaskOutcome::Again(why) => JobOutcome::Again { pause: pace.pause_after(taken.tries), why },
    };
    yours(engine.store().finish(taken, &outcome))
}

// How a worker reaches the process that works on a job: to ask it to rest, or to end it.

type Act = Box<dyn FnMut() + Send>;

/// A leash. It may be pulled before a process is on it: then the process is asked as soon as it is.
#[derive(Default)]
pub struct ChildHandle(Mutex<LeashState>);

#[derive(Default)]
struct LeashState {
    rest: Option<Act>,
    end: Option<Act>,
    pulled: bool,
    killed: bool,
}

impl ChildHandle {
    /// Puts a process on it: `rest` asks it to come to rest, `end` ends it.
    pub fn tie(&self, rest: impl FnMut() + Send + 'static, end: impl FnMut() + Send + 'static) {
        self.with(|state| {
            state.rest = Some(Box::new(rest));
            state.end = Some(Box::new(end));
            act(state.pulled, &mut state.rest);
            act(state.killed, &mut state.end);
        });
    }

    /// No process is on it any more.
    pub fn untie(&self) {
        self.with(|state| (state.rest, state.end) = (None, None));
    }

    /// Asks them to come to rest.
    pub fn pull(&self) {
        self.with(|state| {
            state.pulled = true;
            act(true, &mut state.rest);
        });
    }

    /// Ends them.
    pub fn kill(&self) {
        self.with(|state| {
            state.killed = true;
            act(true, &mut state.end);
        });
    }

    /// True once it was pulled: a process that dies then was asked to end.
    pub fn is_pulled(&self) -> bool {
        let mut pulled = false;
        self.with(|state| pulled = state.pulled || state.killed);
        pulled
    }

    fn with(&self, change: impl FnOnce(&mut LeashState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn act(wanted: bool, act: &mut Option<Act>) {
    if let Some(act) = act.as_mut().filter(|_| wanted) {
        act();
    }
}

// Sessions of tasks that no worker works on and none will: their job is gone.
//
// A job leaves the queue when a user takes it out or when its session has ended. A worker killed right after it was
// taken out leaves a session that says it runs, for ever. It is put right: stopped, with the reason, and kept.

const WHY: &str = "its job is no longer in the queue, and no worker has it";

/// A session that was put right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrphanedSession {
    /// The session.
    pub session: SessionId,
    /// What it worked on.
    pub key: TaskKey,
}

/// Finds them and stops them; gives those that were stopped.
pub fn orphans(engine: &Engine) -> Result<Vec<OrphanedSession>> {
    // Sessions first: one that is made while the queue is read is not among them.
    let mut found = Vec::new();
    engine.each_session(SessionQuery { status: Some(State::Running), ..SessionQuery::default() }, |row| {
        if row.meta.task_key.is_task() {
            found.push((SessionId::new(row.meta.uuid.as_str())?, row.meta.task_key.clone()));
        }
        Ok(())
    })?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let queued: HashSet<SessionId> =
        engine.jobs().map(|queued| Ok(queued?.job.session)).collect::<Result<_>>()?;
    let mut stopped = Vec::new();
    for (session, key) in found.into_iter().filter(|(session, _)| !queued.contains(session)) {
        if is_abandoned(engine, &session)? && stop(engine, &session)? {
            stopped.push(OrphanedSession { session, key });
        }
    }
    Ok(stopped)
}

/// True when a worker began it and no process writes it now. A session that a user made by hand for an issue is theirs, and
/// so is one that they opened after it was completed.
fn is_abandoned(engine: &Engine, session: &SessionId) -> Result<bool> {
    Ok(engine.store().writer(session)?.is_none()
        && TaskMark::of_session(engine, session)?.is_some()
        && !was_completed(engine, session)?)
}

/// True when it was completed the last time it was closed.
fn was_completed(engine: &Engine, session: &SessionId) -> Result<bool> {
    let root = engine.open(session, &ThreadId::root(), OpenMode::Read)?;
    // Whether or not it was opened again since.
    for entry in head::back(root.source(), 0) {
        let (seq, head) = entry?;
        if head.kind == Kind::Close {
            let entry = root.record(seq)?.entry;
            return Ok(matches!(entry, Entry::Close(Close { ending: Ending::Completed, .. })));
        }
    }
    Ok(false)
}

fn stop(engine: &Engine, session: &SessionId) -> Result<bool> {
    match engine.stop(session, Some(WHY.to_owned())) {
        Ok(_) => Ok(true),
        Err(EngineError::Store(Store::Busy { .. } | Store::Ended(..)) | EngineError::Refused(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

// A taken job as one line of JSON, from a worker to the process that works on it.

/// The line, with its end.
pub fn write_taken(taken: &TakenJob) -> io::Result<String> {
    Ok(serde_json::to_string(taken)? + "\n")
}

/// Reads it back.
pub fn read_taken(line: &str) -> io::Result<TakenJob> {
    Ok(serde_json::from_str(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_and_has_an_end() {
        let second = Duration::from_secs(1);
        let pace = WorkerPace { tries: 3, hidden: second, pause: second * 30, grace: second, poll: second };
        let seconds = [1, 2, 3, 40].map(|tries| pace.pause_after(tries).as_secs());
        assert_eq!(seconds, [30, 60, 120, 3_600]);
    }
}

#[cfg(test)]
mod leash_tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_task_that_gets_a_leash_already_pulled_feels_it() {
        let felt = Arc::new(AtomicU32::new(0));
        let leash = ChildHandle::default();
        leash.pull();
        let (rest, end) = (Arc::clone(&felt), Arc::clone(&felt));
        leash.tie(
            move || {
                rest.fetch_add(1, Ordering::SeqCst);
            },
            move || {
                end.fetch_add(10, Ordering::SeqCst);
            },
        );
        assert_eq!(felt.load(Ordering::SeqCst), 1);
        leash.kill();
        leash.untie();
        leash.kill();
        assert_eq!(felt.load(Ordering::SeqCst), 11);
    }
}

#[cfg(test)]
mod wire_tests {
    use super::*;
    use komado_core::SessionId;
    use komado_store::Job;

    #[test]
    fn a_job_reads_back() {
        let job = Job {
            session: SessionId::new("s1").unwrap(),
            key: "local:窓".into(),
            user: None,
            body: "{\"title\":\"a\\nb\"}".into(),
            at: "2027-01-01T00:00:00Z".into(),
        };
        let taken = TakenJob { job, token: u64::MAX, tries: 2, why: Some("its process\nended".into()) };
        let line = write_taken(&taken).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(read_taken(&line).unwrap(), taken);
        assert!(read_taken("{}").is_err());
    }
}
