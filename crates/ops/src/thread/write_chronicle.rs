//! Write a chronicle: by hand, as an earlier one said it, or again.

use super::chronicle::latest;
use super::{ChronicleEntry, ChronicleWriter, child};
use crate::address::AtThread;
use crate::change;
use crate::fault::Exit;
use crate::operation::Route;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::journal::Entry;
use komado_engine::engine::Found;
use komado_engine::stelis::Telling;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    const NAME: &'static str = "thread_write_chronicle";
    const TITLE: &'static str = "Write what was done in a child thread";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread chronicle",
        Route::post("threads", "/sessions/{session}/threads/{thread}/chronicle"),
    )
    .not_mcp("`thread_end` takes the chronicle");
    type Output = WrittenChronicle;

    fn run(self, context: &Context) -> Outcome<WrittenChronicle> {
        let found = child(context, &self.at)?;
        let before = latest(context, &found)?;
        let words = match (self.text, self.restore) {
            (Some(_), Some(_)) => return Err(Fault::usage("give text or restore, not both")),
            (Some(text), None) => Some(text),
            (None, Some(seq)) => Some(earlier(context, &found, seq)?),
            (None, None) => None,
        };
        let write =
            |telling: Telling<'_>| context.engine.write_chronicle(&found.session, &found.thread, telling);
        let told = match words {
            Some(words) if words.trim().is_empty() => {
                return Err(Fault::usage("a chronicle tells what was done; it cannot be empty"));
            }
            Some(words) => write(Telling::Words(words))?,
            None => self.writer.tell(context, &found, |telling| Ok(write(telling)?))?,
        };
        let name = change::name(&found);
        let undo = before.map(|before| format!("komado thread chronicle {name} --restore {}", before.seq));
        let entry = latest(context, &found)?
            .ok_or_else(|| Fault::new(Exit::Refused, "nothing was done in it that could be told"))?;
        Ok(WrittenChronicle { entry, undo, declined: told.declined })
    }
}

/// What an earlier chronicle said.
fn earlier(context: &Context, found: &Found, seq: Seq) -> Outcome<String> {
    let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
    match thread.record(seq)?.entry {
        Entry::Chronicle(chronicle) => Ok(chronicle.text),
        _ => Err(Fault::new(Exit::NotFound, format!("@{seq} of {} is no chronicle", found.thread))),
    }
}
