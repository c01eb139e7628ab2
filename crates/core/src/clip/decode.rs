//! Text from bytes that come in pieces.
//!
//! A piece may end inside a character. The text is the same however the bytes were cut, and the same that
//! [`String::from_utf8_lossy`] gives for all of them at once.

use std::str::from_utf8;

/// Stands for what is no UTF-8.
const WRONG: &str = "\u{fffd}";

/// Decodes, and holds back the beginning of a character until the rest has come.
#[derive(Clone, Default, Debug)]
pub struct Decoder {
    /// At most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// True when a character has begun, and not ended.
    pub fn is_amid(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Gives the text of `bytes` to `each`, in pieces.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        let mut bytes = self.end_begun(bytes, each);
        loop {
            let error = match from_utf8(bytes) {
                Ok("") => return,
                Ok(text) => return each(text),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            // What was found valid is valid; this costs nothing but a second look.
            if let Ok(text) = from_utf8(valid)
                && !text.is_empty()
            {
                each(text);
            }
            let Some(length) = error.error_len() else {
                self.begun.extend_from_slice(rest);
                return;
            };
            each(WRONG);
            bytes = &rest[length..];
        }
    }

    /// Ends the character that had begun, with as many bytes as it takes; gives the others.
    fn end_begun<'b>(&mut self, mut bytes: &'b [u8], each: &mut dyn FnMut(&str)) -> &'b [u8] {
        while !self.begun.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { break };
            self.begun.push(*first);
            match from_utf8(&self.begun) {
                Ok(text) => each(text),
                Err(error) if error.error_len().is_none() => {
                    bytes = rest;
                    continue;
                }
                Err(_) => {
                    // The byte that broke it may begin something of its own.
                    each(WRONG);
                    self.begun.clear();
                    break;
                }
            }
            self.begun.clear();
            bytes = rest;
        }
        bytes
    }

    /// Nothing follows: a character that had begun never ends.
    pub fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.begun.clear();
            each(WRONG);
        }
    }
}
