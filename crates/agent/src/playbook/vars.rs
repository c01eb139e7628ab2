//! Variables: what was given, what nodes set, and what came of the last turn and of the last call.
//!
//! What a turn or a call left behind is in the journal already, so a note only says where; everything else is small, and
//! is noted when it changed. The task itself is given anew to the next worker.

use crate::source::head;
use komado_core::Seq;
use komado_core::message::{Message, ToolOutcome};
use serde_json::{Map, Value};

/// The variables that turns and calls set; nodes may not.
pub const RESULTS: [&str; 5] = ["last", "calls", "finish", "output", "error"];
/// What is given by the caller, each time, and so is not noted.
pub(super) const TASK: &str = "task";
/// Most bytes of all variables together, as JSON.
const MOST: usize = 256 * 1024;
/// Most bytes of an output that a variable holds.
const MOST_OUTPUT: usize = 8 * 1024;

/// The entry that a result came from.
pub(super) type EntryPlace = (String, Seq);

/// The variables of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    set: Map<String, Value>,
    results: Map<String, Value>,
    /// The last reply.
    pub(super) said: Option<EntryPlace>,
    /// The last answer of a tool.
    pub(super) told: Option<EntryPlace>,
    is_changed: bool,
}

impl Variables {
    /// The value at a path, such as `task.title`.
    pub(super) fn value(&self, path: &str) -> Option<Value> {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let value = self.results.get(name).or_else(|| self.set.get(name))?;
        let into = |value: &'_ Value| rest.map_or(Some(value.clone()), |rest| inside(value, rest).cloned());
        into(value)
    }
}

/// What is inside an object or a list.
fn inside<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

impl Variables {
    /// Those a playbook begins with, under those that are given.
    pub(super) fn begin(own: &Map<String, Value>, given: &Map<String, Value>) -> Self {
        let mut set = own.clone();
        set.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self { set, is_changed: true, ..Self::default() }
    }

    /// Those that were noted, over those that are given.
    pub(super) fn taken_up(
        own: &Map<String, Value>,
        given: &Map<String, Value>,
        noted: Map<String, Value>,
    ) -> Self {
        let mut vars = Self::begin(own, given);
        vars.set.extend(noted);
        vars.is_changed = false;
        vars
    }

    /// Sets one.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        if self.set.get(name) != Some(&value) {
            self.set.insert(name.to_owned(), value);
            self.is_changed = true;
        }
    }

    /// What the model said.
    pub(super) fn said(&mut self, place: EntryPlace, message: &Message, finish: &str) {
        self.results.insert("last".into(), Value::String(message.words()));
        self.results.insert("calls".into(), Value::from(message.calls().count()));
        self.results.insert("finish".into(), Value::String(finish.to_owned()));
        self.said = Some(place);
    }

    /// What a tool answered.
    pub(super) fn told(&mut self, place: EntryPlace, words: &str, outcome: &ToolOutcome) {
        self.results.insert("output".into(), Value::String(head(words, MOST_OUTPUT).to_owned()));
        self.results.insert("error".into(), Value::Bool(outcome.is_error));
        self.told = Some(place);
    }

    /// What a note has to say of them; `None` when nothing changed.
    pub(super) fn to_note(&self) -> Result<Option<Map<String, Value>>, String> {
        if !self.is_changed {
            return Ok(None);
        }
        self.check()?;
        Ok(Some(self.own().map(|(name, value)| (name.clone(), value.clone())).collect()))
    }

    /// Those that are noted: the task is given anew.
    fn own(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.set.iter().filter(|(name, _)| *name != TASK)
    }

    /// Refuses more than may be noted; the error names the largest one.
    pub(super) fn check(&self) -> Result<(), String> {
        let sizes: Vec<(usize, &String)> =
            self.own().map(|(name, value)| (value.to_string().len(), name)).collect();
        let all: usize = sizes.iter().map(|(size, _)| size).sum();
        match sizes.into_iter().max() {
            Some((size, name)) if all > MOST => Err(format!(
                "the variables take {all} bytes and may take {MOST}: {name:?} alone takes {size}; leave long texts in the \
                 conversation, or in a file"
            )),
            _ => Ok(()),
        }
    }

    /// They are noted as they are.
    pub(super) fn are_noted(&mut self) {
        self.is_changed = false;
    }

    /// All of them, at the end.
    pub(super) fn all(&self) -> Map<String, Value> {
        let mut all = self.set.clone();
        all.extend(self.results.clone());
        all
    }
}

