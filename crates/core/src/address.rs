//! Names: which session, which thread, which moment.
//!
//! `session`, `session/thread`, `session@seq`, `session/thread@seq` name any moment of any conversation, in the
//! command line, in URLs and in the journal. Ids become folder names, so this is the one place that decides what an
//! id may be: nothing that comes from outside can name a path outside the base folder.
//!
//! An id may be of any script. It is kept in Unicode's composed form (NFC), so that one name is one id however a keyboard
//! wrote it. Characters that are not seen (joiners, selectors, fillers) or that turn the writing direction are in no id.

use crate::Seq;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// [`ID_PATTERN`] inside of other patterns, such as that of a moment.
#[macro_export]
macro_rules! id_pattern {
    () => {
        r"[^\x00-/:-@\[-`{-\x9f][^\x00-,/;-@\[-^`{-\x9f]{0,127}"
    };
}

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

/// What an id looks like, as a regular expression for schemas that any dialect of them reads. It lets every character through
/// that is not ASCII; [`SessionId::new`] says of which of those an id is made.
pub const ID_PATTERN: &str = concat!("^", id_pattern!(), "$");

/// Checks a name and gives it in composed form.
fn checked(what: &'static str, value: String) -> Result<String, BadId> {
    let name = match value.is_ascii() || is_nfc(&value) {
        true => Cow::Borrowed(&value),
        false => Cow::Owned(value.nfc().collect()),
    };
    match fault(&name) {
        Some(why) => Err(BadId { what, value: value.chars().take(160).collect(), why }),
        None => Ok(name.into_owned()),
    }
}

/// The rule that a name breaks.
fn fault(name: &str) -> Option<&'static str> {
    let Some(first) = name.chars().next() else { return Some("it is empty") };
    if name.len() > LONGEST {
        return Some("it is longer than 128 bytes");
    }
    if !is_letter(first) {
        return Some("it must begin with a letter or digit");
    }
    // A mark belongs to the letter before it.
    let mut may_be_marked = false;
    for c in name.chars() {
        let is_mark = is_combining_mark(c) && !is_unseen(c);
        if is_mark && !may_be_marked {
            return Some("a combining mark must follow a letter");
        }
        if !is_mark && !is_letter(c) && !matches!(c, '-' | '_' | '.' | ':') {
            return Some("use letters, digits, and - _ . : only");
        }
        may_be_marked = is_mark || is_letter(c);
    }
    None
}

/// True for a letter or digit of any script.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || !c.is_ascii() && c.is_alphanumeric() && !is_combining_mark(c) && !is_unseen(c)
}

/// True for letters and marks that show nothing: two names that differ in one of them look the same.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
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
                checked($what, value.into()).map(Self)
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
            ["", "..", ".", "../x", "a/../b", "a\\b", "/etc", "a\0b", "a b", "-rf", ".hidden", "a/b/c"]
        {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
            assert!(SessionId::new(text).is_err(), "{text:?}");
        }
        assert!(SessionId::new("x".repeat(129)).is_err());
        assert!(SessionId::new("窓".repeat(42)).is_ok() && SessionId::new("窓".repeat(43)).is_err());
        let odd = [
            "a\u{ff0f}b",
            "a\u{2044}b",
            "a\u{2215}b",
            "a\u{29f8}b",
            "a\u{ff0e}b",
            "\u{2024}\u{2024}",
            "a\u{202e}b",
            "a\u{200f}b",
            "a\u{2067}b",
            "a\u{200d}b",
            "a\u{ad}b",
            "a\u{feff}b",
            "a\u{3000}b",
            "a\u{a0}b",
            "窓\u{fe0f}",
            "a\u{34f}b",
            "a\u{3164}",
            "\u{301}a",
            "-\u{301}",
            "a-\u{301}",
            "a\u{85}",
            "窓\u{0}",
            "窓/窓",
            "窓\u{5c}窓",
            "窓@窓",
            "🪟",
        ];
        for text in odd {
            assert!(SessionId::new(text).is_err(), "{text:?}");
        }
    }

    proptest::proptest! {
        /// Whatever is an id is one plain component of a path, of at most 128 bytes, with nothing in it that is not seen.
        #[test]
        fn whatever_is_an_id_names_one_folder_below_the_base(text in ".{0,40}", odd in r"[a-z小é./\\\\@:\x00\u{301}\u{202e}\u{2044}\u{ff0f}\u{fe0f}-]{0,12}") {
            for text in [text, odd] {
                let Ok(id) = SessionId::new(text.as_str()) else { continue };
                let parts: Vec<_> = std::path::Path::new(id.as_str()).components().collect();
                assert!(matches!(parts[..], [std::path::Component::Normal(one)] if one == id.as_str()), "{text:?}");
                assert!(id.as_str().len() <= LONGEST && is_nfc(id.as_str()), "{text:?}");
                assert_eq!(crate::notation::tamed(id.as_str()), id.as_str(), "{text:?}");
                assert_eq!(SessionId::new(id.as_str()).unwrap(), id);
            }
        }
    }

    #[test]
    fn a_name_of_any_script_is_one_id_however_it_was_written() {
        for text in
            ["小窓-1", "épée", "окно_2", "نافذة", "חלון", "खिड़की", "창문", "หน้าต่าง", "がぎぐ", "a.b:c-d_e"]
        {
            let id = SessionId::new(text).unwrap();
            assert_eq!(SessionId::new(id.as_str()).unwrap(), id, "{text}");
            let apart: String = text.nfd().collect();
            assert_eq!(SessionId::new(apart).unwrap(), id, "{text}");
            let address: Address = format!("{text}/{text}@3").parse().unwrap();
            assert_eq!((address.session.as_str(), address.seq), (id.as_str(), Some(3)));
        }
    }
}
