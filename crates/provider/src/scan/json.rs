//! JSON, byte by byte, cut anywhere: only its grammar.
//!
//! The scanner knows where it is and nothing of what stands there; its watch is told of each value as it begins,
//! goes on and ends. It holds a few words, whatever the size of what passes. What is not one JSON object is refused
//! with the byte at which it stops being one.

use crate::dialect::BadRequest;

/// The deepest nesting taken in, that of every other reader here.
const DEEPEST: usize = 128;

/// What holds other values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum JsonHolder {
    Object,
    List,
}

/// What holds none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum JsonToken {
    /// The name of a field.
    Key,
    /// A text.
    Text,
    /// A number, true, false or null.
    #[default]
    Plain,
}

/// Who is told what passes. Pieces of keys and texts come without their quotes, escapes as they are written.
pub(super) trait JsonWatch {
    fn open(&mut self, holder: JsonHolder, at: u64) -> Result<(), BadRequest>;
    fn close(&mut self, at: u64) -> Result<(), BadRequest>;
    fn begin(&mut self, token: JsonToken, at: u64) -> Result<(), BadRequest>;
    fn piece(&mut self, bytes: &[u8]) -> Result<(), BadRequest>;
    fn end(&mut self, token: JsonToken, at: u64) -> Result<(), BadRequest>;
}

/// Something is wrong at byte `at`.
pub(super) fn bad(at: u64, why: impl ToString) -> BadRequest {
    BadRequest::new(format!("body, byte {at}"), why)
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    /// A value.
    Value,
    /// A value, or the end of an empty list.
    Item,
    /// A key, or the end of an empty object.
    Field,
    /// A key.
    Key,
    Colon,
    /// A comma or an end.
    After,
    Text(JsonToken, Escape),
    Number(Digits),
    /// What is left of true, false or null.
    Word(&'static [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Escape {
    None,
    Begun,
    /// This many hexadecimal digits are to come.
    Hex(u8),
}

/// How far a number has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Part,
    Power,
    Sign,
    Raised,
}

impl Digits {
    /// With one more byte; `None` when it is none of a number's.
    fn with(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Part, b'0'..=b'9') => Self::Part,
            (Self::Zero | Self::Whole | Self::Part, b'e' | b'E') => Self::Power,
            (Self::Power, b'+' | b'-') => Self::Sign,
            (Self::Power | Self::Sign | Self::Raised, b'0'..=b'9') => Self::Raised,
            _ => return None,
        })
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Part | Self::Raised)
    }
}

/// Scans one JSON object.
#[derive(Debug, Default)]
pub(super) struct JsonScanner {
    /// The next byte's place.
    at: u64,
    depth: usize,
    /// A bit for each open holder, the innermost lowest: 1 for an object.
    objects: u128,
    state: State,
    utf8: Utf8,
}

