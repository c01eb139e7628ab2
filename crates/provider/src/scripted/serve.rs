//! Where each path leads.
//!
//! One door for all: the path says which dialect is spoken, and so how even an error about the path itself looks.

use super::Host;
use super::decide::{self, ScriptedAnswer, ScriptedDecision, ScriptedRequest};
use super::errors::{ErrorStyle, HttpRefusal};
use crate::dialect::{Dialect, Encode, ResponseForm};
use crate::event::ModelEvent;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

type HttpAnswer = Response<Body>;

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
    About,
    /// Nowhere, with the status that says why.
    Nowhere(Dialect, u16),
}

impl Route {
    fn of(method: &Method, path: &str) -> Self {
        let path = bare(path);
        let (wanted, route) = match path {
            "/v1/chat/completions" | "/chat/completions" => (Method::POST, Self::Ask(Dialect::Chat)),
            "/v1/responses" | "/responses" => (Method::POST, Self::Ask(Dialect::Responses)),
            "/v1/messages" | "/messages" => (Method::POST, Self::Ask(Dialect::Messages)),
            "/v1/messages/count_tokens" => (Method::POST, Self::Count),
            "/api/chat" => (Method::POST, Self::Ask(Dialect::Ollama)),
            "/api/show" => (Method::POST, Self::About),
            "/" | "/healthz" | "/health" | "/v1/models" | "/models" | "/props" | "/api/ps" | "/api/tags"
            | "/api/version" | "/api/v0/models" => (Method::GET, Self::About),
            _ => return Self::Nowhere(dialect(path), 404),
        };
        // A request for the head of a page is answered as if for the page.
        match *method == wanted || (*method == Method::HEAD && wanted == Method::GET) {
            true => route,
            false => Self::Nowhere(dialect(path), 405),
        }
    }
}

/// A path without slashes at its end.
fn bare(path: &str) -> &str {
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
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

async fn answer(State(host): State<Arc<Host>>, request: axum::extract::Request) -> HttpAnswer {
    let (parts, body) = request.into_parts();
    match Route::of(&parts.method, parts.uri.path()) {
        Route::Ask(dialect) if host.options.discard => discarded(&host, dialect, &parts, body).await,
        Route::Ask(dialect) => asked(host, dialect, &parts, body).await,
        Route::Count => counted(host, &parts, body).await,
        Route::About => told(&host, &parts),
        Route::Nowhere(dialect, status) => nowhere(&host, dialect, status, &parts),
    }
}

async fn asked(host: Arc<Host>, dialect: Dialect, parts: &Parts, body: Body) -> HttpAnswer {
    let Some(request) = read_request(dialect, parts, body).await else { return gone() };
    // Counting takes a while; other requests go on meanwhile.
    let decided = tokio::task::spawn_blocking(move || decide::decide(&host, request)).await;
    let Ok(decision) = decided else { return bug() };
    if decision.step.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(decision.step.delay_ms)).await;
    }
    response(dialect, decision)
}

async fn counted(host: Arc<Host>, parts: &Parts, body: Body) -> HttpAnswer {
    let Some(request) = read_request(Dialect::Messages, parts, body).await else { return gone() };
    match tokio::task::spawn_blocking(move || decide::count(&host, &request)).await {
        Ok(Ok(tokens)) => page_of(&json!({ "input_tokens": tokens })),
        Ok(Err(refusal)) => refused(refusal, None),
        Err(_) => bug(),
    }
}

async fn discarded(host: &Host, dialect: Dialect, parts: &Parts, body: Body) -> HttpAnswer {
    match decide::take(host, dialect, path(parts), headers(&parts.headers), body).await {
        Some(decision) => response(dialect, decision),
        None => gone(),
    }
}

/// The request with all of its body, however large; `None` when the client went away.
async fn read_request(dialect: Dialect, parts: &Parts, body: Body) -> Option<ScriptedRequest> {
    let body = axum::body::to_bytes(body, usize::MAX).await.ok()?;
    Some(ScriptedRequest { dialect, path: path(parts), headers: headers(&parts.headers), body })
}

