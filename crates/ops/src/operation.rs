//! What is an operation, and how do interfaces that know only names and JSON call one?

use crate::address::Target;
use crate::stream::{self, StreamForm, StreamHead};
use crate::watch::{self, EventWatch, Watched};
use crate::{NamedArguments, OpFault, OpResult, OperationContext, Streamed};
use komado_engine::engine::ResolvedAddress;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Write;
use std::sync::PoisonError;

/// An operation: a request that can be run.
///
/// The doc comment of the type is what the help, the document and the list of tools say of it; those of its fields describe
/// the arguments.
pub trait Operation: DeserializeOwned + JsonSchema + 'static {
    /// What it is called, and what it does to a session.
    const ABOUT: OperationLabel;
    /// Where it is offered.
    const INTERFACES: Interfaces;
    /// What it gives back: the same JSON everywhere.
    type Output: Serialize + JsonSchema;

    /// Runs it.
    fn run(self, context: &OperationContext) -> OpResult<Self::Output>;

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

/// What an operation is called, and what it does to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationLabel {
    /// Its name: a tool of MCP, and the id in the document.
    pub name: &'static str,
    /// The same for people, in a few words.
    pub title: &'static str,
    /// What it does to a session.
    pub effect: Effect,
}

impl OperationLabel {
    /// [`Effect::Read`].
    pub const fn read(name: &'static str, title: &'static str) -> Self {
        Self { name, title, effect: Effect::Read }
    }

    /// [`Effect::Add`].
    pub const fn add(name: &'static str, title: &'static str) -> Self {
        Self { name, title, effect: Effect::Add }
    }

    /// [`Effect::Edit`].
    pub const fn edit(name: &'static str, title: &'static str) -> Self {
        Self { name, title, effect: Effect::Edit }
    }

    /// [`Effect::Settle`].
    pub const fn settle(name: &'static str, title: &'static str) -> Self {
        Self { name, title, effect: Effect::Settle }
    }

    /// [`Effect::Remove`].
    pub const fn remove(name: &'static str, title: &'static str) -> Self {
        Self { name, title, effect: Effect::Remove }
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
    pub cli: InterfaceOffer<&'static str>,
    /// The route of the HTTP API.
    pub http: InterfaceOffer<Route>,
    /// The tool of the MCP server, by the operation's name.
    pub mcp: InterfaceOffer<()>,
}

impl Interfaces {
    /// A verb, a route and a tool.
    pub const fn everywhere(verb: &'static str, route: Route) -> Self {
        Self { cli: Ok(verb), http: Ok(route), mcp: Ok(()) }
    }

    /// A verb alone, and why.
    pub const fn only_cli(verb: &'static str, why: &'static str) -> Self {
        Self { cli: Ok(verb), http: Err(why), mcp: Err(why) }
    }

    /// A route alone, and why.
    pub const fn only_http(route: Route, why: &'static str) -> Self {
        Self { cli: Err(why), http: Ok(route), mcp: Err(why) }
    }

    /// The same without a tool, and why.
    pub const fn not_mcp(self, why: &'static str) -> Self {
        Self { mcp: Err(why), ..self }
    }
}

/// How an interface offers an operation; where it does not, why.
pub type InterfaceOffer<T> = Result<T, &'static str>;

/// A route of the HTTP API.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub method: HttpMethod,
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
    /// True where the result is also offered in forms for people, which the interface renders.
    pub has_forms: bool,
    /// True where a call that names itself is done once ([`OperationContext::planning`]).
    pub is_once: bool,
    /// The media type of a body that the operation reads as it is ([`OperationContext::reading`]); the request stands in the query then.
    pub body: Option<&'static str>,
    /// A field of the request that stands in the header of its name.
    pub header: Option<&'static str>,
}

impl Route {
    const fn new(method: HttpMethod, status: u16, group: &'static str, path: &'static str) -> Self {
        Self {
            method,
            path,
            status,
            group,
            has_tag: false,
            is_once: false,
            may_be_there: false,
            has_forms: false,
            body: None,
            header: None,
        }
    }

