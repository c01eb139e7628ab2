//! Chronicle: what was done in a child thread.

use super::child;
use crate::address::AtThread;
use crate::change;
use crate::fault::Exit;
use crate::operation::Route;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::journal::{self, Entry, Usage};
use komado_engine::engine::Found;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Read what was done in a child thread.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadChronicle {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

/// What was done in a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Chronicle {
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

impl From<&journal::Chronicle> for Chronicle {
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

impl Chronicle {
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
    pub chronicle: Chronicle,
}

impl Operation for ReadChronicle {
    const NAME: &'static str = "thread_chronicle";
    const TITLE: &'static str = "What was done in a child thread";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread chronicle",
        Route::get("threads", "/sessions/{session}/threads/{thread}/chronicle"),
    )
    .not_mcp("`threads` gives each chronicle");
    type Output = ChronicleEntry;

    fn run(self, context: &Context) -> Outcome<ChronicleEntry> {
        let found = child(context, &self.at)?;
        latest(context, &found)?.ok_or_else(|| {
            let name = change::name(&found);
            let why = format!(
                "{name} has no chronicle yet; `komado thread end {name}` or `komado thread chronicle {name} --again` writes one"
            );
            Fault::new(Exit::NotFound, why)
        })
    }
}

/// The chronicle in force.
pub(super) fn latest(context: &Context, found: &Found) -> Outcome<Option<ChronicleEntry>> {
    let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let Some(seq) = thread.view().chronicle() else { return Ok(None) };
    let Entry::Chronicle(chronicle) = thread.record(seq)?.entry else { return Ok(None) };
    let (session, thread) = (found.session.to_string(), found.thread.to_string());
    Ok(Some(ChronicleEntry { session, thread, seq, chronicle: (&chronicle).into() }))
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