fn told(host: &Host, parts: &Parts) -> HttpAnswer {
    let anthropic = parts.headers.contains_key("anthropic-version");
    match about(bare(parts.uri.path()), host.options.words, host.options.window, anthropic) {
        Some(value) => page_of(&value),
        None => nowhere(host, dialect(parts.uri.path()), 404, parts),
    }
}

fn nowhere(host: &Host, dialect: Dialect, status: u16, parts: &Parts) -> HttpAnswer {
    let asked = format!("{} {}", parts.method, parts.uri.path());
    refused(host.options.words.nothing_here(dialect, status, &asked), None)
}

fn page_of(value: &Value) -> HttpAnswer {
    whole(StatusCode::OK, value.to_string().into_bytes(), None)
}

/// The client is gone.
fn gone() -> HttpAnswer {
    refused(HttpRefusal::new(400, r#"{"error":"the request ended before its body did"}"#), None)
}

/// A panic while deciding.
fn bug() -> HttpAnswer {
    refused(HttpRefusal::new(500, r#"{"error":"the model server failed; this is a bug in it"}"#), None)
}

fn path(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), |path| path.as_str().to_owned())
}

fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

// What a server says about itself: its models, and the window they run with.
//
// The server of one provider answers only where that server does, so that a client which tries one address after the
// other finds what it would find there. Without a window nothing is said about it.

/// The model that is listed; any other is answered, too.
pub(super) const MODEL: &str = "scripted";

/// What stands at `path`; `None` when `words` speaks for a server that has no such page.
fn about(path: &str, words: ErrorStyle, window: Option<u64>, anthropic: bool) -> Option<Value> {
    let only = |owner: ErrorStyle| [owner, ErrorStyle::ByDialect].contains(&words);
    match path {
        "/" => Some(json!({ "name": "komado model-server", "status": "running" })),
        "/healthz" | "/health" => Some(json!({ "status": "ok" })),
        "/v1/models" | "/models" if anthropic && only(ErrorStyle::Anthropic) => {
            Some(anthropic_models(window))
        }
        "/v1/models" | "/models" => Some(models(words, window)),
        "/props" => only(ErrorStyle::LlamaCpp).then(|| props(window)),
        "/api/show" => only(ErrorStyle::Ollama).then(|| show(window)),
        "/api/ps" => only(ErrorStyle::Ollama).then(|| json!({ "models": [loaded(window)] })),
        "/api/tags" => only(ErrorStyle::Ollama).then(|| json!({ "models": [installed()] })),
        "/api/version" => only(ErrorStyle::Ollama).then(|| json!({ "version": "0.12.6" })),
        "/api/v0/models" => only(ErrorStyle::LmStudio).then(|| lm_models(window)),
        _ => None,
    }
}

/// `about` with the window under these names, where there is one.
fn sized(mut about: Value, names: &[&str], window: Option<u64>) -> Value {
    for (name, window) in names.iter().zip(window.into_iter().cycle()) {
        about[name] = json!(window);
    }
    about
}

fn models(words: ErrorStyle, window: Option<u64>) -> Value {
    let model = json!({ "id": MODEL, "object": "model", "created": 1_700_000_000, "owned_by": "komado" });
    let model = match (words, window) {
        (ErrorStyle::Vllm, _) => sized(model, &["max_model_len"], window),
        (ErrorStyle::OpenRouter, _) => sized(model, &["context_length"], window),
        (ErrorStyle::LlamaCpp, Some(_)) => {
            let mut model = model;
            model["meta"] = sized(json!({}), &["n_ctx", "n_ctx_train"], window);
            model
        }
        _ => model,
    };
    json!({ "object": "list", "data": [model] })
}

fn anthropic_models(window: Option<u64>) -> Value {
    let model = json!({
        "type": "model", "id": MODEL, "display_name": "Scripted", "created_at": "2023-11-14T22:13:20Z"
    });
    let model = sized(model, &["max_input_tokens"], window);
    json!({ "data": [model], "has_more": false, "first_id": MODEL, "last_id": MODEL })
}

fn props(window: Option<u64>) -> Value {
    json!({
        "default_generation_settings": sized(json!({ "id": 0 }), &["n_ctx"], window), "total_slots": 1, "model_path": MODEL, "model_alias": MODEL,
        "chat_template": "", "build_info": "scripted"
    })
}

fn show(window: Option<u64>) -> Value {
    let mut shown = json!({
        "details": details(), "capabilities": ["completion", "tools", "thinking"],
        "model_info": { "general.architecture": "scripted" }, "template": "", "modelfile": "", "parameters": ""
    });
    if let Some(window) = window {
        shown["parameters"] = json!(format!("num_ctx                        {window}"));
        shown["model_info"]["scripted.context_length"] = json!(window);
    }
    shown
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "gguf", "family": "scripted", "families": ["scripted"],
        "parameter_size": "0B", "quantization_level": "none"
    })
}

