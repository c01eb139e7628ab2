//! Where a transcript is looked for: in the session that was named, or wherever its words stand.

use super::{Caller, alias};
use crate::engine::{Engine, session_of};
use crate::error::{Error, Result};
use komado_core::SessionId;
use komado_core::session::State;
use komado_store::Error as StoreError;

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Nobody named a session.
    Anywhere,
    /// In this one.
    Within(SessionId),
    /// Nowhere: it was named, and is to be made.
    New {
        /// Its name to be.
        session: SessionId,
        /// What the client calls it.
        alias: Option<String>,
    },
}

impl Scope {
    /// The session to look in; `None` to look everywhere, and nothing where there is nothing to look in.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Anywhere => None,
            Self::Within(session) | Self::New { session, .. } => Some(session),
        }
    }
}

/// Our own header comes first, then the client's own name for its session.
pub(super) fn scope(engine: &Engine, caller: &Caller) -> Result<Scope> {
    if let Some(session) = caller.session.clone() {
        return match state(engine, &session)? {
            None => Ok(Scope::New { session, alias: None }),
            Some(state) if is_open(state) => Ok(Scope::Within(session)),
            Some(state) => Err(Error::WrongState {
                session: session.to_string(),
                state: state.name(),
                why: "nothing is added to it; name another session, or resume this one first",
            }),
        };
    }
    let Some(alias) = alias(caller) else { return Ok(Scope::Anywhere) };
    for spot in engine.store().spots(&alias)? {
        match state(engine, &spot.session)? {
            Some(state) if is_open(state) => return Ok(Scope::Within(spot.session)),
            // It ended: the client goes on in a new one, which has the name from then on.
            Some(_) => break,
            None => {}
        }
    }
    // Two first requests at once are of one session: its name follows from the client's own.
    let session = session_of(&alias)?;
    match state(engine, &session)? {
        None => Ok(Scope::New { session, alias: Some(alias) }),
        Some(state) if is_open(state) => Ok(Scope::Within(session)),
        Some(_) => Ok(Scope::New { session: engine.fresh(&alias)?, alias: Some(alias) }),
    }
}

/// True when a session takes more words: one that has ended is left as it is, and one that was made to wait waits.
pub(super) fn is_open(state: State) -> bool {
    !state.is_ended() && state != State::Paused
}

/// Where a session is in its life; `None` when there is none.
pub(super) fn state(engine: &Engine, id: &SessionId) -> Result<Option<State>> {
    match engine.session(id) {
        Ok(session) => Ok(Some(session.status)),
        Err(Error::Store(StoreError::NoSession(_))) => Ok(None),
        Err(other) => Err(other),
    }
}
