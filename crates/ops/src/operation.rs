//! What is an operation, and how do interfaces that know only names and JSON call one?

use crate::address::Target;
use crate::context::Context;
use crate::fault::{Exit, Fault, Outcome};
use komado_engine::engine::Found;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::PoisonError;

/// An operation: a request that can be run.
///
/// The doc comment of the type is what the help, the document and the list of tools say of it; those of its fields describe
/// the arguments.
pub trait Operation: DeserializeOwned + JsonSchema + 'static {
    /// Its name: a tool of MCP, and the id in the document.
    const NAME: &'static str;
    /// The same for people, in a few words.
    const TITLE: &'static str;
    /// What it does to a session.
    const EFFECT: Effect;
    /// Where it is offered.
    const INTERFACES: Interfaces;
    /// What it gives back: the same JSON everywhere.
    type Output: Serialize + JsonSchema;

    /// Runs it.
    fn run(self, context: &Context) -> Outcome<Self::Output>;

    /// The request with what a model means where it leaves something out.
    #[must_use]
    fn for_model(self) -> Self {
        self
    }

    /// The result as text for a model, where its JSON would be hard to read.
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }

    /// Which moment the result is of, such as `root@12`; results that have one are cached by HTTP clients.
    fn moment(_output: &Self::Output) -> Option<String> {
        None
    }

    /// The path of what was made, under the API's root.
    fn location(_output: &Self::Output) -> Option<String> {
        None
    }
}

/// What an operation does to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing changes.
    Read,
    /// Something is added, and what the model saw stays as it was.
    Add,
    /// What the model sees changes. The journal keeps everything, and each change can be undone.
    Edit,
    /// As `Edit`, and a second call finds nothing left to do.
    Settle,
    /// Something is removed for good.
    Remove,
}

/// Where an operation is offered.
#[derive(Clone, Copy, Debug)]
pub struct Interfaces {
    /// The verb of the command line.
    pub cli: Offer<&'static str>,
    /// The route of the HTTP API.
    pub http: Offer<Route>,
    /// The tool of the MCP server, by the operation's name.
    pub mcp: Offer<()>,
}

/// Whether an interface offers an operation.
#[derive(Clone, Copy, Debug)]
pub enum Offer<T> {
    /// It does.
    As(T),
    /// It does not, and why.
    Not(&'static str),
}

impl<T: Copy> Offer<T> {
    /// How it is offered.
    pub fn get(self) -> Option<T> {
        match self {
            Self::As(how) => Some(how),
            Self::Not(_) => None,
        }
    }
}

/// A route of the HTTP API.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path under `/api/v1`, with `{session}` and the like for fields of the request.
    pub path: &'static str,
    /// The status of a success.
    pub status: u16,
    /// The group in the document.
    pub group: &'static str,
    /// True where the answer has an ETag, made of [`Operation::moment`] and a digest.
    pub has_tag: bool,
    /// True where 200 says that what would be made is there already.
    pub may_be_there: bool,
}

impl Route {
    /// A route that is read.
    pub const fn get(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Get, path, status: 200, group, has_tag: false, may_be_there: false }
    }

    /// A route that changes something.
    pub const fn post(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Post, path, status: 200, group, has_tag: false, may_be_there: false }
    }

    /// A route that makes something.
    pub const fn make(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Post, path, status: 201, group, has_tag: false, may_be_there: false }
    }

    /// A route that sets something.
    pub const fn put(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Put, path, status: 200, group, has_tag: false, may_be_there: false }
    }

    /// The same, where what would be made may be there: then there is no location, and the status is 200.
    pub const fn or_there(self) -> Self {
        Self { may_be_there: true, ..self }
    }

    /// The same with an ETag.
    pub const fn tagged(self) -> Self {
        Self { has_tag: true, ..self }
    }

    /// A route that removes something, after which nothing is left to be told.
    pub const fn remove(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Delete, path, status: 204, group, has_tag: false, may_be_there: false }
    }

    /// A route that removes something, and says what.
    pub const fn delete(group: &'static str, path: &'static str) -> Self {
        Self { method: Method::Delete, path, status: 200, group, has_tag: false, may_be_there: false }
    }
}

/// A method of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// GET
    Get,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
}

impl Method {
    /// Its name in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }
}