fn installed() -> Value {
    json!({
        "name": MODEL, "model": MODEL, "modified_at": "2023-11-14T22:13:20Z", "size": 0, "digest": "0",
        "details": details()
    })
}

fn loaded(window: Option<u64>) -> Value {
    let model = json!({
        "name": MODEL, "model": MODEL, "size": 0, "digest": "0", "details": details(),
        "expires_at": "2318-11-14T22:13:20Z", "size_vram": 0
    });
    sized(model, &["context_length"], window)
}

fn lm_models(window: Option<u64>) -> Value {
    let model = json!({
        "id": MODEL, "object": "model", "type": "llm", "publisher": "komado", "arch": "scripted",
        "compatibility_type": "gguf", "quantization": "none", "state": "loaded"
    });
    let model = sized(model, &["max_context_length", "loaded_context_length"], window);
    json!({ "object": "list", "data": [model] })
}

// An answer's body: piece by piece, with pauses, and cut where the script says so.

/// Time for bytes on their way to leave before the connection is cut.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// The HTTP answer to a request.
pub(super) fn response(dialect: Dialect, decision: ScriptedDecision) -> Response<Body> {
    let (pause, cut) = (Duration::from_millis(decision.step.chunk_delay_ms), decision.step.break_after);
    match decision.answer {
        ScriptedAnswer::Refused(refusal) => refused(refusal, cut),
        ScriptedAnswer::RefusedInStream { refusal, begun, stamp } => {
            let encoder = dialect.encoder(ResponseForm::Stream, stamp);
            let last = failed(dialect, &refusal);
            let pieces = Pieces { encoder, events: begun.into(), last: Some(last), ends: false, pause, cut };
            let mut response = streamed(dialect, pieces);
            retry_after(&mut response, refusal.retry_after);
            response
        }
        ScriptedAnswer::Said { form: ResponseForm::Stream, events, stamp } => {
            let encoder = dialect.encoder(ResponseForm::Stream, stamp);
            streamed(dialect, Pieces { encoder, events: events.into(), last: None, ends: true, pause, cut })
        }
        ScriptedAnswer::Said { form: ResponseForm::Whole, events, stamp } => {
            let mut encoder = dialect.encoder(ResponseForm::Whole, stamp);
            let mut bytes = Vec::new();
            events.iter().for_each(|event| encoder.event(event, &mut bytes));
            encoder.end(&mut bytes);
            whole(StatusCode::OK, bytes, cut)
        }
    }
}

/// An error as an answer.
pub(super) fn refused(refusal: HttpRefusal, cut: Option<u64>) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(status, refusal.body.into_bytes(), cut);
    retry_after(&mut response, refusal.retry_after);
    response
}

