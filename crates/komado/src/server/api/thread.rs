//! Threads: list, draw, start, end, tell, share out, fork.

use super::call::{At, Call, In, address};
use super::problem::{Answer, Problem};
use super::shape;
use super::take::{self, Body, Maybe, Named, Params};
use crate::connect::ModelArgs;
use crate::verb;
use crate::verb::thread as child;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use komado_core::journal::{Ratio, Setup};
use komado_core::raw::Raw;
use komado_core::{Address, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::PoisonError;
use utoipa::{IntoParams, ToSchema};

/// List a session's threads, the root first
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads", tag = "threads", params(At),
    responses((status = 200, body = shape::Threads)))]
pub(super) async fn list(call: Call, Named(at): Named<At>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let (session, _) = desk.session(&at.session)?;
        let address = Some(Address { session, thread: None, seq: None });
        let args = verb::sessions::Args { address, status: None, user: None, limit: 0 };
        Ok(json!({ "items": desk.rows(|app| verb::sessions::run(app, args))? }))
    })
    .await
    .map(Json)
}

/// In which window.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Windowed {
    /// The model's window in tokens, in place of the session's own
    #[param(minimum = 1)]
    window: Option<u32>,
}

/// A session's threads as a tree: who has how much of the window, and what became of it
#[utoipa::path(get, path = "/api/v1/sessions/{session}/tree", tag = "threads", params(At, Windowed),
    responses((status = 200, body = shape::Tree)))]
pub(super) async fn tree(
    call: Call,
    Named(at): Named<At>,
    Params(asked): Params<Windowed>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let window = positive("window", asked.window)?;
        let (session, _) = desk.session(&at.session)?;
        let address = Address { session, thread: None, seq: None };
        desk.row(|app| child::tree::run(app, child::tree::Args { address, window }))
    })
    .await
    .map(Json)
}

/// A window of nothing is a slip.
pub(super) fn positive(name: &str, given: Option<u32>) -> Answer<Option<u32>> {
    match given {
        Some(0) => Err(Problem::bad(format!("{name} is 0; give 1 or more, or leave it out"))),
        given => Ok(given),
    }
}

fn ratio(given: Option<f64>) -> Answer<Option<Ratio>> {
    let wrong = |given: f64| Problem::bad(format!("ratio is {given}; give a number from 0.01 to 0.99"));
    given.map(|given| Ratio::new(given).map_err(|_| wrong(given))).transpose()
}

/// A child thread to be started; what is left out is as session, persona and settings say.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"label": "find the cause", "ratio": 0.5}))]
pub(super) struct Start {
    /// What it is about, for people and for the model.
    label: Option<String>,
    /// Its name; stelis_1, stelis_2, … when left out.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    name: Option<String>,
    /// What it gets of its parent's window.
    #[schema(minimum = 0.01, maximum = 0.99)]
    ratio: Option<f64>,
    /// How deep threads may nest.
    #[schema(maximum = 100)]
    max_depth: Option<u32>,
    /// A system prompt of its own, after those of the threads above.
    system: Option<String>,
    /// Tool definitions of its own, in place of those above.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Box<RawValue>>>,
    /// What is asked of whoever tells, at the end, what was done.
    chronicle_prompt: Option<String>,
    /// True to lend it nothing of what the threads above leave of their shares.
    no_lending: bool,
    /// The model's window in tokens, in place of the session's own.
    #[schema(minimum = 1)]
    window: Option<u32>,
}

/// JSON as the journal keeps it.
pub(super) fn raw<T: serde::Serialize>(given: &T) -> Answer<Raw> {
    Raw::parse(&serde_json::to_string(given)?).map_err(|error| Problem::unusable(error.to_string()))
}

/// Start a child thread: a window inside the window
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/start", tag = "threads", params(In),
    request_body = Option<Start>, responses((status = 201, body = shape::Begun)))]
