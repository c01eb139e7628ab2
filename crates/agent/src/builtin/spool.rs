//! Where an answer is written: in memory while it is short, in a file without a name when it is long. Whatever bytes come
//! in, text goes out: what is no UTF-8 becomes `�`, and so does NUL, which some stores and providers do not take.

use crate::tools::{Answer, Body};
use std::io::{self, Seek, Write};
use tempfile::{SpooledData, SpooledTempFile};

/// The most bytes of an answer that are held.
const HELD: usize = 32 << 10;

pub(super) struct Spool {
    file: SpooledTempFile,
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
    written: u64,
}

impl Spool {
    pub(super) fn new() -> Self {
        Self { file: SpooledTempFile::new(HELD), begun: Vec::new(), written: 0 }
    }

    /// How many bytes came in.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// One line of words.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Bytes of any kind, as text; a character may come in two pieces.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.begun.is_empty() {
            return self.text(bytes);
        }
        let mut joined = std::mem::take(&mut self.begun);
        joined.extend_from_slice(bytes);
        self.text(&joined)
    }

    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.clean(chunk.valid())?;
            let rest = chunk.invalid();
            if chunks.peek().is_none() && may_go_on(rest) {
                self.begun = rest.to_vec();
            } else if !rest.is_empty() {
                self.file.write_all("\u{fffd}".as_bytes())?;
            }
        }
        Ok(())
    }

    fn clean(&mut self, text: &str) -> io::Result<()> {
        for (index, piece) in text.split('\0').enumerate() {
            if index > 0 {
                self.file.write_all("\u{fffd}".as_bytes())?;
            }
            self.file.write_all(piece.as_bytes())?;
        }
        Ok(())
    }

    /// What was written, as an answer.
    pub(super) fn answer(mut self, is_error: bool) -> io::Result<Answer> {
        if !self.begun.is_empty() {
            self.file.write_all("\u{fffd}".as_bytes())?;
        }
        self.file.rewind()?;
        let body = match self.file.into_inner() {
            SpooledData::InMemory(cursor) => {
                Body::Text(String::from_utf8_lossy(&cursor.into_inner()).into_owned())
            }
            SpooledData::OnDisk(file) => Body::File(file),
        };
        Ok(Answer { body, is_error })
    }
}

/// True when these bytes are the beginning of a character, and more of it may come.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::Spool;
    use std::io::Read;

    fn spooled(pieces: &[&[u8]]) -> String {
        let mut spool = Spool::new();
        for piece in pieces {
            spool.bytes(piece).unwrap();
        }
        let mut text = String::new();
        spool.answer(false).unwrap().body.reader().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_character_cut_at_any_byte_comes_out_whole() {
        let text = "窓を開ける🪟";
        for at in 0..=text.len() {
            assert_eq!(spooled(&[&text.as_bytes()[..at], &text.as_bytes()[at..]]), text, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(spooled(&bytes), text);
    }

    #[test]
    fn what_is_no_text_becomes_marks_and_nothing_around_it_is_lost() {
        assert_eq!(spooled(&[b"a\xff\xfeb\0c"]), "a\u{fffd}\u{fffd}b\u{fffd}c");
        assert_eq!(spooled(&[b"a\xe7\xaa", b"b"]), "a\u{fffd}b");
        assert_eq!(spooled(&[b"a\xe7\xaa"]), "a\u{fffd}");
    }

    #[test]
    fn a_long_answer_is_in_a_file_and_reads_the_same() {
        let line = "あ".repeat(100_000);
        assert_eq!(spooled(&[line.as_bytes()]), line);
    }
}
