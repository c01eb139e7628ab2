//! The HTTP API under `/api/v1`: every operation, for programs.
//!
//! Routes, document and the table of parameters come from the one list of operations. A request is read into named arguments
//! (`request`), the operation is run in the context of its caller (`operation`), and its result is answered (`response`).
//! Refused: settings, which hold keys, and anything that is not in the document at `/api/v1/openapi.json`.

mod answers;
mod document;
mod events;
mod operation;
pub(crate) mod problem;
mod report;
mod request;
mod response;
#[cfg(test)]
mod tests;

use super::House;
use crate::fault::Outcome;
use answers::Answers;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Json, Router};
use document::{Table, document, known};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use komado_core::SessionId;
use komado_ops::ALL;
use problem::Problem;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a JSON body.
const BODY: usize = 32 << 20;

/// Its routes.
pub(crate) fn routes(house: &Arc<House>) -> Router<Arc<House>> {
    let document = document(ALL);
    let table = Arc::new(Table::of(&document));
    // On this machine, wherever the sessions are: a call is repeated where it was made.
    let config = &house.context.config;
    let answers = crate::stores::is_kept(config).then(|| Answers::at(&config.base_dir));
    let text = document.to_string();
    operation::routed(Router::new(), ALL)
        .route(
            "/api/v1/openapi.json",
            get(move || async move { ([(CONTENT_TYPE, "application/json")], text) }),
        )
        .route("/api/v1", get(index))
        .route("/api/v1/", get(index))
        .method_not_allowed_fallback(wrong_method)
        .route("/api/v1/{*rest}", any(nowhere))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn(known))
        .layer(Extension(table))
        .layer(Extension(Arc::new(answers.unwrap_or_default())))
}

/// Forgets what calls about a session were answered, in the table in `base_dir`.
pub(crate) fn forget_session(base_dir: &Path, id: &SessionId) -> Outcome {
    Answers::at(base_dir).forget_session(id)
}

/// Where to begin.
async fn index() -> Json<Value> {
    Json(json!({
        "name": "komado",
        "version": env!("CARGO_PKG_VERSION"),
        "links": {
            "document": "/api/v1/openapi.json",
            "sessions": "/api/v1/sessions",
            "users": "/api/v1/users",
            "recall": "/api/v1/recall",
            "stats": "/api/v1/stats",
            "report": "/api/v1/report",
            "events": "/api/v1/events",
            "models": "/api/v1/models",
        },
    }))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let detail = format!("{method} does not go with {}; the header allow says what does", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}

async fn nowhere(uri: Uri) -> Problem {
    Problem::missing(format!("there is no {}; /api/v1/openapi.json lists every route", uri.path()))
}
