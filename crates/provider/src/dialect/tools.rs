//! Tools and parameters, from one dialect's words to another's.
//!
//! A function means the same everywhere, so it is translated; schema and description go over byte for byte. What only
//! one dialect knows (a tool the server runs, a setting for its thinking) is left out for others: a request that
//! names it would be refused. Nothing is translated when it is the dialect's own, or when it is not said whose it is.

#[cfg(test)]
mod tests;

use super::Dialect;
use super::json::{JsonFields, array, quoted};
use komado_core::journal::Setup;
use komado_core::message::CallKind;
use komado_core::raw::RawObject;
use serde_json::value::RawValue;

/// What a tool without a schema is given where one is required.
const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The tools of `setup` as a JSON array in `to`'s form; as they are when that is whose they are (or that is not said).
pub(super) fn tools(setup: &Setup, to: Dialect) -> Option<String> {
    let raw = setup.tools.as_ref()?;
    match origin(setup, to) {
        Origin::Same => Some(raw.get().to_owned()),
        Origin::Other(from) => {
            let written =
                read_all(raw.get(), from).iter().filter_map(|tool| tool.write(to)).collect::<Vec<_>>();
            array(&written)
        }
        Origin::Unknown => None,
    }
}

/// The parameters of `setup` as fields in `to`'s words. Those of the same dialect as they are; of another,
/// those that mean the same. Never one of `own`, which the writer writes itself.
pub(super) fn params(setup: &Setup, to: Dialect, own: &[&str]) -> JsonFields {
    let Some(raw) = &setup.params else { return JsonFields::default() };
    let mut fields = match origin(setup, to) {
        Origin::Same => JsonFields::of(raw.get()),
        Origin::Other(from) => translated(setup, &JsonFields::of(raw.get()), from, to),
        Origin::Unknown => JsonFields::default(),
    };
    fields.retain(|key, _| !own.contains(&key));
    fields
}

