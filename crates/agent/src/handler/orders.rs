//! What is wanted of a running task from outside, and the comments that came for it.
//!
//! Whoever watches gives an order here; the handler follows it between two steps. A step that takes long is ended: at once
//! when the task is stopped, after a grace when it shall only rest, since what it does may be of use to whoever goes on.

use crate::progress::Order;
use crate::source::Comment;
use komado_provider::Cancel;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Orders to one task.
pub struct Orders {
    state: Mutex<State>,
    bell: Condvar,
    cancel: Cancel,
    grace: Duration,
}

#[derive(Default)]
struct State {
    order: Option<Order>,
    /// When the step under way is ended.
    due: Option<Instant>,
    comments: Vec<Comment>,
    /// The last comment that was taken in, once that is known.
    seen: Option<Option<String>>,
    is_over: bool,
}

impl Orders {
    /// None yet. A step under way may take `grace` before it is ended.
    pub fn new(grace: Duration) -> Self {
        Self { state: Mutex::default(), bell: Condvar::new(), cancel: Cancel::default(), grace }
    }

    /// Gives one. To stop is more than to rest, and to rest is more than to leave it to another worker.
    pub fn give(&self, order: Order) {
        let mut state = self.lock();
        if state.order.as_ref().is_some_and(|given| weight(given) >= weight(&order)) {
            return;
        }
        let now = Instant::now();
        state.due = match order {
            Order::Stop(_) => Some(now),
            // Nothing was begun that would be lost: tools are being made ready.
            Order::Pause(_) | Order::Leave(_) if state.seen.is_none() => Some(now),
            Order::Pause(_) | Order::Leave(_) => now.checked_add(self.grace),
        };
        state.order = Some(order);
        if state.due == Some(now) {
            self.cancel.cancel();
        }
        self.bell.notify_all();
    }

    /// The one that stands.
    pub fn now(&self) -> Option<Order> {
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

    /// After which comment others are news; `None` while nobody listens.
    pub fn listening(&self) -> Option<Option<String>> {
        self.lock().seen.clone()
    }

    /// Brings comments.
    pub fn bring(&self, comments: Vec<Comment>) {
        let mut state = self.lock();
        if let Some(last) = comments.last() {
            state.seen = Some(Some(last.id.clone()));
        }
        state.comments.extend(comments);
    }

    /// The comments that came, in order.
    pub fn comments(&self) -> Vec<Comment> {
        std::mem::take(&mut self.lock().comments)
    }

    /// Says that the task came to rest: nobody needs to watch it any more.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn weight(order: &Order) -> u8 {
    match order {
        Order::Leave(_) => 1,
        Order::Pause(_) => 2,
        Order::Stop(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_stop_is_more_than_to_rest_and_ends_a_step_at_once() {
        let orders = Orders::new(Duration::from_secs(3_600));
        orders.listen(None);
        orders.give(Order::Leave("a".into()));
        orders.give(Order::Pause("b".into()));
        orders.give(Order::Leave("c".into()));
        assert_eq!(orders.now(), Some(Order::Pause("b".into())));
        assert!(!orders.cancel().is_cancelled(), "there is grace");
        orders.give(Order::Stop("d".into()));
        assert_eq!(orders.now(), Some(Order::Stop("d".into())));
        assert!(orders.cancel().is_cancelled());
    }

    #[test]
    fn a_step_that_outlives_its_grace_is_ended() {
        let orders = Orders::new(Duration::from_millis(1));
        orders.listen(None);
        orders.give(Order::Pause("rest".into()));
        assert!(!orders.cancel().is_cancelled(), "there is grace");
        assert!(orders.wait(Duration::from_secs(60)));
        assert!(orders.cancel().is_cancelled());
        orders.over();
        assert!(!orders.wait(Duration::from_secs(60)));
    }

    #[test]
    fn a_task_that_does_not_come_to_rest_when_it_is_stopped_is_stuck_and_one_that_does_is_not() {
        let stuck = Orders::new(Duration::ZERO);
        stuck.give(Order::Stop("enough".into()));
        assert!(stuck.is_stuck(Duration::from_millis(1)));
        let rests = Orders::new(Duration::ZERO);
        rests.give(Order::Stop("enough".into()));
        rests.over();
        assert!(!rests.is_stuck(Duration::from_millis(1)));
    }

    #[test]
    fn what_only_makes_ready_is_broken_off_at_once() {
        let orders = Orders::new(Duration::from_secs(3_600));
        orders.give(Order::Leave("its worker ends".into()));
        assert!(orders.cancel().is_cancelled());
    }
}
