//! A server at an address. The protocol's library brings its own way to speak HTTP; ours bounds what is read, goes nowhere
//! it was not sent, and says in plain words what an address answered that is no MCP server.

use super::MOST_MESSAGE;
use super::connection::{chain, short};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use komado_provider::provider::shown;
use reqwest::{RequestBuilder, Response, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::error::Error;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the other side may take to pick up, and how long a connection is kept for the next request.
const CONNECT: Duration = Duration::from_secs(10);
const KEPT: Duration = Duration::from_secs(30);
/// The most bytes of a refusal that are read.
const MOST_REFUSAL: usize = 16 << 10;

type Fault = StreamableHttpError<McpHttpError>;

/// What went wrong, in words.
#[derive(Debug, thiserror::Error)]
pub(super) enum McpHttpError {
    #[error("it sent a message of more than {} MiB", .0 >> 20)]
    TooLong(usize),
    #[error("{0}")]
    Other(String),
}

/// How to speak to the server at an address.
pub(super) fn transport(
    url: &str,
    headers: &[(String, String)],
    too_long: Arc<AtomicBool>,
) -> Result<StreamableHttpClientTransport<McpHttpClient>, String> {
    let place = Url::parse(url).map_err(|why| format!("its url {:?} is none: {why}", shown(url)))?;
    if !matches!(place.scheme(), "http" | "https") {
        return Err(format!("its url {:?} is neither http nor https", shown(url)));
    }
    let client =
        client(&place).map_err(|why| format!("{}; are the system's certificates there?", chain(&why)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = headers.iter().map(header).collect::<Result<_, _>>()?;
    config.max_sse_event_size = MOST_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(McpHttpClient { client, too_long }, config))
}

fn header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue), String> {
    let named = HeaderName::try_from(name).map_err(|_| format!("{name:?} is not a name of a header"))?;
    let mut value =
        HeaderValue::try_from(value).map_err(|_| format!("the value of its header {name} cannot be sent"))?;
    value.set_sensitive(true);
    Ok((named, value))
}

fn client(place: &Url) -> reqwest::Result<reqwest::Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster, with the same choice.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let begin = || {
        let builder = reqwest::Client::builder().connect_timeout(CONNECT).pool_idle_timeout(KEPT);
        let builder = builder.redirect(reqwest::redirect::Policy::none()).retry(reqwest::retry::never());
        if is_here(place) { builder.no_proxy() } else { builder }
    };
    // In the open no certificates are needed, and a machine may have none.
    if place.scheme() == "http" {
        begin().build().or_else(|_| begin().tls_certs_only([]).build())
    } else {
        begin().build()
    }
}

fn is_here(place: &Url) -> bool {
    let host = place.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Speaks HTTP to a server. The protocol's library says only that a stream has ended; `too_long` says when we ended it.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    client: reqwest::Client,
    too_long: Arc<AtomicBool>,
}

