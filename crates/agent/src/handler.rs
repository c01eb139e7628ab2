//! Works on one task, from its first word to its summary, or from where another one was killed.
//!
//! Everything that must outlive the process is in the journal: that the task was told, which comments were taken in, how
//! long it was worked on, where the playbook stands. So [`work`] asks the journal first what is left to do, and does only
//! that. The end has an order: the journal says it, then the tracker is told, then the queue; the worker that takes up a task
//! whose end is journaled does the rest. Nothing here knows a process, a signal or a terminal: what is wanted of a task
//! from outside comes as [`TaskOrders`], and what happens is handed to the listener.

mod instructions;
mod last_words;
mod mark;
mod orders;
mod runner;
mod trouble;

pub use instructions::{TaskInstructions, setup};
pub use mark::{ABOUT, TaskMark, keep, kept};
pub use orders::{TaskOrders, TaskWatch, watch};

use crate::limits::{TaskLimits, count};
use crate::model_session::ModelSession;
use crate::playbook::{self, Playbook};
use crate::progress::{TaskOrder, TaskProgress};
use crate::sandbox::GitSnapshot;
use crate::source::{self, SourceEnd, TaskSource, head};
use crate::task::Task;
use crate::tools::ToolSet;
use crate::{Error, Result};
use komado_core::journal::{Close, Ending, Entry};
use komado_core::message::Message;
use komado_core::session::{Counters, Meta, MetaConfig, Session, State};
use komado_core::{Role, Seq, SessionId, ThreadId};
use komado_engine::{Engine, Error as EngineError, Thread};
use komado_store::{Error as Store, OpenMode, SessionChange, SessionQuery};
use mark::{AnsweredCount, note, noted};
use runner::TaskRunner;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trouble::Trouble;

/// A source that the handler and the watch share.
pub type SharedSource = Mutex<Box<dyn TaskSource>>;

/// Hears what happens.
pub type ProgressListener<'k> = &'k (dyn Fn(TaskProgress) + Sync);

/// What a task is worked on with.
pub struct TaskContext<'k> {
    /// The task.
    pub task: &'k Task,
    /// Its session.
    pub session: &'k SessionId,
    /// Provider, model, window and meter of the session, when it has to be made.
    pub config: MetaConfig,
    /// This machine.
    pub host: String,
    /// What stands before the conversation.
    pub brief: TaskInstructions,
    /// The folder it works in, where it has one.
    pub folder: Option<PathBuf>,
    /// The course it takes.
    pub playbook: &'k Playbook,
    /// What the model may call, beside what leads back to what left its view.
    pub tools: &'k mut ToolSet,
    /// Who brought it, and hears how it ends.
    pub source: &'k SharedSource,
    /// How much it may take.
    pub limits: TaskLimits,
    /// How often it was taken, this time included, and how often it may be.
    pub tries: (u32, u32),
    /// Why it came back the last time.
    pub why: Option<String>,
    /// How long to wait for another process that still holds the session.
    pub patience: Duration,
    /// What is wanted of it from outside.
    pub orders: &'k TaskOrders,
    /// Hears what happens.
    pub tell: ProgressListener<'k>,
}

impl TaskContext<'_> {
    /// The source, also after a panic elsewhere.
    fn source(&self) -> MutexGuard<'_, Box<dyn TaskSource>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of it, this time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskOutcome {
    /// It is done, and the tracker was told.
    Completed,
    /// It failed for good, and the tracker was told.
    Failed(String),
    /// It was stopped, and the tracker was told.
    Stopped(String),
    /// It rests until a user lets it go on.
    Paused(String),
    /// Nothing is wrong with it: another worker may go on at once.
    Left(String),
    /// Something was in the way that may pass.
    Again(String),
}

impl TaskOutcome {
    /// As progress tells it.
    pub fn progress(&self) -> TaskProgress {
        let (status, why) = match self {
            Self::Completed => ("completed", None),
            Self::Failed(why) => ("failed", Some(why)),
            Self::Stopped(why) => ("stopped", Some(why)),
            Self::Paused(why) => ("paused", Some(why)),
            Self::Left(why) | Self::Again(why) => ("again", Some(why)),
        };
        TaskProgress::Ended { status: status.to_owned(), why: why.cloned() }
    }
}

