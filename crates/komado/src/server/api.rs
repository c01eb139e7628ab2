//! The HTTP API under `/api/v1`: every verb, for programs.
//!
//! One file per resource; each handler decodes, finds its session through the desk (`call::Desk`), calls what the command line
//! calls, and answers the same JSON. Which sessions exist for a guest is decided in one place, `Desk::session`. Refused:
//! settings, which hold keys, and anything that is not in the document at `/api/v1/openapi.json`.

mod answers;
mod call;
mod document;
mod events;
mod operation;
mod output;
pub(crate) mod problem;
mod report;
mod shape;
mod stream;
mod tag;
mod take;
#[cfg(test)]
mod tests;
mod transfer;

use super::House;
use crate::fault::Outcome;
use answers::Answers;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Json, Router};
use call::Shared;
use document::{Table, Top, finish, known};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use komado_core::SessionId;
use komado_ops::ALL;
use problem::Problem;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Bytes of a JSON body.
const BODY: usize = 32 << 20;

/// Its routes.
pub(crate) fn routes(house: &Arc<House>) -> Router<Arc<House>> {
    let (router, document) = routed().split_for_parts();
    let document = Arc::new(finish(&document, ALL));
    let table = Arc::new(Table::of(&document));
    // On this machine, wherever the sessions are: whoever repeats a call repeats it here.
    let config = &house.context.config;
    let answers = crate::stores::is_kept(config).then(|| Answers::at(&config.base_dir));
    let shared = Arc::new(Shared::new(answers.unwrap_or_default()));
    let text = document.to_string();
    operation::routed(router, ALL)
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
        .layer(Extension(shared))
}

/// Forgets what calls about a session were answered, in the table in `base_dir`.
pub(crate) fn forget_session(base_dir: &Path, id: &SessionId) -> Outcome {
    Answers::at(base_dir).forget_session(id)
}

/// Every route that is in the document.
fn routed() -> OpenApiRouter<Arc<House>> {
    OpenApiRouter::with_openapi(Top::openapi())
        .routes(routes!(output::whole))
        .routes(routes!(transfer::import))
        .routes(routes!(events::of_session))
        .routes(routes!(events::of_all))
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
            "tasks": "/api/v1/tasks",
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
