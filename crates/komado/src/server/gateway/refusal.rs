//! An error of ours as an answer; its words are those of the API that the client speaks. Nothing here holds a key.

use super::super::metrics::STATUS_BY_US;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use komado_provider::{Dialect, SendError, Step};

/// An error of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// Seconds after which to come again.
    pub(super) retry_after: Option<u32>,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    /// The same, with the wish to be asked again later.
    pub(super) fn later(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// What is said when the provider could not be asked.
    pub(super) fn of(error: &SendError) -> Self {
        let status = match error {
            SendError::TimedOut { step: Step::Answer | Step::Piece, .. } => 504,
            SendError::Cancelled => 499,
            _ => 502,
        };
        Self::new(status, error.to_string())
    }

    /// The error as the client reads it.
    pub(super) fn body(&self, dialect: Dialect) -> Vec<u8> {
        dialect.refusal(&komado_provider::Refusal::of(self.status, self.message.as_str())).1
    }

    /// The answer.
    pub(super) fn response(&self, dialect: Dialect) -> Response {
        let mut response = Response::new(Body::from(self.body(dialect)));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Whoever counts answers can tell ours from the provider's.
        headers.insert(STATUS_BY_US, HeaderValue::from_static("komado"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_is_slow_is_told_from_one_that_is_away() {
        let slow = SendError::TimedOut {
            url: "u".into(),
            step: Step::Answer,
            after: std::time::Duration::from_secs(1),
        };
        let away = SendError::Unreachable { url: "u".into(), why: "refused".into() };
        assert_eq!((Refusal::of(&slow).status, Refusal::of(&away).status), (504, 502));
    }
}
