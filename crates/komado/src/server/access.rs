//! Who may come in, and what they may see.
//!
//! Without keys the server serves whoever reaches it, and for that reason only this machine can. A key is shown once and kept
//! as a digest; it belongs to a user, and leads to sessions. Refused: a guess at who someone is. Where the keys cannot be
//! read and never could, nobody comes in, because nobody can be told from anybody else; keys that were read once stay good
//! while their file is away, because clients must not suffer from that.

pub(crate) mod door;

use super::House;
use crate::fault::{Fault, Outcome};
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use door::Away;
use http::HeaderMap;
pub(crate) use komado_ops::Caller;
use komado_ops::key::file::{self as keys, Key, Keys, PREFIX, Stamp};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The header that carries a key of ours beside whatever is meant for the upstream.
pub(crate) const KEY: &str = "x-komado-key";

/// The keys, and what is asked of whom.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The file; `None` where there are no keys at all.
    path: Option<PathBuf>,
    held: RwLock<Held>,
}

/// The file as it was last read.
#[derive(Debug, Default)]
struct Held {
    stamp: Option<Stamp>,
    keys: Keys,
    /// Why it could not be read.
    wrong: Option<String>,
}

/// The caller with a key.
fn caller(key: &Key) -> Caller {
    Caller {
        key: Some(key.name.clone()),
        user: key.user.clone(),
        sees_all: key.sees == keys::Sees::All,
        sessions: key.sessions.clone(),
        rate: key.rate,
        concurrency: key.concurrency,
    }
}

impl Access {
    /// The keys in `base_dir`. A file that cannot be read is an error here, before anything is served.
    pub(crate) fn open(base_dir: &Path) -> Outcome<Self> {
        let path = keys::place(base_dir);
        let stamp = Stamp::of(&path);
        let keys = Keys::read(&path).map_err(|fault| Fault::input(fault.message().to_owned()))?;
        let held = RwLock::new(Held { stamp, keys, wrong: None });
        Ok(Self { path: Some(path), held })
    }

    /// True when a key is asked for. So it is where the keys cannot be read.
    pub(crate) fn has_keys(&self) -> bool {
        self.refresh();
        let held = self.read();
        held.wrong.is_some() || !held.keys.is_empty()
    }

    /// Reads the file again when it is another one than before. A look at the file is cheap, and makes a revoked key
    /// useless with the next request. Where it is gone or cannot be read, the keys that were there are: whoever revokes the
    /// last one leaves a file with none, and a folder that is away for a moment neither locks clients out nor lets
    /// strangers in.
    fn refresh(&self) {
        let Some(path) = &self.path else { return };
        let stamp = Stamp::of(path);
        if self.read().stamp == stamp {
            return;
        }
        let read = Keys::read(path);
        let is_gone = stamp.is_none() || Stamp::of(path).is_none();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.stamp = stamp;
        match read {
            Ok(keys) if !is_gone => (held.keys, held.wrong) = (keys, None),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "the keys are gone; those that were there stay good")
            }
            Err(fault) if held.keys.is_empty() => held.wrong = Some(fault.message().to_owned()),
            Err(fault) => tracing::warn!(why = fault.message(), "the keys that were read before stay good"),
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who sends a request that comes from `peer`; what is ours is taken out of its headers, so that no key of ours is
    /// ever sent on.
    pub(crate) fn admit(
        &self,
        headers: &mut HeaderMap,
        path: &str,
        peer: Option<SocketAddr>,
    ) -> Result<Caller, Away> {
        self.refresh();
        let given = door::take_key(headers);
        let held = self.read();
        if held.wrong.is_some() {
            return Err(Away::closed());
        }
        if let Some(given) = given {
            let now = crate::clock::stamp(jiff::Timestamp::now());
            return match held.keys.find(&given) {
                Some(key) if key.is_expired(&now) => Err(Away::expired(&key.name)),
                Some(key) => Ok(caller(key)),
                None => Err(Away::unknown()),
            };
        }
        if !held.keys.is_empty() {
            return Err(Away::no_key());
        }
        if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) {
            return Err(Away::stranger());
        }
        door::check_browser(headers, path)?;
        Ok(Caller::owner())
    }
}

/// Lets in who may come in; a [`Caller`] is among the request's extensions from here on.
pub(crate) async fn gate(State(house): State<Arc<House>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let path = request.uri().path().to_owned();
    match house.access.admit(request.headers_mut(), &path, peer) {
        Ok(guest) => {
            request.extensions_mut().insert(guest);
            next.run(request).await
        }
        Err(away) => away.respond(&path),
    }
}

/// Admits a request for the state or the figures of a server that only this machine can reach: with a key, or without one when no
/// page of another site sent it.
pub(crate) async fn look(State(house): State<Arc<House>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let path = request.uri().path().to_owned();
    let admitted = house.access.admit(request.headers_mut(), &path, peer);
    match admitted.map(drop).or_else(|_| door::check_browser(request.headers(), &path)) {
        Ok(()) => next.run(request).await,
        Err(away) => away.respond(&path),
    }
}

/// Admits a request that asks whether the process runs. On a server with keys that is every request, for any host: load balancers and
/// containers have no key, and the answer tells a page nothing.
pub(crate) async fn alive(State(house): State<Arc<House>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let checked =
        if house.access.has_keys() { Ok(()) } else { door::check_browser(request.headers(), &path) };
    match checked {
        Ok(()) => next.run(request).await,
        Err(away) => away.respond(&path),
    }
}

/// True for a text that has the form of a key of ours.
pub(crate) fn is_ours(text: &str) -> bool {
    text.starts_with(PREFIX)
}

#[cfg(test)]
#[path = "access/tests.rs"]
mod tests;
