//! Operations over HTTP: a request becomes named arguments (`request`), they are run, and the result is answered (`response`)
//! with a status. Nothing here knows one operation from another.

use super::answers::Answers;
use super::document::ROOT;
use super::problem::Answer;
use super::request::{self, Call};
use super::response::{self, etag};
use super::{events, report};
use crate::fault::Outcome;
use crate::server::House;
use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use komado_engine::engine::Found;
use komado_ops::clock::days_ago;
use komado_ops::stream::{Form, Opening};
use komado_ops::{Arguments, Method, Planned, Reader, Route, Row};
use komado_store::{Journal, Mode};
use std::io::Write;
use std::sync::Arc;

/// Bytes of an answer that are held in memory; a larger one lies in a file while it is sent.
const HELD: usize = 1 << 20;

/// Days for which a call that names itself is remembered.
const REMEMBERED: u32 = 7;

/// Adds the routes of operations.
pub(super) fn routed(router: Router<Arc<House>>, rows: &'static [Row]) -> Router<Arc<House>> {
    let offered = rows.iter().filter_map(|row| Some((row, row.interfaces.http.ok()?)));
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
        Method::Delete => delete(handler),
    }
}

/// Runs one operation, where it may block.
async fn answer(
    row: &'static Row,
    route: Route,
    mut call: Call,
    names: RawPathParams,
    request: Request,
) -> Answer<Response> {
    let schema = (row.request)(&mut schemars::SchemaGenerator::default()).to_value();
    let key = call.headers.get("idempotency-key").filter(|_| route.is_once);
    let key = key.map(|key| key.as_bytes().to_vec());
    let (given, digest) = request::read(&schema, &route, &mut call, &names, request).await?;
    if route.has_forms {
        return report::answer(call, given).await;
    }
    match row.form {
        Some(Form::Bytes(media)) => bytes(row, route, media, call, given).await,
        Some(Form::Object) => object(row, route, call, given).await,
        Some(Form::Events) => events::answer(row, call, given).await,
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
        .run(move |call| match once {
            Some((key, digest)) => done_once(call, row, &route, given, &key, &digest),
            None => {
                let before = |found: &Found| call.check(found, &route).map(|()| None);
                Ok(row.call(given, &call.context, Reader::Program, before)?)
            }
        })
        .await?;
    if route.status == StatusCode::NO_CONTENT {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut response = match answer.moment.filter(|_| route.has_tag) {
        Some(moment) => {
            let tag = etag(&moment, &blake3::hash(answer.json.as_bytes()));
            response::tagged(&headers, &tag, answer.json)
        }
        None => response::json(answer.json),
    };
    if response.status() == StatusCode::OK {
        let is_there = route.may_be_there && answer.location.is_none();
        let status = if is_there { 200 } else { route.status };
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    }
    if let Some(place) = answer.location.and_then(|path| HeaderValue::try_from(format!("{ROOT}{path}")).ok())
    {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Runs an operation under the name that its caller gave it, unless it was done before.
fn done_once(
    call: &Call,
    row: &Row,
    route: &Route,
    given: Arguments,
    key: &[u8],
    digest: &blake3::Hash,
) -> Answer<komado_ops::Answer> {
    let part = |name: &str| given.text(name).unwrap_or_default();
    let whose = call.context.caller.key.as_deref().unwrap_or_default();
    let name = Answers::name(&format!("{whose} {}/{}", part("session"), part("thread")), key)?;
    let (answers, body, now) = (&call.answers, digest.to_hex().to_string(), call.context.engine.now());
    let _running = answers.begin(&name)?;
    let (planner, planned_name, planned_body) = (Arc::clone(answers), name.clone(), body.clone());
    let context = call
        .context
        .clone()
        .planning(move |planned| planner.plan(&planned_name, &planned_body, planned, &now));
    let before = |found: &Found| {
        if let Some(planned) = answers.find(&name, &body)? {
            let journal = call.context.engine.store().open(&found.session, &found.thread, Mode::Read)?;
            if stands(&*journal, &planned)? {
                return Ok(Some(komado_ops::Answer { json: planned.answer, ..Default::default() }));
            }
        }
        call.check(found, route)?;
        answers.forget(&days_ago(REMEMBERED))?;
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
        .run(move |call| {
            let mut moment = None;
            let mut out = Digested { file: tempfile::spooled_tempfile(HELD), digest: blake3::Hasher::new() };
            let before = |found: &Found| call.check(found, &route).map(|()| None);
            let mut begin = |opening: Opening| {
                moment = opening.moment;
                Ok(())
            };
            row.stream(given, &call.context, before, &mut begin, &mut out)?;
            Ok((etag(&moment.unwrap_or_default(), &out.digest.finalize()), out.file))
        })
        .await?;
    Ok(response::tagged(&headers, &tag, response::file(file)?))
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
    let (opening, body) = response::begun(move |begin, out| {
        let before = |found: &Found| call.check(found, &route).map(|()| None);
        row.stream(given, &call.context, before, begin, out)
    })
    .await?;
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    // What a tool printed is never to run in a browser.
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = opening.file_name.map(|name| format!("attachment; filename=\"{name}\""));
    if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