/// Works on a task until it ends, rests, or something is in the way. What is in the way once too often is its end.
pub fn work<'e>(mind: &mut dyn ModelSession<'e>, kit: &mut TaskContext<'_>) -> TaskOutcome {
    if let Some(verdict) = tried_out(mind.engine(), kit) {
        return verdict;
    }
    let (tries, most) = kit.tries;
    let verdict = attempt(mind, kit).unwrap_or_else(|error| Trouble::of(&error).verdict());
    match verdict {
        TaskOutcome::Again(why) if tries == most => give_up(mind.engine(), kit, &last_try(most, &why)),
        other => other,
    }
}

/// Gives up a task that was taken more often than it may be; `None` when it may be tried. Needs nothing of what the task
/// works with: that may be what brought the others down.
pub fn tried_out(engine: &Engine, kit: &mut TaskContext<'_>) -> Option<TaskOutcome> {
    let (tries, most) = kit.tries;
    if tries <= most {
        return None;
    }
    let why = kit.why.clone().unwrap_or_else(|| "its worker did not report back".to_owned());
    Some(give_up(engine, kit, &last_try(most, &why)))
}

fn last_try(most: u32, why: &str) -> String {
    match most {
        1 => format!("given up after 1 try: {why}"),
        _ => format!("given up after {most} tries; the last one: {why}"),
    }
}

/// What becomes of a task that cannot even be begun here: what it works with is missing, or a user wants it to rest.
pub fn unable(engine: &Engine, kit: &mut TaskContext<'_>, why: &str) -> TaskOutcome {
    let (tries, most) = kit.tries;
    let rested = match kit.orders.now() {
        Some(TaskOrder::Leave(why)) => return TaskOutcome::Left(why),
        Some(TaskOrder::Stop(why)) => session(engine, kit).and_then(|_| stop(engine, kit, &why)),
        Some(TaskOrder::Pause(why)) => session(engine, kit).and_then(|_| pause(engine, kit, &why)),
        None if tries < most => return TaskOutcome::Again(why.to_owned()),
        None => return give_up(engine, kit, &last_try(most, why)),
    };
    rested.unwrap_or_else(|error| Trouble::of(&error).verdict())
}

/// Tells how a task ended whose journal says that it did; `None` when there is something left to do.
pub fn told(engine: &Engine, kit: &TaskContext<'_>) -> Option<TaskOutcome> {
    let session = engine.session(kit.session).ok().filter(|session| session.status.is_ended())?;
    let told = tell(engine, kit);
    tracing::debug!("{} had ended: {}", kit.session, session.status.name());
    let (tries, most) = kit.tries;
    Some(match told.unwrap_or_else(|error| Trouble::of(&error).verdict()) {
        TaskOutcome::Again(why) if tries >= most => {
            TaskOutcome::Failed(format!("its end could not be told, {most} times; the last time: {why}"))
        }
        other => other,
    })
}

fn attempt<'e>(mind: &mut dyn ModelSession<'e>, kit: &mut TaskContext<'_>) -> Result<TaskOutcome> {
    let engine = mind.engine();
    match session(engine, kit)?.status {
        State::Paused => return pause(engine, kit, "a user paused it"),
        ended if ended.is_ended() => return tell(engine, kit),
        State::Running | State::Queued | State::Completed | State::Failed | State::Stopped => {}
    }
    match closing(engine, kit.session)? {
        Some((_, close)) if close.ending != Ending::Paused => return again(engine, kit, close),
        _ => {}
    }
    let ended = follow(mind, kit);
    conclude(mind, kit, ended)
}

