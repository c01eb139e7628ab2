//! The HTTP API under `/api/v1`: every operation, for programs.
//!
//! Routes, document and the table of parameters come from the one list of operations. A request is read into named arguments
//! (`request`), the operation is run in the context of its caller, and its result is answered (`response`); nothing here knows
//! one operation from another.
//! Refused: settings, which hold keys, and anything that is not in the document at `/api/v1/openapi.json`.

mod document;
mod events;
mod idempotency;
mod request;
mod response;
#[cfg(test)]
mod tests;

use super::{ServerState, in_header};
use crate::report::{POLICY, ReportFormat, ReportLanguage, ReportView, UsageBy, write};
use axum::extract::{DefaultBodyLimit, RawPathParams, Request};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, post};
use axum::{Extension, Json, Router};
use document::{ROOT, check, document};
use http::header::{
    ACCEPT, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use idempotency::IdempotencyTable;
use komado_core::SessionId;
use komado_engine::engine::ResolvedAddress;
use komado_ops::clock::days_ago;
use komado_ops::report::MakeReport;
use komado_ops::stream::{StreamForm, StreamHead};
use komado_ops::{
    ALL, FaultKind, HttpMethod, NamedArguments, OpFault, OpResult, OperationRow, PlannedEntries,
    ResultReader, Route,
};
use komado_store::{Journal, OpenMode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use request::ApiCall;
pub(super) use response::ApiProblem;
use response::{ApiResult, etag, written};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes of a JSON body.
const BODY: usize = 32 << 20;

/// Its routes.
pub(crate) fn routes(house: &Arc<ServerState>) -> Router<Arc<ServerState>> {
    // On this machine, wherever the sessions are: a call is repeated where it was made.
    let config = &house.context.config;
    let answers = crate::app::is_kept(config).then(|| IdempotencyTable::at(&config.base_dir));
    let text = document(ALL).to_string();
    routed(Router::new(), ALL)
        .route(
            "/api/v1/openapi.json",
            get(move || async move { ([(CONTENT_TYPE, "application/json")], text) }),
        )
        .route("/api/v1", get(index))
        .route("/api/v1/", get(index))
        .method_not_allowed_fallback(wrong_method)
        .route("/api/v1/{*rest}", any(nowhere))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(Extension(Arc::new(answers.unwrap_or_default())))
}

/// Forgets what calls about a session were answered, in the table in `base_dir`.
pub(crate) fn forget_session(base_dir: &Path, id: &SessionId) -> OpResult {
    IdempotencyTable::at(base_dir).forget_session(id)
}

/// Where to begin.
async fn index() -> Json<Value> {
    Json(json!({
        "name": "komado",
        "version": env!("CARGO_PKG_VERSION"),
        "links": {
            "document": "/api/v1/openapi.json",
            "sessions": "/api/v1/sessions",
            "users": "/api/v1/users",
            "tasks": "/api/v1/tasks",
            "recall": "/api/v1/recall",
            "stats": "/api/v1/stats",
            "report": "/api/v1/report",
            "events": "/api/v1/events",
            "models": "/api/v1/models",
        },
    }))
}

async fn wrong_method(method: http::Method, uri: Uri) -> Response {
    let detail = format!("{method} does not go with {}; the header allow says what does", uri.path());
    ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}

async fn nowhere(uri: Uri) -> ApiProblem {
    ApiProblem::missing(format!("there is no {}; /api/v1/openapi.json lists every route", uri.path()))
}

/// Bytes of an answer that are held in memory; a larger one lies in a file while it is sent.
const HELD: usize = 1 << 20;

/// Days for which a call that names itself is remembered.
const REMEMBERED: u32 = 7;

/// Adds the routes of operations.
fn routed(router: Router<Arc<ServerState>>, rows: &'static [OperationRow]) -> Router<Arc<ServerState>> {
    let offered = rows.iter().filter_map(|row| Some((row, row.interfaces.http.ok()?)));
    offered.fold(router, |router, (row, route)| {
        router.route(&format!("{ROOT}{}", route.path), method(row, route))
    })
}

fn method(row: &'static OperationRow, route: Route) -> MethodRouter<Arc<ServerState>> {
    let handler =
        move |call: ApiCall, names: RawPathParams, request: Request| answer(row, route, call, names, request);
    match route.method {
        HttpMethod::Get => get(handler),
        HttpMethod::Post => post(handler),
        HttpMethod::Delete => delete(handler),
    }
}

/// Runs one operation, where it may block.
async fn answer(
    row: &'static OperationRow,
    route: Route,
    mut call: ApiCall,
    names: RawPathParams,
    request: Request,
) -> ApiResult<Response> {
    check(row, &route, &request)?;
    let schema = (row.request)(&mut schemars::SchemaGenerator::default()).to_value();
    let key = call.headers.get("idempotency-key").filter(|_| route.is_once);
    let key = key.map(|key| key.as_bytes().to_vec());
    let (given, digest) = request::read(&schema, &route, &mut call, &names, request).await?;
    if route.has_forms {
        return report(call, given).await;
    }
    match row.form {
        Some(StreamForm::Bytes(media)) => bytes(row, route, media, call, given).await,
        Some(StreamForm::Object) => object(row, route, call, given).await,
        Some(StreamForm::Events) => events::answer(row, call, given).await,
        None => held(row, route, call, given, key.map(|key| (key, digest))).await,
    }
}

/// An answer that is held.
async fn held(
    row: &'static OperationRow,
    route: Route,
    call: ApiCall,
    given: NamedArguments,
    once: Option<(Vec<u8>, blake3::Hash)>,
) -> ApiResult<Response> {
    let headers = call.headers.clone();
    let answer = call
        .run(move |call| match once {
            Some((key, digest)) => done_once(call, row, &route, given, &key, &digest),
            None => {
                let before = |found: &ResolvedAddress| call.check(found, &route).map(|()| None);
                Ok(row.call(given, &call.context, ResultReader::Program, before)?)
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
    if let Some(place) =
        answer.location.and_then(|path| HeaderValue::try_from(in_header(&format!("{ROOT}{path}"))).ok())
    {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Runs an operation under the name that its caller gave it, unless it was done before.
fn done_once(
    call: &ApiCall,
    row: &OperationRow,
    route: &Route,
    given: NamedArguments,
    key: &[u8],
    digest: &blake3::Hash,
) -> ApiResult<komado_ops::EncodedResult> {
    let part = |name: &str| given.text(name).unwrap_or_default();
    let whose = call.context.caller.key.as_deref().unwrap_or_default();
    let name = IdempotencyTable::name(&format!("{whose} {}/{}", part("session"), part("thread")), key)?;
    let (answers, body, now) = (&call.answers, digest.to_hex().to_string(), call.context.engine.now());
    let _running = answers.begin(&name)?;
    let (planner, planned_name, planned_body) = (Arc::clone(answers), name.clone(), body.clone());
    let context = call
        .context
        .clone()
        .planning(move |planned| planner.plan(&planned_name, &planned_body, planned, &now));
    let before = |found: &ResolvedAddress| {
        if let Some(planned) = answers.find(&name, &body)? {
            let journal = call.context.engine.store().open(&found.session, &found.thread, OpenMode::Read)?;
            if stands(&*journal, &planned)? {
                return Ok(Some(komado_ops::EncodedResult { json: planned.answer, ..Default::default() }));
            }
        }
        call.check(found, route)?;
        answers.forget(&days_ago(REMEMBERED))?;
        Ok(None)
    };
    Ok(row.call(given, &context, ResultReader::Program, before)?)
}

/// True when what was planned was done: that very line is in the journal.
fn stands(journal: &dyn Journal, planned: &PlannedEntries) -> OpResult<bool> {
    Ok(planned.seq <= journal.last()
        && blake3::hash(&journal.line(planned.seq)?).to_hex().as_str() == planned.line)
}

/// An answer that is one JSON object of any size: it lies in a file while it is sent.
async fn object(
    row: &'static OperationRow,
    route: Route,
    call: ApiCall,
    given: NamedArguments,
) -> ApiResult<Response> {
    let headers = call.headers.clone();
    let (tag, file) = call
        .run(move |call| {
            let mut moment = None;
            let mut out = Digested { file: tempfile::spooled_tempfile(HELD), digest: blake3::Hasher::new() };
            let before = |found: &ResolvedAddress| call.check(found, &route).map(|()| None);
            let mut begin = |opening: StreamHead| {
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
    row: &'static OperationRow,
    route: Route,
    media: &'static [&'static str],
    call: ApiCall,
    given: NamedArguments,
) -> ApiResult<Response> {
    let (opening, body) = response::begun(move |begin, out| {
        let before = |found: &ResolvedAddress| call.check(found, &route).map(|()| None);
        row.stream(given, &call.context, before, begin, out)
    })
    .await?;
    let mut response = body.into_response();
    let media = opening.media.or(media.first().copied()).unwrap_or("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if media.starts_with("text/html") {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    // What a tool printed is never to run in a browser.
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = opening.file_name.map(|name| attachment(&name));
    if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// What tells a browser to keep a file, and under which name. A name that is not ASCII has a form of its own (RFC 6266).
fn attachment(name: &str) -> String {
    match name.is_ascii() {
        true => format!("attachment; filename=\"{name}\""),
        false => format!("attachment; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC)),
    }
}

/// Media types of a report beside JSON.
const MEDIA: [&str; 2] = ["text/csv", "text/html"];

/// How a report is shown.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
struct ReportParameters {
    /// The form; as `accept` says when left out
    format: Option<ReportFormat>,
    /// In CSV and HTML: only usage by this
    by: Option<UsageBy>,
    /// The language of headings
    lang: Option<ReportLanguage>,
}

/// Makes a report and answers it in the form that is asked for. A report reads every session, so it ends when its reader goes
/// away, as all do when the server stops.
async fn report(call: ApiCall, mut given: NamedArguments) -> ApiResult<Response> {
    let shown = ReportParameters {
        format: chosen(&mut given, "format")?,
        by: chosen(&mut given, "by")?,
        lang: chosen(&mut given, "lang")?,
    };
    let format = shown.format.unwrap_or_else(|| accepted(&call.headers));
    let look = ReportView { format, by: shown.by, lang: shown.lang.unwrap_or_default() };
    // Said when this future is dropped with its call.
    let gone = CancellationToken::new();
    let reader = gone.clone().drop_guard();
    let made = call
        .run(move |call| {
            let context = call.context.clone().showing(move |_| match gone.is_cancelled() {
                true => Err(OpFault::new(FaultKind::Failed, "the reader has gone")),
                false => Ok(()),
            });
            Ok(context.run(given.request::<MakeReport>()?)?)
        })
        .await?;
    drop(reader);
    let mut response = written(move |out| write(&made, look, out)).into_response();
    let media = match format {
        ReportFormat::Json | ReportFormat::Text => "application/json",
        ReportFormat::Csv => "text/csv; charset=utf-8",
        ReportFormat::Html => "text/html; charset=utf-8",
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if format == ReportFormat::Html {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    Ok(response)
}

/// One of several words.
fn chosen<T: DeserializeOwned>(given: &mut NamedArguments, name: &str) -> ApiResult<Option<T>> {
    let Some(text) = given.take(name) else { return Ok(None) };
    serde_json::from_value(text.into()).map(Some).map_err(|error| ApiProblem::bad(format!("{name}: {error}")))
}

/// The first form that is asked for by name; JSON where none is.
fn accepted(headers: &HeaderMap) -> ReportFormat {
    let accept =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",");
    let named = |one: &str| match one.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(ReportFormat::Json),
        "text/csv" => Some(ReportFormat::Csv),
        "text/html" => Some(ReportFormat::Html),
        _ => None,
    };
    accept.split(',').find_map(named).unwrap_or(ReportFormat::Json)
}
