//! Where an answer is written: in memory while it is short, in a file without a name when it is long. Whatever bytes come
//! in, text goes out: what is no UTF-8 becomes `�`, and so does NUL, which some stores and providers do not take.

use crate::tools::{ToolAnswer, ToolBody};
use std::io::{self, BufRead, Seek, Write};
use tempfile::{SpooledData, SpooledTempFile};

/// The most bytes of an answer that are held.
const HELD: usize = 32 << 10;

pub(super) struct OutputSpool {
    file: SpooledTempFile,
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
    written: u64,
}

impl OutputSpool {
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
    pub(super) fn answer(mut self, is_error: bool) -> io::Result<ToolAnswer> {
        if !self.begun.is_empty() {
            self.file.write_all("\u{fffd}".as_bytes())?;
        }
        self.file.rewind()?;
        let body = match self.file.into_inner() {
            SpooledData::InMemory(cursor) => {
                ToolBody::Text(String::from_utf8_lossy(&cursor.into_inner()).into_owned())
            }
            SpooledData::OnDisk(file) => ToolBody::File(file),
        };
        Ok(ToolAnswer { body, is_error })
    }
}

/// True when these bytes are the beginning of a character, and more of it may come.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

// One line of a file at a time, of which no more is held than is shown.

/// The most bytes of a line that are shown.
pub(super) const SHOWN: usize = 2_000;

/// Reads a line into `line`, without its end, and gives its whole length in bytes; `None` at the end of the file.
/// Of a line longer than [`SHOWN`] only the beginning is kept.
pub(super) fn next(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0u64;
    loop {
        let buffer = from.fill_buf()?;
        if buffer.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        length += piece.len() as u64;
        line.extend_from_slice(&piece[..piece.len().min(SHOWN.saturating_sub(line.len()))]);
        let used = piece.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// A line as it is shown: text without its end, and cut with a note when `length` bytes are too many.
pub(super) fn shown(line: &[u8], length: u64) -> String {
    let cut = line.len() > SHOWN || length > line.len() as u64;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = if cut { whole(&line[..SHOWN.min(line.len())]) } else { line };
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if cut {
        text.push_str(&format!("… [cut: the line has {length} bytes]"));
    }
    text
}

/// Without the beginning of a character whose end is not there.
fn whole(bytes: &[u8]) -> &[u8] {
    let rest = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if is_begun { &bytes[..bytes.len() - rest.len()] } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::OutputSpool;
    use std::io::Read;

    fn spooled(pieces: &[&[u8]]) -> String {
        let mut spool = OutputSpool::new();
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

#[cfg(test)]
mod line_tests {
    use super::{SHOWN, next, shown};

    fn lines(text: &str) -> Vec<String> {
        let (mut from, mut line, mut all) = (text.as_bytes(), Vec::new(), Vec::new());
        while let Some(length) = next(&mut from, &mut line).unwrap() {
            assert!(line.len() <= SHOWN);
            all.push(shown(&line, length));
        }
        all
    }

    #[test]
    fn lines_come_without_their_ends_and_empty_ones_count() {
        assert_eq!(lines("a\r\n\nb"), ["a", "", "b"]);
        assert_eq!(lines(""), Vec::<String>::new());
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_says_its_length() {
        let long = "窓".repeat(1_000);
        let all = lines(&format!("{long}\nnext"));
        assert_eq!(all[0], format!("{}… [cut: the line has 3000 bytes]", "窓".repeat(666)));
        assert_eq!(all[1], "next");
        let bare = "x".repeat(SHOWN);
        assert_eq!(lines(&bare), [bare]);
    }
}
