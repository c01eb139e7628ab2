//! The ways out: with or without a proxy, with or without certificates.
//!
//! A way is made when it is first taken. So a machine without a single certificate can still speak to the server beside
//! it, and a program that speaks only to that one never waits for certificates to be read.

use super::error::chain;
use super::{ProviderResponse, SendError};
use crate::dialect::Dialect;
use crate::provider::{Provider, is_loopback, shown};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{ClientBuilder, Method, RequestBuilder, Url};
use std::sync::OnceLock;
use std::time::Duration;

/// How long a connection waits for the next request. Servers close theirs within seconds to minutes.
const KEPT: Duration = Duration::from_secs(30);

/// Every way out, as far as it was taken.
pub(super) struct HttpRoutes {
    connect: Duration,
    /// Anywhere and to this machine, each in the open and secured. To this machine there is no proxy, and in the open
    /// there are no certificates.
    ways: [[OnceLock<reqwest::Client>; 2]; 2],
}

impl HttpRoutes {
    pub(super) fn new(connect: Duration) -> Self {
        Self { connect, ways: Default::default() }
    }

    /// A request to `url`, on the way that leads there.
    pub(super) fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, SendError> {
        let fault = |why: String| SendError::Broken { why: format!("{}: {why}", shown(url)) };
        let url = Url::parse(url).map_err(|why| fault(why.to_string()))?;
        let route = &self.ways[usize::from(is_loopback(&url))][usize::from(url.scheme() == "https")];
        let client = match route.get() {
            Some(client) => client,
            None => {
                let built = self.build(&url).map_err(|error| SendError::Tls {
                    url: shown(url.as_str()),
                    why: format!("{}; install the system's certificates (ca-certificates)", chain(&error)),
                })?;
                route.get_or_init(|| built)
            }
        };
        Ok(client.request(method, url))
    }

    fn build(&self, url: &Url) -> reqwest::Result<reqwest::Client> {
        trust_ring();
        let begin = || if is_loopback(url) { self.begin().no_proxy() } else { self.begin() };
        let bare = || begin().tls_certs_only([]).build();
        match (url.scheme(), is_loopback(url)) {
            ("https", _) => begin().build(),
            (_, true) => bare(),
            // A proxy on the way may want certificates; where there are none it is met without.
            (_, false) => begin().build().or_else(|_| bare()),
        }
    }

    fn begin(&self) -> ClientBuilder {
        reqwest::Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(self.connect)
            .pool_idle_timeout(KEPT)
    }
}

/// Chooses who does the cryptography, unless the program has chosen. The HTTP library can be told only for the whole
/// process, and panics when it was not.
fn trust_ring() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster, with the same choice.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Where an answer points to, if it sends us away.
pub(super) fn redirect(answer: &ProviderResponse) -> Option<String> {
    let to = answer.header("location").filter(|_| (300..400).contains(&answer.status))?;
    let whole = Url::parse(answer.url()).and_then(|url| url.join(to));
    Some(whole.map_or_else(|_| to.to_owned(), String::from))
}

// What is said before a request: who asks, in which form, and what the owner wants said besides.

/// The version of Anthropic's API that is spoken here.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// These are about the form of the body, which is ours beside what belongs to the connection: when a gateway hands on what
/// its client said about another request, they are left out.
const OF_FORM: &str = "accept-encoding content-encoding";

/// The headers of a request to `provider`.
pub(super) fn of(provider: &Provider) -> Result<HeaderMap, SendError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accept = "application/json, text/event-stream, application/x-ndjson";
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
        .insert(header::USER_AGENT, HeaderValue::from_static(concat!("komado/", env!("CARGO_PKG_VERSION"))));
    if provider.dialect == Dialect::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some((name, value)) = provider.credential() {
        put(&mut headers, name, &value, Given::First)?;
    }
    own(&mut headers, &provider.headers)?;
    Ok(headers)
}

/// These belong to the connection alone: what a client said of its own means nothing on ours.
const OF_CONNECTION: &str = "connection content-length expect host keep-alive proxy-connection te trailer \
                             transfer-encoding upgrade";

/// The headers of a request that is sent on, in their order; a name given twice stands twice.
pub(super) fn forwarded(given: &[(String, String)]) -> Result<HeaderMap, SendError> {
    let mut headers = HeaderMap::with_capacity(given.len() + 1);
    for (name, value) in given {
        if !listed(OF_CONNECTION, name) {
            put(&mut headers, name, value, Given::Again)?;
        }
    }
    Ok(headers)
}

/// Adds what the owner wants said: a name takes the place of what stands there, and given twice it stands twice.
fn own(headers: &mut HeaderMap, given: &[(String, String)]) -> Result<(), SendError> {
    for (at, (name, value)) in given.iter().enumerate() {
        if listed(OF_FORM, name) || listed(OF_CONNECTION, name) {
            continue;
        }
        let before = given[..at].iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        put(headers, name, value, if before { Given::Again } else { Given::First })?;
    }
    Ok(())
}

fn listed(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known.eq_ignore_ascii_case(name))
}

enum Given {
    First,
    Again,
}

fn put(headers: &mut HeaderMap, name: &str, value: &str, given: Given) -> Result<(), SendError> {
    let bad = |why| SendError::Header { name: name.to_owned(), why };
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("its name is not a header's name"))?;
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| bad("its value holds a line break or another control character"))?;
    value.set_sensitive(true);
    match given {
        Given::First => headers.insert(key, value).is_some(),
        Given::Again => headers.append(key, value),
    };
    Ok(())
}
