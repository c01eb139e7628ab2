//! The users there are, a page at a time.
//!
//! One pass over the table of sessions for each page, and no more than a page in memory, whoever and how many they are.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::session::Session;
use komado_store::Query;
use serde::Serialize;
use std::collections::BTreeMap;

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
