//! What is kept of a user: a standing session, what was said lately, habits; and how all of it is forgotten.
//!
//! A user is a name that sessions carry. Nothing here keeps a table of its own: whatever is told of a user is read from
//! their sessions when it is asked for, so there is nothing to fall out of step, and nothing left over when they go.

mod forget;
mod habits;
mod list;
mod recent;

pub use forget::Kept;
pub use habits::{Habits, Share};
pub use list::User;
pub use recent::{Place, Spoken};

use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::SessionId;
use komado_core::session::Session;
use komado_store::Query;

/// How the names of standing sessions begin.
const BEGIN: &str = "session_";
/// The longest id.
const LONGEST: usize = 128;

/// The name of a user's standing session: `session_ann` for ann. A name that cannot stand in an id is spelled in hex after a
/// colon, and one that is too long for that is a digest after two; so no two users share a session, and a plain name never
/// begins with a colon.
pub fn standing(user: &str) -> Result<SessionId> {
    if user.is_empty() {
        return Err(Error::Unknown { what: "user", given: String::new(), hint: "give a name" });
    }
    let plain = |user: &str| !user.starts_with(':') && SessionId::new(format!("{BEGIN}{user}")).is_ok();
    if plain(user) {
        return Ok(SessionId::new(format!("{BEGIN}{user}"))?);
    }
    let spelled: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
    if BEGIN.len() + 1 + spelled.len() <= LONGEST {
        return Ok(SessionId::new(format!("{BEGIN}:{spelled}"))?);
    }
    Ok(SessionId::new(format!("{BEGIN}::{}", blake3::hash(user.as_bytes()).to_hex()))?)
}

/// True for a name that is kept for the standing session of some user.
pub fn is_standing(id: &SessionId) -> bool {
    id.as_str().starts_with(BEGIN)
}

impl Engine {
    /// A user's standing session, when it was made. One of that name that is somebody else's is refused.
    pub fn standing(&self, user: &str) -> Result<(SessionId, Option<Session>)> {
        let id = standing(user)?;
        let query = Query { id: Some(id.clone()), ..Query::default() };
        let found = self.store().sessions(&query)?.pop();
        match &found {
            Some(session) if session.meta.user.as_deref() != Some(user) => Err(Error::WrongState {
                session: id.to_string(),
                state: session.status.name(),
                why: "it is not this user's, though it has the name of theirs; remove it, or move it to another name",
            }),
            _ => Ok((id, found)),
        }
    }

    /// Refuses a user of whom nothing is known.
    fn known_user(&self, user: &str) -> Result<()> {
        let query = Query { user: Some(user.to_owned()), limit: 1, ..Query::default() };
        match self.store().sessions(&query)?.is_empty() {
            false => Ok(()),
            true => Err(Error::Unknown {
                what: "user",
                given: user.to_owned(),
                hint: "`komado user list` lists them",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_users_share_a_standing_session() {
        let long = ["長".repeat(200), "長".repeat(201), "x".repeat(121), "x".repeat(120)];
        let mut names =
            vec!["ann", "Ann", "太郎", "a b", ":616e6e", ":", "::", "616e6e", "..", "a/b", "a\0b", "-", "é"];
        names.extend(long.iter().map(String::as_str));
        let ids: HashSet<String> = names.iter().map(|name| standing(name).unwrap().to_string()).collect();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
        assert_eq!(standing("ann").unwrap().as_str(), "session_ann");
        assert_eq!(standing("太郎").unwrap().as_str(), "session_:e5a4aae9838e");
        assert!(standing("").is_err());
    }
}
