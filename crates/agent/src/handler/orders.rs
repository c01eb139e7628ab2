//! What is wanted of a running task from outside, and the comments that came for it.
//!
//! The watch gives an order here; the handler follows it between two steps. A step that takes long is ended: at once
//! when the task is stopped, after a grace when it shall only rest, since what it does may be of use to the next worker.

use super::{ProgressListener, SharedSource};
use crate::progress::{TaskOrder, TaskProgress};
use crate::source::{self, TaskComment};
use crate::task::Task;
use komado_core::session::State;
use komado_engine::Engine;
use komado_provider::Cancel;
use komado_store::{Error as Store, SessionQuery, TakenJob};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Orders to one task.
pub struct TaskOrders {
    state: Mutex<OrdersState>,
    bell: Condvar,
    cancel: Cancel,
    grace: Duration,
}

#[derive(Default)]
struct OrdersState {
    order: Option<TaskOrder>,
    /// When the step under way is ended.
    due: Option<Instant>,
    comments: Vec<TaskComment>,
    /// The last comment that was taken in, once that is known.
    seen: Option<Option<String>>,
    is_over: bool,
}

impl TaskOrders {
    /// None yet. A step under way may take `grace` before it is ended.
    pub fn new(grace: Duration) -> Self {
        Self { state: Mutex::default(), bell: Condvar::new(), cancel: Cancel::default(), grace }
    }

    /// Gives one. To stop is more than to rest, and to rest is more than to leave it to another worker.
    pub fn give(&self, order: TaskOrder) {
        let mut state = self.lock();
        if state.order.as_ref().is_some_and(|given| weight(given) >= weight(&order)) {
            return;
        }
        let now = Instant::now();
        state.due = match order {
            TaskOrder::Stop(_) => Some(now),
            // Nothing was begun that would be lost: tools are being made ready.
            TaskOrder::Pause(_) | TaskOrder::Leave(_) if state.seen.is_none() => Some(now),
            TaskOrder::Pause(_) | TaskOrder::Leave(_) => now.checked_add(self.grace),
        };
        state.order = Some(order);
        if state.due == Some(now) {
            self.cancel.cancel();
        }
        self.bell.notify_all();
    }

    /// The one that stands.
    pub fn now(&self) -> Option<TaskOrder> {
        self.lock().order.clone()
    }

    /// Ends the step under way, whatever it is.
    pub fn hurry(&self) {
        self.cancel.cancel();
        self.bell.notify_all();
    }

    /// What ends a step under way.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Lets comments come: those after `seen`.
    pub fn listen(&self, seen: Option<String>) {
        self.lock().seen = Some(seen);
    }

    /// After which comment others are news; `None` while no handler listens.
    pub fn listening(&self) -> Option<Option<String>> {
        self.lock().seen.clone()
    }

    /// Brings comments.
    pub fn bring(&self, comments: Vec<TaskComment>) {
        let mut state = self.lock();
        if let Some(last) = comments.last() {
            state.seen = Some(Some(last.id.clone()));
        }
        state.comments.extend(comments);
    }

    /// The comments that came, in order.
    pub fn comments(&self) -> Vec<TaskComment> {
        std::mem::take(&mut self.lock().comments)
    }

    /// Says that the task came to rest: it need not be watched any more.
    pub fn over(&self) {
        self.lock().is_over = true;
        self.bell.notify_all();
    }

