//! The system prompt, while it may still grow.
//!
//! System messages that lead the conversation belong to it. They come one by one, so the prompt is left open, as a text
//! or as a list of blocks, until someone else speaks.

use super::NAME;
use super::request::{is_blank, write_text};
use crate::dialect::json::{quoted, text};
use komado_core::journal::Setup;
use komado_core::message::{Message, MessagePart};
use komado_core::raw::RawObject;
use serde_json::value::RawValue;
use std::io::{self, Write};

/// What was written of the system prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum System {
    /// Nothing.
    Absent,
    /// A text, without its closing quote.
    Text,
    /// A list of blocks, without its closing bracket.
    List,
}

impl System {
    /// Writes what `setup` has of it: the list of blocks as it came, unless the prompt has changed since.
    pub(super) fn begin(setup: &Setup, out: &mut dyn Write) -> io::Result<Self> {
        let list = raw_list(setup);
        if let Some(inner) = list.as_deref().and_then(|list| list.trim().strip_prefix('[')?.strip_suffix(']'))
        {
            write!(out, ",\"system\":[{}", inner.trim())?;
            return Ok(Self::List);
        }
        let mut system = Self::Absent;
        if let Some(words) = setup.system.as_deref().filter(|words| !is_blank(words)) {
            system.words(words, out)?;
        }
        Ok(system)
    }

    /// Adds a message that leads the conversation.
    pub(super) fn add(&mut self, message: &Message, out: &mut dyn Write) -> io::Result<()> {
        for part in &message.parts {
            match part {
                MessagePart::Text { text, .. } if is_blank(text) => {}
                MessagePart::Text { text, extra } if *self == Self::List => {
                    out.write_all(b",")?;
                    write_text(text, extra.as_ref(), out)?;
                }
                MessagePart::Text { text, .. } => self.words(text, out)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes what closes it.
    pub(super) fn close(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Absent => Ok(()),
            Self::Text => out.write_all(b"\""),
            Self::List => out.write_all(b"]"),
        }
    }

    fn words(&mut self, words: &str, out: &mut dyn Write) -> io::Result<()> {
        let json = quoted(words);
        let inside = &json[1..json.len() - 1];
        match self {
            Self::Absent => write!(out, ",\"system\":\"{inside}")?,
            _ => write!(out, "\\n\\n{inside}")?,
        }
        *self = Self::Text;
        Ok(())
    }
}

/// The list of blocks that the parameters keep, when it still says what the prompt says.
pub(super) fn raw_list(setup: &Setup) -> Option<String> {
    if setup.dialect.as_deref() != Some(NAME) {
        return None;
    }
    let params = RawObject::parse(setup.params.as_ref()?.get()).ok()?;
    let list = params.get("system")?;
    let said = words(list)?;
    (setup.system.as_ref() == Some(&said)).then(|| list.get().to_owned())
}

/// What a list of system blocks says; `None` when it is not a list or says nothing.
pub(super) fn words(list: &RawValue) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let words = blocks.iter().filter_map(|block| text(&RawObject::parse(block.get()).ok()?, "text"));
    let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}
