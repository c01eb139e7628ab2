//! What an element of a transcript says, as a digest that does not depend on how it is written.
//!
//! What goes into it is compact JSON with a comma after every value, so no two elements that differ can read alike.
//! Left out are cache marks, thoughts, and what a server says of an item rather than the item itself. A block of the
//! content goes in apart from what is around it, once it is known whether it counts; its type, and that of the element,
//! stand at the end, wherever they were written. A name that stands twice counts twice.
//!
//! In a system prompt at the head digits do not count: some clients write the time into it, which makes no other
//! conversation of it.

use super::{ElementAuthor, TranscriptElement};
use crate::dialect::Dialect;
use std::borrow::Cow;

/// The longest type or role that is looked at. A longer one is words like any other.
pub(super) const LONGEST: usize = 64;
/// Before a block, and before an id: no JSON holds such a byte.
const BLOCK: u8 = 1;
const ID: u8 = 2;

/// A short text that decides something, as it is written.
#[derive(Debug, Default)]
pub(super) struct ShortText {
    raw: Vec<u8>,
    is_long: bool,
}

impl ShortText {
    /// Takes more of it in. False when it has become too long, and is none any more.
    pub(super) fn push(&mut self, bytes: &[u8], most: usize) -> bool {
        self.is_long |= self.raw.len() + bytes.len() > most;
        if !self.is_long {
            self.raw.extend_from_slice(bytes);
        }
        !self.is_long
    }

    pub(super) fn clear(&mut self) {
        self.raw.clear();
        self.is_long = false;
    }

    pub(super) const fn is_long(&self) -> bool {
        self.is_long
    }

    /// As it is written.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// What it says; nothing when it is too long, or no text.
    pub(super) fn said(&self) -> Option<Cow<'_, str>> {
        if self.is_long {
            return None;
        }
        let raw = std::str::from_utf8(&self.raw).ok()?;
        if !raw.contains('\\') {
            return Some(Cow::Borrowed(raw));
        }
        serde_json::from_str(&format!("\"{raw}\"")).ok().map(Cow::Owned)
    }
}

/// Where what passes is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum DigestTarget {
    #[default]
    Element,
    /// A block of its content.
    Block,
    /// Its id, of which it is not known yet whether it counts.
    Id,
}

/// The element that passes, and what all before it come to.
#[derive(Debug, Default)]
pub(super) struct ElementDigester {
    dialect: Dialect,
    salt: [u8; 32],
    running: [u8; 32],
    element: Pen,
    block: Pen,
    id: Pen,
    pub(super) page: DigestTarget,
    has_id: bool,
    has_call: bool,
    has_role: bool,
    /// True when a block answers a call.
    answers: bool,
    /// True while nothing but system prompts has passed.
    leads: bool,
    /// The same element without digits, while it may be a system prompt at the head.
    faded: Pen,
    pub(super) role: ShortText,
    pub(super) kind: ShortText,
    pub(super) block_kind: ShortText,
}

impl ElementDigester {
    pub(super) fn new(dialect: Dialect, salt: &[u8]) -> Self {
        let mut pen = Pen::default();
        pen.write(b"komado transcript 1\0");
        pen.write(salt);
        let salt = pen.digest();
        Self { dialect, salt, running: salt, leads: true, ..Self::default() }
    }

    /// A list begins: what was before belongs to another.
    pub(super) fn begin_list(&mut self) {
        self.running = self.salt;
        self.leads = true;
    }

    pub(super) fn begin(&mut self) {
        self.element.clear();
        self.element.write(&self.running);
        self.faded.clear();
        self.page = DigestTarget::Element;
        (self.has_id, self.has_call, self.has_role, self.answers) = (false, false, false, false);
        self.role.clear();
        self.kind.clear();
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.leads {
            for piece in bytes.split(u8::is_ascii_digit) {
                self.faded.write(piece);
            }
        }
        match self.page {
            DigestTarget::Element => self.element.write(bytes),
            DigestTarget::Block => self.block.write(bytes),
            DigestTarget::Id => self.id.write(bytes),
        }
    }

    /// The element has a field of this name, which is being written.
    pub(super) fn note(&mut self, key: &str) {
        match key {
            "call_id" => self.has_call = true,
            "role" => self.has_role = true,
            _ => {}
        }
    }

    /// The id comes, apart from the rest.
    pub(super) fn begin_id(&mut self) {
        self.id.clear();
        self.has_id = true;
        self.page = DigestTarget::Id;
    }

    pub(super) fn begin_block(&mut self) {
        self.block.clear();
        self.block_kind.clear();
        self.page = DigestTarget::Block;
    }

