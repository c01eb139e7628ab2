//! Start: a child thread that outlives the call.

use super::{ChildOptions, WindowShare};
use crate::address::AtThread;
use crate::operation::Route;
use crate::tools::ToolDefinitions;
use crate::window::window;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_engine::stelis::Spawn;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start a child thread: a share of the window to work in. Its parent keeps one short entry of it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct StartThread {
    /// The session, or SESSION/THREAD: the thread it is started from
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// What it is about, for people and for the model
    pub label: Option<String>,
    /// What it is to be like.
    #[command(flatten)]
    #[serde(flatten)]
    pub child: ChildOptions,
    /// Tool definitions of its own, in place of those above
    #[arg(skip)]
    pub tools: Option<ToolDefinitions>,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
}

/// A child thread that was started.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Started {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// `session/thread`.
    pub address: String,
    /// The thread it was started from.
    pub parent: String,
    /// What it is about.
    pub label: Option<String>,
    /// How far below the root it is.
    pub depth: usize,
    /// What it has of its parent's window.
    pub ratio: f64,
    /// The window that is shared out.
    pub window: u64,
    /// How it is shared out.
    pub share: Option<WindowShare>,
    /// `active`.
    pub status: &'static str,
    /// The command that undoes it.
    pub undo: String,
}

impl Operation for StartThread {
    const NAME: &'static str = "thread_start";
    const TITLE: &'static str = "Start a child thread";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread start",
        Route::make("threads", "/sessions/{session}/threads/{thread}/start"),
    );
    type Output = Started;

    fn run(self, context: &Context) -> Outcome<Started> {
        let found = context.find_now(&self.at)?;
        let session = context.session(&found.session)?;
        let own = &session.meta.config;
        // Whether it may be started at all is said before a missing window is.
        context.config.threads(own).check()?;
        let window = u64::from(window(context, &session, self.window)?);
        let setup = self.child.setup(self.tools);
        let spawn = Spawn { label: self.label, setup, ..self.child.spawn(context, own, window)? };
        let mut parent = context.open(&found, Mode::Write)?;
        let refused = |error| self.child.refused(context, own, error);
        let mut child = parent.spawn_free(&spawn).map_err(refused)?;
        context.settle(&mut parent);
        context.settle(&mut child);
        let thread = child.header().thread.to_string();
        let address = format!("{}/{thread}", found.session);
        Ok(Started {
            session: found.session.to_string(),
            thread,
            parent: found.thread.to_string(),
            label: spawn.label,
            depth: child.share()?.map_or(0, |share| share.depth()),
            ratio: spawn.ratio.get(),
            window,
            share: child.portion(Some(window))?.as_ref().map(WindowShare::from),
            status: "active",
            undo: format!("komado thread abort {address}"),
            address,
        })
    }
}
