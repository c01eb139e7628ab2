//! From JSON to nodes. Every problem is told, with the node and what to write; nothing is guessed and nothing is ignored.
//!
//! A playbook with problems is never followed, but its graph is looked at all the same: whoever mends it wants to know
//! everything at once. What could not be read stands in it as a hole, of which nothing more is told.

use super::fields::{Fields, check_name, is_blank};
use super::nearest::among;
use super::node::Node;
use super::{Playbook, Problem};
use serde_json::{Map, Value};

/// Fields of a playbook.
const FIELDS: [&str; 4] = ["name", "start", "vars", "nodes"];
/// Most nodes: a playbook is written by people.
const MOST_NODES: usize = 1_000;

/// Where a way leads that could not be read. No node has this id.
pub(super) const HOLE: &str = "";

/// A playbook as far as it could be read.
pub(super) struct Draft {
    /// What is known of it. It starts at a [`HOLE`] when nobody knows where.
    pub(super) playbook: Playbook,
    /// Ids of nodes whose type is not known: where they lead nobody knows.
    pub(super) unknown: Vec<String>,
    /// True when a node has no id: a way to an id that is not there may mean it.
    pub(super) has_nameless: bool,
}

/// Reads a playbook; what cannot be read of it is told in `problems`.
pub(super) fn playbook(place: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Draft> {
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
    let playbook = Playbook { name, start, vars, nodes: Vec::with_capacity(items.len()), digest };
    let mut draft = Draft { playbook, unknown: Vec::new(), has_nameless: false };
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
    Node(Box<Node>),
    /// One with this id, of a type that is not known.
    Unknown(String),
    Nameless,
}

/// Reads one node.
fn node(place: &str, n: usize, item: &Value, problems: &mut Vec<Problem>) -> Read {
    let mut nameless = |why: String| {
        problems.push(Problem { place: format!("{place}, node {}", n + 1), why });
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
    let mut reader = Fields::new(fields, &mut found);
    let label = reader.text("label");
    let does = reader.does();
    // Of a type that is not known neither are the fields.
    if does.is_some() {
        reader.check_known();
    }
    let place = place_of(place, &id);
    problems.extend(found.into_iter().map(|why| Problem { place: place.clone(), why }));
    match does {
        Some(does) => Read::Node(Box::new(Node { id, label, does })),
        None => Read::Unknown(id),
    }
}

/// Where a node stands.
pub(super) fn place_of(place: &str, id: &str) -> String {
    format!("{place}, node {id:?}")
}
