//! A child thread ends, is broken off or waits, and its parent is told; its chronicle says what was done.

use super::{child, everywhere};
use crate::address::AtThread;
use crate::choice::ModelArgs;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route, change};
use komado_core::Seq;
use komado_core::journal::{self, Ending, Entry, Usage};
use komado_core::thread::ThreadStatus;
use komado_engine::engine::ResolvedAddress;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::{ChronicleBy, Finish, Finished};
use komado_provider::Cancel;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A child thread that has ended, or waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct EndedThread {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// How.
    #[serde(flatten)]
    pub how: HowEnded,
}

/// How a child thread ended, and how it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct HowEnded {
    /// `completed`, `aborted` or `paused`.
    pub status: &'static str,
    /// What was done in it.
    pub chronicle: Option<ThreadChronicle>,
    /// Child threads that were aborted with it.
    pub aborted: Vec<String>,
    /// Why the digest wrote the chronicle, and not the summariser that was asked.
    pub declined: Option<String>,
    /// False when its parent is being changed by another process, and hears of it later.
    pub told: bool,
    /// The command that lets it go on.
    pub undo: String,
    /// The commands that let those go on that were aborted with it, in order, after `undo`.
    pub undo_aborted: Vec<String>,
}

impl EndedThread {
    /// Of the thread `found`, which is `status` now.
    pub(super) fn of(found: &ResolvedAddress, status: ThreadStatus, finished: Finished) -> Self {
        let (session, thread) = (found.session.to_string(), found.thread.to_string());
        Self { session, thread, how: HowEnded::of(found, status, finished) }
    }
}

impl HowEnded {
    pub(super) fn of(found: &ResolvedAddress, status: ThreadStatus, finished: Finished) -> Self {
        let resume = |thread| format!("komado thread resume {}/{thread}", found.session);
        Self {
            status: status.name(),
            chronicle: finished.chronicle.as_ref().map(ThreadChronicle::from),
            aborted: finished.aborted.iter().map(ToString::to_string).collect(),
            declined: finished.declined,
            told: finished.is_told,
            undo: format!("komado thread resume {}", change::name(found)),
            // Those further up come first.
            undo_aborted: finished.aborted.iter().rev().map(resume).collect(),
        }
    }
}

/// Complete a child thread and report the result to its parent. `thread_resume` opens it again.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct EndThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Its result, for people
    pub result: Option<String>,
    /// Write no chronicle
    #[arg(long, conflicts_with_all = ["chronicle", "by"])]
    #[serde(default)]
    pub no_chronicle: bool,
    /// What was done, in your words; written now when left out
    #[arg(long, value_name = "TEXT", conflicts_with = "by")]
    pub chronicle: Option<String>,
    /// What writes it.
    #[command(flatten)]
    #[serde(flatten)]
    pub writer: ChronicleWriter,
}

impl Operation for EndThread {
    const ABOUT: OperationLabel = OperationLabel::edit("thread_end", "Complete a child thread");
    const INTERFACES: Interfaces = everywhere("thread end", "/sessions/{session}/threads/{thread}/end");
    type Output = EndedThread;

    fn run(self, context: &OperationContext) -> OpResult<EndedThread> {
        let found = child(context, &self.at)?;
        let result = self.result;
        let end = |telling: ChronicleBy<'_>| {
            let finish = Finish { ending: Ending::Completed, result, telling };
            Ok(context.engine.finish_child(&found.session, &found.thread, finish)?)
        };
        let finished = match self.chronicle {
            _ if self.no_chronicle => end(ChronicleBy::Nothing)?,
            Some(text) if text.trim().is_empty() => {
                return Err(OpFault::usage("chronicle takes what was done, not an empty text"));
            }
            Some(text) => end(ChronicleBy::Words(text))?,
            None => self.writer.tell(context, &found, end)?,
        };
        Ok(EndedThread::of(&found, ThreadStatus::Completed, finished))
    }
}

/// Abort a child thread; its parent gets a partial chronicle. `thread_resume` opens it again.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct AbortThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Why, for people
    pub reason: Option<String>,
}