/// Follows the playbook to its end, or to where it cannot go on.
fn follow<'e>(mind: &mut dyn ModelSession<'e>, kit: &mut TaskContext<'_>) -> Result<playbook::PlaybookEnd> {
    let begun = open(mind, kit)?;
    tracing::info!("Task started: {}", kit.session);
    announce(kit, &begun);
    let vars = vars(kit.task);
    let (book, session) = (kit.playbook, kit.session);
    let mut at_work = TaskRunner::new(mind, kit, &begun);
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
    mind: &mut dyn ModelSession<'e>,
    kit: &mut TaskContext<'_>,
    ended: Result<playbook::PlaybookEnd>,
) -> Result<TaskOutcome> {
    let engine = mind.engine();
    if !matches!(ended, Err(Error::Limit(_))) {
        // Servers may write until they end; then the folder is as it stays.
        *kit.tools = ToolSet::default();
    }
    match ended {
        Ok(ended) => {
            let result = with_changes(engine, kit, runner::with_unheard(kit, &ended.result))?;
            if ended.is_good { complete(engine, kit, &result) } else { fail(engine, kit, &result) }
        }
        Err(Error::Order(TaskOrder::Pause(why))) => pause(engine, kit, &why),
        Err(Error::Order(TaskOrder::Stop(why))) => {
            let why = with_changes(engine, kit, why)?;
            stop(engine, kit, &why)
        }
        Err(Error::Order(TaskOrder::Leave(why))) => Ok(TaskOutcome::Left(why)),
        Err(Error::Limit(reached)) => {
            let summary = last_words::say(mind, kit, &reached)?;
            *kit.tools = ToolSet::default();
            let result = with_changes(engine, kit, runner::with_unheard(kit, &summary))?;
            fail(engine, kit, &result)
        }
        Err(error) => match Trouble::of(&error) {
            Trouble::ForGood(why) => {
                let why = with_changes(engine, kit, why)?;
                fail(engine, kit, &why)
            }
            other => Ok(other.verdict()),
        },
    }
}

/// Ends a task that was tried too often, also one that was never begun.
pub fn give_up(engine: &Engine, kit: &mut TaskContext<'_>, why: &str) -> TaskOutcome {
    let ended = session(engine, kit).and_then(|session| match session.status.is_ended() {
        true => tell(engine, kit),
        false => fail(engine, kit, &with_changes(engine, kit, why.to_owned())?),
    });
    match ended {
        Ok(TaskOutcome::Again(untold)) => {
            (kit.tell)(TaskProgress::Trouble { why: untold });
            TaskOutcome::Failed(why.to_owned())
        }
        Ok(verdict) => verdict,
        Err(error) => match Trouble::of(&error) {
            // After a pause: there is no waiting here for the process that has it, which may have it for long.
            Trouble::Elsewhere(why) => TaskOutcome::Again(why),
            Trouble::MayPass(why) | Trouble::ForGood(why) => TaskOutcome::Failed(why),
        },
    }
}

// The beginning, or the going on: the session is made when it is missing, and the task is told in it once.

/// How often a session that another process holds is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Where work begins.
struct Begun {
    mark: TaskMark,
    /// What was answered before.
    answered: AnsweredCount,
    /// True when a worker had worked on it before.
    again: bool,
}

/// The task's session; made when it is missing, running when it waited.
fn session(engine: &Engine, kit: &TaskContext<'_>) -> Result<Session> {
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
    let change = SessionChange::State { to: State::Running, at: engine.now(), why: None };
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
fn open<'e>(mind: &mut dyn ModelSession<'e>, kit: &TaskContext<'_>) -> Result<Begun> {
    let engine = mind.engine();
    let mut root = opened(mind, kit)?;
    // Not told by whether it is empty: one that was paused or given up before it could begin has entries.
    if root.view().setup().is_none() {
        root.set_up(instructions::setup(&kit.brief, kit.tools))?;
    }
    remember(&mut root, kit)?;
    if let Some(mark) = TaskMark::of_session(engine, kit.session)? {
        // The worker before may have been killed before it could say what it took.
        engine.recount(kit.session)?;
        return Ok(Begun { mark, answered: AnsweredCount::of_session(engine, kit.session)?, again: true });
    }
    let earlier = summary(engine, kit.task, kit.session)?;
    let words = instructions::first_message(kit, earlier.as_deref());
    let mark = TaskMark::about(kit.task);
    root.say_noting(ABOUT, mark.raw()?, vec![Message::text(Role::User, words)])?;
    root.settle()?;
    Ok(Begun { mark, answered: AnsweredCount::default(), again: false })
}

