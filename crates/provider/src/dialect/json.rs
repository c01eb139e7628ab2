//! JSON as text: put together, taken apart, never read into values and back.
//!
//! Shared by the dialects whose blocks and items carry fields that only they know.

use super::BadRequest;
use crate::event::ModelEvent;
use komado_core::message::Opaque;
use komado_core::raw::{RawJson, RawObject};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, Write};

/// Writes `text` as a JSON string.
pub(super) fn write_string(text: &str, out: &mut dyn Write) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

/// The fields of a JSON object without the braces; `None` when there are none.
pub(super) fn inner(json: &str) -> Option<&str> {
    let inner = json.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inner.is_empty()).then_some(inner)
}

/// Writes the fields of `json`, each after a comma.
pub(super) fn splice(json: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    match json.and_then(inner) {
        Some(inner) => write!(out, ",{inner}"),
        None => Ok(()),
    }
}

/// What `opaque` holds, when it is `dialect`'s.
pub(super) fn of<'a>(opaque: Option<&'a Opaque>, dialect: &str) -> Option<&'a str> {
    opaque.filter(|opaque| opaque.dialect == dialect).map(|opaque| opaque.json.get())
}

/// The fields of `opaque`, when it is `dialect`'s.
pub(super) fn own(opaque: Option<&Opaque>, dialect: &str) -> Option<JsonFields> {
    of(opaque, dialect).map(JsonFields::of)
}

/// `json` as something that only `dialect` knows.
pub(super) fn opaque(dialect: &str, json: RawJson) -> Opaque {
    Opaque { dialect: dialect.into(), json }
}

/// A text field; `None` when it is missing or no text.
pub(super) fn text(object: &RawObject<'_>, key: &str) -> Option<String> {
    object.read(key).ok().flatten()
}

/// A text field that says something.
pub(super) fn said(object: &RawObject<'_>, key: &str) -> Option<String> {
    text(object, key).filter(|text| !text.is_empty())
}

/// A count; `None` when it is missing or no number. Some servers write it as `12.0`.
pub(super) fn number(object: &RawObject<'_>, key: &str) -> Option<u64> {
    let text = object.get(key)?.get();
    let rounded = || text.parse::<f64>().ok().filter(|n| (0.0..1e15).contains(n));
    text.parse().ok().or_else(|| rounded().map(|n| n as u64))
}

/// An object field; `None` when it is missing or no object.
pub(super) fn object<'a>(object: &RawObject<'a>, key: &str) -> Option<RawObject<'a>> {
    RawObject::parse(object.get(key)?.get()).ok()
}

/// The elements of a list field; none when it is missing or no list.
pub(super) fn list<'a>(object: &RawObject<'a>, key: &str) -> Vec<&'a str> {
    let list: Option<Vec<&RawValue>> = object.read(key).ok().flatten();
    list.unwrap_or_default().into_iter().map(RawValue::get).collect()
}

/// The objects of a list field.
pub(super) fn objects<'a>(object: &RawObject<'a>, key: &str) -> impl Iterator<Item = RawObject<'a>> {
    list(object, key).into_iter().filter_map(|json| RawObject::parse(json).ok())
}

/// The object at `place`.
pub(super) fn parsed<'a>(json: &'a str, place: &str) -> Result<RawObject<'a>, BadRequest> {
    RawObject::parse(json).map_err(|e| BadRequest::new(place, format!("not a JSON object: {e}")))
}

/// The field `key` of the object at `place`, which is empty for the request itself.
pub(super) fn field<'a, T: Deserialize<'a>>(
    object: &RawObject<'a>,
    place: &str,
    key: &str,
) -> Result<Option<T>, BadRequest> {
    let dot = if place.is_empty() { "" } else { "." };
    object.read(key).map_err(|bad| BadRequest::new(format!("{place}{dot}{key}"), bad.why))
}

/// The tools of a request, which must be a list.
pub(super) fn tools(request: &RawObject<'_>) -> Result<Option<RawJson>, BadRequest> {
    match request.get("tools") {
        Some(tools) if !tools.get().starts_with('[') => Err(BadRequest::new("tools", "they must be a list")),
        tools => Ok(tools.map(RawJson::from_value)),
    }
}

