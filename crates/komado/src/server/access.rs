//! Who may come in, and what they may see.
//!
//! Without keys the server serves every client that reaches it, and for that reason only this machine can. A key is shown once and kept
//! as a digest; it belongs to a user, and leads to sessions. Refused: a guess at who a client is. Where the keys cannot be
//! read and never could, no client comes in, because no client can be told from another; keys that were read once stay good
//! while their file is away, because clients must not suffer from that.

#[cfg(test)]
mod tests;

use super::ServerState;
use super::api::ApiProblem;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
pub(crate) use komado_ops::ApiCaller;
use komado_ops::key::file::{self as keys, KeyFile, KeyFileStamp, PREFIX, StoredKey};
use komado_ops::{OpFault, OpResult};
use komado_provider::ApiRefusal;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The header that carries a key of ours beside whatever is meant for the upstream.
const KEY: &str = "x-komado-key";

/// The keys, and what is asked of whom.
#[derive(Debug, Default)]
pub(crate) struct ClientAccess {
    /// The file; `None` where there are no keys at all.
    path: Option<PathBuf>,
    held: RwLock<ReadKeys>,
}

/// The file as it was last read.
#[derive(Debug, Default)]
struct ReadKeys {
    stamp: Option<KeyFileStamp>,
    keys: KeyFile,
    /// Why it could not be read.
    wrong: Option<String>,
}

/// The caller with a key.
fn caller(key: &StoredKey) -> ApiCaller {
    ApiCaller {
        key: Some(key.name.clone()),
        user: key.user.clone(),
        sees_all: key.sees == keys::Sees::All,
        sessions: key.sessions.clone(),
        rate: key.rate,
        concurrency: key.concurrency,
    }
}

impl ClientAccess {
    /// The keys in `base_dir`. A file that cannot be read is an error here, before anything is served.
    pub(crate) fn open(base_dir: &Path) -> OpResult<Self> {
        let path = keys::place(base_dir);
        let stamp = KeyFileStamp::of(&path);
        let keys = KeyFile::read(&path).map_err(|fault| OpFault::input(fault.message().to_owned()))?;
        let held = RwLock::new(ReadKeys { stamp, keys, wrong: None });
        Ok(Self { path: Some(path), held })
    }

    /// True when a key is asked for. So it is where the keys cannot be read.
    pub(crate) fn has_keys(&self) -> bool {
        self.refresh();
        let held = self.read();
        held.wrong.is_some() || !held.keys.is_empty()
    }

    /// Reads the file again when it is another one than before. A look at the file is cheap, and makes a revoked key
    /// useless with the next request. Where it is gone or cannot be read, the keys that were there are: revoking the
    /// last one leaves a file with none, and a folder that is away for a moment neither locks clients out nor lets
    /// strangers in.
    fn refresh(&self) {
        let Some(path) = &self.path else { return };
        let stamp = KeyFileStamp::of(path);
        if self.read().stamp == stamp {
            return;
        }
        let read = KeyFile::read(path);
        let is_gone = stamp.is_none() || KeyFileStamp::of(path).is_none();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.stamp = stamp;
        match read {
            Ok(keys) if !is_gone => (held.keys, held.wrong) = (keys, None),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "the key file is gone; keys read before stay valid")
            }
            Err(fault) if held.keys.is_empty() => held.wrong = Some(fault.message().to_owned()),
            Err(fault) => tracing::warn!(why = fault.message(), "keys read before stay valid"),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, ReadKeys> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit_request(&self, request: &mut Request) -> Result<ApiCaller, NotAdmitted> {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
        let path = request.uri().path().to_owned();
        self.admit(request.headers_mut(), &path, peer)
    }

