//! The names of all keys.
//!
//! What belongs to one session shares a hash tag, so that one script may touch all of it on a cluster too.

use komado_core::SessionId;

/// Names keys under one prefix.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// All keys of a session, the one that decides whether it is there first.
    pub(super) fn session(&self, id: &SessionId) -> Vec<String> {
        let tag = format!("{{{}:{id}}}", self.prefix);
        let rest = ["tree", "outputs", "shelf", "sheets"].map(|name| format!("{tag}:{name}"));
        std::iter::once(tag).chain(rest).collect()
    }

    /// The key that decides whether a session is there.
    pub(super) fn heart(&self, id: &SessionId) -> String {
        format!("{{{}:{id}}}", self.prefix)
    }

    /// Sessions in the order of making.
    pub(super) fn made(&self) -> String {
        format!("{{{}}}:sessions", self.prefix)
    }

    /// The same by user.
    pub(super) fn users(&self) -> String {
        format!("{{{}}}:users", self.prefix)
    }

    pub(super) fn lessons(&self) -> String {
        format!("{{{}}}:lessons", self.prefix)
    }

    /// The moments of one name.
    pub(super) fn spots(&self, name: &str) -> String {
        format!("{{{}:spot:{}}}", self.prefix, blake3::hash(name.as_bytes()).to_hex())
    }

    /// A session's moments, each with the name it is found by. It outlives the session, to clean up after it.
    pub(super) fn names(&self, id: &SessionId) -> String {
        format!("{{{}}}:spots:{id}", self.prefix)
    }

    /// Everything about the queue.
    pub(super) fn queue(&self) -> Vec<String> {
        let names = [
            "jobs", "line", "ready", "hidden", "dead", "keys", "tries", "why", "tokens", "holders", "nonces",
        ];
        names.iter().map(|name| format!("{{{}:queue}}:{name}", self.prefix)).collect()
    }

    /// The channel that tells what happens.
    pub(super) fn news(&self) -> String {
        format!("{}:news", self.prefix)
    }
}

/// A session in the order of making; `made` sorts as text.
pub(super) fn made(created_at: &str, id: &SessionId) -> String {
    format!("{created_at}\0{id}")
}

/// The place of a session in the order of making, as an index names it: with or without whose it is.
pub(super) fn place(member: &str) -> &str {
    let mut parts = member.rsplitn(3, '\0').skip(2);
    parts.next().map_or(member, |user| &member[user.len() + 1..])
}

/// What the names of one user's sessions begin with.
pub(super) fn user(user: &str) -> String {
    format!("{}\0", &blake3::hash(user.as_bytes()).to_hex()[..32])
}
