//! Where each path leads.
//!
//! One door for all: the path says which dialect is spoken, and so how even an error about the path itself looks.

use super::about::{self, Page};
use super::decide::{self, Request};
use super::words::Refusal;
use super::{Host, discard, stream};
use crate::dialect::Dialect;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

type Answer = Response<Body>;

/// Everything the server answers to.
pub(super) fn router(host: Arc<Host>) -> Router {
    Router::new().fallback(answer).with_state(host)
}

/// Where a request wants to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    /// A model is asked.
    Ask(Dialect),
    /// A request is only counted.
    Count,
    /// The server is asked about itself.
    About(Page),
    /// Nowhere, with the status that says why.
    Nowhere(Dialect, u16),
}

impl Route {
    fn of(method: &Method, path: &str) -> Self {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        let (wanted, route) = match path {
            "/v1/chat/completions" | "/chat/completions" => (Method::POST, Self::Ask(Dialect::Chat)),
            "/v1/responses" | "/responses" => (Method::POST, Self::Ask(Dialect::Responses)),
            "/v1/messages" | "/messages" => (Method::POST, Self::Ask(Dialect::Messages)),
            "/v1/messages/count_tokens" => (Method::POST, Self::Count),
            "/api/chat" => (Method::POST, Self::Ask(Dialect::Ollama)),
            "/api/show" => (Method::POST, Self::About(Page::Show)),
            other => match page(other) {
                Some(page) => (Method::GET, Self::About(page)),
                None => return Self::Nowhere(dialect(path), 404),
            },
        };
        // Whoever asks for the head of a page is answered as if for the page.
        match *method == wanted || (*method == Method::HEAD && wanted == Method::GET) {
            true => route,
            false => Self::Nowhere(dialect(path), 405),
        }
    }
}

fn page(path: &str) -> Option<Page> {
    Some(match path {
        "/" => Page::Root,
        "/healthz" | "/health" => Page::Health,
        "/v1/models" | "/models" => Page::Models,
        "/props" => Page::Props,
        "/api/ps" => Page::Ps,
        "/api/tags" => Page::Tags,
        "/api/version" => Page::Version,
        "/api/v0/models" => Page::LmModels,
        _ => return None,
    })
}

/// Who is likely to ask at a path that leads nowhere.
fn dialect(path: &str) -> Dialect {
    match path {
        _ if path.starts_with("/api/") => Dialect::Ollama,
        _ if path.starts_with("/v1/messages") => Dialect::Messages,
        _ if path.starts_with("/v1/responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

async fn answer(State(host): State<Arc<Host>>, request: axum::extract::Request) -> Answer {
    let (parts, body) = request.into_parts();
    match Route::of(&parts.method, parts.uri.path()) {
        Route::Ask(dialect) if host.options.discard => discarded(&host, dialect, &parts, body).await,
        Route::Ask(dialect) => asked(host, dialect, &parts, body).await,
        Route::Count => counted(host, &parts, body).await,
        Route::About(page) => told(&host, page, &parts),
        Route::Nowhere(dialect, status) => nowhere(&host, dialect, status, &parts),
    }
}

async fn asked(host: Arc<Host>, dialect: Dialect, parts: &Parts, body: Body) -> Answer {
    let Some(request) = whole(dialect, parts, body).await else { return gone() };
    // Counting takes a while; other requests go on meanwhile.
    let decided = tokio::task::spawn_blocking(move || decide::decide(&host, request)).await;
    let Ok(decision) = decided else { return bug() };
    if !decision.delay.is_zero() {
        tokio::time::sleep(decision.delay).await;
    }
    stream::response(dialect, decision)
}

async fn counted(host: Arc<Host>, parts: &Parts, body: Body) -> Answer {
    let Some(request) = whole(Dialect::Messages, parts, body).await else { return gone() };
    match tokio::task::spawn_blocking(move || decide::count(&host, &request)).await {
        Ok(Ok(tokens)) => page_of(&json!({ "input_tokens": tokens })),
        Ok(Err(refusal)) => stream::refused(refusal, None),
        Err(_) => bug(),
    }
}

async fn discarded(host: &Host, dialect: Dialect, parts: &Parts, body: Body) -> Answer {
    match discard::take(host, dialect, path(parts), headers(&parts.headers), body).await {
        Some(decision) => stream::response(dialect, decision),
        None => gone(),
    }
}

/// The request with all of its body, however large; `None` when the client went away.
async fn whole(dialect: Dialect, parts: &Parts, body: Body) -> Option<Request> {
    let body = axum::body::to_bytes(body, usize::MAX).await.ok()?;
    Some(Request { dialect, path: path(parts), headers: headers(&parts.headers), body })
}

fn told(host: &Host, page: Page, parts: &Parts) -> Answer {
    let anthropic = parts.headers.contains_key("anthropic-version");
    match about::page(page, host.options.words, host.options.window, anthropic) {
        Some(value) => page_of(&value),
        None => nowhere(host, dialect(parts.uri.path()), 404, parts),
    }
}

fn nowhere(host: &Host, dialect: Dialect, status: u16, parts: &Parts) -> Answer {
    let asked = format!("{} {}", parts.method, parts.uri.path());
    stream::refused(host.options.words.nothing_here(dialect, status, &asked), None)
}

fn page_of(value: &Value) -> Answer {
    stream::whole(StatusCode::OK, value.to_string().into_bytes(), None)
}

/// Nobody is there to read it.
fn gone() -> Answer {
    stream::refused(Refusal::new(400, r#"{"error":"the request ended before its body did"}"#), None)
}

/// A panic while deciding.
fn bug() -> Answer {
    stream::refused(Refusal::new(500, r#"{"error":"the model server failed; this is a bug in it"}"#), None)
}

fn path(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), |path| path.as_str().to_owned())
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
