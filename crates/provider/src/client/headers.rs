//! What is said before a request: who asks, in which form, and what the owner wants said besides.

use super::SendError;
use crate::dialect::Dialect;
use crate::provider::Provider;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

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
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("its name is no header's name"))?;
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| bad("its value holds a line break or another control character"))?;
    value.set_sensitive(true);
    match given {
        Given::First => headers.insert(key, value).is_some(),
        Given::Again => headers.append(key, value),
    };
    Ok(())
}
