//! How a request is read: names in the path, parameters, a JSON body.
//!
//! Whatever does not fit is a problem that names it. Unknown parameters are refused for all routes at once, by what the document
//! lists (`document::Table`); unknown fields by the types themselves.

use super::problem::{Answer, Problem};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use komado_ops::Arguments;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// How long a JSON body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names in the path.
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(error) => Err(Problem::bad(error.body_text())),
        }
    }
}

/// Parameters after the question mark.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(error) => Err(Problem::bad(error.body_text())),
        }
    }
}

/// The fields of a JSON body, which may be left out where nothing is to be said; and a digest of what was sent.
pub(super) async fn arguments(request: Request) -> Answer<(Arguments, blake3::Hash)> {
    let typed = check_type(&request);
    let bytes = bytes(request, &()).await?;
    let digest = blake3::hash(&bytes);
    if bytes.is_empty() || typed.is_ok() && bytes.trim_ascii() == b"null" {
        return Ok((Arguments::default(), digest));
    }
    typed?;
    let text = object(&bytes)?;
    let given = Arguments::parse(text).map_err(|error| unfit(&error.to_string()))?;
    Ok((given, digest))
}

fn unfit(why: &str) -> Problem {
    Problem::bad(format!("the body does not fit: {why}"))
}

/// The text of a JSON object.
fn object(bytes: &[u8]) -> Answer<&str> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| unfit(&format!("it is not UTF-8: byte {} is wrong", error.valid_up_to() + 1)))?;
    match text.trim_start().starts_with('{') {
        true => Ok(text),
        false => Err(unfit("it is not a JSON object")),
    }
}

/// Reads a body, as far as bodies may be large.
pub(super) async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Answer<Bytes> {
    let slow = |_| {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come in {} s", PATIENCE.as_secs()),
        )
    };
    let read = timeout(PATIENCE, Bytes::from_request(request, state)).await.map_err(slow)?;
    read.map_err(|error| match error {
        BytesRejection::FailedToBufferBody(inner) if inner.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large; send less at a time")
        }
        other => Problem::bad(other.body_text()),
    })
}

/// Forms of other types are what a page can send without asking; only JSON is read.
fn check_type(request: &Request) -> Answer<()> {
    let given = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = match given {
        Some(given) => format!("content-type is {given:?}; send application/json"),
        None => "there is no content-type; send application/json".to_owned(),
    };
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}
