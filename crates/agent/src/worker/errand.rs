//! One job in this process: watched over while it is worked on, and finished in the queue when it came to rest.

use super::{Pace, yours};
use crate::error::Result;
use crate::handler::{Orders, Verdict, Vigil, watch};
use komado_engine::Engine;
use komado_store::{Outcome, Taken};

/// Has `work` done while its job is kept and its tracker watched, and ends the job in the queue. Progress hears of the end
/// once the queue has.
pub fn attend(vigil: &Vigil<'_>, pace: &Pace, work: impl FnOnce() -> Verdict) -> Result<Verdict> {
    let verdict = std::thread::scope(|scope| {
        scope.spawn(|| watch(vigil));
        let _over = Over(vigil.orders);
        work()
    });
    finish(vigil.engine, vigil.taken, &verdict, pace)?;
    (vigil.tell)(verdict.progress());
    Ok(verdict)
}

/// Says that the task came to rest, also when it did so by a panic: whoever watches would wait for ever.
struct Over<'o>(&'o Orders);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// What the queue hears of it.
fn finish(engine: &Engine, taken: &Taken, verdict: &Verdict, pace: &Pace) -> Result<()> {
    let outcome = match verdict.clone() {
        Verdict::Completed | Verdict::Stopped(_) => Outcome::Done,
        Verdict::Failed(why) => Outcome::Dead { why },
        Verdict::Paused(_) => Outcome::Dead { why: "paused".to_owned() },
        // Nothing was wrong with it: this taking does not count.
        Verdict::Left(_) => Outcome::Back,
        Verdict::Again(why) => Outcome::Again { pause: pace.pause_after(taken.tries), why },
    };
    yours(engine.store().finish(taken, &outcome))
}