    /// The block is whole: it joins the element unless it is a thought.
    pub(super) fn end_block(&mut self) {
        let kind = self.block_kind.said().unwrap_or_default();
        self.answers |= kind == "tool_result";
        self.page = DigestTarget::Element;
        if matches!(&*kind, "thinking" | "redacted_thinking" | "reasoning") {
            return self.block.clear();
        }
        let is_text = matches!(&*kind, "text" | "input_text" | "output_text");
        self.block.write(if is_text { b"text" } else { kind.as_bytes() });
        self.block.pour(BLOCK, &mut self.element);
    }

    /// The element is whole.
    pub(super) fn end(&mut self, span: std::ops::Range<u64>) -> TranscriptElement {
        let kind = self.kind.said().unwrap_or_default();
        let counts = self.dialect != Dialect::Responses || kind != "reasoning";
        let before = self.running;
        if counts {
            if self.has_id && !self.has_call && !self.has_role {
                self.id.pour(ID, &mut self.element);
            }
            let unsaid = self.has_role && kind == "message";
            self.element.write(if unsaid { b"" } else { kind.as_bytes() });
            self.running = self.element.digest();
        }
        let by = self.by(&kind);
        self.leads &= by == ElementAuthor::System;
        if self.leads {
            self.faded.write(&before);
            self.running = self.faded.digest();
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.running[..16]);
        TranscriptElement { span, by, digest }
    }

    fn by(&self, kind: &str) -> ElementAuthor {
        let role = self.role.said().unwrap_or_default();
        let role = if self.dialect == Dialect::Ollama { role.to_lowercase().into() } else { role };
        match &*role {
            "system" | "developer" => ElementAuthor::System,
            "user" if self.answers => ElementAuthor::Tool,
            "user" => ElementAuthor::User,
            "assistant" => ElementAuthor::Model,
            "tool" | "function" => ElementAuthor::Tool,
            "" if self.dialect == Dialect::Responses && !self.has_role => by_kind(kind),
            _ => ElementAuthor::Other,
        }
    }
}

/// Whose an item without a role is: what answers something is a tool's, and the rest the model made.
fn by_kind(kind: &str) -> ElementAuthor {
    match kind {
        "" => ElementAuthor::Other,
        "mcp_approval_response" => ElementAuthor::Tool,
        kind if kind.ends_with("_output") => ElementAuthor::Tool,
        _ => ElementAuthor::Model,
    }
}

// Bytes on their way into a digest: small ones are gathered, large ones go straight in.

/// What is gathered before it is worked in: as much as the digest takes in one stride.
const GATHERED: usize = 8 << 10;

/// Writes a digest.
#[derive(Debug, Default)]
struct Pen {
    gathered: Vec<u8>,
    /// What was worked in already, when it was more than could be gathered.
    hash: blake3::Hasher,
    is_long: bool,
}

impl Pen {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.gathered.len() + bytes.len() <= GATHERED {
            return self.gathered.extend_from_slice(bytes);
        }
        self.is_long = true;
        self.hash.update(&self.gathered);
        self.gathered.clear();
        if bytes.len() < GATHERED {
            self.gathered.extend_from_slice(bytes);
        } else {
            self.hash.update(bytes);
        }
    }

    /// The digest of what was written; the next one begins.
    pub(super) fn digest(&mut self) -> [u8; 32] {
        let digest = if self.is_long {
            let digest = self.hash.update(&self.gathered).finalize();
            self.hash.reset();
            digest
        } else {
            blake3::hash(&self.gathered)
        };
        self.clear();
        *digest.as_bytes()
    }

    /// Hands what was written on into `other`, so that it cannot be taken for anything else: as it is with its length
    /// when it is short, as its digest when it is long. The next one begins.
    pub(super) fn pour(&mut self, tag: u8, other: &mut Self) {
        if self.is_long {
            other.write(&[tag, u8::MAX]);
            other.write(&self.digest());
            return;
        }
        let [low, high, ..] = self.gathered.len().to_le_bytes();
        other.write(&[tag, high, low]);
        other.write(&self.gathered);
        self.clear();
    }

    /// Forgets what was written.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_long) {
            self.hash.reset();
        }
        self.gathered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_all_the_bytes_however_they_came() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mut pen = Pen::default();
        for size in [1000, 8191, 8192, 8193, 100_000] {
            bytes.chunks(size).for_each(|piece| pen.write(piece));
            assert_eq!(pen.digest(), *blake3::hash(&bytes).as_bytes(), "{size}");
        }
        pen.write(&bytes);
        let mut other = Pen::default();
        pen.pour(1, &mut other);
        assert_eq!(other.gathered.len(), 34);
        pen.write(&bytes[..GATHERED]);
        pen.pour(1, &mut other);
        assert!(other.is_long, "what is short goes over as it is");
        pen.write(&bytes);
        pen.clear();
        pen.write(b"x");
        assert_eq!(pen.digest(), *blake3::hash(b"x").as_bytes());
    }
}
