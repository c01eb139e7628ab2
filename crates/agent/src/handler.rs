//! Works on one task, from its first word to its summary, or from where another one was killed.
//!
//! Everything that must outlive the process is in the journal: that the task was told, which comments were taken in, how
//! long it was worked on, where the playbook stands. So [`work`] asks the journal first what is left to do, and does only
//! that. The end has an order: the journal says it, then the tracker is told, then the queue; whoever takes up a task
//! whose end is journaled does the rest. Nothing here knows a process, a signal or a terminal: what is wanted of a task
//! from outside comes as [`Orders`], and what happens is handed to whoever wants to tell it.

mod begin;
mod brief;
mod comments;
mod earlier;
mod ending;
mod git;
mod hands;
mod kept;
mod last_words;
mod mark;
mod orders;
mod toll;
mod trouble;
mod watch;

pub use begin::make;
pub use brief::{Brief, setup};
pub use kept::{keep, kept};
pub use mark::{ABOUT, Mark};
pub use orders::Orders;
pub use watch::{Vigil, watch};

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::mind::Mind;
use crate::playbook::{self, Playbook};
use crate::progress::{Order, Progress};
use crate::source::Source;
use crate::task::Task;
use crate::tools::Toolbox;
use hands::AtWork;
use komado_core::SessionId;
use komado_core::journal::Ending;
use komado_core::session::{MetaConfig, State};
use komado_engine::Engine;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trouble::Trouble;

/// A source that the handler and whoever watches its tracker share.
pub type Shared = Mutex<Box<dyn Source>>;

/// Hears what happens.
pub type Tell<'k> = &'k (dyn Fn(Progress) + Sync);

/// What a task is worked on with.
pub struct Kit<'k> {
    /// The task.
    pub task: &'k Task,
    /// Its session.
    pub session: &'k SessionId,
    /// Provider, model, window and meter of the session, when it has to be made.
    pub config: MetaConfig,
    /// This machine.
    pub host: String,
    /// What stands before the conversation.
    pub brief: Brief,
    /// The folder it works in, where it has one.
    pub folder: Option<PathBuf>,
    /// The course it takes.
    pub playbook: &'k Playbook,
    /// What the model may call, beside what leads back to what left its view.
    pub tools: &'k mut Toolbox,
    /// Who brought it, and hears how it ends.
    pub source: &'k Shared,
    /// How much it may take.
    pub limits: Limits,
    /// How often it was taken, this time included, and how often it may be.
    pub tries: (u32, u32),
    /// Why it came back the last time.
    pub why: Option<String>,
    /// How long to wait for another process that still holds the session.
    pub patience: Duration,
    /// What is wanted of it from outside.
    pub orders: &'k Orders,
    /// Hears what happens.
    pub tell: Tell<'k>,
}

impl Kit<'_> {
    /// The source, whoever else looked at it before.
    fn source(&self) -> MutexGuard<'_, Box<dyn Source>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of it, this time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is done, and everybody was told.
    Completed,
    /// It failed for good, and everybody was told.
    Failed(String),
    /// It was stopped, and everybody was told.
    Stopped(String),
    /// It rests until somebody lets it go on.
    Paused(String),
    /// Nothing is wrong with it: somebody else may go on at once.
    Left(String),
    /// Something was in the way that may pass.
    Again(String),
}

impl Verdict {
    /// As progress tells it.
    pub fn progress(&self) -> Progress {
        let (status, why) = match self {
            Self::Completed => ("completed", None),
            Self::Failed(why) => ("failed", Some(why)),
            Self::Stopped(why) => ("stopped", Some(why)),
            Self::Paused(why) => ("paused", Some(why)),
            Self::Left(why) | Self::Again(why) => ("again", Some(why)),
        };
        Progress::Ended { status: status.to_owned(), why: why.cloned() }
    }
}

/// Works on a task until it ends, rests, or something is in the way. What is in the way once too often is its end.
pub fn work<'e>(mind: &mut dyn Mind<'e>, kit: &mut Kit<'_>) -> Verdict {
    if let Some(verdict) = tried_out(mind.engine(), kit) {
        return verdict;
    }
    let (tries, most) = kit.tries;
    let verdict = attempt(mind, kit).unwrap_or_else(|error| Trouble::of(&error).verdict());
    match verdict {
        Verdict::Again(why) if tries == most => give_up(mind.engine(), kit, &last_try(most, &why)),
        other => other,
    }
}

/// Gives up a task that was taken more often than it may be; `None` when it may be tried. Needs nothing of what the task
/// works with: that may be what brought the others down.
pub fn tried_out(engine: &Engine, kit: &mut Kit<'_>) -> Option<Verdict> {
    let (tries, most) = kit.tries;
    if tries <= most {
        return None;
    }
    let why = kit.why.clone().unwrap_or_else(|| "whoever worked on it was not heard of again".to_owned());
    Some(give_up(engine, kit, &last_try(most, &why)))
}

fn last_try(most: u32, why: &str) -> String {
    format!("given up after {most} tries; the last one: {why}")
}

