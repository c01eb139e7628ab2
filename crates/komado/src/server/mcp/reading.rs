//! Tools that read: what was said, what is seen, which sessions there are.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::Outcome;
use komado_ops::Effect;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Entries of a journal in one answer, unless more are asked for.
const ENTRIES: u32 = 50;

/// Lists entries of a journal.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
    /// First entry; the last ones when left out.
    #[schemars(range(min = 1))]
    from: Option<u32>,
    /// Entries at most; 50 when left out.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Give long texts whole.
    full: Option<bool>,
}

impl Errand for Log {
    const NAME: &'static str = "log";
    const TITLE: &'static str = "Entries of the journal";
    const ABOUT: &'static str = "List what happened in a thread, one line for each entry, with its number. Entries that a rewind left behind begin with #.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let mut address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let found = desk.app.find(&address)?;
        let end = desk.app.engine.open(&found.session, &found.thread, Mode::Read)?.last();
        let upto = found.seq.unwrap_or(end);
        let limit = self.limit.unwrap_or(ENTRIES).max(1);
        let first = self.from.unwrap_or_else(|| upto.saturating_sub(limit - 1)).max(1);
        let last = upto.min(first.saturating_add(limit - 1));
        address.seq = (last < end).then_some(last).or(found.seq);
        let words = Words::of("log").option("from", Some(first)).flag("full", self.full).word(address);
        let text = if last < first { String::new() } else { desk.text(&words.all())? };
        let value = json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "first": first,
            "last": last,
            "next": (last < upto).then_some(last + 1),
            "text": text,
        });
        Ok(Answer { text, value })
    }
}

/// Prints what the model sees.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Show {
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
    /// At the moment of this entry; now when left out.
    seq: Option<u32>,
    /// Give long texts whole.
    full: Option<bool>,
}

impl Errand for Show {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "What the model sees";
    const ABOUT: &'static str = "Print the view of a thread: exactly what the model sees, now or at any moment, one line for each item.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), self.seq)?;
        let found = desk.app.find(&address)?;
        let text = desk.text(&Words::of("show").flag("full", self.full).word(address).all())?;
        let value = json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": found.seq,
            "text": text,
        });
        Ok(Answer { text, value })
    }
}