    /// A route that is read.
    pub const fn get(group: &'static str, path: &'static str) -> Self {
        Self::new(HttpMethod::Get, 200, group, path)
    }

    /// A route that changes something.
    pub const fn post(group: &'static str, path: &'static str) -> Self {
        Self::new(HttpMethod::Post, 200, group, path)
    }

    /// A route that makes something.
    pub const fn make(group: &'static str, path: &'static str) -> Self {
        Self::new(HttpMethod::Post, 201, group, path)
    }

    /// The same with an ETag.
    pub const fn tagged(self) -> Self {
        Self { has_tag: true, ..self }
    }

    /// True where a field of the request stands in the path.
    pub fn is_in_path(&self, field: &str) -> bool {
        let name = |part: &'static str| part.strip_prefix('{')?.strip_suffix('}');
        self.path.split('/').any(|part| name(part) == Some(field))
    }

    /// True where the request stands in a JSON body, but for names in the path and the header.
    pub const fn has_json(&self) -> bool {
        matches!(self.method, HttpMethod::Post) && self.body.is_none()
    }

    /// A route that removes something, after which nothing is left to be told.
    pub const fn remove(group: &'static str, path: &'static str) -> Self {
        Self::new(HttpMethod::Delete, 204, group, path)
    }

    /// A route that removes something, and says what.
    pub const fn delete(group: &'static str, path: &'static str) -> Self {
        Self::new(HttpMethod::Delete, 200, group, path)
    }
}

/// A method of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpMethod {
    /// GET
    Get,
    /// POST
    Post,
    /// DELETE
    Delete,
}

komado_core::names! {
    /// Its name in the document.
    HttpMethod { Get = "get", Post = "post", Delete = "delete" }
}

/// What an operation gave back, encoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodedResult {
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
pub struct OperationRow {
    /// [`OperationLabel::name`].
    pub name: &'static str,
    /// [`OperationLabel::title`].
    pub title: &'static str,
    /// [`OperationLabel::effect`].
    pub effect: Effect,
    /// [`Operation::INTERFACES`].
    pub interfaces: Interfaces,
    /// The name of its type.
    pub type_name: fn() -> &'static str,
    /// The schema of a request: an object whose properties stand in it, not behind references.
    pub request: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of a result.
    pub output: fn(&mut SchemaGenerator) -> Schema,
    /// How a streamed result is written; `None` for one that is held.
    pub form: Option<StreamForm>,
    run: Run,
    write: Option<stream::StreamRun>,
    watch: Option<watch::Begin>,
}

/// How an operation is run where its result is held.
type Run = fn(&NamedArguments, &OperationContext, ResultReader) -> OpResult<EncodedResult>;

/// Who reads a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultReader {
    /// A program.
    Program,
    /// A model, which pays for each word.
    Model,
}

impl OperationRow {
    /// The row of an operation.
    pub const fn of<O: Operation>() -> Self {
        let output = |generator: &mut SchemaGenerator| generator.subschema_for::<O::Output>();
        Self::new::<O>(O::ABOUT, O::INTERFACES, output, run::<O>)
    }

    /// The row of an operation whose result is streamed.
    pub const fn streamed<S: Streamed>() -> Self {
        let row = Self::new::<S>(S::ABOUT, S::INTERFACES, stream::schema::<S>, stream::hold::<S>);
        Self { form: Some(S::FORM), write: Some(stream::write::<S>), ..row }
    }

    /// The row of an operation whose result goes on without an end.
    pub const fn watched<W: Watched>() -> Self {
        let output = |generator: &mut SchemaGenerator| generator.subschema_for::<W::Event>();
        let row = Self::new::<W>(W::ABOUT, W::INTERFACES, output, |_, _, _| {
            Err(OpFault::usage("this operation has no end; read it event by event"))
        });
        Self { form: Some(StreamForm::Events), watch: Some(watch::begin::<W>), ..row }
    }

