//! How a window is shared out between a thread and those above it; a child goes on, or gets another share.

use super::{child, everywhere, ratio};
use crate::address::AtThread;
use crate::window::window;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, change};
use komado_core::Seq;
use komado_core::journal::Ratio;
use komado_core::thread::ThreadStatus;
use komado_engine::engine::ResolvedAddress;
use komado_engine::share::ThreadPortion;
use komado_engine::share::{ShareBalance, SliceRecut};
use komado_engine::stelis::ResumeChild;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a thread has of the window, and what protects those above it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct WindowShare {
    /// The threads above, the root first.
    pub above: Vec<AboveShare>,
    /// The thread's own share.
    pub own: u64,
    /// What the threads above leave of their shares, and lend it.
    pub lent: u64,
    /// What the threads above take beyond their shares.
    pub owed: u64,
    /// What its own items, its answer and its buffer may take together.
    pub room: u64,
    /// True when what the threads above leave is lent to it.
    pub lends: bool,
    /// All that its view may take: what it sees of the threads above, and its own room.
    pub window: u64,
}

/// A thread above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct AboveShare {
    /// The thread.
    pub thread: String,
    /// The moment of which it is seen.
    pub at: Seq,
    /// Its window.
    pub window: u64,
    /// What is kept for it.
    pub share: u64,
    /// What is seen of it, in tokens.
    pub used: u64,
}

impl From<&ThreadPortion> for WindowShare {
    fn from(portion: &ThreadPortion) -> Self {
        let above = portion.share.slices.iter().zip(&portion.shares.above);
        let above = above.map(|(slice, protected)| AboveShare {
            thread: slice.thread.to_string(),
            at: slice.at,
            window: protected.window,
            share: protected.share,
            used: protected.used,
        });
        Self {
            above: above.collect(),
            own: portion.shares.own,
            lent: portion.shares.lent,
            owed: portion.shares.owed,
            room: portion.room(),
            lends: portion.share.lends,
            window: portion.window(),
        }
    }
}

/// Let a child thread go on that was ended, aborted or paused, also days later.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ResumeThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// Its share of the parent's window, from 0.01 to 0.99; unchanged when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
}

/// A child thread that goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Resumed {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry that opened it.
    pub seq: Seq,
    /// `active`.
    pub status: &'static str,
    /// The window that is shared out.
    pub window: u64,
    /// How it is shared out.
    pub share: Option<WindowShare>,
    /// The command that makes of the thread what it was.
    pub undo: String,
}

impl Operation for ResumeThread {
    const ABOUT: OperationLabel = OperationLabel::add("thread_resume", "Resume a child thread");
    const INTERFACES: Interfaces = everywhere("thread resume", "/sessions/{session}/threads/{thread}/resume");
    type Output = Resumed;

    fn run(self, context: &OperationContext) -> OpResult<Resumed> {
        let found = child(context, &self.at)?;
        let window = u64::from(window(context, &context.session(&found.session)?, self.window)?);
        let undo = undo(context, &found)?;
        let resume = ResumeChild { window, buffer: context.config.models.policy.buffer, ratio: self.ratio };
        let seq = context.engine.resume_child(&found.session, &found.thread, &resume)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        Ok(Resumed {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq,
            status: "active",
            window,
            share: thread.portion(Some(window))?.as_ref().map(WindowShare::from),
            undo,
        })
    }
}

/// The command that makes of a thread what it is now, with the same result or reason; its chronicle stays where it can.
fn undo(context: &OperationContext, found: &ResolvedAddress) -> OpResult<String> {
    let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
    let (verb, more) = match thread.status()? {
        ThreadStatus::Completed => ("end", " --no-chronicle"),
        ThreadStatus::Aborted => ("abort", ""),
        ThreadStatus::Active | ThreadStatus::Paused => ("pause", ""),
    };
    let words = change::closing_words(&thread)?.map_or(String::new(), |words| format!(" {words}"));
    Ok(format!("komado thread {verb} {}{words}{more}", change::name(found)))
}

/// Change how the window is shared among threads, for a child thread and those below it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct BalanceThread {
    /// The thread, SESSION/THREAD; those below it follow
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Its share of the parent's window, from 0.01 to 0.99; unchanged when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
    /// Refresh what it sees of the threads above
    #[arg(long)]
    #[serde(default)]
    pub refresh: bool,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// A window that is shared out otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Balanced {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// `share`.
    pub op: &'static str,
    /// The new shares.
    pub entries: Vec<ShareEntry>,
    /// The window that is shared out.
    pub window: u64,
    /// How it is shared out.
    pub share: Option<WindowShare>,
    /// The command that undoes it; none after `refresh`.
    pub undo: Option<String>,
}

/// A new share of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ShareEntry {
    /// The thread.
    pub thread: String,
    /// The entry that says it.
    pub seq: Seq,
}

impl Operation for BalanceThread {
    const ABOUT: OperationLabel = OperationLabel::edit("thread_balance", "Change how the window is shared");
    const INTERFACES: Interfaces =
        everywhere("thread balance", "/sessions/{session}/threads/{thread}/balance")
            .not_mcp("`thread_resume` takes another ratio");
    type Output = Balanced;

    fn run(self, context: &OperationContext) -> OpResult<Balanced> {
        let found = child(context, &self.at)?;
        if self.ratio.is_none() && !self.refresh && self.window.is_none() {
            let why = "nothing would change: give --ratio RATIO, --refresh or --window TOKENS";
            return Err(OpFault::usage(why));
        }
        let window = u64::from(window(context, &context.session(&found.session)?, self.window)?);
        let before = current(context, &found)?;
        let slices = if self.refresh { SliceRecut::Refresh } else { SliceRecut::Keep };
        let buffer = context.config.models.policy.buffer;
        let balance = ShareBalance { ratio: self.ratio, window, buffer, slices };
        let said = context.engine.balance_below(&found.session, &found.thread, balance)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        // What a slice showed before can be read in the journal, but is not shown again.
        let undo = before.filter(|_| !self.refresh && self.ratio.is_some());
        let name = change::name(&found);
        let entries = said.into_iter();
        let entries = entries.map(|(thread, seq)| ShareEntry { thread: thread.to_string(), seq });
        Ok(Balanced {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            op: "share",
            entries: entries.collect(),
            window,
            share: thread.portion(Some(window))?.as_ref().map(WindowShare::from),
            undo: undo.map(|ratio| format!("komado thread balance {name} --ratio {ratio}")),
        })
    }
}

/// The ratio in force.
fn current(context: &OperationContext, found: &ResolvedAddress) -> OpResult<Option<Ratio>> {
    let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
    Ok(thread.share()?.and_then(|share| share.slices.last().map(|slice| slice.ratio)))
}