/// The parts under `key` of the object at `place`; a bare text is one of them. They are called `name`.
pub(super) fn parts(
    holder: &RawObject<'_>,
    key: &str,
    place: &str,
    name: &str,
) -> Result<Vec<String>, BadRequest> {
    let Some(content) = holder.get(key) else { return Ok(Vec::new()) };
    if content.get().starts_with('"') {
        return Ok(vec![format!("{{\"type\":\"text\",\"text\":{}}}", content.get())]);
    }
    let parts: Result<Vec<&RawValue>, _> = serde_json::from_str(content.get());
    let wrong =
        |_| BadRequest::new(format!("{place}.{key}"), format!("it must be a text or a list of {name}"));
    Ok(parts.map_err(wrong)?.into_iter().map(|part| part.get().to_owned()).collect())
}

/// Hands an event on, when there is one.
pub(super) fn tell(event: Option<ModelEvent>, each: &mut dyn FnMut(ModelEvent)) {
    event.into_iter().for_each(each);
}

/// The fields of a call that are `dialect`'s. A call does not say whose its extra fields are, so they are kept under
/// the dialect's name.
pub(super) fn call_fields(extra: Option<&RawJson>, dialect: &str) -> Option<String> {
    let object = RawObject::parse(extra?.get()).ok()?;
    object.get(dialect).map(|fields| fields.get().to_owned())
}

/// `fields` of a call, under the name of the dialect they belong to.
pub(super) fn call_extra(fields: &JsonFields, dialect: &str) -> Option<RawJson> {
    if fields.is_empty() {
        return None;
    }
    RawJson::parse(format!("{{{}:{}}}", quoted(dialect), fields.json())).ok()
}

/// Code and words of an error, whatever shape it came in.
pub(super) fn complaint(body: &str) -> (Option<String>, String) {
    let Ok(whole) = RawObject::parse(body) else { return (None, body.to_owned()) };
    let response = object(&whole, "response");
    let within = response.as_ref().unwrap_or(&whole);
    let error = object(within, "error");
    let told = error.as_ref().unwrap_or(within);
    (text(told, "code").or_else(|| text(told, "type")), error_words(body))
}

/// The words of an error, wherever the provider put them; the whole body when they are not found.
pub(super) fn error_words(body: &str) -> String {
    fn find(json: &str, depth: usize) -> Option<String> {
        if let Ok(text) = serde_json::from_str(json) {
            return Some(text);
        }
        let object = RawObject::parse(json).ok().filter(|_| depth < 4)?;
        let keys = ["response", "error", "message", "detail"];
        keys.into_iter().find_map(|key| find(object.get(key)?.get(), depth + 1))
    }
    find(body, 0).unwrap_or_else(|| body.trim().to_owned())
}

/// Adds one server-sent event to `out`.
pub(super) fn frame(name: &str, json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("event: {name}\ndata: {json}\n\n").as_bytes());
}

/// All fields of `object`.
pub(super) fn all(object: &RawObject<'_>) -> JsonFields {
    let mut fields = JsonFields::default();
    object.0.iter().for_each(|(key, value)| fields.put(key, line(value.get())));
    fields
}

/// The fields of `object` other than `known`, without those that say nothing: null and empty lists.
pub(super) fn rest(object: &RawObject<'_>, known: &[&str]) -> JsonFields {
    let says = |json: &str| json != "null" && !json.trim_matches(['[', ']', ' ']).is_empty();
    let mut fields = all(object);
    fields.retain(|key, json| !known.contains(&key) && says(json));
    fields
}

/// `fields` as something that only `dialect` knows; `None` when there are none.
pub(super) fn kept(fields: &JsonFields, dialect: &str) -> Option<Opaque> {
    if fields.is_empty() {
        return None;
    }
    Some(opaque(dialect, RawJson::parse(fields.json()).ok()?))
}

/// Adds `json` to the list under `key`.
pub(super) fn add(fields: &mut JsonFields, key: &str, json: &str) {
    let known = fields.get(key).and_then(|list| list.trim().strip_prefix('[')?.strip_suffix(']'));
    let list = match known.map(str::trim).filter(|inner| !inner.is_empty()) {
        Some(inner) => format!("[{inner},{}]", line(json)),
        None => format!("[{}]", line(json)),
    };
    fields.put(key, list);
}

