//! The named arguments of a call, as an interface that knows no types gives them.
//!
//! Values are kept as they were written: what a message says, down to its numbers and the order of its fields, is not ours to
//! change on the way into a journal.

use crate::{OpFault, OpResult, Operation};
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Characters of a wrong value that are shown.
const SHOWN: usize = 60;

/// Named arguments. One that is null is one that was left out; its name must be known all the same.
#[derive(Clone, Debug, Default)]
pub struct NamedArguments(BTreeMap<String, Box<RawValue>>);

impl From<Map<String, Value>> for NamedArguments {
    fn from(fields: Map<String, Value>) -> Self {
        let mut arguments = Self::default();
        fields.iter().for_each(|(name, value)| arguments.insert(name, value));
        arguments
    }
}

impl NamedArguments {
    /// The fields of a JSON object.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }

    /// Adds an argument.
    pub fn insert(&mut self, name: &str, value: &Value) {
        if let Ok(raw) = to_raw_value(value) {
            self.0.insert(name.to_owned(), raw);
        }
    }

    /// Those that were not left out.
    fn given(&self) -> impl Iterator<Item = (&String, &RawValue)> {
        self.0.iter().map(|(name, value)| (name, &**value)).filter(|(_, value)| value.get() != "null")
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.given().map(|(name, _)| name.as_str())
    }

    /// One that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    /// Takes one out that is a text.
    pub fn take(&mut self, name: &str) -> Option<String> {
        serde_json::from_str(self.0.remove(name)?.get()).ok()
    }

    /// All of them as a request, checked.
    pub fn request<O: Operation>(&self) -> OpResult<O> {
        self.check(&O::json_schema(&mut SchemaGenerator::default()))?;
        self.read()
    }

    /// All of them as a request.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> OpResult<T> {
        let text = serde_json::to_string(&self.given().collect::<BTreeMap<_, _>>())?;
        serde_json::from_str(&text).or_else(|error| {
            let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
                return Err(OpFault::malformed(error.to_string()));
            };
            settle(&mut value);
            serde_json::from_value(value).map_err(|error| OpFault::malformed(error.to_string()))
        })
    }

    /// Refuses names that a schema does not have, and values outside its bounds.
    pub(crate) fn check(&self, schema: &Schema) -> OpResult {
        let none = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        for (name, value) in &self.0 {
            let Some(property) = known.get(name) else {
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                return Err(OpFault::malformed(match &known[..] {
                    [] => format!("unknown field `{name}`; this takes none"),
                    known => format!("unknown field `{name}`; known are {}", known.join(", ")),
                }));
            };
            if value.get() == "null" {
                continue;
            }
            check_type(name, value.get(), property)?;
            // Lists and objects are read once, by the operation.
            if !value.get().starts_with(['{', '[']) {
                let value = serde_json::from_str(value.get())
                    .map_err(|error| OpFault::malformed(format!("{name}: {error}")))?;
                check_bounds(name, &value, property)?;
            }
        }
        Ok(())
    }
}

/// JSON knows one kind of number: 12.0 is 12, also where a whole number is asked for.
fn settle(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && (0.0..u64::MAX as f64).contains(float));
            if let (Some(float), None) = (whole, number.as_u64()) {
                *value = Value::from(float as u64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(fields) => fields.values_mut().for_each(settle),
        _ => {}
    }
}

/// The values that a schema lists, where it lists all that it takes.
fn choices(schema: &Value) -> Option<Vec<&Value>> {
    if schema["type"] == "null" {
        return Some(Vec::new());
    }
    if let Some(only) = schema.get("const") {
        return Some(vec![only]);
    }
    if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
        return Some(listed.iter().filter(|value| !value.is_null()).collect());
    }
    let either = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let each: Option<Vec<Vec<&Value>>> = either.iter().map(choices).collect();
    each.map(|each| each.concat())
}

/// A type of JSON: its name in a schema, the word for it, and whether a text is one.
type JsonType = (&'static str, &'static str, fn(&str) -> bool);

/// Refuses a value of another type than the schema asks for.
fn check_type(name: &str, json: &str, schema: &Value) -> OpResult {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let known: [JsonType; 6] = [
        ("string", "a text", |json| json.starts_with('"')),
        ("boolean", "true or false", |json| json.starts_with(['t', 'f'])),
        ("array", "a list", |json| json.starts_with('[')),
        ("object", "an object", |json| json.starts_with('{')),
        ("number", "a number", |json| json.starts_with(|first: char| first == '-' || first.is_ascii_digit())),
        // JSON knows one kind of number: 12.0 is whole.
        ("integer", "a whole number", |json| json.parse().is_ok_and(|number: f64| number.fract() == 0.0)),
    ];
    let find = |kind: &&str| known.iter().find(|(name, ..)| name == kind);
    if kinds.iter().filter_map(find).any(|(.., is)| is(json)) {
        return Ok(());
    }
    let words: Vec<&str> = kinds.iter().filter_map(find).map(|(_, word, _)| *word).collect();
    let more = json.chars().nth(SHOWN).map(|_| '…');
    let shown: String = json.chars().take(SHOWN).chain(more).collect();
    Err(OpFault::malformed(format!("{name} is {shown}; give {}", words.join(" or "))))
}

fn check_bounds(name: &str, value: &Value, schema: &Value) -> OpResult {
    if let Some(known) = choices(schema).filter(|known| !known.contains(&value)) {
        let known: Vec<String> = known.iter().filter_map(|value| value.as_str()).map(str::to_owned).collect();
        return Err(OpFault::malformed(format!("{name} is {value}; known are {}", known.join(", "))));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            return Err(OpFault::malformed(format!(
                "{name} is {value}; give {least} or more, or leave it out"
            )));
        }
        if let Some(most) = bound("maximum").filter(|most| number > *most) {
            return Err(OpFault::malformed(format!("{name} is {value}, and {most} is the most")));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        if bound("minLength").is_some_and(|least| length < least) {
            return Err(OpFault::malformed(format!("{name} is empty; say what is meant, or leave it out")));
        }
        if let Some(most) = bound("maxLength").filter(|most| length > *most) {
            return Err(OpFault::malformed(format!("{name} is longer than {most} characters")));
        }
    }
    Ok(())
}
