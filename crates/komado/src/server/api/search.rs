//! Comparing two moments, and taking a secret out.

use super::call::{At, Call, Desk, In};
use super::problem::{Answer, Problem};
use super::shape;
use super::take::{Named, Params};
use crate::verb;
use axum::Json;
use komado_core::Address;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

/// Two moments.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Moments {
    /// The earlier moment, THREAD@SEQ or THREAD
    #[param(example = "root@1", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}(@[0-9]{1,8})?$")]
    from: String,
    /// The later moment; now when left out
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}(@[0-9]{1,8})?$")]
    to: Option<String>,
}

/// Compare what the model saw at two moments
#[utoipa::path(get, path = "/api/v1/sessions/{session}/diff", tag = "view", params(At, Moments),
    responses((status = 200, body = shape::List)))]
pub(super) async fn diff(
    call: Call,
    Named(at): Named<At>,
    Params(moments): Params<Moments>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let before = moment(desk, &at, &moments.from)?;
        let after = moments.to.map(|to| moment(desk, &at, &to)).transpose()?;
        let rows = desk.rows(|app| verb::diff::run(app, verb::diff::Args { before, after }))?;
        Ok(json!({ "items": rows }))
    })
    .await
    .map(Json)
}

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
