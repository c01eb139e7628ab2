//! What a worker leaves that ends when nothing can be taken now: a queue that is not empty is no queue that is done.

use crate::fault::Outcome;
use crate::paper::{count, say};
use komado_agent::worker::Pace;
use komado_ops::Context;
use komado_store::{Queued, Stage};
use std::time::Duration;

/// What is in the queue and cannot be taken now.
#[derive(Default)]
struct Left {
    /// Those that came after the last was taken.
    came: u64,
    /// Those that wait for their pause to be over.
    again: u64,
    /// The longest of these pauses.
    pause: Duration,
    /// Those that somebody holds.
    held: u64,
    /// One who does.
    holder: String,
    /// Those that were laid aside.
    aside: u64,
}

/// Tells the person why it ends: what still waits and for what, or that there was nothing to do. Nothing where all that
/// was there was `taken`.
pub(super) fn tell(context: &Context, taken: u64) -> Outcome {
    let pace = &context.config.agent.pace;
    let mut left = Left::default();
    for queued in context.engine.jobs() {
        left.add(&queued?, pace);
    }
    left.words(pace, taken).iter().for_each(|words| say(format!("komado: {words}")));
    Ok(())
}

impl Left {
    fn add(&mut self, queued: &Queued, pace: &Pace) {
        match &queued.stage {
            Stage::Waiting if queued.tries == 0 => self.came += 1,
            Stage::Waiting => {
                self.again += 1;
                self.pause = self.pause.max(pace.pause_after(queued.tries));
            }
            Stage::Held(holder) => {
                self.held += 1;
                self.holder = format!("{}@{}", holder.pid, holder.host);
            }
            Stage::Dead => self.aside += 1,
        }
    }

    fn words(&self, pace: &Pace, taken: u64) -> Option<String> {
        let mut parts = Vec::new();
        if self.came > 0 {
            parts.push(format!("{} came meanwhile and can be taken now", count(self.came, "task")));
        }
        if self.again > 0 {
            let verb = if self.again == 1 { "waits" } else { "wait" };
            let (tasks, seconds) = (count(self.again, "task"), self.pause.as_secs());
            parts.push(format!("{tasks} {verb} to be tried again, in {seconds} s at the latest"));
        }
        if self.held > 0 {
            let verb = if self.held == 1 { "is" } else { "are" };
            let (tasks, holder, seconds) = (count(self.held, "task"), &self.holder, pace.hidden.as_secs());
            parts.push(format!(
                "{tasks} {verb} held by a worker ({holder}), and can be taken once it was not heard of for {seconds} s"
            ));
        }
        match (parts.is_empty(), taken, self.aside) {
            (false, ..) => Some(parts.join("; ")),
            (true, 0, 0) => Some("nothing is in the queue".to_owned()),
            (true, 0, aside) => Some(format!(
                "nothing waits in the queue; {} laid aside: `komado task list` shows why",
                if aside == 1 { "1 task is".to_owned() } else { format!("{aside} tasks are") }
            )),
            (true, ..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::SessionId;
    use komado_store::{Holder, Job};

    fn queued(stage: Stage, tries: u32) -> Queued {
        let (session, body, at) = (SessionId::new("s").unwrap(), String::new(), String::new());
        let job = Job { session, key: "k".into(), user: None, body, at };
        Queued { job, stage, tries, why: None }
    }

    fn words(left: &[Queued], taken: u64) -> Option<String> {
        let second = Duration::from_secs(1);
        let pace = Pace { tries: 3, hidden: 60 * second, pause: 30 * second, grace: second, poll: second };
        let mut all = Left::default();
        left.iter().for_each(|queued| all.add(queued, &pace));
        all.words(&pace, taken)
    }

    #[test]
    fn what_waits_is_told_with_why_and_an_empty_queue_is_told_only_where_nothing_was_done() {
        let holder = Holder { pid: 7, host: "h".into(), program: "p".into(), since: String::new() };
        let left = [queued(Stage::Waiting, 1), queued(Stage::Waiting, 2), queued(Stage::Held(holder), 1)];
        assert_eq!(
            words(&left, 3).unwrap(),
            "2 tasks wait to be tried again, in 60 s at the latest; 1 task is held by a worker (7@h), and can be taken once \
             it was not heard of for 60 s"
        );
        let came = [queued(Stage::Waiting, 0), queued(Stage::Waiting, 1)];
        assert_eq!(
            words(&came, 1).unwrap(),
            "1 task came meanwhile and can be taken now; 1 task waits to be tried again, in 30 s at the latest"
        );
        assert_eq!(words(&[], 0).unwrap(), "nothing is in the queue");
        assert_eq!(words(&[], 1), None);
        let aside = [queued(Stage::Dead, 3)];
        assert!(words(&aside, 0).unwrap().contains("1 task is laid aside"));
        assert_eq!(words(&aside, 1), None);
    }
}
