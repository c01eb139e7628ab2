//! JSON kept as the bytes it came in.
//!
//! Parsing to a value and writing it back changes `1.0`, integers above 2^53 and the order of keys. What we do not
//! understand we therefore keep raw. A raw value may only hold line breaks between tokens (inside strings JSON
//! forbids them), and those become spaces, because a journal entry is one line.

use serde::Serialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A JSON value as text, on one line.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Checks that `text` is one JSON value and keeps it.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
        Ok(Self(RawValue::from_string(text)?))
    }

    /// Keeps a value a parser has already checked.
    pub fn from_value(value: &RawValue) -> Self {
        if value.get().contains(['\n', '\r']) {
            let line = value.get().replace(['\n', '\r'], " ");
            if let Ok(raw) = RawValue::from_string(line) {
                return Self(raw);
            }
        }
        Self(value.to_owned())
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// Deepest nesting taken in; other programs that read our files stop somewhere beyond it.
const DEEPEST: usize = 128;

/// Checks what a raw value is not checked for: that every text is one, and that nesting has an end. `json` must be
/// JSON otherwise.
pub fn check(json: &str) -> Result<(), &'static str> {
    let (mut depth, mut rest) = (0usize, json);
    while let Some(at) = rest.find(['"', '[', '{', ']', '}']) {
        match rest.as_bytes()[at] {
            b'"' => {
                let end = at + string_len(&rest[at..]).ok_or("a text has no end")?;
                let escapes = rest[at..end].contains("\\u");
                if escapes && serde_json::from_str::<String>(&rest[at..end]).is_err() {
                    return Err("a text holds half of a surrogate pair");
                }
                rest = &rest[end..];
                continue;
            }
            b'[' | b'{' => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        if depth > DEEPEST {
            return Err("it is nested more than 128 deep");
        }
        rest = &rest[at + 1..];
    }
    Ok(())
}

/// Length of the JSON string that `text` begins with, quotes included; `None` when it has no end.
pub fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(i + 1),
            _ => {}
        }
    }
    None
}

/// The fields of a JSON object in the order they came, values untouched.
pub struct RawObject<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// Splits `text`, which must be one JSON object.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut de = serde_json::Deserializer::from_str(text);
        let fields = de.deserialize_map(Fields)?;
        de.end()?;
        Ok(Self(fields))
    }

    /// The value of `key`; the last one when a key stands twice, as every JSON parser takes it. `null` is absence.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| *v);
        found.filter(|v| v.get() != "null")
    }

    /// Like [`RawObject::get`], read as `T`.
    pub fn read<T: serde::de::Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, BadField> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let bad = |e: serde_json::Error| BadField { key: key.into(), why: e.to_string() };
        serde_json::from_str(value.get()).map(Some).map_err(bad)
    }

    /// What is left when `known` keys are taken out, as one object; `None` when nothing is left.
    pub fn rest(&self, known: &[&str]) -> Option<RawJson> {
        let mut text = String::new();
        for (key, value) in self.0.iter().filter(|(k, _)| !known.contains(&k.as_ref())) {
            text.push(if text.is_empty() { '{' } else { ',' });
            text.push_str(&serde_json::Value::from(key.as_ref()).to_string());
            text.push(':');
            text.push_str(value.get());
        }
        if text.is_empty() {
            return None;
        }
        text.push('}');
        RawJson::parse(text).ok()
    }
}

/// A field that is there but cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{key}`: {why}")]
pub struct BadField {
    /// The field's name.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            fields.push((key.0, map.next_value::<&'de RawValue>()?));
        }
        Ok(fields)
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_order_survive_and_lines_stay_whole() {
        let text = "{\"z\": 1.0,\n \"a\": 12345678901234567890, \"k\\n\": [1e400]}";
        let object = RawObject::parse(text).unwrap();
        let rest = object.rest(&[]).unwrap();
        assert_eq!(rest.get(), r#"{"z":1.0,"a":12345678901234567890,"k\n":[1e400]}"#);
        assert_eq!(RawJson::parse("[1,\n2.0]").unwrap().get(), "[1, 2.0]");
    }

    #[test]
    fn what_other_readers_would_stumble_over_is_found() {
        assert_eq!(check(r#"{"a":["\ud83d\ude00","\"]",{}],"b":"x]]]"}"#), Ok(()));
        assert!(check(r#"{"a":{"b":"\ud800"}}"#).is_err());
        assert!(check(r#"{"\udc00":1}"#).is_err());
        assert_eq!(check(&format!("{}{}", "[".repeat(128), "]".repeat(128))), Ok(()));
        assert!(check(&format!("{}{}", "[".repeat(129), "]".repeat(129))).is_err());
    }

    #[test]
    fn null_is_absence_and_the_last_double_wins() {
        let object = RawObject::parse(r#"{"a":null,"b":1,"b":2}"#).unwrap();
        assert!(object.get("a").is_none());
        assert_eq!(object.read::<u8>("b").unwrap(), Some(2));
        assert!(object.read::<String>("b").unwrap_err().to_string().starts_with("field `b`"));
    }
}