/// What an operation gave back, encoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The result as JSON.
    pub json: String,
    /// The result for a model, where it is not the JSON.
    pub text: Option<String>,
    /// Which moment it is of.
    pub moment: Option<String>,
    /// The path of what was made.
    pub location: Option<String>,
}

/// An operation among others: what the interfaces know of it without knowing its type.
#[derive(Clone, Copy)]
pub struct Row {
    /// [`Operation::NAME`].
    pub name: &'static str,
    /// [`Operation::TITLE`].
    pub title: &'static str,
    /// [`Operation::EFFECT`].
    pub effect: Effect,
    /// [`Operation::INTERFACES`].
    pub interfaces: Interfaces,
    /// The name of its type.
    pub type_name: fn() -> &'static str,
    /// The schema of a request: an object whose properties stand in it, not behind references.
    pub request: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of a result.
    pub output: fn(&mut SchemaGenerator) -> Schema,
    run: fn(Value, &Context, Reader) -> Outcome<Answer>,
}

/// Who reads a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// A program.
    Program,
    /// A model, which pays for each word.
    Model,
}

impl Row {
    /// The row of an operation.
    pub const fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            title: O::TITLE,
            effect: O::EFFECT,
            interfaces: O::INTERFACES,
            type_name: std::any::type_name::<O>,
            request: |generator| O::json_schema(generator),
            output: |generator| generator.subschema_for::<O::Output>(),
            run: run::<O>,
        }
    }

    /// What it does, in the words of its doc comment.
    pub fn about(&self) -> String {
        let schema = (self.request)(&mut SchemaGenerator::default());
        schema.get("description").and_then(Value::as_str).unwrap_or(self.title).replace('\n', " ")
    }

    /// Runs it with named arguments. What the schema does not know, or not within its bounds, is refused by name. Changes of
    /// one session go one after another, each after what `before` says of it.
    pub fn call(
        &self,
        given: Map<String, Value>,
        context: &Context,
        reader: Reader,
        before: impl FnOnce(&Found) -> Outcome,
    ) -> Outcome<Answer> {
        // An argument that is null is one that was left out.
        let given: Map<String, Value> = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
        check(&(self.request)(&mut SchemaGenerator::default()), &given)?;
        if self.effect == Effect::Read || !given.contains_key("session") {
            return (self.run)(Value::Object(given), context, reader);
        }
        // What `before` finds must still hold when the change is made.
        let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
        let found = context.find(Target { session: text("session"), thread: text("thread"), seq: None })?;
        let lock = context.lock(&found.session);
        let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        before(&found)?;
        (self.run)(Value::Object(given), context, reader)
    }
}

fn run<O: Operation>(given: Value, context: &Context, reader: Reader) -> Outcome<Answer> {
    let request: O = serde_json::from_value(given).map_err(|error| malformed(error.to_string()))?;
    let request = if reader == Reader::Model { request.for_model() } else { request };
    let output = context.run(request)?;
    Ok(Answer {
        json: serde_json::to_string(&output)?,
        text: (reader == Reader::Model).then(|| O::text(&output)).flatten(),
        moment: O::moment(&output),
        location: O::location(&output),
    })
}

fn malformed(why: impl Into<String>) -> Fault {
    Fault::new(Exit::Malformed, why)
}

/// Refuses names that a schema does not have, and values outside its bounds.
fn check(schema: &Schema, given: &Map<String, Value>) -> Outcome {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (name, value) in given {
        let Some(property) = known.get(name) else {
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(malformed(match &known[..] {
                [] => format!("unknown field `{name}`; this takes none"),
                known => format!("unknown field `{name}`; known are {}", known.join(", ")),
            }));
        };
        check_bounds(name, value, property)?;
    }
    Ok(())
}

fn check_bounds(name: &str, value: &Value, schema: &Value) -> Outcome {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            return Err(malformed(format!("{name} is {value}; give {least} or more, or leave it out")));
        }
        if let Some(most) = bound("maximum").filter(|most| number > *most) {
            return Err(malformed(format!("{name} is {value}, and {most} is the most")));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        if bound("minLength").is_some_and(|least| length < least) {
            return Err(malformed(format!("{name} is empty; say what is meant, or leave it out")));
        }
        if let Some(most) = bound("maxLength").filter(|most| length > *most) {
            return Err(malformed(format!("{name} is longer than {most} characters")));
        }
    }
    Ok(())
}
