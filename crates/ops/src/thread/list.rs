//! Threads of a session: as a list, and as a tree.

use super::{ThreadChronicle, WindowShare};
use crate::address::AtSession;
use crate::window::{Parts, learned_line};
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, ResultPage, Route};
use komado_core::amount::count;
use komado_core::{Address, Seq};
use komado_engine::lesson::LearnedWindow;
use komado_engine::stelis::ThreadNode;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List a session's threads, the root first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ListThreads {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// A thread in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ThreadRow {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// Its state.
    pub status: &'static str,
    /// The moment it was started at, THREAD@SEQ.
    pub parent: Option<String>,
    /// The moment it goes on from, THREAD@SEQ.
    pub base: Option<String>,
    /// Its own entries.
    pub entries: u32,
    /// Its last entry.
    pub last: Seq,
    /// Tokens of what the model sees in it.
    pub context_tokens: u64,
    /// What it is about.
    pub label: Option<String>,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

impl Operation for ListThreads {
    const ABOUT: OperationLabel = OperationLabel::read("thread_list", "List a session's threads");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("sessions", Route::get("threads", "/sessions/{session}/threads"))
            .not_mcp("`threads` tells the same and more");
    type Output = ResultPage<ThreadRow>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<ThreadRow>> {
        let session = context.find(&self.at)?.session;
        let mut rows = Vec::new();
        for header in context.engine.store().threads(&session)? {
            let thread = context.engine.open(&session, &header.thread, OpenMode::Read)?;
            rows.push(ThreadRow {
                session: session.to_string(),
                thread: header.thread.to_string(),
                status: thread.status()?.name(),
                parent: header.parent.as_ref().map(|parent| format!("{}@{}", parent.thread, parent.seq)),
                base: header.base.as_ref().map(|base| format!("{}@{}", base.thread, base.seq)),
                entries: thread.last() - header.base_seq(),
                last: thread.last(),
                context_tokens: thread.view().tokens(),
                label: header.label,
                created_at: header.timestamp,
            });
        }
        Ok(ResultPage::whole(rows))
    }
}

/// Draw a session's threads: who has how much of the window, what became of each, and what it tells.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct DrawThreads {
    /// The session
    #[arg(value_name = "ADDRESS", value_parser = session_of)]
    #[serde(flatten)]
    pub at: AtSession,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// The session of an address.
fn session_of(text: &str) -> Result<AtSession, komado_core::BadId> {
    let address: Address = text.parse()?;
    Ok(AtSession { session: Some(address.session.to_string()) })
}

/// A session's threads: a thread stands before those that were started in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadTree {
    /// The session.
    pub session: String,
    /// The model's window in tokens.
    pub window: Option<u64>,
    /// Where that is from, when it was learned from the model's answers.
    pub learned_window: Option<LearnedWindow>,
    /// The threads.
    pub threads: Vec<TreeThread>,
}

/// A thread of a tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TreeThread {
    /// The thread.
    pub thread: String,
    /// `session/thread`.
    pub address: String,
    /// The thread it was started from.
    pub parent: Option<String>,
    /// The moment it goes on from, THREAD@SEQ.
    pub base: Option<String>,
    /// What it is about.
    pub label: Option<String>,
    /// How far below the root it is.
    pub depth: u32,
    /// Its state.
    pub status: &'static str,
    /// What it has of its parent's window.
    pub ratio: Option<f64>,
    /// The thread's own window: by its ratio, or all of it.
    pub thread_window: Option<u64>,
    /// How the window is shared out, for a child thread.
    pub share: Option<WindowShare>,
    /// Tokens of its view.
    pub context_tokens: u64,
    /// The same, by where they come from.
    pub parts: Parts,
    /// Tokens that are seen of the threads above.
    pub above: u64,
    /// Messages said in it.
    pub messages: u64,
    /// What was done in it.
    pub chronicle: Option<ThreadChronicle>,
    /// False when its parent was rewound to before it began.
    pub anchored: bool,
    /// True when it ends with the process that started it.
    pub held: bool,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

impl Operation for DrawThreads {
    const ABOUT: OperationLabel = OperationLabel::read("threads", "The tree of threads");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("thread tree", Route::get("threads", "/sessions/{session}/tree"));
    type Output = ThreadTree;

    fn run(self, context: &OperationContext) -> OpResult<ThreadTree> {
        let id = context.find(&self.at)?.session;
        let own = context.session(&id)?.meta.config;
        let models = context.models();
        let models = models.of(&id);
        let window = models.own_window(&own, self.window).map(u64::from);
        let learned_window = models.own_learned_window(&own, self.window);
        let mut threads = Vec::new();
        for node in &context.engine.tree(&id, window)?.nodes {
            list(context, node, window, &mut threads)?;
        }
        Ok(ThreadTree { session: id.to_string(), window, learned_window, threads })
    }

    fn text(tree: &ThreadTree) -> Option<String> {
        let learned = tree.learned_window.iter().map(learned_line);
        Some(learned.chain(tree.threads.iter().map(line)).collect::<Vec<_>>().join("\n"))
    }
}

/// A thread and those below it.
fn list(
    context: &OperationContext,
    node: &ThreadNode,
    window: Option<u64>,
    threads: &mut Vec<TreeThread>,
) -> OpResult {
    let header = &node.header;
    let thread = context.engine.open(&header.session, &header.thread, OpenMode::Read)?;
    let weight = thread.view().weight();
    threads.push(TreeThread {
        thread: header.thread.to_string(),
        address: format!("{}/{}", header.session, header.thread),
        parent: header.parent.as_ref().map(|parent| parent.thread.to_string()),
        base: header.base.as_ref().map(|base| format!("{}@{}", base.thread, base.seq)),
        label: header.label.clone(),
        depth: node.depth,
        status: node.status.name(),
        ratio: node.ratio.map(|ratio| ratio.get()),
        thread_window: node.shares.as_ref().map(|shares| shares.own).or(window),
        share: thread.portion(window)?.as_ref().map(WindowShare::from),
        context_tokens: weight.tokens(),
        parts: weight.into(),
        above: node.above,
        messages: node.messages,
        chronicle: node.chronicle.as_ref().map(ThreadChronicle::from),
        anchored: !node.is_adrift,
        held: node.held_by.is_some(),
        created_at: header.timestamp.clone(),
    });
    node.children.iter().try_for_each(|child| list(context, child, window, threads))
}

/// A thread in one line, for a model.
fn line(one: &TreeThread) -> String {
    let indent = "  ".repeat(usize::try_from(one.depth).unwrap_or_default());
    let label = one.label.as_deref().map(|label| format!(" ({label})")).unwrap_or_default();
    let window = one.thread_window.map(|window| format!(" of {window}")).unwrap_or_default();
    let told = one.chronicle.as_ref().map(|told| format!(": {}", told.headline())).unwrap_or_default();
    let messages = count(one.messages, "message");
    let (name, status, tokens) = (&one.thread, one.status, one.context_tokens);
    format!("{indent}{name}{label} {status}, {messages}, {tokens}{window} tokens{told}")
}
