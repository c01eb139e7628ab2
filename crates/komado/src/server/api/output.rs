//! Outputs that were too long to be shown, taken whole.

use super::call::Call;
use super::problem::Answer;
use super::stream;
use super::take::Named;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, HeaderName};
use komado_ops::address::AtThread;
use serde::Deserialize;
use std::io;
use utoipa::IntoParams;

/// An output in a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfOutput {
    /// The session's id, in full
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    session: String,
    /// The thread's id
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    thread: String,
    /// The output's id or a beginning of it; or @ and the number of an entry
    #[param(example = "@1", pattern = "^(@[0-9]{1,8}|[0-9a-f]{1,64})$")]
    ref_id: String,
}

/// The bytes of an output, all of them
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/outputs/{ref_id}/raw", tag = "outputs",
    params(OfOutput), responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub(super) async fn whole(call: Call, Named(of): Named<OfOutput>) -> Answer<Response> {
    let bytes = call
        .run(move |desk| {
            let at = AtThread { session: Some(of.session), thread: Some(of.thread) };
            Ok(komado_ops::output::bytes(&desk.context, &at, &of.ref_id)?)
        })
        .await?;
    let mut bytes = bytes;
    let body = stream::written(move |out| io::copy(&mut bytes, out).map(|_| ()));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // What a tool printed is never to run in a browser.
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    Ok(response)
}
