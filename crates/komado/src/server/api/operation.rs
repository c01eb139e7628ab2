//! Operations over HTTP: a request becomes named arguments, a result JSON with a status.
//!
//! Names come from the path, the query and a JSON object in the body. Which of them an operation has, of which type and within
//! which bounds, its own schema says; nothing here knows one operation from another.

use super::answers::Answers;
use super::call::{Call, Desk};
use super::document::{ROOT, is_in_path};
use super::problem::{Answer, Problem};
use super::{report, stream, tag, take};
use crate::fault::Outcome;
use crate::server::House;
use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use komado_engine::engine::Found;
use komado_ops::clock::days_ago;
use komado_ops::stream::{Form, Opening};
use komado_ops::{Arguments, Method, Planned, Reader, Route, Row};
use komado_store::{Journal, Mode};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// Bytes of an answer that are held in memory; a larger one lies in a file while it is sent.
const HELD: usize = 1 << 20;

/// Days for which a call that names itself is remembered.
const REMEMBERED: u32 = 7;

/// Adds the routes of operations.
pub(super) fn routed(router: Router<Arc<House>>, rows: &'static [Row]) -> Router<Arc<House>> {
    let offered = rows.iter().filter_map(|row| Some((row, row.interfaces.http.get()?)));
    offered.fold(router, |router, (row, route)| {
        router.route(&format!("{ROOT}{}", route.path), method(row, route))
    })
}

fn method(row: &'static Row, route: Route) -> MethodRouter<Arc<House>> {
    let handler =
        move |call: Call, names: RawPathParams, request: Request| answer(row, route, call, names, request);
    match route.method {
        Method::Get => get(handler),
        Method::Post => post(handler),
        Method::Put => put(handler),
        Method::Delete => delete(handler),
    }
}

/// Runs one operation, where it may block.
async fn answer(
    row: &'static Row,
    route: Route,
    call: Call,
    names: RawPathParams,
    request: Request,
) -> Answer<Response> {
    let schema = (row.request)(&mut schemars::SchemaGenerator::default()).to_value();
    let key = call.headers.get("idempotency-key").filter(|_| route.is_once);
    let key = key.map(|key| key.as_bytes().to_vec());
    let (mut given, digest) = arguments(&schema, &route, request).await?;
    for (name, value) in &names {
        given.insert(name, &typed(&schema, name, value)?);
    }
    if route.has_forms {
        return report::answer(call, given).await;
    }
    match row.form {
        Some(Form::Bytes(media)) => bytes(row, route, media, call, given).await,
        Some(Form::Object) => object(row, route, call, given).await,
        None => held(row, route, call, given, key.map(|key| (key, digest))).await,
    }
}

