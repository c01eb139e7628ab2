//! List: a session's threads.

use crate::address::AtSession;
use crate::operation::Route;
use crate::page::Page;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_store::Mode;
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
    const NAME: &'static str = "thread_list";
    const TITLE: &'static str = "List a session's threads";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("sessions", Route::get("threads", "/sessions/{session}/threads"))
            .not_mcp("`threads` tells the same and more");
    type Output = Page<ThreadRow>;

    fn run(self, context: &Context) -> Outcome<Page<ThreadRow>> {
        let session = context.find(&self.at)?.session;
        let mut rows = Vec::new();
        for header in context.engine.store().threads(&session)? {
            let thread = context.engine.open(&session, &header.thread, Mode::Read)?;
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
        Ok(Page::whole(rows))
    }
}
