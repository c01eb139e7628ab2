//! Bytes to lines, and lines to server-sent events, however the bytes were cut.
//!
//! A line is held only until it is whole. One that never ends is given up at [`LONGEST`], or a broken server could
//! fill the memory.

use std::borrow::Cow;

/// The longest line taken in.
pub const LONGEST: usize = 64 << 20;

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    held: Vec<u8>,
    overlong: bool,
}

impl LineSplitter {
    /// Takes bytes in and hands on each line that is now whole, without its line break.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..at], &rest[at + 1..]);
            if self.held.is_empty() && !self.overlong {
                each(bare(line));
            } else {
                self.hold(line);
                let held = std::mem::take(&mut self.held);
                if !std::mem::take(&mut self.overlong) {
                    each(bare(&held));
                }
            }
            rest = after;
        }
        self.hold(rest);
    }

    /// Hands on what is left when no more comes.
    pub fn end(&mut self, each: &mut dyn FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        if !std::mem::take(&mut self.overlong) && !held.is_empty() {
            each(bare(&held));
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.held.len() + bytes.len() > LONGEST {
            self.overlong = true;
            self.held = Vec::new();
        }
        if !self.overlong {
            self.held.extend_from_slice(bytes);
        }
    }
}

fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Bytes as text that can be read: without a mark before it, and with U+FFFD for what is none. Half of a surrogate pair,
/// escaped in JSON by a server that cut its words between the halves, would make the whole line unreadable.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => mended(text.trim_start_matches('\u{feff}')),
        Cow::Owned(text) => Cow::Owned(mended(text.trim_start_matches('\u{feff}')).into_owned()),
    }
}

fn mended(text: &str) -> Cow<'_, str> {
    let mut out: Option<Vec<u8>> = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let (half, width) = match escaped(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(escaped(bytes, at + 6), Some(0xDC00..=0xDFFF)) => (false, 12),
            Some(0xD800..=0xDFFF) => (true, 6),
            _ => (false, 2),
        };
        if half {
            out.get_or_insert_with(|| bytes.to_vec())[at + 2..at + 6].copy_from_slice(b"fffd");
        }
        at = (at + width).min(bytes.len());
    }
    // Only hexadecimal digits were exchanged for others.
    match out.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(text),
    }
}

/// The unit that is escaped at `at`.
fn escaped(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Splits bytes into server-sent events.
#[derive(Debug, Default)]
pub struct SseSplitter {
    lines: LineSplitter,
    name: String,
    data: String,
    has_data: bool,
}

impl SseSplitter {
    /// Takes bytes in and hands on each event that is now whole: its name (empty when it has none) and its data.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(bytes, &mut |line| self.line(line, each));
        self.lines = lines;
    }

    /// Hands on what is left when no more comes: a last event need not end with an empty line.
    pub fn end(&mut self, each: &mut dyn FnMut(&str, &str)) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.end(&mut |line| self.line(line, each));
        self.line(b"", each);
    }

    fn line(&mut self, line: &[u8], each: &mut dyn FnMut(&str, &str)) {
        if line.is_empty() {
            if self.has_data {
                each(&self.name, &self.data);
            }
            (self.has_data, self.name, self.data) = (false, String::new(), String::new());
            return;
        }
        let line = text(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Old servers of llama.cpp tell an error in a field of its own.
            "error" if value.starts_with('{') => each("error", value),
            // A comment keeps the line open; ids and retry times are for browsers.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str, size: usize) -> Vec<(String, String)> {
        let (mut sse, mut found) = (SseSplitter::default(), Vec::new());
        let mut each = |name: &str, data: &str| found.push((name.to_owned(), data.to_owned()));
        text.as_bytes().chunks(size).for_each(|bytes| sse.push(bytes, &mut each));
        sse.end(&mut each);
        found
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let text = ": hi\n\nevent: a\r\ndata: 窓\r\n\r\ndata:1\ndata: 2\nid: 7\n\n\n\ndata: [DONE]";
        let whole = events(text, text.len());
        let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        assert_eq!(whole, [pair("a", "窓"), pair("", "1\n2"), pair("", "[DONE]")]);
        for size in 1..text.len() {
            assert_eq!(events(text, size), whole, "{size}");
        }
    }

    #[test]
    fn half_of_a_pair_and_a_mark_before_the_text_do_no_harm() {
        let read = |text: &str| super::text(text.as_bytes()).into_owned();
        assert_eq!(read("\u{feff}data: 1"), "data: 1");
        for same in [r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\ud83d"}"#, r#"{"a":"\u7a93\n"}"#, "\\u12", "窓\\"]
        {
            assert_eq!(read(same), same);
        }
        assert_eq!(read(r#"{"a":"x\ud83d"}"#), r#"{"a":"x\ufffd"}"#);
        assert_eq!(read(r#"{"a":"\uDE00\ud83d\n"}"#), r#"{"a":"\ufffd\ufffd\n"}"#);
        assert_eq!(events("\u{feff}data: {\"t\":\"\\ud83d\"}\n\n", 3)[0].1, r#"{"t":"\ufffd"}"#);
    }

    #[test]
    fn a_line_without_end_is_given_up_and_the_next_one_is_read() {
        let (mut lines, mut found) = (LineSplitter::default(), Vec::new());
        let mut each = |line: &[u8]| found.push(line.to_vec());
        let block = vec![b'x'; 1 << 20];
        (0..70).for_each(|_| lines.push(&block, &mut each));
        lines.push(b"\nnext\n", &mut each);
        assert_eq!(found, [b"next"]);
    }
}
