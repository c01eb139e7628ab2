//! Names: which session, which thread, which moment.
//!
//! `session`, `session/thread`, `session@seq`, `session/thread@seq` name any moment of any conversation, in the
//! command line, in URLs and in the journal. Ids become folder names, so this is the one place that decides what an
//! id may be: nothing that comes from outside can name a path outside the base folder.

use crate::Seq;
use std::fmt;
use std::str::FromStr;

/// Longest id in bytes; a folder name may have 255.
const LONGEST: usize = 128;

/// Why a text is not an id or an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: {value:?}: {why}")]
pub struct BadId {
    /// What was being named.
    pub what: &'static str,
    /// The text as given.
    pub value: String,
    /// The rule it breaks.
    pub why: &'static str,
}

fn check(what: &'static str, value: &str) -> Result<(), BadId> {
    let bad = |why| Err(BadId { what, value: value.chars().take(160).collect(), why });
    let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    match value.as_bytes() {
        [] => bad("it is empty"),
        v if v.len() > LONGEST => bad("it is longer than 128 bytes"),
        [first, ..] if !first.is_ascii_alphanumeric() => bad("it must begin with a letter or digit"),
        v if !v.iter().all(|&b| ok(b)) => bad("use letters, digits, and - _ . : only"),
        _ => Ok(()),
    }
}

macro_rules! id {
    ($name:ident, $what:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks and wraps an id.
            pub fn new(value: impl Into<String>) -> Result<Self, BadId> {
                let value = value.into();
                check($what, &value)?;
                Ok(Self(value))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(value: String) -> Result<Self, BadId> {
                Self::new(value)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(s: &str) -> Result<Self, BadId> {
                Self::new(s)
            }
        }
    };
}

id!(SessionId, "session id", "Names a session; a UUID unless its maker chose a name.");
id!(ThreadId, "thread id", "Names a thread inside its session; the first one is `root`.");

impl ThreadId {
    /// The thread every session begins with.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// True for the thread every session begins with.
    pub fn is_root(&self) -> bool {
        self.0 == "root"
    }
}

/// `session[/thread][@seq]`, where session and thread may be unique prefixes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Session id or a prefix of one.
    pub session: SessionId,
    /// Thread id or a prefix of one; the root when absent.
    pub thread: Option<ThreadId>,
    /// A moment; now when absent.
    pub seq: Option<Seq>,
}

impl FromStr for Address {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let (name, seq) = match text.split_once('@') {
            None => (text, None),
            Some((name, seq)) => {
                let seq = seq.parse().map_err(|_| BadId {
                    what: "address",
                    value: text.into(),
                    why: "what follows @ must be an entry's number, as in session@42",
                })?;
                (name, Some(seq))
            }
        };
        let (session, thread) = match name.split_once('/') {
            None => (name, None),
            Some((session, thread)) => (session, Some(ThreadId::new(thread)?)),
        };
        Ok(Self { session: SessionId::new(session)?, thread, seq })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.session)?;
        if let Some(thread) = &self.thread {
            write!(f, "/{thread}")?;
        }
        match self.seq {
            Some(seq) => write!(f, "@{seq}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_it_was_written() {
        for text in
            ["a", "a/b", "a@3", "550e8400-e29b-41d4-a716-446655440000/root@17", "air_city:stelis_abc/x.1@0"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nothing_that_could_leave_the_base_folder_is_an_id() {
        for text in
            ["", "..", ".", "../x", "a/../b", "a\\b", "/etc", "a\0b", "a b", "-rf", ".hidden", "é", "a/b/c"]
        {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
            assert!(SessionId::new(text).is_err(), "{text:?}");
        }
        assert!(SessionId::new("x".repeat(129)).is_err());
    }
}
