//! Tools and parameters, from one dialect's words to another's.
//!
//! A function means the same everywhere, so it is translated; schema and description go over byte for byte. What only
//! one dialect knows (a tool the server runs, a setting for its thinking) is left out for others: a request that
//! names it would be refused. Nothing is translated when it is the dialect's own, or when nobody says whose it is.

mod choice;
pub(super) mod fields;
mod params;

use super::Dialect;
use fields::{Fields, list};
use komado_core::journal::Setup;
use komado_core::message::CallKind;
use komado_core::raw::Object;
use serde_json::value::RawValue;

/// What a tool without a schema is given where one is required.
const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The tools of `setup` as a JSON array in `to`'s form; as they are when that is whose they are (or nobody says).
pub(super) fn tools(setup: &Setup, to: Dialect) -> Option<String> {
    let raw = setup.tools.as_ref()?;
    match origin(setup, to) {
        Origin::Same => Some(raw.get().to_owned()),
        Origin::Other(from) => {
            let written =
                read_all(raw.get(), from).iter().filter_map(|tool| tool.write(to)).collect::<Vec<_>>();
            list(&written)
        }
        Origin::Unknown => None,
    }
}

/// The parameters of `setup` as fields in `to`'s words. Those of the same dialect as they are; of another,
/// those that mean the same. Never one of `own`, which the writer writes itself.
pub(super) fn params(setup: &Setup, to: Dialect, own: &[&str]) -> Fields {
    let Some(raw) = &setup.params else { return Fields::default() };
    let mut fields = match origin(setup, to) {
        Origin::Same => Fields::of(raw.get()),
        Origin::Other(from) => params::translated(setup, &Fields::of(raw.get()), from, to),
        Origin::Unknown => Fields::default(),
    };
    fields.retain(|key, _| !own.contains(&key));
    fields
}

/// Whose form a setup has, seen from the dialect that is to be written.
enum Origin {
    /// Its own, or nobody says.
    Same,
    /// Another one's.
    Other(Dialect),
    /// One we do not know.
    Unknown,
}

fn origin(setup: &Setup, to: Dialect) -> Origin {
    match setup.dialect.as_deref() {
        None => Origin::Same,
        Some(name) if name == to.name() => Origin::Same,
        Some(name) => Dialect::named(name).map_or(Origin::Unknown, Origin::Other),
    }
}

/// A tool that more than one dialect knows.
struct Tool<'a> {
    kind: CallKind,
    name: String,
    description: Option<&'a str>,
    /// The schema of a function, the format of a custom tool.
    shape: Option<&'a str>,
    strict: Option<&'a str>,
}

fn read_all(tools: &str, from: Dialect) -> Vec<Tool<'_>> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools).unwrap_or_default();
    tools.into_iter().filter_map(|tool| Tool::read(tool.get(), from)).collect()
}

impl<'a> Tool<'a> {
    /// Reads a tool of `from`; `None` when no other dialect would know it.
    fn read(json: &'a str, from: Dialect) -> Option<Self> {
        let outer = Object::parse(json).ok()?;
        let kind: Option<String> = outer.read("type").ok()?;
        let (holder, kind) = match (from, kind.as_deref()) {
            (Dialect::Messages, None | Some("custom")) => (None, CallKind::Function),
            (Dialect::Messages, _) => return None,
            (Dialect::Responses, Some("function")) => (None, CallKind::Function),
            (Dialect::Responses, Some("custom")) => (None, CallKind::Custom),
            (Dialect::Responses, _) => return None,
            (Dialect::Chat | Dialect::Ollama, None | Some("function")) => {
                (Some("function"), CallKind::Function)
            }
            (Dialect::Chat, Some("custom")) => (Some("custom"), CallKind::Custom),
            (Dialect::Chat | Dialect::Ollama, _) => return None,
        };
        let inner = match holder {
            Some(holder) => Object::parse(outer.get(holder)?.get()).ok()?,
            None => outer,
        };
        let shape = match (kind, from) {
            (CallKind::Custom, _) => "format",
            (CallKind::Function, Dialect::Messages) => "input_schema",
            (CallKind::Function, _) => "parameters",
        };
        let value = |key: &str| inner.get(key).map(RawValue::get);
        // Anthropic's word for strictness has other rules than OpenAI's: what one takes the other may refuse.
        let strict = value("strict").filter(|_| from != Dialect::Messages);
        let name = inner.read::<String>("name").ok()??;
        Some(Self { kind, name, description: value("description"), shape: value(shape), strict })
    }

    /// Writes it for `to`; `None` when that one has no such tool.
    fn write(&self, to: Dialect) -> Option<String> {
        let mut inner = Fields::default();
        inner.say("name", &self.name);
        if let Some(description) = self.description {
            inner.put("description", description);
        }
        match self.kind {
            CallKind::Custom => self.write_custom(to, inner),
            CallKind::Function => Some(self.write_function(to, inner)),
        }
    }

    fn write_function(&self, to: Dialect, mut inner: Fields) -> String {
        let strict = self.strict.filter(|_| matches!(to, Dialect::Chat | Dialect::Responses));
        match (to, self.shape) {
            (Dialect::Messages, shape) => inner.put("input_schema", shape.unwrap_or(NO_ARGUMENTS)),
            (Dialect::Chat, None) => {}
            (_, shape) => inner.put("parameters", shape.unwrap_or(NO_ARGUMENTS)),
        }
        if let Some(strict) = strict {
            inner.put("strict", strict);
        } else if to == Dialect::Responses {
            // There the default is the other way round, and a schema written for another API may not be strict.
            inner.put("strict", "false");
        }
        held(to, "function", inner)
    }

    fn write_custom(&self, to: Dialect, mut inner: Fields) -> Option<String> {
        if !matches!(to, Dialect::Chat | Dialect::Responses) {
            return None;
        }
        if let Some(format) = self.shape {
            inner.put("format", format_for(to, format));
        }
        Some(held(to, "custom", inner))
    }
}

/// Puts a tool's fields where `to` has them.
fn held(to: Dialect, kind: &str, inner: Fields) -> String {
    match to {
        Dialect::Messages => inner.json(),
        Dialect::Responses => format!("{{\"type\":\"{kind}\",{}}}", inner.inner()),
        Dialect::Chat | Dialect::Ollama => format!("{{\"type\":\"{kind}\",\"{kind}\":{}}}", inner.json()),
    }
}

/// A grammar stands in an object of its own in chat, and beside its type in responses.
fn format_for(to: Dialect, format: &str) -> String {
    let mut fields = Fields::of(format);
    if fields.get("type") != Some(r#""grammar""#) {
        return format.to_owned();
    }
    match (to, fields.take("grammar")) {
        (Dialect::Responses, Some(grammar)) => fields.put_all(&grammar),
        (Dialect::Chat, None) => {
            let mut grammar = Fields::default();
            for key in ["syntax", "definition"] {
                fields.take(key).into_iter().for_each(|value| grammar.put(key, value));
            }
            fields.put("grammar", grammar.json());
        }
        (_, Some(grammar)) => fields.put("grammar", grammar),
        (_, None) => {}
    }
    fields.json()
}

#[cfg(test)]
mod tests;
