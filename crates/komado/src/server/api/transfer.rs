//! Sessions that are imported from a stream.

use super::call::Call;
use super::problem::{Answer, Problem};
use super::shape;
use super::take::Params;
use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use komado_ops::session::import_checked;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

/// The media type of an export: JSON lines.
const LINES: &str = "application/x-ndjson";

/// Bytes of an export that is taken in.
const MOST: u64 = 4 << 30;

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
    let patience = Duration::from_secs(u64::from(call.house.context.config.server.timeout_seconds));
    let file = spool(request.into_body(), patience).await?;
    let made = call
        .run(move |desk| Ok(import_checked(&desk.context, &mut BufReader::new(file), asked.name.as_deref())?))
        .await?;
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