// Texts with places for variables: `{{name}}`, with dots into objects.
//
// There is no code in them, and what is put in is never read as a template again: words of a model or of a foreign
// issue cannot reach a variable.

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
    pub(super) fn fill(&self, vars: &Variables) -> Result<String, UnsetVariable> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Place(name) => match vars.value(name).ok_or_else(|| UnsetVariable(name.clone()))? {
                    Value::String(words) => text.push_str(&words),
                    other => text.push_str(&other.to_string()),
                },
            }
        }
        Ok(text)
    }

    /// The value: what a single place holds, as it is, or else the text.
    fn value(&self, vars: &Variables) -> Result<Value, UnsetVariable> {
        match self.pieces.as_slice() {
            [Piece::Place(name)] => vars.value(name).ok_or_else(|| UnsetVariable(name.clone())),
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
pub(super) struct UnsetVariable(pub(super) String);

/// JSON whose texts are templates.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum JsonTemplate {
    /// As it is.
    Plain(Value),
    /// A text.
    Text(Template),
    /// A list.
    List(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
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
    pub(super) fn fill(&self, vars: &Variables) -> Result<Value, UnsetVariable> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => text.value(vars)?,
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.fill(vars)).collect::<Result<_, _>>()?)
            }
            Self::Object(fields) => {
                let fill = |(name, form): &(String, Self)| Ok((name.clone(), form.fill(vars)?));
                Value::Object(fields.iter().map(fill).collect::<Result<Map<_, _>, UnsetVariable>>()?)
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
        return Err(format!("{path:?} is not a variable: write a name, or names with dots between them"));
    }
    Ok(())
}

/// The beginning of a text, for an error.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Variables with these values, for tests.
#[cfg(test)]
pub(super) fn given(values: Value) -> Variables {
    Variables::begin(values.as_object().unwrap(), &Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_given_goes_before_what_the_playbook_has_and_what_was_noted_before_both() {
        let (own, given) = (map(json!({"a": 1, "b": 1, "c": 1})), map(json!({"b": 2, "c": 2})));
        let vars = Variables::taken_up(&own, &given, map(json!({"c": 3})));
        assert_eq!(["a", "b", "c"].map(|name| vars.value(name)), [1, 2, 3].map(|n| Some(json!(n))));
    }

    #[test]
    fn the_task_is_not_noted_and_nothing_is_noted_twice() {
        let mut vars = Variables::begin(&Map::new(), &map(json!({"task": {"text": "long"}, "n": 1})));
        assert_eq!(vars.to_note(), Ok(Some(map(json!({"n": 1})))));
        vars.are_noted();
        vars.set("n", json!(1));
        assert_eq!(vars.to_note(), Ok(None));
        vars.set("n", json!(2));
        assert_eq!(vars.to_note(), Ok(Some(map(json!({"n": 2})))));
        assert_eq!(vars.value("task.text"), Some(json!("long")));
    }

    #[test]
    fn too_much_is_refused_and_the_largest_is_named() {
        let vars = Variables::begin(&Map::new(), &map(json!({"small": "a", "大きい": "窓".repeat(100_000)})));
        let why = vars.to_note().unwrap_err();
        assert!(why.contains("\"大きい\" alone takes 300002"), "{why}");
    }
}

#[cfg(test)]
mod template_tests {
    use super::*;
    use serde_json::json;

    fn filled(text: &str) -> String {
        let vars = given(json!({"n": 3, "名前": "窓", "task": {"title": "直す"}, "evil": "{{n}}"}));
        match Template::parse(text) {
            Ok(template) => {
                template.fill(&vars).unwrap_or_else(|UnsetVariable(name)| format!("unset {name}"))
            }
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
        assert!(filled("{{a b}}").contains("\"a b\" is not a variable"));
        assert!(filled("{{}}").contains("is not a variable"));
        assert!(filled("{{a..b}}").contains("is not a variable"));
    }

    #[test]
    fn a_single_place_keeps_the_kind_of_its_value() {
        let form = JsonTemplate::parse(&json!({"a": "{{n}}", "b": ["n = {{n}}", true], "c": null})).unwrap();
        let vars = given(json!({"n": 3}));
        assert_eq!(form.fill(&vars), Ok(json!({"a": 3, "b": ["n = 3", true], "c": null})));
        assert_eq!(form.names(), ["n", "n"]);
    }
}
