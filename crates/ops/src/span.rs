//! Spans of entries: `3..50`, `7`, `3..10,12..50`; as JSON also a list of `{"from": 3, "to": 50}`.

use crate::fault::{Fault, Outcome};
use komado_core::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// One or more spans.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Spans(pub Vec<Span>);

impl Spans {
    /// Refuses spans that no journal can have.
    pub fn check(&self) -> Outcome {
        match self.0.iter().position(|span| span.from == 0 || span.to < span.from) {
            None => Ok(()),
            Some(i) => Err(Fault::usage(format!(
                "{}..{} is no span: entries count from 1, and the last comes last; write 3..50, 7 or 3..10,12..50",
                self.0[i].from, self.0[i].to
            ))),
        }
    }

    /// Entries in all of them.
    pub fn entries(&self) -> u64 {
        self.0.iter().map(|span| u64::from(span.to.saturating_sub(span.from)) + 1).sum()
    }
}

impl FromStr for Spans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no span; write 3..50, 7 or 3..10,12..50");
        let one = |part: &str| {
            let (from, to) = part.split_once("..").unwrap_or((part, part));
            let (from, to) =
                (from.trim().parse().map_err(|_| wrong())?, to.trim().parse().map_err(|_| wrong())?);
            Ok(Span { from, to })
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, span) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{span}")?;
        }
        Ok(())
    }
}

/// How spans are written.
const SPANS: &str = r"^[0-9]{1,9}(\.\.[0-9]{1,9})?(,[0-9]{1,9}(\.\.[0-9]{1,9})?)*$";

/// Spans as they are written in JSON.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a span is a text such as \"3..50\", or a list such as [{\"from\": 3, \"to\": 50}]"
)]
#[schemars(inline)]
enum Written {
    /// Such as 3..50 or 3..10,12..50.
    Text(#[schemars(length(max = 10_000), regex(pattern = SPANS), example = &"1..2")] String),
    /// From one entry to another, both included.
    List(#[schemars(with = "Vec<FromTo>", length(min = 1))] Vec<Map<String, Value>>),
}

/// Entries from one to another, both included.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct FromTo {
    /// The first.
    #[schemars(range(min = 1))]
    from: u32,
    /// The last.
    #[schemars(range(min = 1))]
    to: u32,
}

impl TryFrom<Written> for Spans {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let list = match written {
            Written::Text(text) => return text.parse(),
            Written::List(list) => list,
        };
        // An object, since a list of two numbers could be read as one.
        let one = |fields: Map<String, Value>| {
            let read = serde_json::from_value(Value::Object(fields));
            read.map(|FromTo { from, to }| Span { from, to }).map_err(|error| error.to_string())
        };
        match list.is_empty() {
            true => Err("span is empty; name the entries".to_owned()),
            false => list.into_iter().map(one).collect::<Result<_, _>>().map(Self),
        }
    }
}

impl JsonSchema for Spans {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Spans".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}