impl StreamableHttpClient for McpHttpClient {
    type Error = McpHttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let request = self.client.post(&*uri).body(serde_json::to_vec(&message)?);
        let answer = send(request, session.as_deref(), headers).await?;
        let status = answer.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refusal(answer, wants_answer).await;
        }
        if !wants_answer || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text_of(answer.headers(), HEADER_SESSION_ID);
        match kind(&answer) {
            Kind::Events => Ok(StreamableHttpPostResponse::Sse(events(answer, &self.too_long), session)),
            Kind::Json => Ok(StreamableHttpPostResponse::Json(message_in(answer).await?, session)),
            Kind::Other(kind) => {
                Err(refused(format!("it answered with {kind}, not with MCP; is the address right?")))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Fault> {
        // A server may refuse, and forgets the session by itself.
        send(self.client.delete(&*uri), Some(&session), headers).await.map(drop)
    }

    /// Only to hear the rest of an answer that broke off. What a server says unasked is not listened to: nothing of it
    /// is used, and it would keep a connection open.
    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Fault> {
        let Some(last_event) = last_event else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        let request = self.client.get(&*uri).header(HEADER_LAST_EVENT_ID, last_event);
        let answer = send(request, session.as_deref(), headers).await?;
        match kind(&answer) {
            Kind::Events if answer.status().is_success() => Ok(events(answer, &self.too_long)),
            _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
    }
}

async fn send(
    request: RequestBuilder,
    session: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<Response, Fault> {
    let mut all: HeaderMap = headers.into_iter().collect();
    all.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    all.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MIME_TYPE));
    if let Some(session) = session {
        let session = HeaderValue::from_str(session);
        all.insert(
            HEADER_SESSION_ID,
            session.map_err(|why| refused(format!("its session has no name: {why}")))?,
        );
    }
    let sent = request.headers(all).send().await;
    sent.map_err(|why| refused(format!("it cannot be reached: {}", chain(&why.without_url()))))
}

/// What a refusal says: a message of the protocol, if it is one.
async fn refusal(answer: Response, wants_answer: bool) -> Result<StreamableHttpPostResponse, Fault> {
    let status = answer.status();
    if let Some(to) = text_of(answer.headers(), LOCATION).filter(|_| status.is_redirection()) {
        let to = shown(&to);
        return Err(refused(format!(
            "it sends us to {to} (HTTP {status}), where we do not go; if it is there now, set its url"
        )));
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; its settings need the right headers",
        StatusCode::NOT_FOUND => "; is the address right?",
        _ => "",
    };
    let is_json = matches!(kind(&answer), Kind::Json);
    let body = read(answer, MOST_REFUSAL).await.unwrap_or_default();
    match serde_json::from_slice(&body) {
        Ok(message @ ServerJsonRpcMessage::Error(_)) if is_json && wants_answer && hint.is_empty() => {
            Ok(StreamableHttpPostResponse::Json(message, None))
        }
        _ => {
            let words =
                if is_json { format!(": {}", short(&String::from_utf8_lossy(&body))) } else { String::new() };
            Err(refused(format!("it answered HTTP {status}{words}{hint}")))
        }
    }
}

enum Kind {
    Events,
    Json,
    Other(String),
}

fn kind(answer: &Response) -> Kind {
    match text_of(answer.headers(), CONTENT_TYPE) {
        Some(kind) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => Kind::Events,
        Some(kind) if kind.starts_with(JSON_MIME_TYPE) => Kind::Json,
        Some(kind) => Kind::Other(short(&kind)),
        None => Kind::Other("something of no kind".to_owned()),
    }
}

fn text_of(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

async fn message_in(answer: Response) -> Result<ServerJsonRpcMessage, Fault> {
    let body = read(answer, MOST_MESSAGE).await.map_err(StreamableHttpError::Client)?;
    serde_json::from_slice(&body)
        .map_err(|why| refused(format!("it answered with JSON that is not MCP: {why}")))
}

async fn read(answer: Response, most: usize) -> Result<Vec<u8>, McpHttpError> {
    let mut body = Vec::new();
    let mut pieces = bounded(answer, most);
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece?);
    }
    Ok(body)
}

fn events(answer: Response, too_long: &Arc<AtomicBool>) -> BoxStream<'static, Result<Sse, SseError>> {
    let too_long = Arc::clone(too_long);
    let pieces = bounded(answer, MOST_MESSAGE);
    SseStream::from_bytes_stream(pieces.inspect_err(move |why| {
        too_long.store(matches!(why, McpHttpError::TooLong(_)), Ordering::Release);
    }))
    .boxed()
}

/// The bytes of an answer, up to so many.
fn bounded(
    answer: Response,
    most: usize,
) -> impl Stream<Item = Result<Bytes, McpHttpError>> + Send + Unpin + 'static {
    let pieces = answer.bytes_stream().scan(0, move |seen, piece| {
        let piece = piece.map_err(|why| {
            McpHttpError::Other(format!("its answer broke off: {}", chain(&why.without_url())))
        });
        ready(Some(piece.and_then(|piece| {
            *seen += piece.len();
            if *seen > most { Err(McpHttpError::TooLong(most)) } else { Ok(piece) }
        })))
    });
    Box::pin(pieces)
}

fn refused(why: String) -> Fault {
    StreamableHttpError::Client(McpHttpError::Other(why))
}

/// An error of this way to speak, in words.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<Fault>() {
        Some(StreamableHttpError::Client(refused)) => refused.to_string(),
        _ => chain(error),
    }
}
