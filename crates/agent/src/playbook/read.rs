//! From JSON to nodes. Every problem is told, with the node and what to write; nothing is guessed and nothing is ignored.

use super::cond::Cond;
use super::nearest::among;
use super::node::{After, Assign, Branch, Does, End, Llm, Node, Set, Start, Stop, Tool};
use super::template::{Form, Template, check_path};
use super::vars::{RESULTS, TASK};
use super::{Playbook, Problem};
use komado_core::journal::Ratio;
use serde_json::{Map, Value};

/// What a node's types are called.
const TYPES: [&str; 7] = ["llm", "tool", "branch", "set", "stelis_start", "stelis_end", "end"];
/// Fields of a playbook.
const FIELDS: [&str; 4] = ["name", "start", "vars", "nodes"];
/// Most nodes: a playbook is written by people.
const MOST_NODES: usize = 1_000;

/// Reads a playbook; what cannot be read of it is told in `problems`.
pub(super) fn playbook(place: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Playbook> {
    let mut tell = |why: String| problems.push(Problem { place: place.to_owned(), why });
    let value: Value =
        serde_json::from_str(text).map_err(|why| tell(format!("this is no JSON: {why}"))).ok()?;
    let Value::Object(fields) = &value else {
        tell("a playbook is a JSON object with \"name\" and \"nodes\"".into());
        return None;
    };
    for field in fields.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
        tell(format!("unknown field {field:?}{}", among(field, FIELDS)));
    }
    let name = name(fields, &mut tell);
    let vars = vars(fields, &mut tell);
    let start = start(fields, &mut tell);
    let items = items(fields, &mut tell)?;
    let digest = blake3::hash(value.to_string().as_bytes()).to_hex()[..16].to_owned();
    let nodes: Vec<Node> =
        items.iter().enumerate().filter_map(|(n, item)| node(place, n, item, problems)).collect();
    let start = start.or_else(|| nodes.first().map(|node| node.id.clone()))?;
    Some(Playbook { name, start, vars, nodes, digest })
}

fn name(fields: &Map<String, Value>, tell: &mut dyn FnMut(String)) -> String {
    match fields.get("name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
        _ => {
            tell("\"name\" is missing: a text that says what it is for".into());
            String::new()
        }
    }
}

fn vars(fields: &Map<String, Value>, tell: &mut dyn FnMut(String)) -> Map<String, Value> {
    let vars = match fields.get("vars") {
        None => Map::new(),
        Some(Value::Object(vars)) => vars.clone(),
        Some(other) => {
            tell(format!("\"vars\" is an object of variables, not {other}"));
            Map::new()
        }
    };
    vars.keys().filter_map(|name| check_name(name).err()).for_each(tell);
    vars
}

fn start(fields: &Map<String, Value>, tell: &mut dyn FnMut(String)) -> Option<String> {
    match fields.get("start")? {
        Value::String(start) => Some(start.clone()),
        other => {
            tell(format!("\"start\" is the id of a node, not {other}"));
            None
        }
    }
}

fn items<'v>(fields: &'v Map<String, Value>, tell: &mut dyn FnMut(String)) -> Option<&'v Vec<Value>> {
    match fields.get("nodes") {
        Some(Value::Array(items)) if items.len() > MOST_NODES => {
            tell(format!("{} nodes are too many; at most {MOST_NODES} can be followed", items.len()));
            None
        }
        Some(Value::Array(items)) if !items.is_empty() => Some(items),
        _ => {
            tell("there are no nodes: \"nodes\" is a list of objects with \"id\" and \"type\"".into());
            None
        }
    }
}

/// Refuses names that belong to somebody else.
fn check_name(name: &str) -> Result<(), String> {
    check_path(name)?;
    if name.contains('.') {
        return Err(format!("the variable {name:?} has a dot in its name; dots lead into objects"));
    }
    if RESULTS.contains(&name) || name == TASK {
        return Err(format!("the variable {name:?} is set by the run itself; take another name"));
    }
    Ok(())
}

