//! Traces, for operators who want to see where the time of a request went: OTLP over HTTP, with the client that everything else
//! here uses.
//!
//! A span says what was done, how long it took and with which provider; never what was said, and no key. Spans wait in a
//! queue of fixed size on their way: a collector that is away costs nothing but the spans.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use komado_config::TraceConfig;
use komado_ops::{OpFault, OpResult};
use komado_provider::client::ClientTimeouts;
use komado_provider::{Cancel, Client, ClientBody, ForwardRequest};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

/// How long the collector may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last spans may take at the end.
const LAST: Duration = Duration::from_secs(2);
/// The longest answer of a collector that is read.
const LONGEST: usize = 64 << 10;

/// Where spans go.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// To the collector of the settings; `None` when there is none.
    pub(crate) fn begin(wishes: &TraceConfig) -> OpResult<Option<Self>> {
        let Some(endpoint) = &wishes.endpoint else { return Ok(None) };
        let wrong =
            |why: String| OpFault::usage(format!("telemetry.otlp_endpoint: traces cannot be sent: {why}"));
        let patience = ClientTimeouts {
            connect: PATIENCE,
            first: PATIENCE,
            idle: PATIENCE,
            tries: 1,
            ..ClientTimeouts::default()
        };
        let client = Client::new(patience).map_err(|error| wrong(error.to_string()))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(SpanSender(client))
            .with_endpoint(place(endpoint))
            .with_timeout(PATIENCE)
            .with_headers(headers(wishes.headers.as_deref().unwrap_or_default()))
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let resource = Resource::builder().with_service_name(wishes.service.clone()).build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Some(Self(provider)))
    }

    /// What hands spans over.
    pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("komado"))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

/// The address for traces of a collector: as it is given, or below it.
fn place(endpoint: &str) -> String {
    const PATH: &str = "/v1/traces";
    let base = endpoint.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") }
}

/// `NAME=VALUE`, with commas between.
fn headers(text: &str) -> HashMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Lets a span go on with the trace that the client began, if it did.
pub(crate) fn go_on(span: &Span, headers: &HeaderMap) {
    if headers.contains_key("traceparent") {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Refused only where spans have no listener.
        let _ = span.set_parent(parent);
    }
}

/// Sends spans. It blocks, on the thread that the spans wait on.
struct SpanSender(Client);

impl std::fmt::Debug for SpanSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Post")
    }
}

impl SpanSender {
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<_> =
            parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let (url, body) = (parts.uri.to_string(), ClientBody::Bytes(body));
        let forward = ForwardRequest { method: parts.method, url: &url, headers: &headers, body };
        let mut incoming = self.0.forward(forward, &Cancel::default())?;
        let mut answer = Vec::new();
        while let Some(piece) = incoming.chunk()?.filter(|_| answer.len() < LONGEST) {
            answer.extend_from_slice(&piece);
        }
        Ok(Response::builder().status(incoming.status).body(Bytes::from(answer))?)
    }
}

impl HttpClient for SpanSender {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(std::future::ready(self.send(request)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_collector_is_completed_once() {
        for given in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(place(given), "http://c:4318/v1/traces");
        }
    }

    #[test]
    fn headers_are_pairs_with_commas_between() {
        let read = headers("api-key=a=b, team=窓,none");
        assert_eq!((read["api-key"].as_str(), read["team"].as_str(), read.len()), ("a=b", "窓", 2));
    }
}
