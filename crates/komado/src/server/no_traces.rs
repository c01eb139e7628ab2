//! The place of traces in a build without the Cargo feature `otel`: a collector in the settings is refused, spans stay here.

use http::HeaderMap;
use komado_config::TraceWishes;
use komado_ops::{Fault, Outcome};
use std::convert::Infallible;
use tracing::{Span, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Identity;

/// Where spans would go.
pub(crate) struct Traces(Infallible);

impl Traces {
    /// `None`, or why there is no collector.
    pub(crate) fn begin(wishes: &TraceWishes) -> Outcome<Option<Self>> {
        match wishes.endpoint {
            None => Ok(None),
            Some(_) => Err(Fault::usage(
                "telemetry.otlp_endpoint: this build sends no traces; build it with the Cargo feature `otel`",
            )),
        }
    }

    /// There is none to hand spans to.
    pub(crate) fn layer<S: Subscriber>(&self) -> impl Layer<S> + use<S> {
        match self.0 {}
        #[allow(unreachable_code)]
        Identity::new()
    }
}

/// A trace that the client began ends here.
pub(crate) const fn go_on(_span: &Span, _headers: &HeaderMap) {}
