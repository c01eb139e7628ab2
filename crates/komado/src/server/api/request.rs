//! A request is read: who calls, what is asked for, and which moment the caller has seen.
//!
//! Names come from the path, the query, a header and a JSON object in the body. Which of them an operation has, of which type
//! and within which bounds, its own schema says. Whatever does not fit is a problem that names it; parameters that a route
//! does not know are refused before (`document::check`).

use super::idempotency::IdempotencyTable;
use super::response::{ApiProblem, ApiResult, etag};
use crate::server::{ApiCaller, ServerState, in_header};
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, IF_MATCH};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use komado_engine::engine::ResolvedAddress;
use komado_ops::session::SessionRow;
use komado_ops::{FaultKind, NamedArguments, Naming, OpFault, OpResult, OperationContext, Route};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a JSON body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a body that an operation reads as it is.
const MOST: u64 = 4 << 30;
/// The media type of other bodies.
const JSON: &str = "application/json";

/// Who calls, with what.
#[derive(Clone)]
pub(super) struct ApiCall {
    /// What operations run in: for this caller, who names sessions in full.
    pub(super) context: OperationContext,
    pub(super) house: Arc<ServerState>,
    pub(super) answers: Arc<IdempotencyTable>,
    pub(super) headers: HeaderMap,
}

impl FromRequestParts<Arc<ServerState>> for ApiCall {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<ServerState>) -> ApiResult<Self> {
        let answers = parts.extensions.get::<Arc<IdempotencyTable>>().cloned();
        let caller = parts.extensions.get::<ApiCaller>().cloned();
        let (Some(answers), Some(caller)) = (answers, caller) else {
            let why = "it is not known who calls; this is a fault in komado, please report it";
            return Err(ApiProblem::ours(why));
        };
        let context = house.context.of(caller, Naming::Exact);
        Ok(Self { context, house: Arc::clone(house), answers, headers: parts.headers.clone() })
    }
}

impl ApiCall {
    /// Does something where it may block. What panics there is a problem of this call alone.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&Self) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        tokio::task::spawn_blocking(move || work(&self))
            .await
            .unwrap_or_else(|_| Err(ApiProblem::broken_off()))
    }

    /// Refuses a caller who has seen another moment of what a route is about.
    pub(super) fn check(&self, found: &ResolvedAddress, route: &Route) -> OpResult {
        let Some(wanted) = self.headers.get(IF_MATCH) else { return Ok(()) };
        let now = match route.path.contains("{thread}") {
            true => {
                let store = self.context.engine.store();
                let journal = store.open(&found.session, &found.thread, komado_store::OpenMode::Read)?;
                in_header(&format!("{}@{}", found.thread, journal.last()))
            }
            false => {
                let row = SessionRow::told(&self.context, self.context.engine.session(&found.session)?)?;
                etag("session", &blake3::hash(&serde_json::to_vec(&row)?)).trim_matches('"').to_owned()
            }
        };
        let wanted = wanted.to_str().unwrap_or("?");
        // What stands behind the last dash is a digest of one answer; a writer means the moment.
        let is_now = |one: &str| {
            let moment = one.trim().trim_matches('"');
            moment == "*" || moment == now || moment.rsplit_once('-').is_some_and(|(moment, _)| moment == now)
        };
        match wanted.split(',').any(is_now) {
            true => Ok(()),
            false => Err(OpFault::new(
                FaultKind::Changed,
                format!(
                    "If-Match is {wanted}, but this is at \"{now}\" now; read what came in between, then try again"
                ),
            )),
        }
    }
}

/// What an operation is given, and a digest of the body that said so. A body that the operation reads as it is becomes the
/// input of the call.
pub(super) async fn read(
    schema: &Value,
    route: &Route,
    call: &mut ApiCall,
    names: &RawPathParams,
    request: Request,
) -> ApiResult<(NamedArguments, blake3::Hash)> {
    let (mut given, digest) = match route.has_json() {
        true => json_fields(route, request).await?,
        false => {
            let given = query(schema, &request)?;
            if let Some(media) = route.body {
                check_type(&request, media)?;
                let seconds = call.context.config.server.timeout_seconds;
                let file = spool(request.into_body(), Duration::from_secs(u64::from(seconds))).await?;
                call.context = call.context.clone().reading(BufReader::new(file));
            }
            (given, blake3::hash(b""))
        }
    };
    for (name, value) in names {
        given.insert(name, &typed(schema, name, value)?);
    }
    if let Some((name, value)) = route.header.and_then(|name| Some((name, call.headers.get(name)?))) {
        given.insert(name, &typed(schema, name, value.to_str().unwrap_or("?"))?);
    }
    Ok((given, digest))
}

