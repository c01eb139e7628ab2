//! One entry of a journal, as it stands there.

use crate::address::AtEntry;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Route};
use komado_core::Seq;
use komado_store::{Journal, Mode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Read one entry of a journal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GetEntry {
    /// The entry.
    #[serde(flatten)]
    pub at: AtEntry,
}

/// A line of a journal, as it stands there.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line.
    pub line: Box<RawValue>,
    moment: String,
}

impl Entry {
    /// The entry `seq` of a journal.
    pub(super) fn read(journal: &dyn Journal, seq: Seq, moment: String) -> Outcome<Self> {
        let line = journal.line(seq)?;
        Ok(Self { line: serde_json::from_slice(&line)?, moment })
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.line.serialize(serializer)
    }
}

/// A line of a journal; what else is in it depends on its kind, and `docs/journal.md` describes it.
#[derive(JsonSchema)]
#[schemars(rename = "Entry")]
#[allow(dead_code, reason = "the line itself is sent")]
struct Shape {
    /// Its number.
    seq: Seq,
}

impl JsonSchema for Entry {
    fn schema_name() -> Cow<'static, str> {
        Shape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shape::json_schema(generator)
    }
}

impl Operation for GetEntry {
    const NAME: &'static str = "entry";
    const TITLE: &'static str = "Read one entry of a journal";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("journal", "/sessions/{session}/threads/{thread}/entries/{seq}").tagged(),
        "`komado log SESSION@SEQ -n 1 --json` prints it",
    )
    .not_mcp("`tool_output_cache` reads any entry, @SEQ, as text");
    type Output = Entry;

    fn run(self, context: &Context) -> Outcome<Entry> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let journal = context.engine.store().open(&found.session, &found.thread, Mode::Read)?;
        let (thread, last) = (&found.thread, journal.last());
        if seq == 0 || seq > last {
            let why = format!("{thread} has no entry @{seq}: it ends at @{last}");
            return Err(Fault::new(Exit::NotFound, why));
        }
        Entry::read(&*journal, seq, format!("{thread}@{seq}"))
    }

    fn moment(entry: &Entry) -> Option<String> {
        Some(entry.moment.clone())
    }
}
