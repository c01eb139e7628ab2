//! What goes wrong, as RFC 9457 says it: `application/problem+json`, with what to do about it.
//!
//! 400 is for what does not fit the document of this API, 422 for what fits it and cannot be meant. A session that may not be
//! seen is said not to be there, in the same words as one that is not.

use crate::fault::{Exit, Fault};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use komado_ops::Missing;
use schemars::JsonSchema;
use serde::Serialize;

/// What handlers give back.
pub(crate) type Answer<T> = Result<T, Problem>;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Something that went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// The status.
    pub(crate) status: StatusCode,
    /// What went wrong, and what to do.
    pub(crate) detail: String,
    /// Seconds after which the same may work.
    retry: Option<u32>,
}

/// What went wrong (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem", example = Self::example())]
pub(super) struct Body {
    /// Which kind of problem.
    r#type: String,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What went wrong, and what to do.
    detail: String,
}

impl Body {
    fn example() -> Self {
        Self {
            r#type: "urn:komado:problem:not-found".to_owned(),
            title: "Not Found",
            status: 404,
            detail: Problem::no_session("x").detail,
        }
    }
}

impl Problem {
    /// A problem of a status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry: None }
    }

    /// What does not fit the document.
    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What fits the document and cannot be meant.
    pub(super) fn unusable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// What may not be done with this key.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// What is not there.
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// A session that is not there, or not for this caller.
    pub(super) fn no_session(id: &str) -> Self {
        Self::missing(format!(
            "there is no session {id:?} that you may see; GET /api/v1/sessions lists yours"
        ))
    }

    /// The fault is ours.
    pub(super) fn ours(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// A call that ended without an answer.
    pub(super) fn broken_off() -> Self {
        Self::ours("the call broke off; this is a fault in komado, please report it")
    }

    /// A body that does not come.
    pub(super) fn slow(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, detail)
    }

    /// Someone else is at it.
    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self { retry: Some(1), ..Self::new(StatusCode::CONFLICT, detail) }
    }

    /// Enough are at it already; seconds after which to come again.
    pub(super) fn too_many(detail: impl Into<String>, seconds: u32) -> Self {
        Self { retry: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// The last word of its type.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            400 => "bad-request",
            401 => "no-key",
            403 => "not-allowed",
            404 => "not-found",
            405 => "wrong-method",
            406 => "not-acceptable",
            408 => "too-slow",
            409 if self.retry.is_some() => "busy",
            409 => "refused",
            412 => "changed-meanwhile",
            413 => "too-large",
            415 => "wrong-media-type",
            422 => "unusable",
            429 => "too-many",
            503 => "unavailable",
            _ => "fault",
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body {
            r#type: format!("urn:komado:problem:{}", self.kind()),
            title: self.status.canonical_reason().unwrap_or("Problem"),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        let mut response = (self.status, serde_json::to_string(&body).unwrap_or_default()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault.what_is_missing() {
            Some(Missing::Session(id)) => return Self::no_session(id),
            Some(Missing::Thread(session, _)) => {
                let detail =
                    format!("{}; GET /api/v1/sessions/{session}/threads lists them", fault.message());
                return Self::missing(detail);
            }
            Some(Missing::User(user)) => {
                let detail =
                    format!("there is no user {user:?} that you may see; GET /api/v1/users lists yours");
                return Self::missing(detail);
            }
            None => {}
        }
        let detail = fault.message().to_owned();
        match fault.exit() {
            Exit::Malformed => Self::bad(detail),
            Exit::Changed => Self::new(StatusCode::PRECONDITION_FAILED, detail),
            Exit::Forbidden => Self::forbidden(detail),
            Exit::TooMany => Self::too_many(detail, 5),
            Exit::NotFound => Self::missing(detail),
            Exit::Busy => Self::busy(detail),
            Exit::Refused => Self::new(StatusCode::CONFLICT, detail),
            Exit::Usage | Exit::BadInput => Self::unusable(detail),
            Exit::Failed | Exit::Away if fault.is_away() => {
                Self { retry: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
            }
            Exit::Failed | Exit::Away => Self::ours(detail),
        }
    }
}

impl From<komado_engine::Error> for Problem {
    fn from(error: komado_engine::Error) -> Self {
        Fault::from(error).into()
    }
}

impl From<komado_store::Error> for Problem {
    fn from(error: komado_store::Error) -> Self {
        Fault::from(error).into()
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self { retry: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()) }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::ours(error.to_string())
    }
}