/// Whose form a setup has, seen from the dialect that is to be written.
enum Origin {
    /// Its own, or not said.
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
        let outer = RawObject::parse(json).ok()?;
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
            Some(holder) => RawObject::parse(outer.get(holder)?.get()).ok()?,
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
        let mut inner = JsonFields::default();
        inner.say("name", &self.name);
        if let Some(description) = self.description {
            inner.put("description", description);
        }
        match self.kind {
            CallKind::Custom => self.write_custom(to, inner),
            CallKind::Function => Some(self.write_function(to, inner)),
        }
    }

    fn write_function(&self, to: Dialect, mut inner: JsonFields) -> String {
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

    fn write_custom(&self, to: Dialect, mut inner: JsonFields) -> Option<String> {
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
fn held(to: Dialect, kind: &str, inner: JsonFields) -> String {
    match to {
        Dialect::Messages => inner.json(),
        Dialect::Responses => format!("{{\"type\":\"{kind}\",{}}}", inner.inner()),
        Dialect::Chat | Dialect::Ollama => format!("{{\"type\":\"{kind}\",\"{kind}\":{}}}", inner.json()),
    }
}

/// A grammar stands in an object of its own in chat, and beside its type in responses.
fn format_for(to: Dialect, format: &str) -> String {
    let mut fields = JsonFields::of(format);
    if fields.get("type") != Some(r#""grammar""#) {
        return format.to_owned();
    }
    match (to, fields.take("grammar")) {
        (Dialect::Responses, Some(grammar)) => fields.put_all(&grammar),
        (Dialect::Chat, None) => {
            let mut grammar = JsonFields::default();
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

// Which tool the model must or may call, in each dialect's words.
//
// A choice is only written when the tools it speaks of are: every provider refuses a choice without tools, and one
// that names a tool it was not given.

/// Which tools may be called.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Choice {
    Auto,
    None,
    Required,
    Named(String),
}

/// The choice in `params` of `from`, when there is one that others know.
fn read_choice(params: &JsonFields, from: Dialect) -> Option<Choice> {
    let json = params.get("tool_choice").filter(|_| from != Dialect::Ollama)?;
    if let Ok(word) = serde_json::from_str::<String>(json) {
        return plain(&word);
    }
    let object = RawObject::parse(json).ok()?;
    let kind: String = object.read("type").ok()??;
    let named = |object: &RawObject<'_>| object.read("name").ok().flatten().map(Choice::Named);
    match (from, kind.as_str()) {
        (Dialect::Messages, "auto" | "any" | "none") => plain(&kind),
        (Dialect::Messages, "tool") | (Dialect::Responses, "function" | "custom") => named(&object),
        (Dialect::Chat, "function" | "custom") => named(&RawObject::parse(object.get(&kind)?.get()).ok()?),
        _ => None,
    }
}

/// The choice that is one word.
fn plain(word: &str) -> Option<Choice> {
    match word {
        "auto" => Some(Choice::Auto),
        "none" => Some(Choice::None),
        "required" | "any" => Some(Choice::Required),
        _ => None,
    }
}

/// Whether several calls may stand in one answer, when `params` say so.
fn parallel(params: &JsonFields, from: Dialect) -> Option<bool> {
    match from {
        Dialect::Chat | Dialect::Responses => {
            params.get("parallel_tool_calls").and_then(|json| json.parse().ok())
        }
        Dialect::Messages => {
            let choice = JsonFields::of(params.get("tool_choice")?);
            choice.get("disable_parallel_tool_use")?.parse().ok().map(|disabled: bool| !disabled)
        }
        Dialect::Ollama => None,
    }
}

/// Writes both into `out` in `to`'s words; `tools` are those that `to` is given.
fn put_choice(
    choice: Option<Choice>,
    parallel: Option<bool>,
    tools: &[Tool<'_>],
    to: Dialect,
    out: &mut JsonFields,
) {
    if tools.is_empty() {
        return;
    }
    let choice = choice.filter(|choice| match choice {
        Choice::Named(name) => tools.iter().any(|tool| tool.name == *name),
        _ => true,
    });
    match to {
        Dialect::Ollama => {}
        Dialect::Messages => {
            let single = parallel == Some(false);
            if let Some(choice) = choice.or(single.then_some(Choice::Auto)) {
                out.put("tool_choice", for_messages(&choice, parallel));
            }
        }
        Dialect::Chat | Dialect::Responses => {
            if let Some(choice) = choice {
                out.put("tool_choice", for_openai(&choice, tools, to));
            }
            if let Some(parallel) = parallel {
                out.put("parallel_tool_calls", parallel.to_string());
            }
        }
    }
}

fn for_messages(choice: &Choice, parallel: Option<bool>) -> String {
    let mut fields = JsonFields::default();
    match choice {
        Choice::Auto => fields.say("type", "auto"),
        Choice::None => fields.say("type", "none"),
        Choice::Required => fields.say("type", "any"),
        Choice::Named(name) => {
            fields.say("type", "tool");
            fields.say("name", name);
        }
    }
    if parallel == Some(false) && *choice != Choice::None {
        fields.put("disable_parallel_tool_use", "true");
    }
    fields.json()
}

fn for_openai(choice: &Choice, tools: &[Tool<'_>], to: Dialect) -> String {
    let name = match choice {
        Choice::Auto => return quoted("auto"),
        Choice::None => return quoted("none"),
        Choice::Required => return quoted("required"),
        Choice::Named(name) => name,
    };
    let custom = tools.iter().any(|tool| tool.name == *name && tool.kind == CallKind::Custom);
    let kind = if custom { "custom" } else { "function" };
    let mut inner = JsonFields::default();
    inner.say("name", name);
    held(to, kind, inner)
}

// Parameters of a request, from one dialect's words to another's.
//
// Only what means the same on both sides goes over. How long an answer may be is the writer's matter; settings for
// reasoning, caching and output formats stay at home.

/// Parameters with one name and one meaning, and who has them.
const SHARED: [(&str, &[Dialect]); 10] = [
    ("temperature", &Dialect::ALL),
    ("top_p", &Dialect::ALL),
    ("top_k", &[Dialect::Messages, Dialect::Ollama]),
    ("seed", &[Dialect::Chat, Dialect::Ollama]),
    ("frequency_penalty", &[Dialect::Chat, Dialect::Ollama]),
    ("presence_penalty", &[Dialect::Chat, Dialect::Ollama]),
    ("prompt_cache_key", &[Dialect::Chat, Dialect::Responses]),
    ("safety_identifier", &[Dialect::Chat, Dialect::Responses]),
    ("service_tier", &[Dialect::Chat, Dialect::Responses]),
    ("user", &[Dialect::Chat, Dialect::Responses]),
];

/// What of `params` in `from`'s words means the same to `to`, in `to`'s words.
fn translated(setup: &Setup, params: &JsonFields, from: Dialect, to: Dialect) -> JsonFields {
    let inner = match from {
        Dialect::Ollama => JsonFields::of(params.get("options").unwrap_or_default()),
        _ => params.clone(),
    };
    let mut out = JsonFields::default();
    for (key, who) in SHARED {
        if let Some(value) = inner.get(key).filter(|value| *value != "null")
            && who.contains(&from)
            && who.contains(&to)
        {
            out.put(key, value);
        }
    }
    if let (Some(stop), Some(key)) = (stop_word(from).and_then(|key| inner.get(key)), stop_word(to))
        && let Some(stop) = stop_list(stop)
    {
        out.put(key, stop);
    }
    match to {
        Dialect::Messages => tame(&mut out),
        Dialect::Ollama if !out.is_empty() => {
            let options = std::mem::take(&mut out);
            out.put("options", options.json());
        }
        _ => {}
    }
    write_choice(setup, params, from, to, &mut out);
    out
}

fn write_choice(setup: &Setup, params: &JsonFields, from: Dialect, to: Dialect, out: &mut JsonFields) {
    let Some(raw) = &setup.tools else { return };
    let mut tools = read_all(raw.get(), from);
    tools.retain(|tool| tool.write(to).is_some());
    put_choice(read_choice(params, from), parallel(params, from), &tools, to, out);
}

const fn stop_word(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Chat | Dialect::Ollama => Some("stop"),
        Dialect::Messages => Some("stop_sequences"),
        Dialect::Responses => None,
    }
}

/// OpenAI takes one text or a list of them; a list is understood by all.
fn stop_list(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => Some(format!("[{json}]")),
        b'[' => Some(json.to_owned()),
        _ => None,
    }
}

/// Anthropic's temperature ends at 1, and its newer models refuse `top_p` beside it.
fn tame(out: &mut JsonFields) {
    let Some(temperature) = out.get("temperature") else { return };
    if temperature.parse::<f64>().is_ok_and(|value| value > 1.0) {
        out.put("temperature", "1");
    }
    out.take("top_p");
}
