//! Texts with places for variables: `{{name}}`, with dots into objects.
//!
//! There is no code in them, and what is put in is never read as a template again: words of a model or of a stranger's
//! issue cannot reach a variable.

use super::vars::Lookup;
use serde_json::{Map, Value};

/// A text with places.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Debug)]
enum Piece {
    Text(String),
    Place(String),
}

impl Template {
    /// Reads one; the error says what is wrong with it. `{{{{` stands for `{{` itself.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut words, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find("{{") {
            words.push_str(&rest[..at]);
            rest = &rest[at + 2..];
            if let Some(after) = rest.strip_prefix("{{") {
                words.push_str("{{");
                rest = after;
                continue;
            }
            let Some(end) = rest.find("}}") else {
                return Err(format!(
                    "{{{{ without }}}} in {:?}; {{{{{{{{ stands for {{{{ itself",
                    short(text)
                ));
            };
            let name = rest[..end].trim();
            check_path(name).map_err(|why| format!("{why} in {:?}", short(text)))?;
            if !words.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut words)));
            }
            pieces.push(Piece::Place(name.to_owned()));
            rest = &rest[end + 2..];
        }
        words.push_str(rest);
        if !words.is_empty() {
            pieces.push(Piece::Text(words));
        }
        Ok(Self { pieces })
    }

    /// The text with every place filled; the error names the variable that is not set.
    pub(super) fn fill(&self, vars: &dyn Lookup) -> Result<String, Unset> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Place(name) => match vars.value(name).ok_or_else(|| Unset(name.clone()))? {
                    Value::String(words) => text.push_str(&words),
                    other => text.push_str(&other.to_string()),
                },
            }
        }
        Ok(text)
    }

    /// The value: what a single place holds, as it is, or else the text.
    fn value(&self, vars: &dyn Lookup) -> Result<Value, Unset> {
        match self.pieces.as_slice() {
            [Piece::Place(name)] => vars.value(name).ok_or_else(|| Unset(name.clone())),
            _ => self.fill(vars).map(Value::String),
        }
    }

    /// The names of its places.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }
}

/// A variable that is not set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unset(pub(super) String);

/// JSON whose texts are templates.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    /// As it is.
    Plain(Value),
    /// A text.
    Text(Template),
    /// A list.
    List(Vec<Form>),
    /// An object.
    Object(Vec<(String, Form)>),
}

impl Form {
    /// Reads one.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(text)?),
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let read = |(name, value): (&String, &Value)| Ok((name.clone(), Self::parse(value)?));
                Self::Object(fields.iter().map(read).collect::<Result<_, String>>()?)
            }
            plain => Self::Plain(plain.clone()),
        })
    }

    /// The JSON with every place filled. A text that is nothing but a place becomes the value of its variable, whatever
    /// that is.
    pub(super) fn fill(&self, vars: &dyn Lookup) -> Result<Value, Unset> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => text.value(vars)?,
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.fill(vars)).collect::<Result<_, _>>()?)
            }
            Self::Object(fields) => {
                let fill = |(name, form): &(String, Self)| Ok((name.clone(), form.fill(vars)?));
                Value::Object(fields.iter().map(fill).collect::<Result<Map<_, _>, Unset>>()?)
            }
        })
    }

    /// The names of its places.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Text(text) => text.names().collect(),
            Self::List(items) => items.iter().flat_map(Self::names).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, form)| form.names()).collect(),
        }
    }
}

/// Refuses what cannot be the name of a variable, or a way into one.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let is_bad =
        |part: &str| part.is_empty() || part.contains(|c: char| c.is_whitespace() || "{}\"".contains(c));
    if path.split('.').any(is_bad) {
        return Err(format!("{path:?} is no variable: write a name, or names with dots between them"));
    }
    Ok(())
}

/// The beginning of a text, for an error.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Fixed(Value);

    impl Lookup for Fixed {
        fn value(&self, path: &str) -> Option<Value> {
            path.split('.').try_fold(&self.0, |value, part| value.get(part)).cloned()
        }
    }

    fn filled(text: &str) -> String {
        let vars = Fixed(json!({"n": 3, "名前": "窓", "task": {"title": "直す"}, "evil": "{{n}}"}));
        match Template::parse(text) {
            Ok(template) => template.fill(&vars).unwrap_or_else(|Unset(name)| format!("unset {name}")),
            Err(why) => why,
        }
    }

    #[test]
    fn places_are_filled_once_and_never_again() {
        for (text, expected) in [
            ("{{task.title}}: {{ n }}", "直す: 3"),
            ("{{名前}}", "窓"),
            ("{{evil}}", "{{n}}"),
            ("{{{{n}} {{n}}", "{{n}} 3"),
            ("no places }}", "no places }}"),
            ("{{task}}", "{\"title\":\"直す\"}"),
            ("{{task.no}}", "unset task.no"),
            ("{{n.no}}", "unset n.no"),
        ] {
            assert_eq!(filled(text), expected);
        }
    }

    #[test]
    fn what_is_no_template_is_named() {
        assert!(filled("a {{n").contains("without }}"));
        assert!(filled("{{a b}}").contains("\"a b\" is no variable"));
        assert!(filled("{{}}").contains("is no variable"));
        assert!(filled("{{a..b}}").contains("is no variable"));
    }

    #[test]
    fn a_single_place_keeps_the_kind_of_its_value() {
        let form = Form::parse(&json!({"a": "{{n}}", "b": ["n = {{n}}", true], "c": null})).unwrap();
        let vars = Fixed(json!({"n": 3}));
        assert_eq!(form.fill(&vars), Ok(json!({"a": 3, "b": ["n = 3", true], "c": null})));
        assert_eq!(form.names(), ["n", "n"]);
    }
}
