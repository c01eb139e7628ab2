//! Log: a journal, one line for each entry.

use super::columns;
use crate::address::AtMoment;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_core::{Seq, notation};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries in one answer, unless more are asked for.
const ENTRIES: u32 = 50;

/// List what happened in a thread, one line for each entry, with its number. Entries that a rewind left behind begin with #.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Log {
    /// The thread; with an entry, everything up to there.
    #[serde(flatten)]
    pub at: AtMoment,
    /// First entry; the last ones when left out.
    #[schemars(range(min = 1))]
    pub from: Option<Seq>,
    /// Entries at most; 50 when left out.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Give long texts whole.
    #[serde(default)]
    pub full: bool,
    /// Columns of a line, where texts are not given whole; 160 when left out.
    #[schemars(range(min = 20, max = 10000))]
    pub width: Option<u32>,
}

/// Entries, one line each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Logged {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The first entry.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// The entry to read on from; null at the end.
    pub next: Option<Seq>,
    /// The last entry that could be read.
    pub end: Seq,
    /// The lines.
    pub text: String,
}

impl Operation for Log {
    const NAME: &'static str = "log";
    const TITLE: &'static str = "Entries of the journal";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("log", Route::get("journal", "/sessions/{session}/threads/{thread}/log"));
    type Output = Logged;

    fn run(self, context: &Context) -> Outcome<Logged> {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
        let end = found.seq.unwrap_or(thread.last());
        let now = thread.view_at(end)?;
        let limit = self.limit.unwrap_or(ENTRIES);
        let first = self.from.unwrap_or_else(|| end.saturating_sub(limit - 1)).max(1);
        let last = end.min(first.saturating_add(limit - 1));
        let width = columns(self.full, self.width);
        let mut lines = Vec::new();
        for seq in first..=last {
            let record = thread.record(seq)?;
            // What a rewind left behind is set off as a comment of the notation.
            let mark = if now.on_path(seq) { "" } else { "# " };
            let text = match self.full {
                true => notation::entry(&record),
                false => notation::brief(&record, width - mark.len()),
            };
            lines.push(format!("{mark}{text}"));
        }
        Ok(Logged {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            first,
            last,
            next: (last < end).then_some(last + 1),
            end,
            text: lines.join("\n"),
        })
    }

    fn text(logged: &Logged) -> Option<String> {
        Some(logged.text.clone())
    }
}