    /// Waits until the task came to rest, an order comes or `patience` is over; ends a step that outlives its grace. False
    /// once the task came to rest.
    pub fn wait(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        if !state.is_over {
            let left = state.due.map(|due| due.saturating_duration_since(Instant::now()));
            let until_due = left.filter(|_| !self.cancel.is_cancelled()).unwrap_or(patience);
            let waited = self.bell.wait_timeout(state, patience.min(until_due));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.due.is_some_and(|due| due <= Instant::now()) {
            self.cancel.cancel();
        }
        !state.is_over
    }

    /// Waits until the task came to rest; true when it has not, although the step under way was ended `slack` ago: then it
    /// hangs in something that knows no end.
    pub fn is_stuck(&self, slack: Duration) -> bool {
        let mut state = self.lock();
        while !state.is_over {
            let until = state.due.and_then(|due| due.checked_add(slack));
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return true;
            }
            let waited = self.bell.wait_timeout(state, left.unwrap_or(slack));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, OrdersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn weight(order: &TaskOrder) -> u8 {
    match order {
        TaskOrder::Leave(_) => 1,
        TaskOrder::Pause(_) => 2,
        TaskOrder::Stop(_) => 3,
    }
}

// Watches over a task while it is worked on: keeps its job, and looks whether a user wants it to rest or to end.
//
// A store that is away for a while is not a reason to lose the work: only when the job may have become another worker's is it
// left to them.

/// Most time between two looks at the queue.
const OFTEN: Duration = Duration::from_secs(2);

/// What is watched, and how often.
pub struct TaskWatch<'v> {
    /// The store with the queue.
    pub engine: &'v Engine,
    /// The job.
    pub taken: &'v TakenJob,
    /// The task.
    pub task: &'v Task,
    /// Its tracker.
    pub source: &'v SharedSource,
    /// How long the job is hidden from others after it was kept.
    pub hidden: Duration,
    /// How often the tracker is asked.
    pub poll: Duration,
    /// Where orders are given.
    pub orders: &'v TaskOrders,
    /// Hears what goes wrong.
    pub tell: ProgressListener<'v>,
}

/// Watches until the task came to rest. A tracker may take its time to answer, and so it is asked by another thread: the
/// job is kept meanwhile, to the last answer.
pub fn watch(vigil: &TaskWatch<'_>) {
    let often = OFTEN.min(vigil.hidden / 3).min(vigil.poll);
    let mut kept = Instant::now();
    std::thread::scope(|scope| {
        let (asks, no_questions) = channel::<()>();
        scope.spawn(move || {
            follow(vigil);
            drop(asks);
        });
        while vigil.orders.wait(often) {
            vigil.keep(&mut kept);
            vigil.look_at_row();
        }
        while no_questions.recv_timeout(often) == Err(RecvTimeoutError::Timeout) {
            vigil.keep(&mut kept);
        }
    });
}

/// Asks the tracker now and again.
fn follow(vigil: &TaskWatch<'_>) {
    let mut tracker = Tracker { is_away: false };
    let mut asked = Instant::now();
    while vigil.orders.wait(vigil.poll.saturating_sub(asked.elapsed())) {
        if asked.elapsed() < vigil.poll {
            continue;
        }
        tracker.ask(vigil);
        asked = Instant::now();
    }
}

/// Asks the tracker once, and brings the comments that are new; gives why the task is not wanted any more, if so. Of two
/// who ask at the same time the second asks after what the first one heard: nothing is brought twice.
pub(super) fn ask(
    source: &SharedSource,
    task: &Task,
    orders: &TaskOrders,
) -> Result<Option<String>, source::Error> {
    let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(seen) = orders.listening() else { return Ok(None) };
    let look = source.look(task, seen.as_deref())?;
    orders.bring(look.comments);
    Ok(look.unwanted)
}

/// What is known of the tracker.
struct Tracker {
    is_away: bool,
}

impl Tracker {
    fn ask(&mut self, vigil: &TaskWatch<'_>) {
        match ask(vigil.source, vigil.task, vigil.orders) {
            Ok(unwanted) => {
                self.is_away = false;
                if let Some(why) = unwanted {
                    vigil.orders.give(TaskOrder::Stop(why));
                }
            }
            // Once is enough, however long it lasts.
            Err(why) if !self.is_away => {
                self.is_away = true;
                (vigil.tell)(TaskProgress::Trouble { why: why.to_string() });
            }
            Err(_) => {}
        }
    }
}

impl TaskWatch<'_> {
    fn keep(&self, kept: &mut Instant) {
        let store = self.engine.store();
        let order = match store.keep(self.taken, self.hidden) {
            Ok(()) => {
                *kept = Instant::now();
                return;
            }
            Err(Store::NotYours(_)) => match self.engine.is_queued(&self.taken.job.session) {
                Ok(false) => TaskOrder::Stop("it was taken out of the queue".into()),
                Ok(true) => TaskOrder::Leave("another worker has it".into()),
                Err(_) if kept.elapsed() < self.hidden => return,
                Err(why) => TaskOrder::Leave(why.to_string()),
            },
            Err(_) if kept.elapsed() < self.hidden => return,
            Err(why) => TaskOrder::Leave(format!("the queue was out of reach for too long: {why}")),
        };
        self.orders.give(order);
    }

    fn look_at_row(&self) {
        let query = SessionQuery { id: Some(self.taken.job.session.clone()), ..SessionQuery::default() };
        let rows = self.engine.store().sessions(&query).unwrap_or_default();
        if rows.iter().any(|row| row.status == State::Paused) {
            self.orders.give(TaskOrder::Pause("a user paused it".into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_stop_is_more_than_to_rest_and_ends_a_step_at_once() {
        let orders = TaskOrders::new(Duration::from_secs(3_600));
        orders.listen(None);
        orders.give(TaskOrder::Leave("a".into()));
        orders.give(TaskOrder::Pause("b".into()));
        orders.give(TaskOrder::Leave("c".into()));
        assert_eq!(orders.now(), Some(TaskOrder::Pause("b".into())));
        assert!(!orders.cancel().is_cancelled(), "there is grace");
        orders.give(TaskOrder::Stop("d".into()));
        assert_eq!(orders.now(), Some(TaskOrder::Stop("d".into())));
        assert!(orders.cancel().is_cancelled());
    }

    #[test]
    fn a_step_that_outlives_its_grace_is_ended() {
        let orders = TaskOrders::new(Duration::from_millis(1));
        orders.listen(None);
        orders.give(TaskOrder::Pause("rest".into()));
        assert!(!orders.cancel().is_cancelled(), "there is grace");
        assert!(orders.wait(Duration::from_secs(60)));
        assert!(orders.cancel().is_cancelled());
        orders.over();
        assert!(!orders.wait(Duration::from_secs(60)));
    }

    #[test]
    fn a_task_that_does_not_come_to_rest_when_it_is_stopped_is_stuck_and_one_that_does_is_not() {
        let stuck = TaskOrders::new(Duration::ZERO);
        stuck.give(TaskOrder::Stop("enough".into()));
        assert!(stuck.is_stuck(Duration::from_millis(1)));
        let rests = TaskOrders::new(Duration::ZERO);
        rests.give(TaskOrder::Stop("enough".into()));
        rests.over();
        assert!(!rests.is_stuck(Duration::from_millis(1)));
    }

    #[test]
    fn what_only_makes_ready_is_broken_off_at_once() {
        let orders = TaskOrders::new(Duration::from_secs(3_600));
        orders.give(TaskOrder::Leave("its worker ends".into()));
        assert!(orders.cancel().is_cancelled());
    }
}

#[cfg(test)]
mod watch_tests {
    use super::*;
    use crate::source::{Error, SourceEnd, TaskNews, TaskSource};
    use komado_core::SessionId;
    use komado_core::session::TaskKey;
    use komado_engine::Clock;
    use komado_store::{Holder, Job, JobOutcome, MemoryStore};
    use std::sync::{Arc, Mutex};

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> String {
            "2026-01-15T12:00:00.000000Z".to_owned()
        }
    }

    /// A tracker that answers only once the test has seen that its job is gone.
    struct Slow {
        engine: Engine,
        taken: TakenJob,
        orders: Arc<TaskOrders>,
        is_over: bool,
    }

    impl TaskSource for Slow {
        fn look(&mut self, _: &Task, _: Option<&str>) -> Result<TaskNews, Error> {
            if self.is_over {
                self.orders.over();
            }
            self.engine.store().finish(&self.taken, &JobOutcome::Done).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            while self.orders.now().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            self.orders.over();
            Ok(TaskNews::default())
        }

        fn waiting(&mut self, _: &mut dyn FnMut(Task) -> bool) -> Result<(), Error> {
            Ok(())
        }

        fn begin(&mut self, _: &Task) -> Result<(), Error> {
            Ok(())
        }

        fn say(&mut self, _: &Task, _: &str, _: &str) -> Result<(), Error> {
            Ok(())
        }

        fn end(&mut self, _: &Task, _: SourceEnd) -> Result<(), Error> {
            Ok(())
        }
    }

    fn task() -> Task {
        let key = TaskKey::parse("github:ann/tool/issue/27").unwrap();
        let (title, text) = ("窓".to_owned(), String::new());
        let (user, url, clone_url) = (None, None, None);
        let (folder, playbook, last_comment) = (None, None, None);
        Task { name: key.to_string(), key, title, text, user, url, clone_url, folder, playbook, last_comment }
    }

    /// What is ordered while the tracker is slow; `is_over` when the task comes to rest meanwhile.
    fn ordered(is_over: bool) -> Option<TaskOrder> {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(Noon));
        let (session, body) = (SessionId::new("s1").unwrap(), String::new());
        let job = Job { session, key: "k".into(), user: None, body, at: engine.now() };
        assert!(engine.store().enqueue(&job).unwrap());
        let holder = Holder { pid: 1, host: "here".into(), program: "test".into(), since: String::new() };
        let hidden = Duration::from_secs(60);
        let taken = engine.store().take(&holder, hidden).unwrap().unwrap();
        let orders = Arc::new(TaskOrders::new(Duration::ZERO));
        orders.listen(None);
        let slow =
            Slow { engine: engine.clone(), taken: taken.clone(), orders: Arc::clone(&orders), is_over };
        watch(&TaskWatch {
            engine: &engine,
            taken: &taken,
            task: &task(),
            source: &Mutex::new(Box::new(slow)),
            hidden,
            poll: Duration::from_millis(10),
            orders: &orders,
            tell: &|_| {},
        });
        orders.now()
    }

    #[test]
    fn a_job_is_kept_while_its_tracker_takes_its_time() {
        assert_eq!(ordered(false), Some(TaskOrder::Stop("it was taken out of the queue".into())));
    }

    #[test]
    fn a_job_is_kept_also_when_only_the_tracker_is_still_waited_for() {
        assert_eq!(ordered(true), Some(TaskOrder::Stop("it was taken out of the queue".into())));
    }
}
