//! Fork: go on from a moment in another thread.

use crate::address::AtMoment;
use crate::operation::Route;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::thread::Moment;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Go on from a moment in another thread that shares everything up to there. The thread it left stays as it is.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Fork {
    /// The moment to go on from, SESSION@SEQ; now when SEQ is left out
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtMoment,
    /// The new thread's name; one is made up when left out
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// What it is about, for people
    #[arg(long)]
    pub label: Option<String>,
}

/// A thread that goes on from a moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Forked {
    /// The session.
    pub session: String,
    /// The new thread.
    pub thread: String,
    /// `session/thread`.
    pub address: String,
    /// Its own anchor in the parent, for the fork of a child thread.
    pub parent: Option<ThreadMoment>,
    /// The moment it goes on from.
    pub base: Option<ThreadMoment>,
}

/// A moment of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ThreadMoment {
    /// The thread.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
}

impl From<Moment> for ThreadMoment {
    fn from(moment: Moment) -> Self {
        Self { thread: moment.thread.to_string(), seq: moment.seq }
    }
}

impl Operation for Fork {
    const NAME: &'static str = "fork";
    const TITLE: &'static str = "Go on elsewhere from a moment";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("fork", Route::make("threads", "/sessions/{session}/threads/{thread}/fork"));
    type Output = Forked;

    fn run(self, context: &Context) -> Outcome<Forked> {
        let found = context.find(&self.at)?;
        let thread = context.open(&found, Mode::Read)?;
        let at = found.seq.unwrap_or(thread.last());
        let name = match self.name {
            Some(name) => ThreadId::new(name)?,
            None => free_name(context, &found.session, at)?,
        };
        let header = thread.fork(at, name, self.label)?;
        Ok(Forked {
            session: header.session.to_string(),
            thread: header.thread.to_string(),
            address: format!("{}/{}", header.session, header.thread),
            parent: header.parent.map(Into::into),
            base: header.base.map(Into::into),
        })
    }
}

/// `fork-SEQ`, or the first of `fork-SEQ-2`, `fork-SEQ-3`, … that is free.
fn free_name(context: &Context, session: &SessionId, at: Seq) -> Outcome<ThreadId> {
    let taken = context.engine.store().threads(session)?;
    let free = |name: &String| !taken.iter().any(|header| header.thread.as_str() == name);
    let names = std::iter::once(format!("fork-{at}")).chain((2u32..).map(|n| format!("fork-{at}-{n}")));
    Ok(ThreadId::new(names.into_iter().find(free).unwrap_or_default())?)
}