/// The root thread, to write. A process that was killed may hold it for a moment longer.
fn opened<'e>(mind: &dyn ModelSession<'e>, kit: &TaskContext<'_>) -> Result<Thread<'e>> {
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

/// Tells the tracker that work begins. One that is away does not keep the task from being worked on.
fn announce(kit: &TaskContext<'_>, begun: &Begun) {
    let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let model = format!("{}/{}", name(&kit.config.llm_provider), name(&kit.config.model));
    let window = kit.config.context_length.map_or(0, u64::from);
    kit.orders.listen(begun.mark.seen.clone());
    (kit.tell)(TaskProgress::Begun { model, window, again: begun.again });
    let mut source = kit.source();
    let words = format!("Work on this has begun, in session `{}`.", kit.session);
    let told =
        source.begin(kit.task).and_then(|()| source.say(kit.task, &format!("{}:start", kit.session), &words));
    if let Err(why) = told {
        (kit.tell)(TaskProgress::Trouble { why: why.to_string() });
    }
}

// What earlier work on the same task came to: the summary of the newest session with its key.

/// Most bytes of a summary that are inherited.
const MOST: usize = 16 << 10;

/// The summary of the newest session that ended with this task's key. One page of sessions at a time is looked at; a task
/// whose key is its session's own name has none.
fn summary(engine: &Engine, task: &Task, session: &SessionId) -> Result<Option<String>> {
    if task.key.task_id == session.as_str() {
        return Ok(None);
    }
    let mut newest: Option<(String, SessionId)> = None;
    engine.each_session(SessionQuery::default(), |row| {
        let is_it =
            row.meta.task_key == task.key && row.status.is_ended() && row.meta.uuid != session.as_str();
        let ended = row.completed_at.clone().unwrap_or_else(|| row.updated_at.clone());
        if is_it && newest.as_ref().is_none_or(|(before, _)| *before <= ended) {
            newest = Some((ended, SessionId::new(row.meta.uuid.as_str())?));
        }
        Ok(())
    })?;
    match newest {
        Some((_, id)) => {
            Ok(closing(engine, &id)?.and_then(|(_, close)| close.result).map(|text| bounded(&text)))
        }
        None => Ok(None),
    }
}

/// What the journal says of a session's end, and where.
fn closing(engine: &Engine, id: &SessionId) -> Result<Option<(Seq, Close)>> {
    let root = engine.open(id, &ThreadId::root(), OpenMode::Read)?;
    let Some(at) = root.view().closed() else { return Ok(None) };
    match root.record(at)?.entry {
        Entry::Close(close) => Ok(Some((at, close))),
        _ => Ok(None),
    }
}

fn bounded(text: &str) -> String {
    let kept = head(text, MOST);
    let rest = if kept.len() < text.len() { "…" } else { "" };
    format!("{kept}{rest}")
}

// The end, in this order: the journal says it, the tracker is told, and only then the queue hears of it.
//
// Each step may be the last one of a process. The next worker finds the end in the journal and does the rest: comments
// have a mark by which they are written once, and labels are set to what they shall be.

/// Ends it well.
fn complete(engine: &Engine, kit: &TaskContext<'_>, result: &str) -> Result<TaskOutcome> {
    let result = Some(result.trim().to_owned()).filter(|text| !text.is_empty());
    engine.complete(kit.session, result)?;
    tell(engine, kit)
}

/// Ends it with a reason.
fn fail(engine: &Engine, kit: &TaskContext<'_>, why: &str) -> Result<TaskOutcome> {
    mark::keep(engine, kit.session, kit.task)?;
    engine.fail(kit.session, why)?;
    tell(engine, kit)
}

/// Ends it because it is not wanted any more.
fn stop(engine: &Engine, kit: &TaskContext<'_>, why: &str) -> Result<TaskOutcome> {
    mark::keep(engine, kit.session, kit.task)?;
    engine.stop(kit.session, Some(why.to_owned()))?;
    tell(engine, kit)
}

/// Ends it as its journal says that it ended: the process that wrote that was killed before the table could follow.
fn again(engine: &Engine, kit: &TaskContext<'_>, close: Close) -> Result<TaskOutcome> {
    match close.ending {
        Ending::Completed => engine.complete(kit.session, close.result)?,
        Ending::Failed => engine.fail(kit.session, &close.result.unwrap_or_default())?,
        _ => engine.stop(kit.session, close.result)?,
    };
    tell(engine, kit)
}

/// Lets it rest.
fn pause(engine: &Engine, kit: &TaskContext<'_>, why: &str) -> Result<TaskOutcome> {
    // A row may say so before the journal does, and the other way round.
    if closing(engine, kit.session)?.is_none() {
        mark::keep(engine, kit.session, kit.task)?;
        engine.pause(kit.session, Some(why.to_owned()))?;
    }
    if let Err(untold) = kit.source().end(kit.task, SourceEnd::Paused) {
        (kit.tell)(TaskProgress::Trouble { why: untold.to_string() });
    }
    Ok(TaskOutcome::Paused(why.to_owned()))
}

/// Tells how a session ended that has ended.
fn tell(engine: &Engine, kit: &TaskContext<'_>) -> Result<TaskOutcome> {
    let session = engine.session(kit.session)?;
    let (at, result) = match closing(engine, kit.session)? {
        Some((at, Close { result, .. })) => (at, result),
        None => (0, None),
    };
    let result = result.or(session.error_message).unwrap_or_default();
    let (words, ended, verdict) = match session.status {
        State::Completed => (done(&result), SourceEnd::Done, TaskOutcome::Completed),
        State::Failed => (failed(&result), SourceEnd::Failed, TaskOutcome::Failed(result)),
        _ => {
            (format!("Work on this was stopped: {result}."), SourceEnd::Stopped, TaskOutcome::Stopped(result))
        }
    };
    let words = format!("{words}\n\n{}", figures(kit, &session.counters));
    match tell_source(kit, at, &words, ended) {
        Ok(()) => Ok(verdict),
        Err(error @ source::Error::Away { .. }) => Ok(TaskOutcome::Again(error.to_string())),
        Err(error) => {
            (kit.tell)(TaskProgress::Trouble { why: error.to_string() });
            Ok(verdict)
        }
    }
}

/// The comment, once, and the label. A task that is tried again ends again, and that is news: its mark has the entry.
fn tell_source(
    kit: &TaskContext<'_>,
    at: Seq,
    words: &str,
    ended: SourceEnd,
) -> std::result::Result<(), source::Error> {
    let mut source = kit.source();
    source.say(kit.task, &format!("{}:result:{at}", kit.session), words)?;
    source.end(kit.task, ended)
}

fn done(result: &str) -> String {
    if result.is_empty() { "This is done.".to_owned() } else { result.to_owned() }
}

fn failed(why: &str) -> String {
    format!("This could not be done: {why}")
}

fn figures(kit: &TaskContext<'_>, counters: &Counters) -> String {
    let Counters { llm_call_count, tool_call_count, total_tokens, .. } = *counters;
    let (turns, calls) = (count(llm_call_count, "turn"), count(tool_call_count, "tool call"));
    let tokens = count(total_tokens, "token");
    format!("{turns}, {calls}, {tokens}; `komado log {}` shows all of it.", kit.session)
}

// What a task did to the hooks and settings of git in its folder: remembered when it begins, told when it ends.

/// What the note is about.
const GIT_NOTE: &str = "git";

/// Notes how things are, before any tool runs.
fn remember(root: &mut Thread<'_>, kit: &TaskContext<'_>) -> Result<()> {
    let Some(folder) = &kit.folder else { return Ok(()) };
    if root.noted(GIT_NOTE)?.is_some() {
        return Ok(());
    }
    root.note(GIT_NOTE, note(&GitSnapshot::of(folder))?)?;
    Ok(())
}

/// The words about the end of a task, with what changed since.
fn with_changes(engine: &Engine, kit: &TaskContext<'_>, words: String) -> Result<String> {
    let Some(folder) = kit.folder.as_ref().or(kit.task.folder.as_ref()) else { return Ok(words) };
    let root = engine.open(kit.session, &ThreadId::root(), OpenMode::Read)?;
    let before: Option<GitSnapshot> = noted(&root, GIT_NOTE)?;
    let changed = before.map(|before| before.changes(&GitSnapshot::of(folder)).to_string());
    Ok(match changed.filter(|changed| !changed.is_empty()) {
        Some(changed) => format!("{}\n\n{changed}", words.trim_end()),
        None => words,
    })
}