fn retry_after(response: &mut Response<Body>, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// A JSON body in one piece. One that is to be cut still promises its whole length.
pub(super) fn whole(status: StatusCode, bytes: Vec<u8>, cut: Option<u64>) -> Response<Body> {
    let length = bytes.len();
    let body = match cut.map(|cut| usize::try_from(cut).unwrap_or(usize::MAX)).filter(|cut| *cut < length) {
        None => Body::from(bytes),
        Some(cut) => {
            let mut left = Some(Bytes::from(bytes).slice(..cut));
            Body::from_stream(futures_util::stream::unfold(0u8, move |state| {
                let piece = left.take().filter(|piece| !piece.is_empty());
                async move {
                    match (piece, state) {
                        (Some(piece), _) => Some((Ok(piece), 1)),
                        (None, 2) => None,
                        (None, _) => {
                            tokio::time::sleep(LAST_WORDS).await;
                            Some((Err(broken()), 2))
                        }
                    }
                }
            }))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn streamed(dialect: Dialect, pieces: Pieces) -> Response<Body> {
    let stream = futures_util::stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.next().await? {
            Ok(bytes) => Some((Ok(bytes), Some(pieces))),
            Err(error) => Some((Err(error), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = match dialect {
        Dialect::Ollama => "application/x-ndjson",
        Dialect::Chat | Dialect::Responses | Dialect::Messages => "text/event-stream; charset=utf-8",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script")
}

/// What is still to be sent.
struct Pieces {
    encoder: Box<dyn Encode>,
    events: VecDeque<ModelEvent>,
    /// Sent as it is when the events are over.
    last: Option<Vec<u8>>,
    /// True while the encoder's own end is still to come.
    ends: bool,
    pause: Duration,
    /// Bytes that may still be sent.
    cut: Option<u64>,
}

impl Pieces {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.cut == Some(0) {
            tokio::time::sleep(LAST_WORDS).await;
            return Some(Err(broken()));
        }
        let (mut bytes, is_content) = self.encode()?;
        if is_content && !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        } else {
            // What was handed on leaves before the next piece is made.
            tokio::task::yield_now().await;
        }
        if let Some(cut) = &mut self.cut {
            bytes.truncate(usize::try_from(*cut).unwrap_or(usize::MAX));
            *cut -= bytes.len() as u64;
        }
        Some(Ok(Bytes::from(bytes)))
    }

    /// The next bytes, and whether a person would see something of them.
    fn encode(&mut self) -> Option<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        while let Some(event) = self.events.pop_front() {
            self.encoder.event(&event, &mut bytes);
            if !bytes.is_empty() {
                return Some((bytes, event.is_content()));
            }
        }
        if std::mem::take(&mut self.ends) {
            self.encoder.end(&mut bytes);
        }
        bytes.extend(self.last.take().unwrap_or_default());
        (!bytes.is_empty()).then_some((bytes, false))
    }
}

/// An error as an event of a stream.
fn failed(dialect: Dialect, refusal: &HttpRefusal) -> Vec<u8> {
    let body = refusal.body.replace('\n', "\ndata: ");
    let text = match dialect {
        Dialect::Chat => format!("data: {body}\n\n"),
        Dialect::Messages => format!("event: error\ndata: {body}\n\n"),
        Dialect::Responses => format!("event: response.failed\ndata: {}\n\n", response_failed(&refusal.body)),
        Dialect::Ollama => format!("{}\n", refusal.body.replace('\n', " ")),
    };
    text.into_bytes()
}

/// An error's words inside a response that failed.
fn response_failed(body: &str) -> Value {
    let told: Value = serde_json::from_str(body).unwrap_or_else(|_| json!({ "message": body }));
    let error = told.get("error").unwrap_or(&told);
    let message = error.get("message").or(error.is_string().then_some(error)).cloned();
    let code = error.get("code").filter(|code| code.is_string()).cloned();
    let (code, message) =
        (code.unwrap_or_else(|| json!("server_error")), message.unwrap_or_else(|| json!(body)));
    let response = json!({
        "id": "resp_failed", "object": "response", "created_at": super::decide::fixed_stamp(false).created,
        "status": "failed", "error": { "code": code, "message": message }, "output": [], "usage": null,
        "metadata": {}
    });
    json!({ "type": "response.failed", "sequence_number": 2, "response": response })
}
