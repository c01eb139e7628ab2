//! Comparing two moments, and taking a secret out.

use super::call::{At, Call, Desk, In};
use super::problem::{Answer, Problem};
use super::shape;
use super::take::{Body, Named};
use crate::verb;
use axum::Json;
use http::StatusCode;
use komado_core::Address;
use serde::Deserialize;
use serde_json::Value;
use std::sync::PoisonError;
use utoipa::ToSchema;

/// A moment of a thread of the session: never of another one.
fn moment(desk: &Desk, at: &At, text: &str) -> Answer<Address> {
    let (thread, seq) = match text.split_once('@') {
        Some((thread, seq)) => {
            let wrong = |_| Problem::bad(format!("{text:?} is no moment; write THREAD@SEQ, such as root@12"));
            (thread, Some(seq.parse().map_err(wrong)?))
        }
        None => (text, None),
    };
    let found = desk.thread(&In { session: at.session.clone(), thread: thread.to_owned() })?;
    Ok(Address { session: found.session, thread: Some(found.thread), seq })
}

/// What to take out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "hunter2", "reason": "a password"}))]
pub(super) struct Redact {
    /// Every occurrence of this text.
    #[schema(min_length = 1)]
    text: Option<String>,
    /// Everything that matches this regular expression.
    #[schema(min_length = 1)]
    pattern: Option<String>,
    /// One entry, THREAD@SEQ.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}@[0-9]{1,8}$")]
    entry: Option<String>,
    /// Why; kept with each changed entry.
    reason: String,
}

/// Take a secret out for good; this cannot be undone
#[utoipa::path(post, path = "/api/v1/sessions/{session}/redact", tag = "journal", params(At), request_body = Redact,
    responses((status = 200, body = shape::Redacted)))]
pub(super) async fn redact(
    call: Call,
    Named(at): Named<At>,
    Body(body): Body<Redact>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let (session, _) = desk.session(&at.session)?;
        let given = [&body.text, &body.pattern, &body.entry].iter().filter(|one| one.is_some()).count();
        if given != 1 {
            return Err(Problem::unusable("give one of text, pattern and entry"));
        }
        let address = match &body.entry {
            Some(entry) if !entry.contains('@') => {
                return Err(Problem::bad(format!(
                    "{entry:?} is no entry; write THREAD@SEQ, such as root@12"
                )));
            }
            Some(entry) => moment(desk, &at, entry)?,
            None => Address { session: session.clone(), thread: None, seq: None },
        };
        let room = desk.app.lock(&session);
        let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
        let args = verb::redact::Args {
            address,
            text: body.text,
            pattern: body.pattern,
            reason: body.reason,
            yes: true,
        };
        let (row, left) = verb::redact::take_out(&desk.app, args)?;
        let still = verb::redact::complain(&left);
        still.map_err(|fault| Problem::new(StatusCode::CONFLICT, fault.message()))?;
        Ok(row)
    })
    .await
    .map(Json)
}
