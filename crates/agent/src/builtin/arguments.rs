//! The arguments of a call, read generously: models write numbers as texts and `null` for nothing. What cannot be meant
//! is refused in words that say what to write instead.

use serde_json::{Map, Value};

pub(super) struct Arguments {
    tool: String,
    given: Map<String, Value>,
}

impl Arguments {
    pub(super) fn parse(tool: &str, text: &str) -> Result<Self, String> {
        let tool = tool.to_owned();
        if text.trim().is_empty() {
            return Ok(Self { tool, given: Map::new() });
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(given)) => Ok(Self { tool, given }),
            Ok(_) => Err(format!(
                "{tool}: the arguments are no JSON object; write one, such as {{\"path\":\"src\"}}"
            )),
            Err(error) => Err(format!("{tool}: the arguments are no JSON: {error}")),
        }
    }

    /// What was given as `name`; `null` is nothing.
    fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// A text that need not be there.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.bad(name, "a text", other)),
        }
    }

    /// A text that must be there.
    pub(super) fn needed(&self, name: &str) -> Result<&str, String> {
        self.text(name)?.ok_or_else(|| format!("{}: {name} is missing; write it as a text", self.tool))
    }

    /// A whole number, also as `"12"` or `12.0`.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => {
                text.trim().parse().ok().or_else(|| text.trim().parse().ok().and_then(whole))
            }
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.bad(name, "a whole number, 0 or more", value))
    }

    /// Yes or no, also as `"true"`; no when nothing is said.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        let Some(value) = self.get(name) else { return Ok(false) };
        let said = match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" | "" => Some(false),
                _ => None,
            },
            _ => None,
        };
        said.ok_or_else(|| self.bad(name, "true or false", value))
    }

    fn bad(&self, name: &str, wanted: &str, value: &Value) -> String {
        let text = value.to_string();
        let brief: String = text.chars().take(60).collect();
        let more = if brief.len() < text.len() { "…" } else { "" };
        format!("{}: {name} must be {wanted}, not {brief}{more}", self.tool)
    }
}

/// A float that is a whole number, as far as floats can tell.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    #[test]
    fn numbers_and_flags_are_read_however_a_model_writes_them() {
        let given = r#"{"a":"12","b":12.0,"c":null,"d":"True","e":"","f":7}"#;
        let given = Arguments::parse("read", given).unwrap();
        assert_eq!(given.number("a"), Ok(Some(12)));
        assert_eq!(given.number("b"), Ok(Some(12)));
        assert_eq!(given.number("c"), Ok(None));
        assert_eq!(given.number("e"), Ok(None));
        assert_eq!(given.number("f"), Ok(Some(7)));
        assert_eq!(given.flag("d"), Ok(true));
        assert_eq!(given.flag("c"), Ok(false));
    }

    #[test]
    fn what_cannot_be_meant_is_answered_with_what_to_write() {
        let given = Arguments::parse("read", r#"{"limit":-3,"path":7,"all":"maybe"}"#).unwrap();
        assert_eq!(
            given.number("limit").unwrap_err(),
            "read: limit must be a whole number, 0 or more, not -3"
        );
        assert_eq!(given.needed("path").unwrap_err(), "read: path must be a text, not 7");
        assert_eq!(given.flag("all").unwrap_err(), "read: all must be true or false, not \"maybe\"");
        assert!(Arguments::parse("read", "[1]").err().unwrap().contains("no JSON object"));
        assert!(Arguments::parse("read", "{").err().unwrap().contains("no JSON"));
    }
}
