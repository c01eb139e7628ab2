//! From JSON to nodes. Every problem is told, with the node and what to write; nothing is guessed and nothing is ignored.
//!
//! A playbook with problems is never followed, but its graph is looked at all the same: its author wants to know
//! everything at once. What could not be read stands in it as a hole, of which nothing more is told.

use super::cond::Condition;
use super::node::{Assignment, ChildStart, NodeAction, PlaybookNode};
use super::vars::{JsonTemplate, RESULTS, TASK, Template, check_path};
use super::{Playbook, PlaybookProblemFound};
use komado_core::journal::Ratio;
use komado_core::suggest::nearest_name;
use serde_json::{Map, Value};

/// Fields of a playbook.
const FIELDS: [&str; 4] = ["name", "start", "vars", "nodes"];
/// Most nodes: a playbook is written by people.
const MOST_NODES: usize = 1_000;

/// Where a way leads that could not be read. No node has this id.
pub(super) const HOLE: &str = "";

/// A playbook as far as it could be read.
pub(super) struct PlaybookDraft {
    /// What is known of it. It starts at a [`HOLE`] when that is not known.
    pub(super) playbook: Playbook,
    /// Ids of nodes whose type is not known: where they lead is not known.
    pub(super) unknown: Vec<String>,
    /// True when a node has no id: a way to an id that is not there may mean it.
    pub(super) has_nameless: bool,
}

