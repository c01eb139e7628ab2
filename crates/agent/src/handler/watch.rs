//! Watches over a task while it is worked on: keeps its job, and looks whether somebody wants it to rest or to end.
//!
//! A store that is away for a while is no reason to lose the work: only when the job may have become somebody else's is it
//! left to them.

use super::{Orders, Shared, Tell};
use crate::progress::{Order, Progress};
use crate::task::Task;
use komado_core::SessionId;
use komado_core::session::State;
use komado_engine::Engine;
use komado_store::{Error as Store, Query, Taken};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Most time between two looks at the queue.
const OFTEN: Duration = Duration::from_secs(2);
/// Jobs of the queue that are looked at in one go.
const PAGE: usize = 500;

/// What is watched, and how often.
pub struct Vigil<'v> {
    /// The store with the queue.
    pub engine: &'v Engine,
    /// The job.
    pub taken: &'v Taken,
    /// The task.
    pub task: &'v Task,
    /// Its tracker.
    pub source: &'v Shared,
    /// How long the job is hidden from others after it was kept.
    pub hidden: Duration,
    /// How often the tracker is asked.
    pub poll: Duration,
    /// Where orders are given.
    pub orders: &'v Orders,
    /// Hears what goes wrong.
    pub tell: Tell<'v>,
}

/// Watches until the task came to rest.
pub fn watch(vigil: &Vigil<'_>) {
    let mut tracker = Tracker { asked: Instant::now(), is_away: false };
    let mut kept = Instant::now();
    let often = OFTEN.min(vigil.hidden / 3).min(vigil.poll);
    while vigil.orders.wait(often) {
        vigil.keep(&mut kept);
        vigil.look_at_row();
        if tracker.asked.elapsed() >= vigil.poll
            && let Some(seen) = vigil.orders.listening()
        {
            tracker.ask(vigil, seen.as_deref());
        }
    }
}

/// What is known of the tracker.
struct Tracker {
    asked: Instant,
    is_away: bool,
}

impl Tracker {
    fn ask(&mut self, vigil: &Vigil<'_>, seen: Option<&str>) {
        let look = vigil.source.lock().unwrap_or_else(PoisonError::into_inner).look(vigil.task, seen);
        self.asked = Instant::now();
        match look {
            Ok(look) => {
                self.is_away = false;
                vigil.orders.bring(look.comments);
                if let Some(why) = look.unwanted {
                    vigil.orders.give(Order::Stop(why));
                }
            }
            // Once is enough, however long it lasts.
            Err(why) if !self.is_away => {
                self.is_away = true;
                (vigil.tell)(Progress::Trouble { why: why.to_string() });
            }
            Err(_) => {}
        }
    }
}

impl Vigil<'_> {
    fn keep(&self, kept: &mut Instant) {
        let store = self.engine.store();
        let order = match store.keep(self.taken, self.hidden) {
            Ok(()) => {
                *kept = Instant::now();
                return;
            }
            Err(Store::NotYours(_)) => match is_queued(self.engine, &self.taken.job.session) {
                Ok(false) => Order::Stop("it was taken out of the queue".into()),
                Ok(true) => Order::Leave("another worker has it".into()),
                Err(_) if kept.elapsed() < self.hidden => return,
                Err(why) => Order::Leave(why.to_string()),
            },
            Err(_) if kept.elapsed() < self.hidden => return,
            Err(why) => Order::Leave(format!("the queue was out of reach for too long: {why}")),
        };
        self.orders.give(order);
    }

    fn look_at_row(&self) {
        let query = Query { id: Some(self.taken.job.session.clone()), ..Query::default() };
        let rows = self.engine.store().sessions(&query).unwrap_or_default();
        if rows.iter().any(|row| row.status == State::Paused) {
            self.orders.give(Order::Pause("somebody paused it".into()));
        }
    }
}

/// True when a job of the session is in the queue.
pub(crate) fn is_queued(engine: &Engine, session: &SessionId) -> komado_store::Result<bool> {
    let mut after: Option<SessionId> = None;
    loop {
        let page = engine.store().jobs(after.as_ref(), PAGE)?;
        if page.iter().any(|queued| queued.job.session == *session) {
            return Ok(true);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.job.session.clone()),
            _ => return Ok(false),
        }
    }
}
