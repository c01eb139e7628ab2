//! Sessions on their way: exported as a stream, imported from one.

use super::call::{At, Call, Desk};
use super::problem::{Answer, Problem};
use super::take::{Named, Params};
use super::{shape, stream};
use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use komado_core::SessionId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

/// The media type of an export: JSON lines.
const LINES: &str = "application/x-ndjson";

/// Bytes of an export that is taken in.
const MOST: u64 = 4 << 30;

/// Bytes of its first line.
const FIRST: u64 = 1 << 20;

/// A session as one stream, as `komado export` writes it
#[utoipa::path(get, path = "/api/v1/sessions/{session}/export", tag = "sessions", params(At),
    responses((status = 200, body = String, content_type = "application/x-ndjson")))]
pub(super) async fn export(call: Call, Named(at): Named<At>) -> Answer<Response> {
    let engine = call.house.app.engine.clone();
    let (id, _) = call.run(move |desk| desk.session(&at.session)).await?;
    let name = format!("attachment; filename=\"{}.jsonl\"", id.as_str().replace(':', "_"));
    let body = stream::written(move |out| engine.export(&id, out, |_| {}).map_err(std::io::Error::other));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Under which name.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Under {
    /// Another id for the session
    #[serde(rename = "as")]
    #[param(rename = "as", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    name: Option<String>,
}

/// Read a session that was exported
#[utoipa::path(post, path = "/api/v1/import", tag = "sessions", params(Under),
    request_body(content = String, content_type = "application/x-ndjson", description = "What `export` gave"),
    responses((status = 201, body = shape::Imported)))]
pub(super) async fn import(call: Call, Params(asked): Params<Under>, request: Request) -> Answer<Response> {
    let given = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?").to_owned());
    let essence =
        given.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
    if !essence.eq_ignore_ascii_case(LINES) {
        let detail = format!("content-type is {:?}; send {LINES}", given.unwrap_or_default());
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let patience = Duration::from_secs(u64::from(call.house.app.config.server.timeout_seconds));
    let file = spool(request.into_body(), patience).await?;
    let made = call.run(move |desk| bring(desk, file, asked.name)).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// The body in a file without a name, so that it may be larger than memory.
async fn spool(body: Body, patience: Duration) -> Answer<File> {
    let mut file = waiting(tempfile::tempfile).await?;
    let (mut pieces, mut size) = (body.into_data_stream(), 0u64);
    let slow = |_| {
        let detail = format!("nothing more of the body came for {} s; send it again", patience.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    };
    while let Some(piece) = timeout(patience, pieces.next()).await.map_err(slow)? {
        let piece = piece.map_err(|error| Problem::bad(format!("the body broke off: {error}")))?;
        size += piece.len() as u64;
        if size > MOST {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("an export has at most {MOST} bytes"),
            ));
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

fn bring(desk: &mut Desk, file: File, name: Option<String>) -> Answer<Value> {
    let mut from = BufReader::new(file);
    let (id, user) = opening(&mut from)?;
    let id = desk.free_name(name.as_deref().unwrap_or(&id))?;
    if !desk.guest.sees_all && user != desk.guest.user {
        let whose = user.unwrap_or_else(|| "nobody".to_owned());
        return Err(Problem::forbidden(format!(
            "the export is of a session of {whose}, which this key does not see"
        )));
    }
    from.seek(SeekFrom::Start(0))?;
    let id = desk.app.engine.import(&mut from, Some(id), |_| {})?;
    let status = desk.app.session(&id)?.status.name();
    Ok(json!({ "session": id.as_str(), "status": status }))
}

/// The id and the user that an export names in its first line.
fn opening(from: &mut impl BufRead) -> Answer<(String, Option<String>)> {
    let mut line = Vec::new();
    from.take(FIRST).read_until(b'\n', &mut line)?;
    let wrong = || Problem::unusable("the body is not a komado export; send what /export gave, as it is");
    let first: Value = serde_json::from_slice(&line).map_err(|_| wrong())?;
    let session = first.get("session").ok_or_else(wrong)?;
    let id = session.get("uuid").and_then(Value::as_str).ok_or_else(wrong)?;
    let user = session.get("user").and_then(Value::as_str).map(str::to_owned);
    SessionId::new(id).map_err(|error| Problem::unusable(error.to_string()))?;
    Ok((id.to_owned(), user))
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
