//! What a session says for its child threads.
//!
//! Read by hand and not by serde, so that a wrong value is named with its key and with what it may be.

use komado_core::journal::Ratio;
use komado_core::session::StelisConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::str::FromStr;

/// The deepest nesting that can be asked for; as in the settings.
const DEEPEST: u64 = 100;

/// What the child threads of a session get; what is left out is as the settings say.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(!try_from)]
pub struct ChildSettings(pub StelisConfig);

impl FromStr for ChildSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("not JSON: {error}; write such as {{\"default_window_ratio\":0.7}}"))?;
        value.try_into()
    }
}

impl TryFrom<Value> for ChildSettings {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        parse(&value).map(Self)
    }
}

/// Reads a `stelis_config`, bare or under that name.
fn parse(value: &Value) -> Result<StelisConfig, String> {
    let inner = value.get("stelis_config").unwrap_or(value);
    let Value::Object(fields) = inner else { return Err(format!("must be a JSON object, not: {inner}")) };
    let mut config = StelisConfig::default();
    for (key, value) in fields {
        match key.as_str() {
            "enabled" | "default_window_ratio" | "max_depth" if value.is_null() => {}
            "enabled" => {
                let on = value.as_bool().ok_or_else(|| wrong(key, "true or false", value))?;
                config.enabled = Some(on);
            }
            "default_window_ratio" => {
                let ratio = value.as_f64().filter(|ratio| Ratio::new(*ratio).is_ok());
                config.default_window_ratio =
                    Some(ratio.ok_or_else(|| wrong(key, "a number from 0.01 to 0.99", value))?);
            }
            "max_depth" => {
                let depth = value.as_u64().filter(|depth| *depth <= DEEPEST);
                let depth = depth.and_then(|depth| u32::try_from(depth).ok());
                config.max_depth =
                    Some(depth.ok_or_else(|| wrong(key, "a whole number from 0 to 100", value))?);
            }
            _ => {
                return Err(format!(
                    "unknown key: {key}; known are enabled, default_window_ratio, max_depth"
                ));
            }
        }
    }
    Ok(config)
}

fn wrong(key: &str, expected: &str, found: &Value) -> String {
    format!("{key} must be {expected}, not: {found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_form_is_read_bare_and_under_its_name() {
        let bare = r#"{"enabled":true,"default_window_ratio":0.8,"max_depth":3}"#;
        let want = StelisConfig { enabled: Some(true), default_window_ratio: Some(0.8), max_depth: Some(3) };
        let parse = |text: &str| text.parse::<ChildSettings>().map(|given| given.0);
        assert_eq!(parse(bare), Ok(want));
        assert_eq!(parse(&format!(r#"{{"stelis_config":{bare}}}"#)), Ok(want));
        assert_eq!(parse("{}"), Ok(StelisConfig::default()));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_key_and_range() {
        for (text, words) in [
            (
                r#"{"default_window_ratio":0}"#,
                "default_window_ratio must be a number from 0.01 to 0.99, not: 0",
            ),
            (r#"{"default_window_ratio":1}"#, "0.99, not: 1"),
            (r#"{"default_window_ratio":1.2}"#, "0.99, not: 1.2"),
            (r#"{"default_window_ratio":"abc"}"#, "0.99, not: \"abc\""),
            (r#"{"max_depth":-1}"#, "max_depth must be a whole number from 0 to 100, not: -1"),
            (r#"{"max_depth":1.5}"#, "not: 1.5"),
            (r#"{"enabled":"yes"}"#, "enabled must be true or false, not: \"yes\""),
            (r#"{"ratio":0.5}"#, "unknown key: ratio"),
            ("[]", "must be a JSON object"),
            ("0.7", "must be a JSON object"),
            ("{", "not JSON"),
        ] {
            let error = text.parse::<ChildSettings>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