impl JsonScanner {
    /// Takes the next bytes in.
    pub(super) fn push(&mut self, bytes: &[u8], watch: &mut impl JsonWatch) -> Result<(), BadRequest> {
        self.utf8.push(bytes, self.at).map_err(|at| bad(at, "not UTF-8; send the body in UTF-8"))?;
        let mut i = 0;
        while i < bytes.len() {
            i = match self.state {
                State::Text(token, escape) => self.text(bytes, i, (token, escape), watch)?,
                State::Number(digits) => self.number(bytes, i, digits, watch)?,
                State::Word(rest) => self.word(bytes, i, rest, watch)?,
                _ => {
                    if !matches!(bytes[i], b' ' | b'\n' | b'\r' | b'\t') {
                        self.structure(bytes[i], self.at + i as u64, watch)?;
                    }
                    i + 1
                }
            };
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// No more comes: gives the length.
    pub(super) fn end(self) -> Result<u64, BadRequest> {
        match (self.depth, self.state) {
            (0, State::After) => Ok(self.at),
            (0, _) => Err(bad(self.at, "the body is empty; send a JSON object")),
            _ => Err(bad(self.at, "the body ends before its JSON object does")),
        }
    }

    fn structure(&mut self, byte: u8, at: u64, watch: &mut impl JsonWatch) -> Result<(), BadRequest> {
        let in_object = self.objects & 1 == 1;
        match (self.state, byte) {
            (State::After, _) if self.depth == 0 => Err(bad(at, "something follows the JSON object")),
            (_, b'{') if matches!(self.state, State::Value | State::Item) => {
                self.open(JsonHolder::Object, at, watch)
            }
            (State::Value, _) if self.depth == 0 => Err(bad(at, "not a JSON object")),
            (State::Value | State::Item, b'[') => self.open(JsonHolder::List, at, watch),
            (State::Item, b']') => self.close(at, watch),
            (State::Value | State::Item, _) => self.scalar(byte, at, watch),
            (State::Field, b'}') => self.close(at, watch),
            (State::Field | State::Key, b'"') => {
                self.state = State::Text(JsonToken::Key, Escape::None);
                watch.begin(JsonToken::Key, at)
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(())
            }
            (State::After, b',') => {
                self.state = if in_object { State::Key } else { State::Value };
                Ok(())
            }
            (State::After, b'}') if in_object => self.close(at, watch),
            (State::After, b']') if !in_object => self.close(at, watch),
            (state, byte) => Err(bad(at, unexpected(state, byte))),
        }
    }

    fn open(&mut self, holder: JsonHolder, at: u64, watch: &mut impl JsonWatch) -> Result<(), BadRequest> {
        if self.depth == DEEPEST {
            return Err(bad(at, format!("it is nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(holder == JsonHolder::Object);
        self.state = if holder == JsonHolder::Object { State::Field } else { State::Item };
        watch.open(holder, at)
    }

    fn close(&mut self, at: u64, watch: &mut impl JsonWatch) -> Result<(), BadRequest> {
        self.depth -= 1;
        self.objects >>= 1;
        self.state = State::After;
        watch.close(at + 1)
    }

    fn scalar(&mut self, byte: u8, at: u64, watch: &mut impl JsonWatch) -> Result<(), BadRequest> {
        let (state, token) = match byte {
            b'"' => (State::Text(JsonToken::Text, Escape::None), JsonToken::Text),
            b'-' => (State::Number(Digits::Minus), JsonToken::Plain),
            b'0' => (State::Number(Digits::Zero), JsonToken::Plain),
            b'1'..=b'9' => (State::Number(Digits::Whole), JsonToken::Plain),
            b't' => (State::Word(b"rue"), JsonToken::Plain),
            b'f' => (State::Word(b"alse"), JsonToken::Plain),
            b'n' => (State::Word(b"ull"), JsonToken::Plain),
            _ => return Err(bad(at, unexpected(self.state, byte))),
        };
        self.state = state;
        watch.begin(token, at)?;
        if token == JsonToken::Plain { watch.piece(&[byte]) } else { Ok(()) }
    }

    /// Goes on in a key or a text; gives where it stopped.
    fn text(
        &mut self,
        bytes: &[u8],
        from: usize,
        (token, mut escape): (JsonToken, Escape),
        watch: &mut impl JsonWatch,
    ) -> Result<usize, BadRequest> {
        let mut i = from;
        while i < bytes.len() {
            let at = self.at + i as u64;
            match escape {
                Escape::None => {
                    i += plain(&bytes[i..]);
                    let at = self.at + i as u64;
                    match bytes.get(i) {
                        Some(b'"') => {
                            watch.piece(&bytes[from..i])?;
                            self.state = if token == JsonToken::Key { State::Colon } else { State::After };
                            watch.end(token, at + 1)?;
                            return Ok(i + 1);
                        }
                        Some(b'\\') => escape = Escape::Begun,
                        Some(_) => return Err(bad(at, "a control character in a text; write it as \\u00XX")),
                        None => break,
                    }
                }
                Escape::Begun => {
                    escape = match bytes[i] {
                        b'u' => Escape::Hex(4),
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Escape::None,
                        _ => return Err(bad(at, "no such escape in a text")),
                    };
                }
                Escape::Hex(left) => {
                    if !bytes[i].is_ascii_hexdigit() {
                        return Err(bad(at, "no hexadecimal digit after \\u"));
                    }
                    escape = if left == 1 { Escape::None } else { Escape::Hex(left - 1) };
                }
            }
            i += 1;
        }
        self.state = State::Text(token, escape);
        watch.piece(&bytes[from..])?;
        Ok(bytes.len())
    }

    fn number(
        &mut self,
        bytes: &[u8],
        from: usize,
        mut digits: Digits,
        watch: &mut impl JsonWatch,
    ) -> Result<usize, BadRequest> {
        let mut i = from;
        while let Some(next) = bytes.get(i).and_then(|byte| digits.with(*byte)) {
            digits = next;
            i += 1;
        }
        watch.piece(&bytes[from..i])?;
        self.state = State::Number(digits);
        if i < bytes.len() {
            let at = self.at + i as u64;
            if !digits.is_whole() {
                return Err(bad(at, "a number breaks off"));
            }
            self.state = State::After;
            watch.end(JsonToken::Plain, at)?;
        }
        Ok(i)
    }

    fn word(
        &mut self,
        bytes: &[u8],
        from: usize,
        rest: &'static [u8],
        watch: &mut impl JsonWatch,
    ) -> Result<usize, BadRequest> {
        let there = rest.len().min(bytes.len() - from);
        if bytes[from..from + there] != rest[..there] {
            return Err(bad(self.at + from as u64, "neither true nor false nor null"));
        }
        watch.piece(&bytes[from..from + there])?;
        self.state = State::Word(&rest[there..]);
        if there == rest.len() {
            self.state = State::After;
            watch.end(JsonToken::Plain, self.at + (from + there) as u64)?;
        }
        Ok(from + there)
    }
}

fn unexpected(state: State, byte: u8) -> String {
    let wanted = match state {
        State::Value => "a value",
        State::Item => "a value or ]",
        State::Field => "a name in quotes or }",
        State::Key => "a name in quotes",
        State::Colon => "a colon",
        _ => "a comma or an end",
    };
    format!("{wanted} is expected, not {:?}", char::from(byte))
}

/// How many bytes stand before the next quote, backslash or control character; eight are looked at in one step.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTES: u64 = ONES * 0x22;
    const SLASHES: u64 = ONES * 0x5c;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, _) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let low = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        // A byte above the first hit may be taken for one, too; the first is always one.
        let hits = low | zero(word ^ QUOTES) | zero(word ^ SLASHES);
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes[at..].iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
    rest.map_or(bytes.len(), |more| at + more)
}

// Whether bytes are UTF-8, however they are cut.

/// What of a character has come so far.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    held: [u8; 4],
    len: usize,
}

impl Utf8 {
    /// Takes the next bytes in, the first of which stands at `at`; gives the place of one that is wrong. Half a
    /// character at the very end needs no word: a JSON object ends with a brace.
    pub(super) fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), u64> {
        let mut from = 0;
        while self.len > 0 && from < bytes.len() {
            self.held[self.len] = bytes[from];
            (self.len, from) = (self.len + 1, from + 1);
            match std::str::from_utf8(&self.held[..self.len]) {
                Ok(_) => self.len = 0,
                Err(why) if why.error_len().is_none() => {}
                Err(_) => return Err(at + from as u64 - 1),
            }
        }
        let rest = &bytes[from..];
        let Err(why) = std::str::from_utf8(rest) else { return Ok(()) };
        let upto = why.valid_up_to();
        if why.error_len().is_some() {
            return Err(at + (from + upto) as u64);
        }
        self.len = rest.len() - upto;
        self.held[..self.len].copy_from_slice(&rest[upto..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn eight_at_a_time_stop_where_one_at_a_time_does() {
        let bytes: Vec<u8> = (0..=255u8).chain("窓を開ける, plainly\u{7f} said".bytes()).collect();
        for at in 0..bytes.len() {
            let slow = bytes[at..].iter().position(|b| *b < 0x20 || matches!(b, b'"' | b'\\'));
            assert_eq!(plain(&bytes[at..]), slow.unwrap_or(bytes.len() - at), "from {at}");
        }
    }
}

#[cfg(test)]
mod utf8_tests {
    use super::*;

    fn check(bytes: &[u8], size: usize) -> Result<(), u64> {
        let mut utf8 = Utf8::default();
        let mut at = 0;
        for piece in bytes.chunks(size) {
            utf8.push(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    #[test]
    fn a_cut_inside_a_character_is_no_mistake_and_a_mistake_is_found_at_any_cut() {
        let good = "a窓🪟é".as_bytes();
        let mut wrong = good.to_vec();
        wrong[2] = b'x';
        for size in 1..=good.len() {
            assert_eq!(check(good, size), Ok(()), "{size}");
            assert!(check(&wrong, size).is_err(), "{size}");
            assert!(check(b"\xed\xa0\x80", size).is_err(), "half of a pair, {size}");
        }
    }
}