/// What becomes of a task that cannot even be begun here: what it works with is missing, or somebody wants it to rest.
pub fn unable(engine: &Engine, kit: &mut Kit<'_>, why: &str) -> Verdict {
    let (tries, most) = kit.tries;
    let rested = match kit.orders.now() {
        Some(Order::Leave(why)) => return Verdict::Left(why),
        Some(Order::Stop(why)) => begin::session(engine, kit).and_then(|_| ending::stop(engine, kit, &why)),
        Some(Order::Pause(why)) => begin::session(engine, kit).and_then(|_| ending::pause(engine, kit, &why)),
        None if tries < most => return Verdict::Again(why.to_owned()),
        None => return give_up(engine, kit, &last_try(most, why)),
    };
    rested.unwrap_or_else(|error| Trouble::of(&error).verdict())
}

/// Tells how a task ended whose journal says that it did; `None` when there is something left to do.
pub fn told(engine: &Engine, kit: &Kit<'_>) -> Option<Verdict> {
    let session = engine.session(kit.session).ok().filter(|session| session.status.is_ended())?;
    let told = ending::tell(engine, kit);
    tracing::debug!("{} had ended: {}", kit.session, session.status.name());
    let (tries, most) = kit.tries;
    Some(match told.unwrap_or_else(|error| Trouble::of(&error).verdict()) {
        Verdict::Again(why) if tries >= most => {
            Verdict::Failed(format!("its end could not be told, {most} times; the last time: {why}"))
        }
        other => other,
    })
}

fn attempt<'e>(mind: &mut dyn Mind<'e>, kit: &mut Kit<'_>) -> Result<Verdict> {
    let engine = mind.engine();
    match begin::session(engine, kit)?.status {
        State::Paused => return ending::pause(engine, kit, "somebody paused it"),
        ended if ended.is_ended() => return ending::tell(engine, kit),
        State::Running | State::Queued | State::Completed | State::Failed | State::Stopped => {}
    }
    match earlier::closing(engine, kit.session)? {
        Some((_, close)) if close.ending != Ending::Paused => return ending::again(engine, kit, close),
        _ => {}
    }
    let ended = follow(mind, kit);
    conclude(mind, kit, ended)
}

/// Follows the playbook to its end, or to where it cannot go on.
fn follow<'e>(mind: &mut dyn Mind<'e>, kit: &mut Kit<'_>) -> Result<playbook::Ended> {
    let begun = begin::open(mind, kit)?;
    tracing::info!("Task started: {}", kit.session);
    begin::announce(kit, &begun);
    let vars = vars(kit.task);
    let (book, session) = (kit.playbook, kit.session);
    let mut at_work = AtWork::new(mind, kit, &begun);
    let ended = playbook::run(book, session, &vars, &mut at_work);
    at_work.rest(&ended);
    ended
}

/// What a playbook knows of its task.
fn vars(task: &Task) -> Map<String, Value> {
    let mut vars = Map::new();
    vars.insert(
        "task".into(),
        json!({ "key": task.name, "title": task.title, "text": task.text, "url": task.url }),
    );
    vars
}

fn conclude<'e>(
    mind: &mut dyn Mind<'e>,
    kit: &mut Kit<'_>,
    ended: Result<playbook::Ended>,
) -> Result<Verdict> {
    let engine = mind.engine();
    if !matches!(ended, Err(Error::Limit(_))) {
        // Servers may write until they end; then the folder is as it stays.
        *kit.tools = Toolbox::default();
    }
    match ended {
        Ok(ended) => {
            let result = git::with_changes(engine, kit, comments::with_unheard(kit, &ended.result))?;
            if ended.is_good {
                ending::complete(engine, kit, &result)
            } else {
                ending::fail(engine, kit, &result)
            }
        }
        Err(Error::Order(Order::Pause(why))) => ending::pause(engine, kit, &why),
        Err(Error::Order(Order::Stop(why))) => {
            let why = git::with_changes(engine, kit, why)?;
            ending::stop(engine, kit, &why)
        }
        Err(Error::Order(Order::Leave(why))) => Ok(Verdict::Left(why)),
        Err(Error::Limit(reached)) => {
            let summary = last_words::say(mind, kit, &reached)?;
            *kit.tools = Toolbox::default();
            let result = git::with_changes(engine, kit, comments::with_unheard(kit, &summary))?;
            ending::fail(engine, kit, &result)
        }
        Err(error) => match Trouble::of(&error) {
            Trouble::ForGood(why) => {
                let why = git::with_changes(engine, kit, why)?;
                ending::fail(engine, kit, &why)
            }
            other => Ok(other.verdict()),
        },
    }
}

/// Ends a task that was tried too often, also one that was never begun.
pub fn give_up(engine: &Engine, kit: &mut Kit<'_>, why: &str) -> Verdict {
    let ended = begin::session(engine, kit).and_then(|session| match session.status.is_ended() {
        true => ending::tell(engine, kit),
        false => ending::fail(engine, kit, &git::with_changes(engine, kit, why.to_owned())?),
    });
    match ended {
        Ok(Verdict::Again(untold)) => {
            (kit.tell)(Progress::Trouble { why: untold });
            Verdict::Failed(why.to_owned())
        }
        Ok(verdict) => verdict,
        Err(error) => match Trouble::of(&error) {
            // After a pause: nobody waits here for whoever has it, and one who has it may have it for long.
            Trouble::Elsewhere(why) => Verdict::Again(why),
            Trouble::MayPass(why) | Trouble::ForGood(why) => Verdict::Failed(why),
        },
    }
}
