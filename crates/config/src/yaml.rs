//! What does the file say, and on which line?
//!
//! The YAML parser guesses types (`1.10` is a number, `yes` may be a truth); here every scalar stays the text
//! that was typed, with its position, and the table of settings decides what it means. Only a plain null is
//! told apart, since `api_key:` with nothing behind it is a form left blank.

use std::fmt;
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Error, Location, Spanned, UserMessageFormatter};

use super::ConfigError;
use super::origin::SettingPlace;

/// A node of the file with its position.
pub(super) type Located = Spanned<YamlNode>;

/// A node of the file.
pub(super) enum YamlNode {
    /// Nothing: `~`, `null`, or an empty place.
    Null,
    /// A quoted, block or plain text.
    Text(String),
    /// A plain number or truth, as the parser understood it; [`text`] returns what was typed.
    Typed(String),
    /// A list.
    List(Vec<Located>),
    /// A mapping, in the file's order.
    Map(Vec<(Spanned<String>, Located)>),
}

/// Parses a file's text.
pub(super) fn parse(source: &str, file: &Path) -> Result<Located, ConfigError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    serde_saphyr::from_str_with_options(source, options).map_err(|error| explain(&error, source, file))
}

/// The text of a scalar as it was typed; `None` for everything else.
pub(super) fn text<'a>(spot: &'a Located, source: &'a str) -> Option<&'a str> {
    match &spot.value {
        YamlNode::Text(text) => Some(text),
        YamlNode::Typed(value) => Some(typed(spot.defined, source).unwrap_or(value)),
        YamlNode::Null | YamlNode::List(_) | YamlNode::Map(_) => None,
    }
}

/// The texts of a list of scalars, one per line; `None` for everything else.
pub(super) fn lines(spot: &Located, source: &str) -> Option<String> {
    let YamlNode::List(elements) = &spot.value else { return None };
    let texts: Option<Vec<&str>> = elements.iter().map(|element| text(element, source)).collect();
    Some(texts?.join("\n"))
}

/// The place of a node in its file.
pub(super) fn place(location: Location, file: &Path) -> SettingPlace {
    // An error at the end of the input may come without a position.
    SettingPlace::File {
        path: file.to_owned(),
        line: location.line().max(1),
        column: location.column().max(1),
    }
}

fn typed(location: Location, source: &str) -> Option<&str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    source.get(start..start.checked_add(length)?)
}

fn explain(error: &Error, source: &str, file: &Path) -> ConfigError {
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let place = place(location, file);
    if let Error::DuplicateMappingKey { key: Some(key), .. } = error.without_snippet() {
        return ConfigError::at(place, format!("this key is given twice: {key}; keep one of the two"));
    }
    let message = error.render_with_formatter(&UserMessageFormatter);
    let suffix = format!(" at line {}, column {}", location.line(), location.column());
    let problem = message.strip_suffix(&suffix).unwrap_or(&message).to_owned();
    ConfigError::at(place, format!("not valid YAML: {problem}; {}", hint(location, source)))
}

fn hint(location: Location, source: &str) -> &'static str {
    let line =
        usize::try_from(location.line()).ok().and_then(|line| source.lines().nth(line.checked_sub(1)?));
    match line {
        Some(line) if line.contains("${") => "put quotes around a value that holds ${…}",
        Some(line) if line.starts_with('\t') => "indent with spaces",
        _ => "correct this line or the one before it",
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings")
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Null)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Typed(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Typed(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Typed(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Typed(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(YamlNode::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlNode::Map(entries))
    }
}
