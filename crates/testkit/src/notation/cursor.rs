//! A place in a line, and the few things that can stand there.

use super::BadNotation;
use komado_core::raw::RawJson;
use serde_json::value::RawValue;
use std::str::FromStr;

type Found<T> = Result<T, BadNotation>;

/// Reads one line from left to right.
pub(super) struct NotationCursor<'a> {
    number: usize,
    line: &'a str,
    at: usize,
}

impl<'a> NotationCursor<'a> {
    /// The beginning of line `number`.
    pub(super) fn new(number: usize, line: &'a str) -> Self {
        let mut cursor = Self { number, line, at: 0 };
        cursor.skip();
        cursor
    }

    fn skip(&mut self) {
        self.at = self.line.len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip();
    }

    /// What is wrong at this place.
    pub(super) fn fail<T>(&self, why: impl Into<String>) -> Found<T> {
        let column = self.line[..self.at].chars().count() + 1;
        Err(BadNotation { line: self.number, column, why: why.into() })
    }

    /// `what` was expected, but something else stands here.
    pub(super) fn expected<T>(&self, what: &str) -> Found<T> {
        let found: String = self.rest().chars().take_while(|c| !c.is_whitespace()).take(24).collect();
        match found.as_str() {
            "" => self.fail(format!("expected {what}, but the line ends here")),
            found => self.fail(format!("expected {what}, found: {found}")),
        }
    }

    /// True when nothing but a comment follows.
    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with('#')
    }

    /// The word here, which is not a key of an attribute.
    pub(super) fn peek(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        (end > 0 && !rest[end..].starts_with('=')).then(|| &rest[..end])
    }

    /// True when a quoted text stands here.
    pub(super) fn at_text(&self) -> bool {
        self.rest().starts_with('"')
    }

    /// True when this character stands here.
    pub(super) fn at_char(&self, c: char) -> bool {
        self.rest().starts_with(c)
    }

    /// Takes `word`, if it stands here.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.advance(word.len());
        }
        found
    }

    /// Takes `sign`, if it stands here.
    pub(super) fn eat_sign(&mut self, sign: char) -> bool {
        let found = self.at_char(sign);
        if found {
            self.advance(sign.len_utf8());
        }
        found
    }

    /// The word here, whatever it is.
    pub(super) fn word(&mut self, what: &str) -> Found<&'a str> {
        match self.peek() {
            Some(word) => {
                self.advance(word.len());
                Ok(word)
            }
            None => self.expected(what),
        }
    }

    /// A name, with or without quotes.
    pub(super) fn name(&mut self, what: &str) -> Found<String> {
        if self.at_text() { self.text(what) } else { self.word(what).map(str::to_owned) }
    }

    /// A quoted text.
    pub(super) fn text(&mut self, what: &str) -> Found<String> {
        if !self.at_text() {
            return self.expected(&format!("{what} in quotes"));
        }
        self.value::<String>(what)
    }

    /// A quoted text, if one stands here.
    pub(super) fn maybe_text(&mut self) -> Found<Option<String>> {
        if self.at_text() { self.text("a text").map(Some) } else { Ok(None) }
    }

    /// A JSON value, kept as it is.
    pub(super) fn json(&mut self, what: &str) -> Found<RawJson> {
        self.value::<&RawValue>(what).map(RawJson::from_value)
    }

    fn value<T: serde::Deserialize<'a>>(&mut self, what: &str) -> Found<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                self.advance(end);
                Ok(value)
            }
            Some(Err(error)) => self.fail(format!("{what}: {}", plainly(&error))),
            None => self.expected(what),
        }
    }

    /// The value of `key=value`, if that stands here.
    pub(super) fn attr(&mut self, key: &str) -> Found<Option<String>> {
        if !self.eat_key(key) {
            return Ok(None);
        }
        self.name(&format!("the value of {key}")).map(Some)
    }

    /// Takes `key=`, if it stands here.
    pub(super) fn eat_key(&mut self, key: &str) -> bool {
        let rest = self.rest();
        let found = rest.strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
        if found {
            self.advance(key.len() + 1);
        }
        found
    }

    /// The value of `key=number` with `unit` behind it, if that stands here.
    pub(super) fn count<T: FromStr>(&mut self, key: &str, unit: &str) -> Found<Option<T>> {
        let Some(value) = self.attr(key)? else { return Ok(None) };
        match value.strip_suffix(unit).and_then(|digits| digits.parse().ok()) {
            Some(count) => Ok(Some(count)),
            None => self.fail(format!("{key} must be a number{}: {value}", behind(unit))),
        }
    }

    /// A number.
    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Found<T> {
        let rest = self.rest();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..digits].parse() {
            Ok(number) => {
                self.advance(digits);
                Ok(number)
            }
            Err(_) => self.expected(what),
        }
    }

    /// The number here, if one stands here alone.
    pub(super) fn maybe_number<T: FromStr>(&mut self) -> Found<Option<T>> {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            self.number("a number").map(Some)
        } else {
            Ok(None)
        }
    }

    /// `~N`, or 0.
    pub(super) fn tokens(&mut self) -> Found<u32> {
        if self.eat_sign('~') { self.number("a number of tokens") } else { Ok(0) }
    }

    /// The end of the line.
    pub(super) fn end(&self) -> Found<()> {
        if self.at_end() { Ok(()) } else { self.expected("the end of the line") }
    }
}

fn behind(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" and {unit}") }
}

/// A JSON error without its own place, which counts from elsewhere.
fn plainly(error: &serde_json::Error) -> String {
    let why = error.to_string();
    why.split(" at line ").next().unwrap_or_default().to_owned()
}

/// True for a character of a name that needs no quotes.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '@' | '+' | '-')
}