/// Reads a playbook; what cannot be read of it is told in `problems`.
pub(super) fn playbook(
    place: &str,
    text: &str,
    problems: &mut Vec<PlaybookProblemFound>,
) -> Option<PlaybookDraft> {
    let mut tell = |why: String| problems.push(PlaybookProblemFound { place: place.to_owned(), why });
    let value: Value =
        serde_json::from_str(text).map_err(|why| tell(format!("this is not JSON: {why}"))).ok()?;
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
    let playbook = Playbook { name, start, vars, nodes: Vec::with_capacity(items.len()), digest };
    let mut draft = PlaybookDraft { playbook, unknown: Vec::new(), has_nameless: false };
    for (n, item) in items.iter().enumerate() {
        match node(place, n, item, problems) {
            Read::Node(node) => draft.playbook.nodes.push(*node),
            Read::Unknown(id) => draft.unknown.push(id),
            Read::Nameless => draft.has_nameless = true,
        }
    }
    Some(draft)
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

/// Where it starts: at its first node when it does not say.
fn start(fields: &Map<String, Value>, tell: &mut dyn FnMut(String)) -> String {
    let first = || fields.get("nodes")?.get(0)?.get("id")?.as_str();
    match fields.get("start") {
        None => first().unwrap_or(HOLE).to_owned(),
        Some(Value::String(start)) if !is_blank(start) => start.clone(),
        Some(other) => {
            tell(format!("\"start\" is the id of a node, not {other}"));
            HOLE.to_owned()
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

/// What came of an item of the list of nodes.
enum Read {
    Node(Box<PlaybookNode>),
    /// One with this id, of a type that is not known.
    Unknown(String),
    Nameless,
}

/// Reads one node.
fn node(place: &str, n: usize, item: &Value, problems: &mut Vec<PlaybookProblemFound>) -> Read {
    let mut nameless = |why: String| {
        problems.push(PlaybookProblemFound { place: format!("{place}, node {}", n + 1), why });
        Read::Nameless
    };
    let Value::Object(fields) = item else {
        return nameless(format!("a node is an object, not {item}"));
    };
    let id = match fields.get("id") {
        Some(Value::String(id)) if !is_blank(id) => id.clone(),
        _ => return nameless("\"id\" is missing: a text that names the node".into()),
    };
    let mut found = Vec::new();
    let mut reader = Fields { fields, known: vec!["id", "type"], problems: &mut found };
    let mut node = PlaybookNode { id: id.clone(), label: reader.text("label"), ..PlaybookNode::default() };
    let is_known = reader.fill(&mut node).is_some();
    // Of a type that is not known neither are the fields.
    if is_known {
        reader.check_known();
    }
    let place = place_of(place, &id);
    problems.extend(found.into_iter().map(|why| PlaybookProblemFound { place: place.clone(), why }));
    if is_known { Read::Node(Box::new(node)) } else { Read::Unknown(id) }
}

/// Where a node stands.
pub(super) fn place_of(place: &str, id: &str) -> String {
    format!("{place}, node {id:?}")
}

// The fields of one node: each is asked for by what the node does, and one that is not asked for is told.

/// What a node's types are called.
const TYPES: [&str; 7] = ["llm", "tool", "branch", "set", "stelis_start", "stelis_end", "end"];

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

    /// A field that is `what`.
    fn typed<T>(&mut self, name: &'static str, what: &str, read: fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.take(name)?;
        let found = read(value);
        if found.is_none() {
            self.tell(format!("{name:?} is {what}, not {value}"));
        }
        found
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
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

    /// Tells of every field that was not asked for.
    fn check_known(&mut self) {
        let known = self.known.clone();
        for field in self.fields.keys().filter(|field| !known.contains(&field.as_str())) {
            self.problems.push(format!("unknown field {field:?}{}", among(field, known.iter().copied())));
        }
    }

    /// Reads what the node does; `None` when its type is not known.
    fn fill(&mut self, node: &mut PlaybookNode) -> Option<()> {
        let Some(Value::String(kind)) = self.fields.get("type") else {
            self.tell(format!("\"type\" is missing: one of {}", TYPES.join(", ")));
            return None;
        };
        node.does = match kind.to_lowercase().as_str() {
            "llm" => {
                let prompt = self.template("prompt");
                (node.save_as, node.next) = (self.save_as(), self.way("next"));
                NodeAction::Llm(prompt)
            }
            "tool" => self.tool(node),
            "branch" => self.branch(),
            "set" => self.set(node),
            "stelis_start" => self.stelis_start(node),
            "stelis_end" => {
                node.next = self.way("next");
                let said = self.typed("generate_chronicle", "true or false", Value::as_bool);
                NodeAction::Stop { generate_chronicle: said.unwrap_or(true) }
            }
            "end" => self.end(),
            _ => {
                self.tell(format!("unknown type {kind:?}{}", among(kind, TYPES)));
                return None;
            }
        };
        Some(())
    }

    fn tool(&mut self, node: &mut PlaybookNode) -> NodeAction {
        let is_named = self.fields.get("tool").is_some_and(|tool| !tool.is_null());
        let (tool, args) = (self.text("tool"), self.take("args"));
        (node.save_as, node.on_error) = (self.save_as(), self.way_if_any("on_error"));
        node.next = self.way("next");
        if !is_named && args.is_none() {
            return NodeAction::Calls;
        }
        if !is_named {
            self.tell(
                "\"args\" without \"tool\": name the tool, or leave both out to carry out the model's calls",
            );
        }
        let args = match args {
            None => JsonTemplate::Object(Vec::new()),
            Some(args @ Value::Object(_)) => JsonTemplate::parse(args).unwrap_or_else(|why| {
                self.tell(format!("\"args\": {why}"));
                JsonTemplate::Plain(Value::Null)
            }),
            Some(other) => {
                self.tell(format!("\"args\" is an object, not {other}"));
                JsonTemplate::Object(Vec::new())
            }
        };
        NodeAction::Tool { tool: tool.unwrap_or_default(), args }
    }

    fn branch(&mut self) -> NodeAction {
        let other = self.way("else");
        let Some(Value::Array(items)) = self.take("cases") else {
            self.tell("\"cases\" is missing: a list such as [{\"if\":{\"var\":\"calls\",\"gt\":0},\"next\":\"work\"}]");
            return NodeAction::Branch { cases: vec![hole()], other };
        };
        let cases = items.iter().enumerate().map(|(n, item)| self.case(n + 1, item)).collect();
        NodeAction::Branch { cases, other }
    }

    /// One way of a branch.
    fn case(&mut self, n: usize, item: &Value) -> (Condition, String) {
        let mut tell = |why: String| self.tell(format!("case {n}: {why}"));
        let Value::Object(fields) = item else {
            tell(format!("it is an object with \"if\" and \"next\", not {item}"));
            return hole();
        };
        for field in fields.keys().filter(|field| !["if", "next"].contains(&field.as_str())) {
            tell(format!("unknown field {field:?}{}", among(field, ["if", "next"])));
        }
        let cond = fields.get("if").ok_or_else(|| "\"if\" is missing: a condition".to_owned());
        let cond = cond.and_then(Condition::parse).map_err(&mut tell).ok();
        let next = match fields.get("next") {
            Some(Value::String(next)) if !is_blank(next) => Some(next.clone()),
            _ => {
                tell("\"next\" is missing: the id of the node to go to".into());
                None
            }
        };
        (cond.unwrap_or(hole().0), next.unwrap_or(hole().1))
    }

    fn set(&mut self, node: &mut PlaybookNode) -> NodeAction {
        node.next = self.way("next");
        let Some(Value::Object(wanted)) = self.take("vars") else {
            self.tell("\"vars\" is missing: an object of names and values");
            return NodeAction::Set(Vec::new());
        };
        let mut vars = Vec::new();
        for (name, value) in wanted {
            match check_name(name).and_then(|()| assign(value)) {
                Ok(assign) => vars.push((name.clone(), assign)),
                Err(why) => self.tell(format!("\"vars\", {name:?}: {why}")),
            }
        }
        NodeAction::Set(vars)
    }

    fn stelis_start(&mut self, node: &mut PlaybookNode) -> NodeAction {
        let system = self.template("system");
        node.next = self.way("next");
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
        NodeAction::Start(ChildStart { ratio, max_depth, chronicle_prompt, system })
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

    fn end(&mut self) -> NodeAction {
        let result = self.template("result");
        let is_good = match self.text("status").as_deref() {
            None | Some("completed") => true,
            Some("failed") => false,
            Some(other) => {
                self.tell(format!("\"status\" is \"completed\" or \"failed\", not {other:?}"));
                true
            }
        };
        NodeAction::End { is_good, result }
    }
}

/// Stands for a way of a branch that could not be read.
fn hole() -> (Condition, String) {
    (Condition::All(Vec::new()), HOLE.to_owned())
}

/// One new value. `{"add":["n",1]}` counts.
fn assign(value: &Value) -> Result<Assignment, String> {
    if let Value::Object(fields) = value
        && let (1, Some(add)) = (fields.len(), fields.get("add"))
    {
        return match add.as_array().map(Vec::as_slice) {
            Some([Value::String(name), Value::Number(by)]) => {
                check_path(name)?;
                Ok(Assignment::Add(name.clone(), by.clone()))
            }
            _ => Err(format!("\"add\" takes a variable and a number, such as [\"n\", 1], not {add}")),
        };
    }
    JsonTemplate::parse(value).map(Assignment::To)
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Refuses names that the run itself sets.
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

// What may have been meant: the nearest of some names, or all of them.

/// The end of a sentence about an unknown name: the nearest known one, or all.
pub(super) fn among<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest_name(name, known.clone().into_iter()) {
        Some(near) => format!(": did you mean {near:?}?"),
        None => {
            let all: Vec<&str> = known.into_iter().take(MOST).collect();
            if all.is_empty() { String::new() } else { format!(": known are {}", all.join(", ")) }
        }
    }
}

/// Most names that are listed.
const MOST: usize = 12;

#[cfg(test)]
mod tests {
    use super::among;

    #[test]
    fn the_nearest_name_is_suggested_else_all_are_listed() {
        assert_eq!(among("promt", ["prompt", "next"]), ": did you mean \"prompt\"?");
        assert_eq!(among("LML", ["llm", "tool"]), ": did you mean \"llm\"?");
        assert_eq!(among("別", ["prompt", "next"]), ": known are prompt, next");
        assert_eq!(among("x", [] as [&str; 0]), "");
    }
}