impl Operation for AbortThread {
    const ABOUT: OperationLabel = OperationLabel::edit("thread_abort", "Abort a child thread");
    const INTERFACES: Interfaces = everywhere("thread abort", "/sessions/{session}/threads/{thread}/abort");
    type Output = EndedThread;

    fn run(self, context: &OperationContext) -> OpResult<EndedThread> {
        let found = child(context, &self.at)?;
        let finish = Finish::aborted(self.reason);
        let finished = context.engine.finish_child(&found.session, &found.thread, finish)?;
        Ok(EndedThread::of(&found, ThreadStatus::Aborted, finished))
    }
}

/// Pause a child thread.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct PauseThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Why, for people
    pub reason: Option<String>,
}

impl Operation for PauseThread {
    const ABOUT: OperationLabel = OperationLabel::edit("thread_pause", "Pause a child thread");
    const INTERFACES: Interfaces = everywhere("thread pause", "/sessions/{session}/threads/{thread}/pause")
        .not_mcp("a model that works elsewhere leaves a thread as it is");
    type Output = EndedThread;

    fn run(self, context: &OperationContext) -> OpResult<EndedThread> {
        let found = child(context, &self.at)?;
        let paused = context.engine.pause_child(&found.session, &found.thread, self.reason)?;
        Ok(EndedThread::of(&found, ThreadStatus::Paused, paused))
    }
}

/// What writes a chronicle.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ChronicleWriter {
    /// What writes it: model, digest, or as the settings of compaction say when left out
    #[arg(long)]
    pub by: Option<WrittenBy>,
    /// The model that writes it; only a command line chooses one.
    #[command(flatten)]
    #[serde(skip)]
    pub model: ModelArgs,
}

/// What writes a chronicle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WrittenBy {
    /// A model.
    Model,
    /// The digest, which needs no model.
    Digest,
}

impl ChronicleWriter {
    /// Hands `op` what writes the chronicle of the thread `found`.
    pub(super) fn tell<T>(
        self,
        context: &OperationContext,
        found: &ResolvedAddress,
        op: impl FnOnce(ChronicleBy<'_>) -> OpResult<T>,
    ) -> OpResult<T> {
        let summaries = &context.config.models.summaries;
        if self.by == Some(WrittenBy::Digest) || self.by.is_none() && !summaries.has_writer() {
            return op(ChronicleBy::Digest);
        }
        let meter = context.engine.open(&found.session, &found.thread, OpenMode::Read)?.meter();
        let (choice, cancel) = (ModelChoice::from(self.model), Cancel::default());
        let models = context.models();
        let mut writer = match self.by {
            Some(_) => models.model_summariser(&found.session, meter, &choice, None, &cancel)?,
            None => models.summariser(&found.session, meter, &choice, None, &cancel)?,
        };
        op(ChronicleBy::By { by: writer.by(), settings: summaries.settings.clone() })
    }
}

/// Read what was done in a child thread.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadChronicle {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

/// What was done in a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ThreadChronicle {
    /// The words.
    pub text: String,
    /// The first and the last entry it tells of.
    pub covers: [Seq; 2],
    /// True when the thread did not come to its end.
    pub partial: bool,
    /// What wrote it: a model, `digest`, or `by_hand`.
    pub by: Option<String>,
    /// What that took.
    pub usage: Option<Usage>,
}

impl From<&journal::Chronicle> for ThreadChronicle {
    fn from(told: &journal::Chronicle) -> Self {
        Self {
            text: told.text.clone(),
            covers: told.covers,
            partial: told.partial,
            by: told.model.clone(),
            usage: told.usage,
        }
    }
}

impl ThreadChronicle {
    /// The first line that says something: no heading, and not the digest's note about itself.
    pub fn headline(&self) -> &str {
        headline(&self.text)
    }
}

fn headline(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or_default();
    let says = lines.find(|line| !line.starts_with(['#', '[']));
    says.unwrap_or(first).trim_start_matches("- ")
}

/// A chronicle, and the entry that says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ChronicleEntry {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
    /// What it says.
    #[serde(flatten)]
    pub chronicle: ThreadChronicle,
}

