//! End: a child thread ends well, and its parent is told what was done.

use super::{ChronicleWriter, Ended, child};
use crate::address::AtThread;
use crate::operation::Route;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::journal::Ending;
use komado_core::thread::Status;
use komado_engine::stelis::{Finish, Telling};
use schemars::JsonSchema;
use serde::Deserialize;

/// End a child thread well, and tell its parent what was done. `thread_resume` opens it again.
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
    const NAME: &'static str = "thread_end";
    const TITLE: &'static str = "End a child thread";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread end",
        Route::post("threads", "/sessions/{session}/threads/{thread}/end"),
    );
    type Output = Ended;

    fn run(self, context: &Context) -> Outcome<Ended> {
        let found = child(context, &self.at)?;
        let result = self.result;
        let end = |telling: Telling<'_>| {
            let finish = Finish { ending: Ending::Completed, result, telling };
            Ok(context.engine.finish_child(&found.session, &found.thread, finish)?)
        };
        let finished = match self.chronicle {
            _ if self.no_chronicle => end(Telling::Nothing)?,
            Some(text) if text.trim().is_empty() => {
                return Err(Fault::usage("chronicle takes what was done, not an empty text"));
            }
            Some(text) => end(Telling::Words(text))?,
            None => self.writer.tell(context, &found, end)?,
        };
        Ok(Ended::of(&found, Status::Completed, finished))
    }
}
