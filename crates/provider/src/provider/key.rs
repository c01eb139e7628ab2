//! A secret that lets one ask. It is sent and never shown: not in errors, not when debugging.

use std::fmt;

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// Why a text cannot be a key. The text itself is never repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadKey {
    /// Nothing, or only blanks.
    #[error("the key is empty; set it, or leave it out for a server that asks for none")]
    Empty,
    /// More than one line, or a character that no line has.
    #[error("the key holds a line break or another control character; it must be one line, copy it again")]
    Control,
    /// A letter that no key has.
    #[error("the key holds a character that is not ASCII; something else was copied with it, copy it again")]
    NotAscii,
}

impl Key {
    /// Takes a key; blanks around it are dropped.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(BadKey::Control);
        }
        if !text.is_ascii() {
            return Err(BadKey::NotAscii);
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself, for the one header it goes into.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
