//! ETags: which moment an answer is of.
//!
//! `"root@12-4f3a…"`: the thread, its last entry, and a digest of what was sent. A reader who has it gets 304; a writer who
//! sends it as If-Match is refused with 412 when the thread has gone on since.

use super::problem::{Answer, Problem};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

/// A strong tag: `place` and a digest of `bytes`.
pub(super) fn of(place: &str, bytes: &[u8]) -> String {
    from_digest(place, &blake3::hash(bytes))
}

/// The same where the digest was taken on the way.
pub(super) fn from_digest(place: &str, digest: &blake3::Hash) -> String {
    format!("\"{place}-{}\"", &digest.to_hex()[..16])
}

/// The answer, or that nothing has changed.
pub(super) fn answer(headers: &HeaderMap, tag: &str, body: impl Into<Body>) -> Response {
    let value = HeaderValue::from_str(tag).ok();
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known =
        known.is_some_and(|known| any(known, |one| one == "*" || one.trim_start_matches("W/") == tag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body.into().into_response(),
    };
    if !is_known {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(value) = value {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// Refuses a writer who has seen another moment than `now`.
pub(super) fn check(headers: &HeaderMap, now: &str) -> Answer<()> {
    let Some(wanted) = headers.get(IF_MATCH) else { return Ok(()) };
    let wanted = wanted.to_str().unwrap_or("?");
    // What stands behind the last dash is a digest of one answer; a writer means the moment.
    let is_now = |one: &str| {
        let moment = one.trim_matches('"');
        one == "*" || moment == now || moment.rsplit_once('-').is_some_and(|(moment, _)| moment == now)
    };
    if any(wanted, is_now) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::PRECONDITION_FAILED,
        format!(
            "If-Match is {wanted}, but this is at \"{now}\" now; read what came in between, then try again"
        ),
    ))
}

fn any(list: &str, test: impl Fn(&str) -> bool) -> bool {
    list.split(',').any(|one| test(one.trim()))
}