/// Reads one node.
fn node(place: &str, n: usize, item: &Value, problems: &mut Vec<Problem>) -> Option<Node> {
    let nameless = || format!("{place}, node {}", n + 1);
    let Value::Object(fields) = item else {
        problems.push(Problem { place: nameless(), why: format!("a node is an object, not {item}") });
        return None;
    };
    let id = match fields.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        _ => {
            problems.push(Problem {
                place: nameless(),
                why: "\"id\" is missing: a text that names the node".into(),
            });
            return None;
        }
    };
    let mut found = Vec::new();
    let mut reader = Fields { fields, known: vec!["id", "type", "label"], problems: &mut found };
    let label = reader.text("label");
    let does = reader.does();
    reader.check_known();
    let place = place_of(place, &id);
    problems.extend(found.into_iter().map(|why| Problem { place: place.clone(), why }));
    Some(Node { id, label, does: does? })
}

/// Where a node stands.
pub(super) fn place_of(place: &str, id: &str) -> String {
    format!("{place}, node {id:?}")
}

/// The fields of a node, while they are read.
struct Fields<'a> {
    fields: &'a Map<String, Value>,
    /// Those that were asked for.
    known: Vec<&'static str>,
    problems: &'a mut Vec<String>,
}

impl<'a> Fields<'a> {
    fn tell(&mut self, why: impl Into<String>) {
        self.problems.push(why.into());
    }

    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.tell(format!("{name:?} is a text, not {other}"));
                None
            }
        }
    }

    fn template(&mut self, name: &'static str) -> Option<Template> {
        let text = self.text(name)?;
        Template::parse(&text).map_err(|why| self.tell(format!("{name:?}: {why}"))).ok()
    }

    /// The id of a node that must be named.
    fn way(&mut self, name: &'static str) -> Option<String> {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.known.push(name);
            self.tell(format!("{name:?} is missing: the id of the node to go to"));
            return None;
        }
        self.text(name)
    }

    fn save_as(&mut self) -> Option<String> {
        let name = self.text("save_as")?;
        check_name(&name).map_err(|why| self.tell(format!("\"save_as\": {why}"))).ok()?;
        Some(name)
    }

    /// Tells of every field that nobody asked for.
    fn check_known(&mut self) {
        if self.known.len() == 3 {
            // The type is not known, so neither are its fields.
            return;
        }
        let known = self.known.clone();
        for field in self.fields.keys().filter(|field| !known.contains(&field.as_str())) {
            self.problems.push(format!(
                "unknown field {field:?}{}; it may have {}",
                among(field, known.iter().copied()),
                known.join(", ")
            ));
        }
    }

    fn does(&mut self) -> Option<Does> {
        let Some(Value::String(kind)) = self.fields.get("type") else {
            self.tell(format!("\"type\" is missing: one of {}", TYPES.join(", ")));
            return None;
        };
        match kind.to_lowercase().as_str() {
            "llm" => self.llm(),
            "tool" => self.tool(),
            "branch" => self.branch(),
            "set" => self.set(),
            "stelis_start" => self.stelis_start(),
            "stelis_end" => self.stelis_end(),
            "end" => self.end(),
            _ => {
                self.tell(format!("unknown type {kind:?}{}", among(kind, TYPES)));
                None
            }
        }
    }

    fn llm(&mut self) -> Option<Does> {
        let (prompt, save_as, next) = (self.template("prompt"), self.save_as(), self.way("next"));
        Some(Does::Llm(Llm { prompt, save_as, next: next? }))
    }

    fn after(&mut self) -> Option<After> {
        let (save_as, on_error, next) = (self.save_as(), self.text("on_error"), self.way("next"));
        Some(After { save_as, on_error, next: next? })
    }

    fn tool(&mut self) -> Option<Does> {
        let (tool, args, after) = (self.text("tool"), self.take("args"), self.after());
        let Some(tool) = tool else {
            if args.is_some() {
                self.tell("\"args\" without \"tool\": name the tool, or leave both out to carry out the model's calls");
            }
            return Some(Does::Calls(after?));
        };
        let nothing = Value::Object(Map::new());
        let args = args.unwrap_or(&nothing);
        if !args.is_object() {
            self.tell(format!("\"args\" is an object, not {args}"));
            return None;
        }
        let args = Form::parse(args).map_err(|why| self.tell(format!("\"args\": {why}"))).ok()?;
        Some(Does::Tool(Tool { tool, args, after: after? }))
    }

    fn branch(&mut self) -> Option<Does> {
        let other = self.way("else");
        let Some(Value::Array(items)) = self.take("cases") else {
            self.tell("\"cases\" is missing: a list such as [{\"if\":{\"var\":\"calls\",\"gt\":0},\"next\":\"work\"}]");
            return None;
        };
        let mut cases = Vec::new();
        for (n, item) in items.iter().enumerate() {
            match case(item) {
                Ok(case) => cases.push(case),
                Err(why) => self.tell(format!("case {}: {why}", n + 1)),
            }
        }
        Some(Does::Branch(Branch { cases, other: other? }))
    }

    fn set(&mut self) -> Option<Does> {
        let next = self.way("next");
        let Some(Value::Object(wanted)) = self.take("vars") else {
            self.tell("\"vars\" is missing: an object of names and values");
            return None;
        };
        let mut vars = Vec::new();
        for (name, value) in wanted {
            match check_name(name).and_then(|()| assign(value)) {
                Ok(assign) => vars.push((name.clone(), assign)),
                Err(why) => self.tell(format!("\"vars\", {name:?}: {why}")),
            }
        }
        Some(Does::Set(Set { vars, next: next? }))
    }

    fn stelis_start(&mut self) -> Option<Does> {
        let (system, next) = (self.template("system"), self.way("next"));
        let nothing = Map::new();
        let config = match self.take("stelis_config") {
            None => &nothing,
            Some(Value::Object(config)) => config,
            Some(other) => {
                self.tell(format!("\"stelis_config\" is an object, not {other}"));
                &nothing
            }
        };
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
        Some(Does::Start(Start { ratio, max_depth, chronicle_prompt, system, next: next? }))
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

    fn stelis_end(&mut self) -> Option<Does> {
        let next = self.way("next");
        let generate_chronicle = match self.take("generate_chronicle") {
            None => true,
            Some(Value::Bool(is)) => *is,
            Some(other) => {
                self.tell(format!("\"generate_chronicle\" is true or false, not {other}"));
                true
            }
        };
        Some(Does::Stop(Stop { generate_chronicle, next: next? }))
    }

    fn end(&mut self) -> Option<Does> {
        let result = self.template("result");
        let is_good = match self.text("status").as_deref() {
            None | Some("completed") => true,
            Some("failed") => false,
            Some(other) => {
                self.tell(format!("\"status\" is \"completed\" or \"failed\", not {other:?}"));
                true
            }
        };
        Some(Does::End(End { is_good, result }))
    }
}

/// One way of a branch.
fn case(item: &Value) -> Result<(Cond, String), String> {
    let Value::Object(fields) = item else {
        return Err(format!("it is an object with \"if\" and \"next\", not {item}"));
    };
    if let Some(field) = fields.keys().find(|field| !["if", "next"].contains(&field.as_str())) {
        return Err(format!("unknown field {field:?}{}", among(field, ["if", "next"])));
    }
    let cond = Cond::parse(fields.get("if").ok_or("\"if\" is missing: a condition")?)?;
    match fields.get("next") {
        Some(Value::String(next)) => Ok((cond, next.clone())),
        _ => Err("\"next\" is missing: the id of the node to go to".into()),
    }
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
