//! Where a transcript is looked for: in the session that was named, or wherever its words stand.

use super::{Caller, alias};
use crate::engine::{Engine, session_of};
use crate::error::{Error, Result};
use komado_core::SessionId;
use komado_core::session::{Session, State};
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
        return match look_up(engine, &session)? {
            None => Ok(Scope::New { session, alias: None }),
            Some(found) if !caller.may_enter(&found) => Err(StoreError::NoSession(session).into()),
            Some(found) if is_open(found.status) => Ok(Scope::Within(session)),
            Some(found) => Err(Error::WrongState {
                session: session.to_string(),
                state: found.status.name(),
                why: "nothing is added to it; name another session, or resume this one first",
            }),
        };
    }
    let Some(alias) = alias(caller) else { return Ok(Scope::Anywhere) };
    // A name can be worked out, and a row may be anyone's: the session must have been made for this name, and be the caller's.
    let is_own =
        |found: &Session| caller.may_enter(found) && found.meta.config.alias.as_ref() == Some(&alias);
    for spot in engine.store().spots(&alias)? {
        match look_up(engine, &spot.session)?.filter(is_own) {
            Some(found) if is_open(found.status) => return Ok(Scope::Within(spot.session)),
            // It ended: the client goes on in a new one, which has the name from then on.
            Some(_) => break,
            None => {}
        }
    }
    // Two first requests at once are of one session: its name follows from the client's own.
    let session = session_of(&alias)?;
    match look_up(engine, &session)? {
        None => Ok(Scope::New { session, alias: Some(alias) }),
        Some(found) if is_own(&found) && is_open(found.status) => Ok(Scope::Within(session)),
        Some(_) => Ok(Scope::New { session: engine.fresh(&alias)?, alias: Some(alias) }),
    }
}

/// True when a session takes more words: one that has ended is left as it is, and one that was made to wait waits.
pub(super) fn is_open(state: State) -> bool {
    !state.is_ended() && state != State::Paused
}

/// A session's attributes; `None` when there is none.
pub(super) fn look_up(engine: &Engine, id: &SessionId) -> Result<Option<Session>> {
    match engine.session(id) {
        Ok(session) => Ok(Some(session)),
        Err(Error::Store(StoreError::NoSession(_))) => Ok(None),
        Err(other) => Err(other),
    }
}
