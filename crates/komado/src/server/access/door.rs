//! What is read at the door, and what is said to whoever is turned away.
//!
//! Each kind of client is answered in the form it knows: problem+json for the API, and for the gateway the error of the dialect
//! that is spoken at that path. Refused: words that tell a stranger more than that a key is needed.

use super::{KEY, is_ours};
use crate::server::api::problem::Problem;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use komado_provider::Refusal;
use std::net::{IpAddr, Ipv6Addr};

/// The header that some clients send their key in.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The header in which a browser says whether a page of another site asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Someone who does not come in, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Away {
    /// The status.
    pub(crate) status: StatusCode,
    /// Why, and what to do.
    pub(crate) detail: String,
}

impl Away {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(super) fn no_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "a key is needed: send it as Authorization: Bearer kmd_…, x-api-key or x-komado-key; `komado key add NAME` makes one",
        )
    }

    pub(super) fn unknown() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "this key is not known, or was revoked; `komado key list` shows which there are",
        )
    }

    pub(super) fn expired(name: &str) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            format!("key {name} has expired; `komado key add` makes another one"),
        )
    }

    pub(super) fn closed() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the keys cannot be read, so nobody comes in; the owner of the server finds out why with `komado key list`",
        )
    }

    pub(super) fn stranger() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "there are no keys, so only this machine is served; `komado key add NAME` makes one for others",
        )
    }

    /// The answer, in the form that whoever asks at `path` knows.
    pub(crate) fn respond(self, path: &str) -> Response {
        if is_api(path) {
            return self.problem();
        }
        let refusal = Refusal::of(self.status.as_u16(), self.detail.as_str());
        let (_, body) = crate::server::gateway::dialect_at(path).refusal(&refusal);
        self.challenge((self.status, [(CONTENT_TYPE, "application/json")], body).into_response())
    }

    fn problem(self) -> Response {
        let response = Problem::new(self.status, self.detail.clone()).into_response();
        self.challenge(response)
    }

    fn challenge(&self, mut response: Response) -> Response {
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"komado\""));
        }
        response
    }
}

/// True for the paths that are Komado's own and not an agent's.
fn is_api(path: &str) -> bool {
    ["/api/v1", "/mcp"]
        .iter()
        .any(|own| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Takes every key of ours out of the headers, and gives the first: one that was sent for us alone, else the one that stands
/// where the upstream's would.
pub(super) fn take_key(headers: &mut HeaderMap) -> Option<String> {
    let own = headers.remove(KEY).map(|value| value.to_str().unwrap_or_default().trim().to_owned());
    let bearer = ours(headers, &AUTHORIZATION, |text| {
        let (scheme, key) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key)
    });
    let api = ours(headers, &API_KEY, |text| Some(text));
    own.or(bearer).or(api)
}

fn ours(headers: &mut HeaderMap, name: &HeaderName, read: fn(&str) -> Option<&str>) -> Option<String> {
    let key = |value: &HeaderValue| Some(read(value.to_str().ok()?.trim())?.trim().to_owned());
    let found = headers.get_all(name).iter().filter_map(key).find(|key| is_ours(key))?;
    headers.remove(name);
    Some(found)
}

/// Without keys a browser on this machine could be led here by any page: by a name that leads to this machine, by a form, or by a
/// picture whose address is ours. A program sends nothing of what tells of a page.
pub(super) fn check_browser(headers: &HeaderMap, path: &str) -> Result<(), Away> {
    let texts = |name: HeaderName| -> Vec<String> {
        headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?").to_owned()).collect()
    };
    // Agents reach the gateway from containers, too; by no name that anyone out there can have lead here.
    let is_known = |host: &String| is_local(host) || !is_api(path) && is_near(host);
    if let Some(host) = texts(HOST).into_iter().find(|host| !is_known(host)) {
        return Err(Away::new(
            StatusCode::FORBIDDEN,
            format!("Host {host:?} is not this machine: ask for localhost or 127.0.0.1, or use a key"),
        ));
    }
    let origins = texts(ORIGIN);
    if let Some(origin) = origins.iter().find(|origin| is_foreign(origin, path)) {
        return Err(Away::new(
            StatusCode::FORBIDDEN,
            format!("a page whose Origin is {origin:?} may not ask here without a key"),
        ));
    }
    // Pictures, scripts and links carry no Origin.
    let is_from_elsewhere = |site: &String| site.eq_ignore_ascii_case("cross-site");
    if origins.is_empty() && texts(FETCH_SITE).iter().any(is_from_elsewhere) {
        return Err(Away::new(
            StatusCode::FORBIDDEN,
            "a page of another site may not ask here without a key (Sec-Fetch-Site: cross-site)",
        ));
    }
    Ok(())
}

/// True for the origin of a page that is not of this machine. `null` is that of a page without one of its own: a sandboxed frame of
/// any site, or a file that was saved from one. An application whose pages have a scheme of their own may use the gateway.
fn is_foreign(origin: &str, path: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return true };
    let is_of_the_web = ["http", "https", "file"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    !is_local(host) && (is_of_the_web || is_api(path))
}

/// The name in `name:port`, or the address in `[address]:port`; nothing where it is written in any other way.
fn bare(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(address, _)| address.parse::<Ipv6Addr>().is_ok())?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    (is_name(name) && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))).then_some(name)
}

/// True for `localhost`, `127.0.0.1:4141`, `[::1]` and the like.
fn is_local(host: &str) -> bool {
    let Some(name) = bare(host) else { return false };
    let address = name.parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// True for an address of a machine (`0.0.0.0` is none, and leads to this one from some browsers), and for a name that a stranger's page cannot have: one without a dot, `*.localhost`, and the one
/// by which containers reach their host.
fn is_near(host: &str) -> bool {
    let Some(name) = bare(host).map(str::to_ascii_lowercase) else { return false };
    if let Ok(address) = name.parse::<IpAddr>() {
        return !address.to_canonical().is_unspecified();
    }
    name == "host.docker.internal" || name.ends_with(".localhost") || !name.is_empty() && !name.contains('.')
}