impl Operation for ReadChronicle {
    const ABOUT: OperationLabel = OperationLabel::read("thread_chronicle", "Read a child thread's chronicle");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread chronicle",
        Route::get("threads", "/sessions/{session}/threads/{thread}/chronicle"),
    )
    .not_mcp("`threads` gives each chronicle");
    type Output = ChronicleEntry;

    fn run(self, context: &OperationContext) -> OpResult<ChronicleEntry> {
        let found = child(context, &self.at)?;
        latest(context, &found)?.ok_or_else(|| {
            let name = change::name(&found);
            let why = format!(
                "{name} has no chronicle yet; `komado thread end {name}` or `komado thread chronicle {name} --again` writes one"
            );
            OpFault::not_found(why)
        })
    }
}

/// The chronicle in force.
pub(super) fn latest(
    context: &OperationContext,
    found: &ResolvedAddress,
) -> OpResult<Option<ChronicleEntry>> {
    let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
    let Some(seq) = thread.view().chronicle() else { return Ok(None) };
    let Entry::Chronicle(chronicle) = thread.record(seq)?.entry else { return Ok(None) };
    let (session, thread) = (found.session.to_string(), found.thread.to_string());
    Ok(Some(ChronicleEntry { session, thread, seq, chronicle: (&chronicle).into() }))
}

/// Write what was done in a child thread, or have it told again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WriteChronicle {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The words; when left out they are written now.
    pub text: Option<String>,
    /// Say again what this entry said.
    pub restore: Option<Seq>,
    /// What writes it.
    #[serde(flatten)]
    pub writer: ChronicleWriter,
}

/// A chronicle that was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct WrittenChronicle {
    /// The chronicle.
    #[serde(flatten)]
    pub entry: ChronicleEntry,
    /// The command that brings the one before back.
    pub undo: Option<String>,
    /// Why the digest wrote it, and not the summariser that was asked.
    pub declined: Option<String>,
}

impl Operation for WriteChronicle {
    const ABOUT: OperationLabel =
        OperationLabel::edit("thread_write_chronicle", "Write a child thread's chronicle");
    const INTERFACES: Interfaces =
        everywhere("thread chronicle", "/sessions/{session}/threads/{thread}/chronicle")
            .not_mcp("`thread_end` takes the chronicle");
    type Output = WrittenChronicle;

    fn run(self, context: &OperationContext) -> OpResult<WrittenChronicle> {
        let found = child(context, &self.at)?;
        let before = latest(context, &found)?;
        let words = match (self.text, self.restore) {
            (Some(_), Some(_)) => return Err(OpFault::usage("give text or restore, not both")),
            (Some(text), None) => Some(text),
            (None, Some(seq)) => Some(earlier(context, &found, seq)?),
            (None, None) => None,
        };
        let write =
            |telling: ChronicleBy<'_>| context.engine.write_chronicle(&found.session, &found.thread, telling);
        let told = match words {
            Some(words) if words.trim().is_empty() => {
                return Err(OpFault::usage("a chronicle tells what was done; it cannot be empty"));
            }
            Some(words) => write(ChronicleBy::Words(words))?,
            None => self.writer.tell(context, &found, |telling| Ok(write(telling)?))?,
        };
        let name = change::name(&found);
        let undo = before.map(|before| format!("komado thread chronicle {name} --restore {}", before.seq));
        let entry = latest(context, &found)?
            .ok_or_else(|| OpFault::refused("nothing was done in it that could be told"))?;
        Ok(WrittenChronicle { entry, undo, declined: told.declined })
    }
}

/// What an earlier chronicle said.
fn earlier(context: &OperationContext, found: &ResolvedAddress, seq: Seq) -> OpResult<String> {
    let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
    match thread.record(seq)?.entry {
        Entry::Chronicle(chronicle) => Ok(chronicle.text),
        _ => Err(OpFault::not_found(format!("@{seq} of {} is not a chronicle", found.thread))),
    }
}

#[cfg(test)]
mod tests {
    use super::headline;

    #[test]
    fn a_headline_is_the_first_line_that_says_something() {
        assert_eq!(
            headline("[digest @2..@3: 2 messages]\n## 最初の依頼\n- 直して (@2)\n- more"),
            "直して (@2)"
        );
        assert_eq!(headline("\n すべて通った。\n二行目"), "すべて通った。");
        assert_eq!(headline("# only a heading"), "# only a heading");
        assert_eq!(headline(""), "");
    }
}
