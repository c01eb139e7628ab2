//! Balance: share the window out otherwise, while threads are at work.

use super::{WindowShare, child, ratio};
use crate::address::AtThread;
use crate::change;
use crate::operation::Route;
use crate::window::window;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::journal::Ratio;
use komado_engine::engine::Found;
use komado_engine::share::{Balance, Recut};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share the window out otherwise, for a child thread and those below it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct BalanceThread {
    /// The thread, SESSION/THREAD; those below it follow
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// What it gets of its parent's window, from 0.01 to 0.99; as before when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
    /// Cut what it sees of the threads above anew, from what they see now
    #[arg(long)]
    #[serde(default)]
    pub refresh: bool,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
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
    const NAME: &'static str = "thread_balance";
    const TITLE: &'static str = "Share the window out otherwise";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread balance",
        Route::post("threads", "/sessions/{session}/threads/{thread}/balance"),
    )
    .not_mcp("`thread_resume` takes another ratio");
    type Output = Balanced;

    fn run(self, context: &Context) -> Outcome<Balanced> {
        let found = child(context, &self.at)?;
        if self.ratio.is_none() && !self.refresh && self.window.is_none() {
            let why = "nothing would change: give --ratio RATIO, --refresh or --window TOKENS";
            return Err(Fault::usage(why));
        }
        let window = u64::from(window(context, &context.session(&found.session)?, self.window)?);
        let before = current(context, &found)?;
        let slices = if self.refresh { Recut::Refresh } else { Recut::Keep };
        let buffer = context.config.models.policy.buffer;
        let balance = Balance { ratio: self.ratio, window, buffer, slices };
        let said = context.engine.balance_below(&found.session, &found.thread, balance)?;
        let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
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
fn current(context: &Context, found: &Found) -> Outcome<Option<Ratio>> {
    let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
    Ok(thread.share()?.and_then(|share| share.slices.last().map(|slice| slice.ratio)))
}
