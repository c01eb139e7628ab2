//! A journal by pages.

use super::Entry;
use crate::address::AtThread;
use crate::page::{self, USUAL};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_core::Seq;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a page; it ends after the entry that goes over them.
const PAGE: usize = 4 << 20;

/// Read a journal by pages, each entry as it stands there.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct EntriesOf {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The first.
    #[schemars(range(min = 1))]
    pub from: Option<Seq>,
    /// The last.
    #[schemars(range(min = 1))]
    pub to: Option<Seq>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// A page of a journal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Entries {
    /// Lines of the journal; docs/journal.md describes them.
    pub items: Vec<Entry>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    #[serde(skip)]
    moment: String,
}

impl Operation for EntriesOf {
    const NAME: &'static str = "entries";
    const TITLE: &'static str = "Read a journal by pages";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "log --json",
        Route::get("journal", "/sessions/{session}/threads/{thread}/entries").tagged(),
    )
    .not_mcp("`log` tells the same in fewer words");
    type Output = Entries;

    fn run(self, context: &Context) -> Outcome<Entries> {
        let found = context.find(&self.at)?;
        let what = format!("entries of {}/{}", found.session, found.thread);
        let cursor: Option<Seq> = page::after(&what, self.cursor.as_deref())?;
        let journal = context.engine.store().open(&found.session, &found.thread, Mode::Read)?;
        let moment = format!("{}@{}", found.thread, journal.last());
        let end = self.to.unwrap_or(Seq::MAX).min(journal.last());
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let mut seq = cursor.or(self.from).unwrap_or(1);
        let (mut items, mut bytes) = (Vec::new(), 0);
        while seq <= end && items.len() < limit && bytes < PAGE {
            let entry = Entry::read(&*journal, seq, String::new())?;
            bytes += entry.line.get().len();
            items.push(entry);
            seq += 1;
        }
        let next = (seq <= end).then(|| page::cursor(&what, &seq)).transpose()?;
        Ok(Entries { items, next, moment })
    }

    fn moment(entries: &Entries) -> Option<String> {
        Some(entries.moment.clone())
    }
}
