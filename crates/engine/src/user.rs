//! What is kept of a user: a standing session, what was said lately, habits; and how all of it is forgotten.
//!
//! A user is a name that sessions carry. Nothing here keeps a table of its own: whatever is told of a user is read from
//! their sessions when it is asked for, so there is nothing to fall out of step, and nothing left over when they go.

use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::SessionId;
use komado_core::session::Session;
use komado_store::Query;
use serde::Serialize;
use std::collections::BTreeMap;

mod forget;
mod habits;
mod recent;

pub use forget::Kept;
pub use habits::{Habits, Share};
pub use recent::{Place, Spoken};

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

/// A user, and what their sessions add up to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// The name.
    pub user: String,
    /// Sessions.
    pub sessions: u64,
    /// Tokens all calls took.
    pub total_tokens: u64,
    /// When the first session was made.
    pub first_seen: String,
    /// When anything of theirs last changed.
    pub last_seen: String,
}

impl User {
    fn new(user: &str, session: &Session) -> Self {
        let (first_seen, last_seen) = (session.meta.created_at.clone(), session.updated_at.clone());
        Self { user: user.to_owned(), sessions: 0, total_tokens: 0, first_seen, last_seen }
    }

    fn add(&mut self, session: &Session) {
        self.sessions += 1;
        self.total_tokens += session.counters.total_tokens;
        if session.meta.created_at < self.first_seen {
            self.first_seen.clone_from(&session.meta.created_at);
        }
        if session.updated_at > self.last_seen {
            self.last_seen.clone_from(&session.updated_at);
        }
    }
}

impl Engine {
    /// The users after `after` by name, at most `limit`.
    pub fn users(&self, after: Option<&str>, limit: usize) -> Result<Vec<User>> {
        let mut page: BTreeMap<String, User> = BTreeMap::new();
        self.each_session(Query::default(), |session| {
            let Some(user) = session.meta.user.as_deref() else { return Ok(()) };
            if after.is_some_and(|after| user <= after) {
                return Ok(());
            }
            if !page.contains_key(user) {
                page.insert(user.to_owned(), User::new(user, session));
                if page.len() > limit {
                    page.pop_last();
                }
            }
            if let Some(known) = page.get_mut(user) {
                known.add(session);
            }
            Ok(())
        })?;
        Ok(page.into_values().collect())
    }

    /// One user, when anything is known of them.
    pub fn user(&self, user: &str) -> Result<Option<User>> {
        let mut sum: Option<User> = None;
        self.each_session(Query { user: Some(user.to_owned()), ..Query::default() }, |session| {
            sum.get_or_insert_with(|| User::new(user, session)).add(session);
            Ok(())
        })?;
        Ok(sum)
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
