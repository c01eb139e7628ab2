//! The arguments of a tool's call, read generously: models write numbers as texts and `null` for nothing. What cannot be
//! meant is refused in words that say what to write instead.

use serde_json::{Map, Value};

/// Characters of a value that a refusal repeats.
const SHOWN: usize = 60;

/// Why the arguments of a call cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{tool}: {why}")]
pub struct BadArgument {
    /// The tool.
    pub tool: String,
    /// What is wrong, and what to write.
    pub why: String,
}

impl From<BadArgument> for String {
    fn from(bad: BadArgument) -> Self {
        bad.to_string()
    }
}

/// The arguments of a call.
pub struct ToolArguments {
    tool: String,
    given: Map<String, Value>,
}

impl ToolArguments {
    /// Reads the JSON that the model wrote; `example` is what it might have written.
    pub fn parse(tool: &str, text: &str, example: &str) -> Result<Self, BadArgument> {
        let arguments = Self { tool: tool.to_owned(), given: Map::new() };
        match serde_json::from_str(text) {
            Ok(Value::Object(given)) => Ok(Self { given, ..arguments }),
            Ok(_) => {
                Err(arguments
                    .bad(format!("the arguments are no JSON object; write one, such as {{{example}}}")))
            }
            Err(error) => Err(arguments.bad(format!("the arguments are no JSON: {error}"))),
        }
    }

    /// A refusal.
    pub fn bad(&self, why: String) -> BadArgument {
        BadArgument { tool: self.tool.clone(), why }
    }

    /// What was given as `name`; `null` is nothing.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<Option<&str>, BadArgument> {
        self.typed(name, "a text", Value::as_str)
    }

    /// A whole number, also as `"12"` or `12.0`.
    pub fn number(&self, name: &str) -> Result<Option<u64>, BadArgument> {
        self.typed(name, "a whole number, 0 or more", |value| match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => {
                text.trim().parse().ok().or_else(|| text.trim().parse().ok().and_then(whole))
            }
            _ => None,
        })
    }

    /// Yes or no, also as `"true"`; no when nothing is said.
    pub fn flag(&self, name: &str) -> Result<bool, BadArgument> {
        let said = self.typed(name, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" | "" => Some(false),
                _ => None,
            },
            _ => None,
        });
        Ok(said?.unwrap_or(false))
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        wanted: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, BadArgument> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            let text = value.to_string();
            let brief: String = text.chars().take(SHOWN).collect();
            let more = if brief.len() < text.len() { "…" } else { "" };
            self.bad(format!("{name} must be {wanted}, not {brief}{more}"))
        })
    }
}

/// A float that is a whole number, as far as floats can tell.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64)
}