fn query(schema: &Value, request: &Request) -> ApiResult<NamedArguments> {
    let mut given = NamedArguments::default();
    for (name, value) in form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
        given.insert(&name, &typed(schema, &name, &value)?);
    }
    Ok(given)
}

/// A text as the type that the schema asks for.
fn typed(schema: &Value, name: &str, text: &str) -> ApiResult<Value> {
    let kind = &schema["properties"][name]["type"];
    let is = |wanted: &str| {
        kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
    };
    let wrong = |what: &str| ApiProblem::bad(format!("{name} is {text:?}; give {what}"));
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

/// The fields of a JSON body, which may be left out where nothing is to be said; and a digest of what was sent.
async fn json_fields(route: &Route, request: Request) -> ApiResult<(NamedArguments, blake3::Hash)> {
    let is_json = check_type(&request, JSON);
    let bytes = bytes(request).await?;
    let digest = blake3::hash(&bytes);
    if bytes.is_empty() || is_json.is_ok() && bytes.trim_ascii() == b"null" {
        return Ok((NamedArguments::default(), digest));
    }
    is_json?;
    let unfit = |why: &str| ApiProblem::bad(format!("the body does not fit: {why}"));
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| unfit(&format!("it is not UTF-8: byte {} is wrong", error.valid_up_to() + 1)))?;
    if !text.trim_start().starts_with('{') {
        return Err(unfit("it is not a JSON object"));
    }
    let given = NamedArguments::parse(text).map_err(|error| unfit(&error.to_string()))?;
    let misplaced = given.names().find(|name| route.is_in_path(name));
    match misplaced {
        Some(name) => Err(unfit(&format!("{name} stands in the path; leave it out"))),
        None => Ok((given, digest)),
    }
}

/// A body, as far as bodies may be large.
async fn bytes(request: Request) -> ApiResult<Bytes> {
    let slow = |_| ApiProblem::slow(format!("the body did not come in {} s", PATIENCE.as_secs()));
    let read = timeout(PATIENCE, Bytes::from_request(request, &())).await.map_err(slow)?;
    read.map_err(|error| match error {
        BytesRejection::FailedToBufferBody(inner) if inner.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large; send less at a time")
        }
        other => ApiProblem::bad(other.body_text()),
    })
}

/// Forms of other types are what a page can send without asking; only what a route names is read.
fn check_type(request: &Request, media: &str) -> ApiResult<()> {
    let given = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(media) {
        return Ok(());
    }
    let detail = match given {
        Some(given) => format!("content-type is {given:?}; send {media}"),
        None => format!("there is no content-type; send {media}"),
    };
    Err(ApiProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// A body in a file without a name, so that it may be larger than memory.
async fn spool(body: Body, patience: Duration) -> ApiResult<File> {
    let mut file = waiting(tempfile::tempfile).await?;
    let (mut pieces, mut size) = (body.into_data_stream(), 0u64);
    let slow = |_| {
        let seconds = patience.as_secs();
        ApiProblem::slow(format!("nothing more of the body came for {seconds} s; send it again"))
    };
    while let Some(piece) = timeout(patience, pieces.next()).await.map_err(slow)? {
        let piece = piece.map_err(|error| ApiProblem::bad(format!("the body broke off: {error}")))?;
        size += piece.len() as u64;
        if size > MOST {
            let detail = format!("a body has at most {MOST} bytes");
            return Err(ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        file = waiting(move || file.write_all(&piece).map(|()| file)).await?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Does something with a file on a thread that may wait.
async fn waiting(work: impl FnOnce() -> io::Result<File> + Send + 'static) -> io::Result<File> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_export_that_stops_coming_is_told() {
        let never = Body::from_stream(futures_util::stream::pending::<io::Result<bytes::Bytes>>());
        let told = spool(never, Duration::from_millis(20)).await.err().unwrap();
        assert_eq!(told.status, StatusCode::REQUEST_TIMEOUT);
    }
}
