//! One job in this process: watched over while it is worked on, and finished in the queue when it came to rest.

use super::{Pace, yours};
use crate::error::Result;
use crate::handler::{self, Kit, Orders, Verdict, Vigil, watch};
use crate::mind::Mind;
use komado_engine::Engine;
use komado_store::{Outcome, Taken};
use std::time::Duration;

/// Works on a job that was taken, and ends it in the queue. Progress hears of the end once the queue has.
pub fn run<'e>(mind: &mut dyn Mind<'e>, taken: &Taken, kit: &mut Kit<'_>, pace: &Pace) -> Result<Verdict> {
    let engine = mind.engine();
    let vigil = Vigil {
        engine,
        taken,
        task: kit.task,
        source: kit.source,
        hidden: pace.hidden,
        poll: pace.poll,
        orders: kit.orders,
        tell: kit.tell,
    };
    let verdict = std::thread::scope(|scope| {
        scope.spawn(|| watch(&vigil));
        let _over = Over(kit.orders);
        handler::work(mind, kit)
    });
    finish(engine, taken, &verdict, pace)?;
    (kit.tell)(verdict.progress());
    Ok(verdict)
}

/// Says that the task came to rest, also when it did so by a panic: whoever watches would wait for ever.
struct Over<'o>(&'o Orders);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// Gives back a job that cannot even be begun here, or gives it up.
pub fn unable(engine: &Engine, taken: &Taken, kit: &mut Kit<'_>, pace: &Pace, why: &str) -> Result<Verdict> {
    let verdict = handler::unable(engine, kit, why);
    finish(engine, taken, &verdict, pace)?;
    (kit.tell)(verdict.progress());
    Ok(verdict)
}

/// What the queue hears of it.
fn finish(engine: &Engine, taken: &Taken, verdict: &Verdict, pace: &Pace) -> Result<()> {
    let outcome = match verdict.clone() {
        Verdict::Completed | Verdict::Stopped(_) => Outcome::Done,
        Verdict::Failed(why) => Outcome::Dead { why },
        Verdict::Paused(_) => Outcome::Dead { why: "paused".to_owned() },
        Verdict::Left(why) => Outcome::Again { pause: Duration::ZERO, why },
        Verdict::Again(why) => Outcome::Again { pause: pace.pause_after(taken.tries), why },
    };
    yours(engine.store().finish(taken, &outcome))?;
    if matches!(verdict, Verdict::Left(_)) {
        // Nothing was wrong with it: this taking does not count.
        engine.store().requeue(&taken.job.session)?;
    }
    Ok(())
}
