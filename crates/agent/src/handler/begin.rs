//! The beginning, or the going on: the session is made when it is missing, and the task is told in it once.

use super::mark::{ABOUT, Mark};
use super::toll::Answered;
use super::{Kit, brief, earlier, git};
use crate::error::{Error, Result};
use crate::mind::Mind;
use crate::progress::Progress;
use crate::task::Task;
use komado_core::message::Message;
use komado_core::session::{Meta, MetaConfig, Session, State};
use komado_core::{Role, SessionId, ThreadId};
use komado_engine::{Engine, Error as EngineError, Thread};
use komado_store::{Change, Error as Store};
use std::time::{Duration, Instant};

/// How often a session that another process holds is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Where work begins.
pub(super) struct Begun {
    pub(super) mark: Mark,
    /// What was answered before.
    pub(super) answered: Answered,
    /// True when somebody had worked on it before.
    pub(super) again: bool,
}

/// The task's session; made when it is missing, running when it waited.
pub(super) fn session(engine: &Engine, kit: &Kit<'_>) -> Result<Session> {
    let session = match engine.session(kit.session) {
        Ok(session) => session,
        Err(EngineError::Store(Store::NoSession(_))) => {
            make(engine, kit.session, kit.task, kit.config.clone(), kit.host.clone(), false)?
        }
        Err(other) => return Err(other.into()),
    };
    if session.status != State::Queued {
        return Ok(session);
    }
    let change = Change::State { to: State::Running, at: engine.now(), why: None };
    Ok(engine.store().change(kit.session, &change)?)
}

/// The session of a task, made unless it is there; `queued` when no worker has begun it.
pub fn make(
    engine: &Engine,
    session: &SessionId,
    task: &Task,
    config: MetaConfig,
    hostname: String,
    queued: bool,
) -> Result<Session> {
    let meta = Meta {
        uuid: session.to_string(),
        task_key: task.key.clone(),
        created_at: engine.now(),
        process_id: std::process::id(),
        hostname,
        config,
        user: task.user.clone(),
        queued,
    };
    match engine.create(&meta) {
        // Another process was quicker; whose it is now is told by who holds it.
        Ok(_) | Err(EngineError::Store(Store::SessionExists(_))) => Ok(engine.session(session)?),
        Err(other) => Err(other.into()),
    }
}

/// Opens the session and tells the task in it, unless that was done.
pub(super) fn open<'e>(mind: &mut dyn Mind<'e>, kit: &Kit<'_>) -> Result<Begun> {
    let engine = mind.engine();
    let mut root = opened(mind, kit)?;
    // Not told by whether it is empty: one that was paused or given up before it could begin has entries.
    if root.view().setup().is_none() {
        root.set_up(brief::setup(&kit.brief, kit.tools))?;
    }
    git::remember(&mut root, kit)?;
    if let Some(mark) = Mark::of_session(engine, kit.session)? {
        // Whoever worked on it may have been killed before it could say what it took.
        engine.recount(kit.session)?;
        return Ok(Begun { mark, answered: Answered::of_session(engine, kit.session)?, again: true });
    }
    let earlier = earlier::summary(engine, kit.task, kit.session)?;
    let words = brief::first_message(kit, earlier.as_deref());
    let mark = Mark::about(kit.task);
    root.say_noting(ABOUT, mark.raw()?, vec![Message::text(Role::User, words)])?;
    root.settle()?;
    Ok(Begun { mark, answered: Answered::default(), again: false })
}

/// The root thread, to write. A process that was killed may hold it for a moment longer.
fn opened<'e>(mind: &dyn Mind<'e>, kit: &Kit<'_>) -> Result<Thread<'e>> {
    let began = Instant::now();
    loop {
        match mind.open(kit.session, &ThreadId::root()) {
            Err(Error::Engine(EngineError::Store(Store::Busy { .. }))) if began.elapsed() < kit.patience => {
                if let Some(order) = kit.orders.now() {
                    return Err(Error::Order(order));
                }
                std::thread::sleep(LOOK);
            }
            other => return other,
        }
    }
}

/// Tells everybody that work begins. A tracker that is away does not keep anybody from working.
pub(super) fn announce(kit: &Kit<'_>, begun: &Begun) {
    let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let model = format!("{}/{}", name(&kit.config.llm_provider), name(&kit.config.model));
    let window = kit.config.context_length.map_or(0, u64::from);
    kit.orders.listen(begun.mark.seen.clone());
    (kit.tell)(Progress::Begun { model, window, again: begun.again });
    let mut source = kit.source();
    let words = format!("Work on this has begun, in session `{}`.", kit.session);
    let told =
        source.begin(kit.task).and_then(|()| source.say(kit.task, &format!("{}:start", kit.session), &words));
    if let Err(why) = told {
        (kit.tell)(Progress::Trouble { why: why.to_string() });
    }
}