/// An answer that is held.
async fn held(
    row: &'static Row,
    route: Route,
    call: Call,
    given: Arguments,
    once: Option<(Vec<u8>, blake3::Hash)>,
) -> Answer<Response> {
    let headers = call.headers.clone();
    let answer = call
        .run(move |desk| match once {
            Some((key, digest)) => done_once(desk, row, &route, given, &key, &digest),
            None => {
                let before = |found: &Found| desk.check(found, &route).map(|()| None);
                Ok(row.call(given, &desk.context, Reader::Program, before)?)
            }
        })
        .await?;
    if route.status == StatusCode::NO_CONTENT {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut response = match answer.moment.filter(|_| route.has_tag) {
        Some(moment) => tag::answer(&headers, &tag::of(&moment, answer.json.as_bytes()), answer.json),
        None => answer.json.into_response(),
    };
    if response.status() == StatusCode::OK {
        let is_there = route.may_be_there && answer.location.is_none();
        let status = if is_there { 200 } else { route.status };
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(place) = answer.location.and_then(|path| HeaderValue::try_from(format!("{ROOT}{path}")).ok())
    {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Runs an operation under the name that its caller gave it, unless it was done before.
fn done_once(
    desk: &Desk,
    row: &Row,
    route: &Route,
    given: Arguments,
    key: &[u8],
    digest: &blake3::Hash,
) -> Answer<komado_ops::Answer> {
    let part = |name: &str| given.text(name).unwrap_or_default();
    let whose = desk.guest.key.as_deref().unwrap_or_default();
    let name = Answers::name(&format!("{whose} {}/{}", part("session"), part("thread")), key)?;
    let (shared, body, now) =
        (Arc::clone(&desk.shared), digest.to_hex().to_string(), desk.context.engine.now());
    let _running = shared.answers.begin(&name)?;
    let (planner, planned_name, planned_body) = (Arc::clone(&shared), name.clone(), body.clone());
    let context = desk
        .context
        .clone()
        .planning(move |planned| planner.answers.plan(&planned_name, &planned_body, planned, &now));
    let before = |found: &Found| {
        if let Some(planned) = shared.answers.find(&name, &body)? {
            let journal = desk.context.engine.store().open(&found.session, &found.thread, Mode::Read)?;
            if stands(&*journal, &planned)? {
                return Ok(Some(komado_ops::Answer { json: planned.answer, ..Default::default() }));
            }
        }
        desk.check(found, route)?;
        shared.answers.forget(&days_ago(REMEMBERED))?;
        Ok(None)
    };
    Ok(row.call(given, &context, Reader::Program, before)?)
}

/// True when what was planned was done: that very line is in the journal.
fn stands(journal: &dyn Journal, planned: &Planned) -> Outcome<bool> {
    Ok(planned.seq <= journal.last()
        && blake3::hash(&journal.line(planned.seq)?).to_hex().as_str() == planned.line)
}

/// An answer that is one JSON object of any size: it lies in a file while it is sent.
async fn object(row: &'static Row, route: Route, call: Call, given: Arguments) -> Answer<Response> {
    let headers = call.headers.clone();
    let (tag, file) = call
        .run(move |desk| {
            let mut moment = None;
            let mut out = Digested { file: tempfile::spooled_tempfile(HELD), digest: blake3::Hasher::new() };
            let before = |found: &Found| desk.check(found, &route).map(|()| None);
            let mut begin = |opening: Opening| {
                moment = opening.moment;
                Ok(())
            };
            row.stream(given, &desk.context, before, &mut begin, &mut out)?;
            let place = moment.unwrap_or_default();
            Ok((tag::from_digest(&place, &out.digest.finalize()), out.file))
        })
        .await?;
    Ok(tag::answer(&headers, &tag, stream::file(file)?))
}

/// What is written, digested on the way.
struct Digested {
    file: tempfile::SpooledTempFile,
    digest: blake3::Hasher,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.digest.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// An answer of bytes, sent as they come.
async fn bytes(
    row: &'static Row,
    route: Route,
    media: &'static str,
    call: Call,
    given: Arguments,
) -> Answer<Response> {
    let desk = call.desk();
    let (opening, body) = stream::begun(move |begin, out| {
        let before = |found: &Found| desk.check(found, &route).map(|()| None);
        row.stream(given, &desk.context, before, begin, out)
    })
    .await?;
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    let name = opening.file_name.map(|name| format!("attachment; filename=\"{name}\""));
    if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// The arguments that stand in the query, or in the body; and a digest of the body.
async fn arguments(schema: &Value, route: &Route, request: Request) -> Answer<(Arguments, blake3::Hash)> {
    if !matches!(route.method, Method::Post | Method::Put) {
        let query = request.uri().query().unwrap_or_default();
        let mut given = Arguments::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            given.insert(&name, &typed(schema, &name, &value)?);
        }
        return Ok((given, blake3::hash(b"")));
    }
    let (given, digest) = take::arguments(request).await?;
    let misplaced = given.names().find(|name| is_in_path(route, name));
    match misplaced {
        Some(name) => {
            Err(Problem::bad(format!("the body does not fit: {name} stands in the path; leave it out")))
        }
        None => Ok((given, digest)),
    }
}

/// A text as the type that the schema asks for.
fn typed(schema: &Value, name: &str, text: &str) -> Answer<Value> {
    let kind = &schema["properties"][name]["type"];
    let is = |wanted: &str| {
        kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
    };
    let wrong = |what: &str| Problem::bad(format!("{name} is {text:?}; give {what}"));
    if is("integer") {
        return text.parse::<u64>().map(Value::from).map_err(|_| wrong("a whole number"));
    }
    if is("number") {
        return text.parse::<f64>().map(Value::from).map_err(|_| wrong("a number"));
    }
    if is("boolean") {
        return text.parse::<bool>().map(Value::from).map_err(|_| wrong("true or false"));
    }
    Ok(Value::from(text))
}