pub(super) async fn start(call: Call, Named(at): Named<In>, Maybe(new): Maybe<Start>) -> Answer<Response> {
    let wanted = child::spawned::Wanted {
        name: new.name.map(ThreadId::new).transpose()?.map(|name| name.to_string()),
        ratio: ratio(new.ratio)?,
        max_depth: new.max_depth,
        system: None,
        tools: None,
        chronicle_prompt: new.chronicle_prompt,
        no_lending: new.no_lending,
    };
    if let Some(depth) = new.max_depth.filter(|depth| *depth > 100) {
        return Err(Problem::bad(format!("max_depth is {depth}, and 100 is the most")));
    }
    take::check_objects("tools", new.tools.as_deref().unwrap_or_default())?;
    let tools = new.tools.as_ref().map(raw).transpose()?;
    let dialect = tools.as_ref().map(|_| komado_core::openai::DIALECT.to_owned());
    let setup = Setup { system: new.system, tools, dialect, ..Setup::default() };
    let setup = (setup != Setup::default()).then_some(setup);
    let (label, window) = (new.label, positive("window", new.window)?);
    let made = call.change(at, move |app, address| {
        child::start::begin(app, child::start::Args { address, label, wanted, window }, setup)
    });
    Ok((StatusCode::CREATED, made.await?).into_response())
}

/// How a child thread ends.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"result": "the cause was a lost wakeup", "by": "digest"}))]
pub(super) struct End {
    /// Its result, for people.
    result: Option<String>,
    /// True to write no chronicle.
    no_chronicle: bool,
    /// The chronicle itself.
    chronicle: Option<String>,
    /// Who writes it: a model or the digest; as the settings say when left out.
    by: Option<Teller>,
}

/// Who tells what was done.
#[derive(Deserialize, Serialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum Teller {
    /// A model.
    Model,
    /// Nobody: what can be told without a model.
    Digest,
}

impl Teller {
    fn name(self) -> String {
        match self {
            Self::Model => "model".to_owned(),
            Self::Digest => "digest".to_owned(),
        }
    }
}

/// End a child thread well, and tell its parent what was done
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/end", tag = "threads", params(In),
    request_body = Option<End>, responses((status = 200, body = shape::Ended)))]
pub(super) async fn end(call: Call, Named(at): Named<In>, Maybe(end): Maybe<End>) -> Answer<Json<Value>> {
    let teller = child::end::Teller {
        no_chronicle: end.no_chronicle,
        chronicle: end.chronicle,
        by: end.by.map(Teller::name),
        model: ModelArgs::default(),
    };
    let result = end.result;
    call.change(at, |app, address| child::end::run(app, child::end::Args { address, result, teller })).await
}

/// Why, for people.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"reason": "it went in circles"}))]
pub(super) struct Why {
    /// Why.
    reason: Option<String>,
}

/// Break a child thread off, with as much of a chronicle as there is
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/abort", tag = "threads", params(In),
    request_body = Option<Why>, responses((status = 200, body = shape::Ended)))]
pub(super) async fn abort(call: Call, Named(at): Named<In>, Maybe(body): Maybe<Why>) -> Answer<Json<Value>> {
    let why = body.reason;
    call.change(at, |app, address| child::abort::run(app, child::abort::Args { address, why })).await
}

/// Let a child thread wait
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/pause", tag = "threads", params(In),
    request_body = Option<Why>, responses((status = 200, body = shape::Ended)))]
pub(super) async fn pause(call: Call, Named(at): Named<In>, Maybe(body): Maybe<Why>) -> Answer<Json<Value>> {
    let why = body.reason;
    call.change(at, |app, address| child::pause::run(app, child::pause::Args { address, why })).await
}

/// How a child thread goes on.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"ratio": 0.6}))]
pub(super) struct Resume {
    /// The model's window in tokens, in place of the session's own.
    #[schema(minimum = 1)]
    window: Option<u32>,
    /// What it gets of its parent's window; as before when left out.
    #[schema(minimum = 0.01, maximum = 0.99)]
    ratio: Option<f64>,
}

/// Let a child thread go on, also days after its end
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/resume", tag = "threads", params(In),
    request_body = Option<Resume>, responses((status = 200, body = shape::Said)))]
pub(super) async fn resume(
    call: Call,
    Named(at): Named<In>,
    Maybe(body): Maybe<Resume>,
) -> Answer<Json<Value>> {
    let (window, ratio) = (positive("window", body.window)?, ratio(body.ratio)?);
    call.change(at, move |app, address| {
        child::resume::run(app, child::resume::Args { address, window, ratio })
    })
    .await
}

/// Words for another thread.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"to": "root", "text": "the tests pass"}))]
pub(super) struct Tell {
    /// The thread of the same session that is to hear it.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    to: String,
    /// The words.
    #[schema(min_length = 1)]
    text: String,
}