    const fn new<T: JsonSchema>(
        OperationLabel { name, title, effect }: OperationLabel,
        interfaces: Interfaces,
        output: fn(&mut SchemaGenerator) -> Schema,
        run: Run,
    ) -> Self {
        let (type_name, request) = (std::any::type_name::<T>, T::json_schema);
        Self {
            name,
            title,
            effect,
            interfaces,
            type_name,
            request,
            output,
            form: None,
            run,
            write: None,
            watch: None,
        }
    }

    /// What it does, in the words of its doc comment.
    pub fn about(&self) -> String {
        let schema = (self.request)(&mut SchemaGenerator::default());
        schema.get("description").and_then(Value::as_str).unwrap_or(self.title).replace('\n', " ")
    }

    /// Runs it with named arguments. What the schema does not know, or not within its bounds, is refused by name. Changes of
    /// one session go one after another, each after what `before` says of it, which may have an answer already.
    pub fn call(
        &self,
        given: NamedArguments,
        context: &OperationContext,
        reader: ResultReader,
        before: impl FnOnce(&ResolvedAddress) -> OpResult<Option<EncodedResult>>,
    ) -> OpResult<EncodedResult> {
        self.guarded(given, context, before, |given, context| (self.run)(&given, context, reader))
    }

    /// The same, with a result that is written to `out` as it comes. `begin` hears when nothing that was asked for is missing.
    pub fn stream(
        &self,
        given: NamedArguments,
        context: &OperationContext,
        before: impl FnOnce(&ResolvedAddress) -> OpResult<Option<()>>,
        begin: &mut dyn FnMut(StreamHead) -> OpResult,
        out: &mut dyn Write,
    ) -> OpResult {
        self.guarded(given, context, before, |given, context| match self.write {
            Some(write) => write(&given, context, ResultReader::Program, begin, out),
            None => {
                let answer = (self.run)(&given, context, ResultReader::Program)?;
                begin(StreamHead { moment: answer.moment, file_name: None, media: None })?;
                Ok(out.write_all(answer.json.as_bytes())?)
            }
        })
    }

    /// Begins to hear the events of an operation that has them.
    pub fn watch(&self, given: &NamedArguments, context: &OperationContext) -> OpResult<Box<dyn EventWatch>> {
        given.check(&(self.request)(&mut SchemaGenerator::default()))?;
        let begin = self.watch.ok_or_else(|| OpFault::usage(format!("{} has no events", self.name)))?;
        begin(given, context)
    }

    fn guarded<T>(
        &self,
        given: NamedArguments,
        context: &OperationContext,
        before: impl FnOnce(&ResolvedAddress) -> OpResult<Option<T>>,
        run: impl FnOnce(NamedArguments, &OperationContext) -> OpResult<T>,
    ) -> OpResult<T> {
        given.check(&(self.request)(&mut SchemaGenerator::default()))?;
        let session = given.text("session");
        if self.effect == Effect::Read || session.is_none() {
            return run(given, context);
        }
        // What `before` finds must still hold when the change is made.
        let target = Target { session, thread: given.text("thread"), seq: None };
        let (found, context) = context.find_once(target)?;
        let lock = context.lock(&found.session);
        let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        match before(&found)? {
            Some(answer) => Ok(answer),
            None => run(given, &context),
        }
    }
}

fn run<O: Operation>(
    given: &NamedArguments,
    context: &OperationContext,
    reader: ResultReader,
) -> OpResult<EncodedResult> {
    let request: O = given.read()?;
    let request = if reader == ResultReader::Model { request.for_model() } else { request };
    let output = context.run(request)?;
    Ok(EncodedResult {
        json: serde_json::to_string(&output)?,
        text: (reader == ResultReader::Model).then(|| O::text(&output)).flatten(),
        moment: O::moment(&output),
        location: O::location(&output),
    })
}
