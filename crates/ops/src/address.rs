//! Which session, thread and entries does a request mean?
//!
//! On a command line an address is one word, `SESSION/THREAD@SEQ`; elsewhere up to three fields. What may be left out, and whether
//! the beginning of a name will do, depends on the interface ([`crate::Naming`]). Spans of entries are written `3..50`, `7`,
//! `3..10,12..50`; as JSON also as a list of `{"from": 3, "to": 50}`.

use crate::{OpFault, OpResult};
use komado_core::{Address, Seq, Span, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// A request's words for what it means.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// The session, its beginning, or a whole address.
    pub session: Option<String>,
    /// The thread.
    pub thread: Option<String>,
    /// The entry.
    pub seq: Option<Seq>,
}

/// Declares a type of address: its fields in a request, and how one word of a command line gives them.
macro_rules! address {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),+ }, $parse:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let address: Address = text.parse().map_err(|error: komado_core::BadId| error.to_string())?;
                let parse: fn(Target) -> Result<Self, String> = $parse;
                parse(Target::from(&address))
            }
        }

        impl From<&$name> for Target {
            fn from(given: &$name) -> Self {
                let mut target = Self::default();
                $(target.$field = given.$field.clone().into();)+
                target
            }
        }
    };
}

address! {
    /// A session: `SESSION`.
    AtSession {
        /// The session; not needed when only one can be meant.
        #[schemars(length(max = 300), example = &"demo")]
        session: Option<String>
    },
    |Target { session, thread, seq }| match thread.is_none_or(|thread| thread == ThreadId::root().as_str()) && seq.is_none() {
        true => Ok(AtSession { session }),
        false => Err(format!("name a session, without thread or moment: {}", session.unwrap_or_default())),
    }
}

address! {
    /// A thread as it is now: `SESSION` or `SESSION/THREAD`.
    AtThread {
        /// The session or its address; not needed when only one can be meant.
        #[schemars(length(max = 300), example = &"demo")]
        session: Option<String>,
        /// The thread; the root when left out.
        #[schemars(length(max = 128), example = &"root")]
        thread: Option<String>
    },
    |Target { session, thread, seq }| match seq {
        None => Ok(AtThread { session, thread }),
        Some(seq) => Err(past(seq)),
    }
}

address! {
    /// A moment of a thread: `SESSION`, `SESSION/THREAD`, or either with `@SEQ`.
    AtMoment {
        /// The session or its address; not needed when only one can be meant.
        #[schemars(length(max = 300), example = &"demo")]
        session: Option<String>,
        /// The thread; the root when left out.
        #[schemars(length(max = 128), example = &"root")]
        thread: Option<String>,
        /// At the moment of this entry; now when left out.
        seq: Option<Seq>
    },
    |Target { session, thread, seq }| Ok(AtMoment { session, thread, seq })
}

address! {
    /// An entry of a thread: `SESSION@SEQ` or `SESSION/THREAD@SEQ`.
    AtEntry {
        /// The session or its address; not needed when only one can be meant.
        #[schemars(length(max = 300), example = &"demo")]
        session: Option<String>,
        /// The thread; the root when left out.
        #[schemars(length(max = 128), example = &"root")]
        thread: Option<String>,
        /// The entry's number; `log` lists them.
        #[schemars(range(min = 1), example = 1)]
        seq: Seq
    },
    |Target { session, thread, seq }| match (seq, session.clone().unwrap_or_default()) {
        (Some(seq), _) => Ok(AtEntry { session, thread, seq }),
        (None, session) => Err(format!("name the entry: {session}@SEQ; `komado log {session}` lists them")),
    }
}

/// A thread, or a moment of it: `THREAD` or `THREAD@SEQ`.
pub(crate) fn moment(text: &str) -> OpResult<(ThreadId, Option<Seq>)> {
    let (thread, seq) = text.split_once('@').map_or((text, None), |(thread, seq)| (thread, Some(seq)));
    let read = ThreadId::new(thread).ok().zip(seq.map(str::parse).transpose().ok());
    read.ok_or_else(|| {
        let why = format!("{text:?} is not a moment; write THREAD@SEQ, such as root@12");
        OpFault::malformed(why)
    })
}

/// Why a moment in the past cannot be meant.
pub(crate) fn past(seq: Seq) -> String {
    format!("this changes what is now: leave out @{seq}, or `komado rewind` there first")
}

impl From<&Address> for Target {
    fn from(given: &Address) -> Self {
        let Address { session, thread, seq } = given;
        Self {
            session: Some(session.to_string()),
            thread: thread.as_ref().map(ToString::to_string),
            seq: *seq,
        }
    }
}

/// One or more spans.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Spans(pub Vec<Span>);

impl Spans {
    /// Refuses spans that no journal can have.
    pub fn check(&self) -> OpResult {
        match self.0.iter().position(|span| span.from == 0 || span.to < span.from) {
            None => Ok(()),
            Some(i) => Err(OpFault::usage(format!(
                "{}..{} is not a span: entries count from 1, and the last comes last; write 3..50, 7 or 3..10,12..50",
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
        let wrong = || format!("{text:?} is not a span; write 3..50, 7 or 3..10,12..50");
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
