//! One line of a file at a time, of which no more is held than is shown.

use std::io::{self, BufRead};

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