/// Takes a piece of a value in: texts grow, anything else is replaced.
pub(super) fn grow(fields: &mut JsonFields, key: &str, json: &str) {
    let words = |json: &str| serde_json::from_str::<String>(json).ok();
    let json = match (fields.get(key).and_then(words), words(json)) {
        (Some(before), Some(more)) => quoted(&(before + &more)),
        _ => line(json),
    };
    fields.put(key, json);
}

/// JSON on one line: between tokens a line break says no more than a space.
fn line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

// The fields of a JSON object, in order, with their values as they came.
//
// Most of what a codec writes is put together from raw pieces of other JSON. It is done here once, so that no one
// forgets a quote, writes a key twice, or sends a number through a float.

/// Keys and the JSON text of their values.
#[derive(Clone, Debug, Default)]
pub(in crate::dialect) struct JsonFields(Vec<(String, String)>);

impl JsonFields {
    /// The fields of `json`; none when it is not an object. Of a key that stands twice the last value is taken, as every
    /// parser does.
    pub(in crate::dialect) fn of(json: &str) -> Self {
        let mut fields = Self::default();
        fields.put_all(json);
        fields
    }

    /// Sets every field of `json`; none when it is not an object.
    pub(in crate::dialect) fn put_all(&mut self, json: &str) {
        if let Ok(object) = RawObject::parse(json) {
            object.0.iter().for_each(|(key, value)| self.put(key, value.get()));
        }
    }

    /// The value of `key`.
    pub(in crate::dialect) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Takes `key` out.
    pub(in crate::dialect) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    /// Sets `key` to the JSON `value`; where it already stands, its place stays.
    pub(in crate::dialect) fn put(&mut self, key: &str, value: impl Into<String>) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, place)) => *place = value.into(),
            None => self.0.push((key.to_owned(), value.into())),
        }
    }

    /// Sets `key` to a text.
    pub(in crate::dialect) fn say(&mut self, key: &str, text: &str) {
        self.put(key, quoted(text));
    }

    /// Sets `key` unless it is there.
    pub(in crate::dialect) fn suggest(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.put(key, value);
        }
    }

    /// True when there is no field.
    pub(in crate::dialect) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields in order.
    pub(in crate::dialect) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Keeps the fields for which `keep` says so.
    pub(in crate::dialect) fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// What stands between the braces: `"a":1,"b":2`.
    pub(in crate::dialect) fn inner(&self) -> String {
        let fields: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{}:{value}", quoted(key))).collect();
        fields.join(",")
    }

    /// As one JSON object.
    pub(in crate::dialect) fn json(&self) -> String {
        format!("{{{}}}", self.inner())
    }
}

/// `text` as a JSON string.
pub(in crate::dialect) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A JSON array of pieces that are JSON already; `None` when there are none.
pub(in crate::dialect) fn array(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_grow_without_being_read_into_values() {
        let object = RawObject::parse(r#"{"type":"x","n":1.0,"none":null,"list":[ ],"a":"窓"}"#).unwrap();
        let mut fields = rest(&object, &["type"]);
        grow(&mut fields, "a", r#""を\n""#);
        grow(&mut fields, "n", "12345678901234567890");
        add(&mut fields, "cites", "{\"k\":\n1.0}");
        add(&mut fields, "cites", "2");
        assert_eq!(fields.json(), r#"{"n":12345678901234567890,"a":"窓を\n","cites":[{"k": 1.0},2]}"#);
    }

    #[test]
    fn an_error_is_understood_in_every_shape() {
        let words = |body: &str| complaint(body).1;
        assert_eq!(words(r#"{"type":"error","error":{"type":"t","message":"m"}}"#), "m");
        assert_eq!(words(r#"{"error":"plain"}"#), "plain");
        assert_eq!(words("<html>"), "<html>");
        let failed = r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"long"}}}"#;
        assert_eq!(complaint(failed), (Some("context_length_exceeded".into()), "long".into()));
    }
}