    /// Who sends a request that comes from `peer`; what is ours is taken out of its headers, so that no key of ours is
    /// ever sent on.
    fn admit(
        &self,
        headers: &mut HeaderMap,
        path: &str,
        peer: Option<SocketAddr>,
    ) -> Result<ApiCaller, NotAdmitted> {
        self.refresh();
        let given = take_key(headers);
        let held = self.read();
        if held.wrong.is_some() {
            return Err(NotAdmitted::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the keys cannot be read, so no client comes in; the owner of the server finds out why with `komado admin key list`",
            ));
        }
        if let Some(given) = given {
            let now = komado_ops::clock::stamp(jiff::Timestamp::now());
            return match held.keys.find(&given) {
                Some(key) if key.is_expired(&now) => Err(NotAdmitted::no_key(format!(
                    "key {} has expired; `komado admin key add` makes another one",
                    key.name
                ))),
                Some(key) => Ok(caller(key)),
                None => Err(NotAdmitted::no_key(
                    "this key is not known, or was revoked; `komado admin key list` shows which there are",
                )),
            };
        }
        if !held.keys.is_empty() {
            return Err(NotAdmitted::no_key(
                "a key is needed: send it as Authorization: Bearer kmd_…, x-api-key or x-komado-key; `komado admin key add NAME` makes one",
            ));
        }
        if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) {
            return Err(NotAdmitted::forbidden(
                "there are no keys, so only this machine is served; `komado admin key add NAME` makes one for others",
            ));
        }
        check_browser(headers, path)?;
        Ok(ApiCaller::owner())
    }
}

/// Lets in who may come in; an [`ApiCaller`] is among the request's extensions from here on.
pub(crate) async fn gate(
    State(house): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = house.access.admit_request(&mut request);
    let passed = admitted.map(|guest| drop(request.extensions_mut().insert(guest)));
    pass(passed, request, next).await
}

/// Admits a request for the state or the figures of a server that only this machine can reach: with a key, or without one when no
/// page of another site sent it.
pub(crate) async fn look(
    State(house): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = house.access.admit_request(&mut request).map(drop);
    let admitted = admitted.or_else(|_| check_browser(request.headers(), request.uri().path()));
    pass(admitted, request, next).await
}

/// Admits a request that asks whether the process runs. On a server with keys that is every request, for any host: load balancers and
/// containers have no key, and the answer tells a page nothing.
pub(crate) async fn alive(State(house): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let has_keys = house.access.has_keys();
    let checked = if has_keys { Ok(()) } else { check_browser(request.headers(), request.uri().path()) };
    pass(checked, request, next).await
}

async fn pass(admitted: Result<(), NotAdmitted>, request: Request, next: Next) -> Response {
    match admitted {
        Ok(()) => next.run(request).await,
        Err(away) => away.respond(request.uri().path()),
    }
}

/// True for a text that has the form of a key of ours.
pub(crate) fn is_ours(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The header that some clients send their key in.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The header in which a browser says whether a page of another site asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a client does not come in.
///
/// Each kind of client is answered in the form it knows: problem+json for the API, and for the gateway the error of the dialect
/// that is spoken at that path. Refused: words that tell an outsider more than that a key is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NotAdmitted {
    /// The status.
    status: StatusCode,
    /// Why, and what to do.
    detail: String,
}

impl NotAdmitted {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    fn no_key(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// The answer, in the form that clients of `path` know.
    fn respond(self, path: &str) -> Response {
        let status = self.status;
        let mut response = if is_api(path) {
            ApiProblem::new(status, self.detail).into_response()
        } else {
            let refusal = ApiRefusal::of(status.as_u16(), self.detail.as_str());
            let (_, body) = super::gateway::dialect_at(path).refusal(&refusal);
            (status, [(CONTENT_TYPE, "application/json")], body).into_response()
        };
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"komado\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
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
fn take_key(headers: &mut HeaderMap) -> Option<String> {
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
fn check_browser(headers: &HeaderMap, path: &str) -> Result<(), NotAdmitted> {
    let texts = |name: HeaderName| -> Vec<String> {
        headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?").to_owned()).collect()
    };
    // Agents reach the gateway from containers, too; by no name that a page out there can have lead here.
    let is_known = |host: &String| is_local(host) || !is_api(path) && is_near(host);
    if let Some(host) = texts(HOST).into_iter().find(|host| !is_known(host)) {
        return Err(NotAdmitted::forbidden(format!(
            "Host {host:?} is not this machine: ask for localhost or 127.0.0.1, or use a key"
        )));
    }
    let origins = texts(ORIGIN);
    if let Some(origin) = origins.iter().find(|origin| is_foreign(origin, path)) {
        return Err(NotAdmitted::forbidden(format!(
            "a page whose Origin is {origin:?} may not ask here without a key"
        )));
    }
    // Pictures, scripts and links carry no Origin.
    let is_from_elsewhere = |site: &String| site.eq_ignore_ascii_case("cross-site");
    if origins.is_empty() && texts(FETCH_SITE).iter().any(is_from_elsewhere) {
        return Err(NotAdmitted::forbidden(
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