/// Send words from this thread to another
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/tell", tag = "threads", params(In),
    request_body = Tell, responses((status = 200, body = shape::Said)))]
pub(super) async fn tell(call: Call, Named(at): Named<In>, Body(body): Body<Tell>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let found = desk.thread(&at)?;
        let to = ThreadId::new(body.to)?;
        desk.known(&found.session, &to)?;
        let room = desk.shared.room(&found.session);
        let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
        desk.check_thread(&found)?;
        let args =
            child::tell::Args { from: address(&found, None), to: to.to_string(), words: vec![body.text] };
        desk.row(|app| child::tell::run(app, args))
    })
    .await
    .map(Json)
}

/// How a window is shared out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"ratio": 0.6}))]
pub(super) struct Balance {
    /// What it gets of its parent's window; as before when left out.
    #[schema(minimum = 0.01, maximum = 0.99)]
    ratio: Option<f64>,
    /// True to cut what it sees of the threads above anew.
    #[serde(default)]
    refresh: bool,
    /// The model's window in tokens, in place of the session's own.
    #[schema(minimum = 1)]
    window: Option<u32>,
}

/// Share the window out otherwise
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/balance", tag = "threads", params(In),
    request_body = Balance, responses((status = 200, body = shape::Balanced)))]
pub(super) async fn balance(
    call: Call,
    Named(at): Named<In>,
    Body(body): Body<Balance>,
) -> Answer<Json<Value>> {
    let (window, ratio, refresh) = (positive("window", body.window)?, ratio(body.ratio)?, body.refresh);
    let args = move |address| child::balance::Args { address, ratio, refresh, window };
    call.change(at, move |app, address| child::balance::run(app, args(address))).await
}

/// What was done in a child thread
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/chronicle", tag = "threads", params(In),
    responses((status = 200, body = shape::Chronicle)))]
pub(super) async fn chronicle(call: Call, Named(at): Named<In>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let found = desk.thread(&at)?;
        let args = told(address(&found, None), None, Again::Show, None);
        desk.row(|app| child::chronicle::run(app, args))
    })
    .await
    .map(Json)
}

/// A chronicle to be written.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"text": "Found the cause and fixed it."}))]
pub(super) struct Retell {
    /// The words; when left out they are told again.
    text: Option<String>,
    /// Say again what this entry said.
    restore: Option<u32>,
    /// Who tells; as the settings say when left out.
    by: Option<Teller>,
}

enum Again {
    Show,
    Tell,
}

fn told(
    address: Address,
    text: Option<String>,
    again: Again,
    restore: Option<u32>,
) -> child::chronicle::Args {
    let teller = child::end::Teller::default();
    child::chronicle::Args { address, text, file: None, again: matches!(again, Again::Tell), restore, teller }
}

/// Write what was done in a child thread, or have it told again
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/chronicle", tag = "threads", params(In),
    request_body = Option<Retell>, responses((status = 200, body = shape::Chronicle)))]
pub(super) async fn write_chronicle(
    call: Call,
    Named(at): Named<In>,
    Maybe(body): Maybe<Retell>,
) -> Answer<Json<Value>> {
    if body.text.is_some() && body.restore.is_some() {
        return Err(Problem::unusable("give text or restore, not both"));
    }
    let by = body.by.map(Teller::name);
    call.change(at, move |app, address| {
        let mut args = told(address, body.text, Again::Tell, body.restore);
        args.teller.by = by;
        child::chronicle::run(app, args)
    })
    .await
}

/// Where to go on.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"at": 1, "name": "other-way"}))]
pub(super) struct Fork {
    /// The moment to go on from; now when left out.
    at: Option<u32>,
    /// The new thread's name; one is made up when left out.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    name: Option<String>,
    /// What it is about, for people.
    label: Option<String>,
}

/// Go on from a moment in another thread
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/fork", tag = "threads", params(In),
    request_body = Option<Fork>, responses((status = 201, body = shape::Begun)))]
pub(super) async fn fork(call: Call, Named(at): Named<In>, Maybe(fork): Maybe<Fork>) -> Answer<Response> {
    let name = fork.name.map(ThreadId::new).transpose()?.map(|name| name.to_string());
    let made = call.change(at, move |app, address| {
        let address = Address { seq: fork.at, ..address };
        verb::fork::run(app, verb::fork::Args { address, name, label: fork.label })
    });
    Ok((StatusCode::CREATED, made.await?).into_response())
}
