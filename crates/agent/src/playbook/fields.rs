//! The fields of one node: each is asked for by what the node does, and one that nobody asks for is told.

use super::cond::Cond;
use super::nearest::among;
use super::node::{After, Assign, Branch, Does, End, Llm, Set, Start, Stop, Tool};
use super::read::HOLE;
use super::template::{Form, Template, check_path};
use super::vars::{RESULTS, TASK};
use komado_core::journal::Ratio;
use serde_json::{Map, Value};

/// What a node's types are called.
const TYPES: [&str; 7] = ["llm", "tool", "branch", "set", "stelis_start", "stelis_end", "end"];

/// The fields of a node, while they are read.
pub(super) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    /// Those that were asked for.
    known: Vec<&'static str>,
    problems: &'a mut Vec<String>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(fields: &'a Map<String, Value>, problems: &'a mut Vec<String>) -> Self {
        Self { fields, known: vec!["id", "type"], problems }
    }

    fn tell(&mut self, why: impl Into<String>) {
        self.problems.push(why.into());
    }

    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A field that is `what`.
    fn typed<T>(&mut self, name: &'static str, what: &str, read: fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.take(name)?;
        let found = read(value);
        if found.is_none() {
            self.tell(format!("{name:?} is {what}, not {value}"));
        }
        found
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.typed(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn template(&mut self, name: &'static str) -> Option<Template> {
        let text = self.text(name)?;
        Template::parse(&text).map_err(|why| self.tell(format!("{name:?}: {why}"))).ok()
    }

    /// The id of a node that must be named.
    fn way(&mut self, name: &'static str) -> String {
        let way = self.way_if_any(name);
        if way.is_none() {
            self.tell(format!("{name:?} is missing: the id of the node to go to"));
        }
        way.unwrap_or_else(|| HOLE.to_owned())
    }

    /// The id of a node that may be named.
    fn way_if_any(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(id) if !is_blank(id) => Some(id.clone()),
            other => {
                self.tell(format!("{name:?} is the id of the node to go to, not {other}"));
                Some(HOLE.to_owned())
            }
        }
    }

    fn save_as(&mut self) -> Option<String> {
        let name = self.text("save_as")?;
        check_name(&name).map_err(|why| self.tell(format!("\"save_as\": {why}"))).ok()?;
        Some(name)
    }

    /// Tells of every field that nobody asked for.
    pub(super) fn check_known(&mut self) {
        let known = self.known.clone();
        for field in self.fields.keys().filter(|field| !known.contains(&field.as_str())) {
            self.problems.push(format!("unknown field {field:?}{}", among(field, known.iter().copied())));
        }
    }

    /// What it does; `None` when its type is not known.
    pub(super) fn does(&mut self) -> Option<Does> {
        let Some(Value::String(kind)) = self.fields.get("type") else {
            self.tell(format!("\"type\" is missing: one of {}", TYPES.join(", ")));
            return None;
        };
        Some(match kind.to_lowercase().as_str() {
            "llm" => self.llm(),
            "tool" => self.tool(),
            "branch" => self.branch(),
            "set" => self.set(),
            "stelis_start" => self.stelis_start(),
            "stelis_end" => self.stelis_end(),
            "end" => self.end(),
            _ => {
                self.tell(format!("unknown type {kind:?}{}", among(kind, TYPES)));
                return None;
            }
        })
    }

    fn llm(&mut self) -> Does {
        let (prompt, save_as, next) = (self.template("prompt"), self.save_as(), self.way("next"));
        Does::Llm(Llm { prompt, save_as, next })
    }

    fn after(&mut self) -> After {
        let (save_as, on_error) = (self.save_as(), self.way_if_any("on_error"));
        After { save_as, on_error, next: self.way("next") }
    }

    fn tool(&mut self) -> Does {
        let is_named = self.fields.get("tool").is_some_and(|tool| !tool.is_null());
        let (tool, args, after) = (self.text("tool"), self.take("args"), self.after());
        if !is_named && args.is_none() {
            return Does::Calls(after);
        }
        if !is_named {
            self.tell(
                "\"args\" without \"tool\": name the tool, or leave both out to carry out the model's calls",
            );
        }
        let args = match args {
            None => Form::Object(Vec::new()),
            Some(args @ Value::Object(_)) => self.form("args", args),
            Some(other) => {
                self.tell(format!("\"args\" is an object, not {other}"));
                Form::Object(Vec::new())
            }
        };
        Does::Tool(Tool { tool: tool.unwrap_or_default(), args, after })
    }

    fn form(&mut self, name: &str, value: &Value) -> Form {
        Form::parse(value).unwrap_or_else(|why| {
            self.tell(format!("{name:?}: {why}"));
            Form::Plain(Value::Null)
        })
    }

    fn branch(&mut self) -> Does {
        let other = self.way("else");
        let Some(Value::Array(items)) = self.take("cases") else {
            self.tell("\"cases\" is missing: a list such as [{\"if\":{\"var\":\"calls\",\"gt\":0},\"next\":\"work\"}]");
            return Does::Branch(Branch { cases: vec![hole()], other });
        };
        let cases = items.iter().enumerate().map(|(n, item)| self.case(n + 1, item)).collect();
        Does::Branch(Branch { cases, other })
    }

    /// One way of a branch.
    fn case(&mut self, n: usize, item: &Value) -> (Cond, String) {
        let mut tell = |why: String| self.tell(format!("case {n}: {why}"));
        let Value::Object(fields) = item else {
            tell(format!("it is an object with \"if\" and \"next\", not {item}"));
            return hole();
        };
        for field in fields.keys().filter(|field| !["if", "next"].contains(&field.as_str())) {
            tell(format!("unknown field {field:?}{}", among(field, ["if", "next"])));
        }
        let cond = fields.get("if").ok_or_else(|| "\"if\" is missing: a condition".to_owned());
        let cond = cond.and_then(Cond::parse).map_err(&mut tell).ok();
        let next = match fields.get("next") {
            Some(Value::String(next)) if !is_blank(next) => Some(next.clone()),
            _ => {
                tell("\"next\" is missing: the id of the node to go to".into());
                None
            }
        };
        (cond.unwrap_or(hole().0), next.unwrap_or(hole().1))
    }

    fn set(&mut self) -> Does {
        let next = self.way("next");
        let Some(Value::Object(wanted)) = self.take("vars") else {
            self.tell("\"vars\" is missing: an object of names and values");
            return Does::Set(Set { vars: Vec::new(), next });
        };
        let mut vars = Vec::new();
        for (name, value) in wanted {
            match check_name(name).and_then(|()| assign(value)) {
                Ok(assign) => vars.push((name.clone(), assign)),
                Err(why) => self.tell(format!("\"vars\", {name:?}: {why}")),
            }
        }
        Does::Set(Set { vars, next })
    }

    fn stelis_start(&mut self) -> Does {
        let (system, next) = (self.template("system"), self.way("next"));
        let nothing = Map::new();
        let config = self.typed("stelis_config", "an object", Value::as_object).unwrap_or(&nothing);
        const KNOWN: [&str; 3] = ["window_ratio", "max_depth", "chronicle_prompt"];
        for field in config.keys().filter(|field| !KNOWN.contains(&field.as_str())) {
            self.tell(format!("unknown field {field:?} in \"stelis_config\"{}", among(field, KNOWN)));
        }
        let ratio = self.in_config(config, "window_ratio", |value| {
            Ratio::new(value.as_f64().ok_or("it is a number from 0.01 to 0.99")?)
                .map_err(|why| why.to_string())
        });
        let max_depth = self.in_config(config, "max_depth", |value| {
            let depth = value.as_u64().and_then(|depth| u32::try_from(depth).ok());
            depth
                .filter(|depth| (1..=100).contains(depth))
                .ok_or_else(|| "it is a number from 1 to 100".to_owned())
        });
        let chronicle_prompt = self.in_config(config, "chronicle_prompt", |value| {
            value.as_str().map(str::to_owned).ok_or_else(|| "it is a text".to_owned())
        });
        Does::Start(Start { ratio, max_depth, chronicle_prompt, system, next })
    }

    fn in_config<T>(
        &mut self,
        config: &Map<String, Value>,
        name: &str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = config.get(name).filter(|value| !value.is_null())?;
        read(value).map_err(|why| self.tell(format!("{name:?} in \"stelis_config\" is {value}: {why}"))).ok()
    }

    fn stelis_end(&mut self) -> Does {
        let next = self.way("next");
        let said = self.typed("generate_chronicle", "true or false", Value::as_bool);
        Does::Stop(Stop { generate_chronicle: said.unwrap_or(true), next })
    }

    fn end(&mut self) -> Does {
        let result = self.template("result");
        let is_good = match self.text("status").as_deref() {
            None | Some("completed") => true,
            Some("failed") => false,
            Some(other) => {
                self.tell(format!("\"status\" is \"completed\" or \"failed\", not {other:?}"));
                true
            }
        };
        Does::End(End { is_good, result })
    }
}

/// Stands for a way of a branch that could not be read.
fn hole() -> (Cond, String) {
    (Cond::All(Vec::new()), HOLE.to_owned())
}

/// One new value. `{"add":["n",1]}` counts.
fn assign(value: &Value) -> Result<Assign, String> {
    if let Value::Object(fields) = value
        && let (1, Some(add)) = (fields.len(), fields.get("add"))
    {
        return match add.as_array().map(Vec::as_slice) {
            Some([Value::String(name), Value::Number(by)]) => {
                check_path(name)?;
                Ok(Assign::Add(name.clone(), by.clone()))
            }
            _ => Err(format!("\"add\" takes a variable and a number, such as [\"n\", 1], not {add}")),
        };
    }
    Form::parse(value).map(Assign::To)
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Refuses names that belong to somebody else.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    check_path(name)?;
    if name.contains('.') {
        return Err(format!("the variable {name:?} has a dot in its name; dots lead into objects"));
    }
    if RESULTS.contains(&name) || name == TASK {
        let taken = RESULTS.join(", ");
        return Err(format!(
            "the variable {name:?} is set by the run itself: {taken} and {TASK} are taken, choose another name"
        ));
    }
    Ok(())
}
