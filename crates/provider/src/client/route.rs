//! The ways out: with or without a proxy, with or without certificates.
//!
//! A way is made when it is first taken. So a machine without a single certificate can still speak to the server beside
//! it, and whoever speaks only to that one never waits for certificates to be read.

use super::error::chain;
use super::{Incoming, SendError};
use crate::provider::{is_loopback, shown};
use reqwest::{ClientBuilder, Method, RequestBuilder, Url};
use std::sync::OnceLock;
use std::time::Duration;

/// How long a connection waits for the next request. Servers close theirs within seconds to minutes.
const KEPT: Duration = Duration::from_secs(30);

/// Every way out, as far as it was taken.
pub(super) struct Routes {
    connect: Duration,
    /// Anywhere and to this machine, each in the open and secured. To this machine there is no proxy, and in the open
    /// there are no certificates.
    ways: [[OnceLock<reqwest::Client>; 2]; 2],
}

impl Routes {
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
pub(super) fn redirect(answer: &Incoming) -> Option<String> {
    let to = answer.header("location").filter(|_| (300..400).contains(&answer.status))?;
    let whole = Url::parse(answer.url()).and_then(|url| url.join(to));
    Some(whole.map_or_else(|_| to.to_owned(), String::from))
}
